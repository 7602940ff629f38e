"""The tables of `gilscope gil`: who had the GIL, what became of each thread's time, and what each waited for where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.gil.bottleneck import where
from gilscope.toolkit.gil.summary import INNER_LOCK, SPINNING
from gilscope.toolkit.report.document import Column, Duration, Entry, Quantity, Share, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.gil.holders import Holder
    from gilscope.toolkit.gil.summary import Place, Summary, ThreadSummary
    from gilscope.toolkit.report.document import Value

MOST_THREADS = 20
# Characters: a table too wide for a terminal is shown in two parts, which the reader would have to join.
LONGEST_NAME, LONGEST_PLACE = 22, 30
HOLDERS_LEGEND = "share: of the time that threads waited for the GIL; held, longest: while others waited."
WRITTEN = 1e-6      # seconds; a shorter time is told as none
SHORTER = {SPINNING: "a lock (spin)", INNER_LOCK: "an inner lock"}


def holders_table(holders: Sequence[Holder], left_out: int) -> Table:
    """Return who had the GIL while others waited for it, those first that made them wait longest.

    Args:
        holders: In this order.
        left_out: How many more there are.
    """
    columns = (Column(title="share", key=True), Column(title="held"), Column(title="longest"),
               Column(title="thread", key=True, align="left"), Column(title="where", align="left"))
    rows = tuple(
        (Entry(Share(holder.share)), Entry(Duration(holder.seconds)), Entry(Duration(holder.longest)),
         Entry(_short_name(holder.thread)), Entry(_where(holder)))
        for holder in holders
    )
    notes = [f"{left_out} more made others wait less; --places shows more of them"] if left_out else []
    return Table(title="Who had the GIL while others waited for it", columns=columns, rows=rows, footnotes=tuple(notes))


def threads_table(summary: Summary, *, gil: bool) -> Table:
    """Return what became of each thread's time; `gil`: there was one to wait for."""
    other = _contention_titles(summary)
    titles = ("there", "CPU", "no core", *(("GIL", "share") if gil else ()), *other, "idle")
    columns = [Column(title="thread", key=True, align="left"), *(Column(title=title) for title in titles)]
    several = summary.processes > 1
    ranked = sorted(summary.threads, key=lambda row: -(row.waited + row.parked + row.spun))
    rows = tuple(_thread(row, other, several=several, gil=gil) for row in ranked[:MOST_THREADS])
    left_out = len(ranked) - len(rows)
    note = (f"{left_out} more threads waited less",) if left_out else ()
    return Table(title="Where each thread's time went", columns=tuple(columns), rows=rows, footnotes=note)


def _contention_titles(summary: Summary) -> list[str]:
    """Return the columns of what threads waited for beside the GIL; but for locks, those that say something."""
    seconds = {"objects": summary.on_objects, "pauses": summary.paused, "spins": summary.spun}
    return ["locks", *(title for title, there in seconds.items() if there >= WRITTEN)]


def threads_legend(summary: Summary, *, gil: bool) -> str:
    """Return what the headings of `threads_table` mean."""
    meanings = {"locks": "waited for locks", "objects": "for objects that threads share",
                "pauses": "while all threads were stopped", "spins": "until a lock or an object was free"}
    other = "; ".join(f"{title}: {meanings[title]}" for title in _contention_titles(summary))
    of_gil = "GIL, share: waited for the GIL, in all and of its life; " if gil else ""
    return (f"there: from its start to its end; CPU: ran; no core: could have run, but no core was free; {of_gil}"
            f"{other}; idle: waited as the program wants it. The rest: sleeping, "
            "reading and the like.")


def _thread(row: ThreadSummary, other: Sequence[str], *, several: bool, gil: bool) -> tuple[Entry, ...]:
    contention = {"locks": row.parked - row.on_objects - row.paused, "objects": row.on_objects, "pauses": row.paused,
                  "spins": row.spun}
    share = Share(row.waited / row.seconds) if row.waited >= WRITTEN and row.seconds else "-"
    waited = (_time(row.waited), share) if gil else ()
    values = (Duration(row.seconds), _time(row.cpu), _time(row.run_queue), *waited,
              *(_time(contention[title]) for title in other), _time(row.idle))
    return (Entry(_short_name(f"{row.process} {row.name}" if several else row.name)), *map(Entry, values))


def _time(seconds: float | None) -> Value:
    if seconds is None:
        return "?"
    return "-" if seconds < WRITTEN else Duration(seconds)


def places_table(places: Sequence[Place], left_out: int, *, lost: bool) -> Table:
    """Return who waited for what, where; the most seconds first.

    Args:
        places: Of single threads, the most seconds first.
        left_out: How many more there are.
        lost: Whether some waits are of places that are not known.
    """
    columns = (Column(title="waited", key=True), Column(title="times"), Column(title="thread", key=True, align="left"),
               Column(title="for", align="left"), Column(title="where", align="left"))
    rows = tuple(
        (Entry(Duration(place.seconds)), Entry(Quantity(place.count, "")), Entry(_short_name(place.thread or "")),
         Entry(SHORTER.get(place.what, place.what)), Entry(_where(place)))
        for place in places
    )
    notes = [f"{left_out} more waited less; --places shows more of them"] if left_out else []
    notes += ["there were too many places to keep all: some waits are missing here"] if lost else []
    return Table(title="Who waited for what, where", columns=columns, rows=rows, footnotes=tuple(notes))


def _where(place: Place | Holder) -> str:
    """Return file, line and function; of a function that does not fit its last name alone, or nothing."""
    at, _, function = where(place).partition(" ")
    names = (function, function.rpartition(".")[2])
    return next((f"{at} {name}" for name in names if len(at) + len(name) < LONGEST_PLACE), at)


def _short_name(name: str) -> str:
    """Return a name's beginning and end, as the workers of a pool differ there."""
    half = LONGEST_NAME // 2 - 2
    return name if len(name) <= LONGEST_NAME else f"{name[:half]}...{name[-half:]}"
