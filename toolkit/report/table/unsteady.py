"""Serial cells whose CPU time spreads widely: their processes differ, or something changed the speed of their work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median, quantiles
from typing import TYPE_CHECKING

from gilscope.toolkit.model import Phase
from gilscope.toolkit.report.table.observations import Absence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gilscope.toolkit.model import Cell, Observation
    from gilscope.toolkit.report.table.observations import Index

# No share is usual on all machines.  Of the runs in results/example, with both arms of cells that are measured twice:
# 2 to 13 % in the six computing cells of `first-look` and `own-function`, 19 to 51 % in the two of `second-worker`; in
# the other two, 3 to 5 % in `sha256_64k`, and 21 to 83 % in `primes` and `countdown`.
LEAST_SPREAD = 0.30
COMPUTES = 0.75      # of a core that the work keeps busy; the CPU time of waiting work is short and always spreads
FEWEST_VALUES = 10   # for the first and the ninth tenth
TENTHS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsteadyBaseline:
    """A serial cell with a wide spread, in the session with the largest, on the arm with the larger one."""

    cell: Cell
    session: int  # its number, from 1
    low: float    # CPU seconds: a tenth of the values is below it
    high: float   # a tenth is above it
    beside: float | None = None   # the spread of its other arm in that session; None: the cell was measured once

    @property
    def spread(self) -> float:
        """Return the spread as a share: 0.62 is 62 %."""
        return self.high / self.low - 1


def unsteady_baselines(index: Index) -> tuple[UnsteadyBaseline, ...]:
    """Return the serial cells that compute and whose CPU time spreads widely, in the order of the tables."""
    cells = (cell for cell in index.cells() if cell.workers == 1 and cell.runner == index.run.baseline)
    found = (max(_spreads_of_arms(index, cell), key=lambda each: each.spread, default=None) for cell in cells)
    return tuple(each for each in found if each is not None and each.spread > LEAST_SPREAD)


def _spreads_of_arms(index: Index, cell: Cell) -> Iterator[UnsteadyBaseline]:
    """Yield the spread of each session of the cell and of its A/A arm; how sessions differ is another question."""
    if cell.phase is not Phase.STEADY or isinstance(index.look_up(cell), Absence) or not _computes(index, cell):
        return
    observations = index.valid_observations
    arms = [[*_spreads(cell, observations.get(arm, ()))] for arm in (cell, replace(cell, twin=True))]
    for own, other in (arms, arms[::-1]):
        beside = {each.session: each.spread for each in other}
        yield from (replace(each, beside=beside.get(each.session)) for each in own)


def _spreads(cell: Cell, observations: Iterable[Observation]) -> Iterator[UnsteadyBaseline]:
    """Yield the spread of each session of one arm."""
    by_session: dict[int, list[float]] = {}
    for each in observations:
        by_session.setdefault(each.session, []).extend(value for value in each.cpu if value > 0)
    for session, values in by_session.items():
        if len(values) >= FEWEST_VALUES:
            low, *_, high = quantiles(values, n=TENTHS, method="inclusive")
            yield UnsteadyBaseline(cell=cell, session=session, low=low, high=high)


def _computes(index: Index, cell: Cell) -> bool:
    wall, cpu = index.by(cell, "wall"), index.by(cell, "cpu")
    shares = [cpu.get(r, 0.0) / wall[r] for r in wall]
    return bool(shares) and median(shares) >= COMPUTES
