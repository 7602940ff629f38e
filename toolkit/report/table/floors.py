"""A group of cells' noise floors, from the arms that were measured twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.floor import Floor, noise_floor

if TYPE_CHECKING:
    from gilscope.toolkit.model import Cell
    from gilscope.toolkit.report.table.cells import Clock, Group, Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """What one group's A/A arms show; None where there is no such arm."""

    single_wall: Floor | None = None   # arms with one worker
    single_cpu: Floor | None = None
    all_wall: Floor | None = None      # the worst of all arms: what comparisons with more workers use
    all_cpu: Floor | None = None

    def bound(self, clock: Clock, workers: int) -> float | None:
        """Return the bound for a comparison whose wider side has `workers`, None when there is no A/A arm."""
        wall, cpu = (self.single_wall, self.single_cpu) if workers == 1 else (self.all_wall, self.all_cpu)
        # Without an arm of one worker the wider arms serve: their floor is higher, which errs on the safe side.
        floor = (wall or self.all_wall) if clock == "wall" else (cpu or self.all_cpu)
        return None if floor is None else floor.bound


def find_floors(index: Index, group: Group) -> Floors:
    """Return the noise floors of one workload, phase and task length."""
    arms = [(cell, twin) for cell, twin in index.twins() if (cell.workload, cell.phase, cell.task_seconds) == group]
    single = [arm for arm in arms if arm[0].workers == 1]
    return Floors(
        single_wall=_floor(index, single, "wall"), single_cpu=_floor(index, single, "cpu"),
        all_wall=_floor(index, arms, "wall"), all_cpu=_floor(index, arms, "cpu"),
    )


def _floor(index: Index, arms: list[tuple[Cell, Cell]], clock: Clock) -> Floor | None:
    pairs = [(index.by(cell, clock), index.by(twin, clock)) for cell, twin in arms]
    usable = [(cell, twin) for cell, twin in pairs if cell.keys() & twin.keys()]
    return noise_floor(usable) if usable else None
