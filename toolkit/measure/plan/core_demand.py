"""What one worker of a cell needs of a core: measured on the serial baseline, unless the user says it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.measure.plan.cells import BASELINE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.model import Cell, Observation

KINDS = {"cpu": 1.0, "io": 0.0}  # what --kind says instead of the measuring


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Knows the demand of each cell's baseline as soon as that was measured."""

    observations: Callable[[Cell], Sequence[Observation]]  # what there is of a cell so far
    tried: Mapping[str, float] = field(default_factory=dict)  # by build, from the trial before the first round
    kind: str | None = None  # of the user's function, as the user says it

    def of(self, cell: Cell) -> float | None:
        """Return the cores' worth that one worker of `cell` keeps busy, None while nobody knows.

        The trial's counts only until the baseline was measured: it is one cold pass.
        """
        if self.kind is not None:
            return KINDS[self.kind]
        baseline = replace(cell, runner=BASELINE, workers=1, twin=False)
        seen = [each.demand for each in self.observations(baseline) if each.demand is not None]
        return median(seen) if seen else self.tried.get(cell.build)
