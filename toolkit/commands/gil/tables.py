"""The two tables of `gilscope gil`: what became of each thread's time, and what each waited for where."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from gilscope.toolkit.report.document import Column, Duration, Entry, Quantity, Share, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.gil.summary import Place, Summary, ThreadSummary
    from gilscope.toolkit.report.document import Value

MOST_THREADS = 20
# Characters: a table too wide for a terminal is shown in two parts, which the reader would have to join.
LONGEST_NAME, LONGEST_PLACE = 22, 34
WRITTEN = 1e-6      # seconds; a shorter time is told as none
SHORTER = {"a lock or an object, spinning": "a lock (spin)", "a lock inside the interpreter": "an inner lock"}


def threads_table(summary: Summary, *, gil: bool) -> Table:
    """Return what became of each thread's time; `gil`: there was one to wait for."""
    titles = ("there", "CPU", "no core", *(("GIL", "share") if gil else ()), "locks", "idle")
    columns = [Column(title="thread", key=True, align="left"), *(Column(title=title) for title in titles)]
    several = summary.processes > 1
    ranked = sorted(summary.threads, key=lambda row: -(row.waited + row.parked + row.spun))
    rows = tuple(_thread(row, several=several, gil=gil) for row in ranked[:MOST_THREADS])
    left_out = len(ranked) - len(rows)
    note = (f"{left_out} more threads waited less",) if left_out else ()
    return Table(title="Where each thread's time went", columns=tuple(columns), rows=rows, footnotes=note)


def threads_legend(*, gil: bool) -> str:
    """Return what the headings of `threads_table` mean."""
    of_gil = "GIL, share: waited for the GIL, in all and of its life; " if gil else ""
    return (f"there: from its start to its end; CPU: ran; no core: could have run, but no core was free; {of_gil}"
            "locks: waited for locks and shared objects; idle: waited as the program wants it. The rest: sleeping, "
            "reading and the like.")


def _thread(row: ThreadSummary, *, several: bool, gil: bool) -> tuple[Entry, ...]:
    waited = (_time(row.waited), Share(row.waited / row.seconds if row.seconds else 0.0)) if gil else ()
    values = (Duration(row.seconds), _time(row.cpu), _time(row.run_queue), *waited, _time(row.parked + row.spun),
              _time(row.idle))
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


def _where(place: Place) -> str:
    """Return file, line and function, the file with its folder only where its own name says nothing."""
    path = PurePath(place.file.removeprefix("<frozen ").removesuffix(">").rpartition("importlib.")[2])
    name = str(PurePath(*path.parts[-2:])) if path.stem in {"__init__", "__main__"} else path.name
    where = f"{name}:{place.line} {place.function}"
    return where if len(where) <= LONGEST_PLACE else f"{name}:{place.line} {place.function.rpartition('.')[2]}"


def _short_name(name: str) -> str:
    """Return a name's beginning and end, as the workers of a pool differ there."""
    half = LONGEST_NAME // 2 - 2
    return name if len(name) <= LONGEST_NAME else f"{name[:half]}...{name[-half:]}"
