"""The numbers of one cell and of one row of a table, and the noise floors of a group of cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gilscope.toolkit.metrics import MEMORY
from gilscope.toolkit.report.table.process_notes import process_notes
from gilscope.toolkit.stats.noise_floor import NoiseFloor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.model import Cell, Note
    from gilscope.toolkit.report.table.observations import Absence, MetricValue
    from gilscope.toolkit.stats.sample import Summary
    from gilscope.toolkit.stats.verdict import Comparison

@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """The noise floors of one group of cells; None if they are unknown."""

    single_wall: NoiseFloor | None = None   # at least the A/A error with one worker
    single_cpu: NoiseFloor | None = None
    all_wall: NoiseFloor | None = None      # at least the error of all A/A arms; for comparisons with more workers
    all_cpu: NoiseFloor | None = None
    wall_error: float | None = None         # largest A/A difference, as a share; also known where the floors are not
    cpu_error: float | None = None


def over_groups(groups: Sequence[Floors]) -> Floors:
    """Return the noise floors of several groups of cells as those of one: the ranges over all of them."""
    return Floors(
        single_wall=_widest(each.single_wall for each in groups),
        single_cpu=_widest(each.single_cpu for each in groups),
        all_wall=_widest(each.all_wall for each in groups), all_cpu=_widest(each.all_cpu for each in groups),
        wall_error=_largest(each.wall_error for each in groups), cpu_error=_largest(each.cpu_error for each in groups))


def _largest(errors: Iterable[float | None]) -> float | None:
    return max((error for error in errors if error is not None), default=None)


def _widest(floors: Iterable[NoiseFloor | None]) -> NoiseFloor | None:
    known = [floor for floor in floors if floor is not None]
    if not known:
        return None
    return NoiseFloor(
        error=_largest(floor.error for floor in known),
        bound=max(floor.bound for floor in known), rounds=max(floor.rounds for floor in known),
        smallest=min(floor.smallest for floor in known), largest=max(floor.largest for floor in known))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """One cell: its numbers, or why there are none."""

    cell: Cell
    absence: Absence | None = None
    time: Summary | None = None             # wall seconds
    speedup: Comparison | None = None       # wall, against the baseline cell of the same build
    efficiency: float | None = None         # speedup per worker
    cpu_inflation: float | None = None      # CPU seconds of the cell over the baseline's; > 1: works more
    metrics: Mapping[str, MetricValue] = field(default_factory=dict)   # by column, those that are known
    notes: tuple[Note, ...] = ()
    is_baseline: bool = False
    slowest: float | None = None            # wall time of its slowest process over their median
    lacking_sessions: Note | None = None    # its number is of fewer sessions than the run has

    @property
    def footnotes(self) -> tuple[Note, ...]:
        """The notes that stand beside its number wherever that is; they are among `notes`."""
        return (*self.process_notes, *filter(None, [self.lacking_sessions]))

    @property
    def process_notes(self) -> tuple[Note, ...]:
        """The note on a slow process; it is among `notes`."""
        return process_notes(self.slowest)

    @property
    def memory(self) -> MetricValue | None:
        """The memory that its processes occupied, in bytes."""
        return self.metrics.get(MEMORY)

    @property
    def why_no_ratio(self) -> str:
        """Why it has no speedup, in a word or two."""
        return "no ratio" if self.absence is None else self.absence.word


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One runner with one number of workers, over the builds."""

    runner: str
    workers: int
    results: tuple[CellResult, ...]  # in the order of the table's builds
