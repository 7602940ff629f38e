"""The table of an evaluation: a row for each target, with what its facts count and measure.  Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import processes_on, subinterpreters_on
from gilscope.toolkit.report.document import Column, Entry, Table
from gilscope.toolkit.report.footnotes import Footnotes

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.evaluation import Conclusion, Evaluation

# The columns in their order; those of other packages' sections follow.
COLUMNS = ("packages", "C files", "GIL off", "C lost", "tests", "1 thread", "memory")


def table(found: Evaluation) -> Table:
    """Return a row for each build, and for subinterpreters and processes on each build with a GIL."""
    notes = Footnotes()
    cells = {(fact.target, cell.column): cell for fact in found.facts for cell in fact.cells}
    titles = tuple(dict.fromkeys((*COLUMNS, *(column for _, column in cells))))
    # The table has little room.
    short = {**{subinterpreters_on(each.label): f"subint {each.label}" for each in found.with_gil},
             **{processes_on(each.label): f"processes {each.label}" for each in found.with_processes}}

    def row(conclusion: Conclusion) -> tuple[Entry, ...]:
        own = [cells.get((conclusion.target, title)) for title in titles]
        return (Entry(short.get(conclusion.target, conclusion.target)), Entry(conclusion.word),
                *(Entry(cell.value, notes.marks(cell.notes)) if cell else Entry() for cell in own))

    rows = tuple(map(row, found.conclusions))
    columns = tuple(Column(title=title, align="left", key=title == "target")
                    for title in ("target", "verdict", *titles))
    return Table(title="", columns=columns, rows=rows, footnotes=notes.texts())
