"""What is known of one cell, and the cells of one row of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gilscope.toolkit.model import Cell, Note
    from gilscope.toolkit.report.table.observations import Absence, Memory
    from gilscope.toolkit.stats.sample import Summary
    from gilscope.toolkit.stats.words import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """One cell: its numbers, or why there are none."""

    cell: Cell
    absence: Absence | None = None
    time: Summary | None = None             # wall seconds
    speedup: Comparison | None = None       # wall, against the baseline cell of the same build
    efficiency: float | None = None         # speedup per worker
    inflation: Comparison | None = None     # CPU seconds of the cell over the baseline's; > 1: works more
    memory: Memory | None = None
    doubtful_seconds: float | None = None   # of a starved cell: wall seconds, and how many times faster it looks;
    doubtful_speedup: float | None = None   # neither is a result
    notes: tuple[Note, ...] = ()

    @property
    def why_no_ratio(self) -> str:
        """Why it has no speedup, in a word or two."""
        return "no ratio" if self.absence is None else self.absence.word


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One runner with one number of workers, over the builds."""

    runner: str
    workers: int
    results: tuple[CellResult, ...]  # in the order of the table's builds
