"""What `lost-updates` measured, by what the threads did, how many they were and the switch interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gilscope.toolkit.experiments.arms import Arm
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Cell
    from gilscope.toolkit.stats.sample import Summary

DEFAULT, SHORTEST = "5ms", "1us"
CHECKED = 2   # threads of the cells whose code the race checker is given, too
LOCKED = "locked"
# The variants, as `updates` has them, as the tables say them.
WORDS = {
    "bare": "total += 1", "attribute": "counter.total += 1", "item": "totals[0] += 1", "called": "total += one()",
    "built-in": 'total += int("1")', LOCKED: "with lock: total += one()",
}


@dataclass(frozen=True, slots=True)
class Row:
    """What a line of the tables is about."""

    variant: str
    threads: int
    interval: str


def rows_of(results: Results, loop: str) -> list[Row]:
    """Return the rows that cells of such loops have, each once, in the order of the plan."""
    found = (dict(cell.parameters) | {"threads": str(cell.workers)} for cell in results.cells(loop=loop))
    return list(dict.fromkeys(Row(each["variant"], int(each["threads"]), each["interval"]) for each in found))


def find_cell(results: Results, arm: Arm, loop: str, row: Row) -> Cell | None:
    """Return the cell of one row and column, None when the plan has none."""
    found = results.cells(build=arm.build.label, runner=arm.model, workers=row.threads, variant=row.variant,
                          interval=row.interval, loop=loop)
    return next(iter(found), None)


def share_of(results: Results, arm: Arm, loop: str, row: Row) -> Summary | None:
    """Return the share of updates that were lost, None when it was not measured."""
    return results.metric(find_cell(results, arm, loop, row), "share")


def checked_rows(results: Results) -> list[Row]:
    """Return the rows whose code the race checker was given, too."""
    return [row for row in rows_of(results, "long") if row.threads == CHECKED and row.interval == DEFAULT]


def verdict_of(results: Results, cell: Cell | None) -> str | None:
    """Return what the race checker said, in starved rounds too; each answer once where they differ."""
    observations = [o for each in results.run.measurements if each.cell == cell for o in each.observations]
    answers = [dict(each.metrics).get("verdict") for each in observations]
    return ", ".join(dict.fromkeys(str(answer) for answer in answers if answer)) or None


def share_text(share: Summary) -> str:
    """Return a share of lost updates with its interval: "33 % [21, 40]", "none"; never 0 % of some."""
    if not share.hi:
        return "none"
    center, lo, hi = (_percent(each) for each in (share.center, share.lo, share.hi))
    return f"{center} % [{lo}, {hi}]" if share.count > 1 else f"{center} %"


def _percent(share: float) -> str:
    percent = share * 100
    if not percent:
        return "0"
    if percent < 0.1:  # noqa: PLR2004 - finer is noise
        return "<0.1"
    return f"{percent:.1f}" if percent < 10 else f"{percent:.0f}"  # noqa: PLR2004 - two digits
