"""What the cells of a group may differ by from themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gilscope.toolkit.report.table.observations import Clock
    from gilscope.toolkit.stats.floor import Floor


@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """What one group's processes show; None where they are too few."""

    single_wall: Floor | None = None   # raised to what A/A arms with one worker were off by
    single_cpu: Floor | None = None
    all_wall: Floor | None = None      # likewise, by all A/A arms: what comparisons with more workers use
    all_cpu: Floor | None = None

    def bound(self, clock: Clock, workers: int) -> float | None:
        """Return the bound for a comparison whose wider side has `workers`, None where it is not known."""
        wall, cpu = (self.single_wall, self.single_cpu) if workers == 1 else (self.all_wall, self.all_cpu)
        # Without an arm of one worker the wider arms serve: their floor is higher, which errs on the safe side.
        floor = (wall or self.all_wall) if clock == "wall" else (cpu or self.all_cpu)
        return None if floor is None else floor.bound
