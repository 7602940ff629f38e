"""What `signals` measured, by what the main thread did and how many threads computed beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.experiments.arms import Arm
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Cell

AT_ONCE = "lock-at-once"
# What the main thread does, as the tables say it.
WAITING = {
    "join": "joins a thread", "lock": "waits for a Lock", "event": "waits for an Event", "queue": "waits in queue.get",
    "sleep": "sleeps", "select": "waits in select", "computing": "computes in Python",
    AT_ONCE: "begins to wait for a Lock",
}
CALLING = {
    "calls": "is in sum(range(n)), which keeps the GIL",
    "releasing-calls": "is in pbkdf2_hmac, which gives the GIL away",
    "looking-call": "is in re.match, which looks for signals",
    "beside-calls": "waits; another thread is in sum(range(n))",
    "beside-releasing-calls": "waits; another thread is in pbkdf2_hmac",
    "same-list": "writes to a list that another thread sorts",
}
NEVER = frozenset({"join", "lock", "event", "queue", AT_ONCE})   # all are waits for a lock in Python 2


def rows_of(results: Results, doings: Iterable[str]) -> list[tuple[str, int]]:
    """Return the rows of the table that shows `doings`: what the main thread does, and the number of CPU threads."""
    known = dict.fromkeys((dict(cell.parameters)["main"], cell.workers - 1) for cell in results.cells())
    return [row for row in known if row[0] in doings]


def find_cell(results: Results, arm: Arm, doing: str, cpu_threads: int) -> Cell | None:
    """Return the cell of one row and column, None when the plan has none."""
    return results.find(build=arm.build.label, runner=arm.model, workers=cpu_threads + 1,
                        main=doing, cpu=str(cpu_threads))


def call_text(results: Results) -> str:
    """Return how long a C call was meant to take."""
    known = (results.metric(cell, "call") for cell in results.cells())
    return next((format_seconds(each.center) for each in known if each is not None), "the same length")


@dataclass(frozen=True, slots=True)
class Times:
    """What all signals of a cell took, over all rounds; seconds."""

    typical: float   # the median over rounds of the processes' medians
    best: float
    worst: float     # the limit when some were late
    signals: int
    late: int        # not handled within `limit`
    limit: float


def times_of(results: Results, cell: Cell | None) -> Times | None:
    """Return the cell's times; None when it has none."""
    value = results.value(cell)
    kept = {name: list(results.metrics(cell, name).values()) for name in ("best", "worst", "signals", "late", "limit")}
    if value is None or not all(kept.values()):
        return None
    return Times(value.center, min(kept["best"]), max(kept["worst"]), round(sum(kept["signals"])),
                 round(sum(kept["late"])), max(kept["limit"]))
