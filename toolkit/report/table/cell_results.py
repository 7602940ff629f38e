"""The numbers of one cell and of one row of a table, and the noise floors of its cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gilscope.toolkit.metrics import MEMORY
from gilscope.toolkit.report.table.process_notes import process_notes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gilscope.toolkit.model import Cell, Note
    from gilscope.toolkit.report.table.observations import Absence, MetricValue
    from gilscope.toolkit.stats.sample import Summary
    from gilscope.toolkit.stats.verdict import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """The noise floors of compared cells by one clock, as shares: cells with fewer rounds have larger ones."""

    range: tuple[float, float] | None   # the smallest and the largest; None: unknown
    aa_error: float | None              # the largest difference between a cell and its A/A arm; None: there is none


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
