"""What `gilscope gil` says of a recorded program, as a document."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from gilscope.toolkit.gil.recording import BUSY, queued_share
from gilscope.toolkit.report.document import Column, Document, Duration, Entry, Heading, Lines, Quantity, Share, Table
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.gil.recording import Recording
    from gilscope.toolkit.gil.summary import Place, Summary, ThreadSummary
    from gilscope.toolkit.report.document import Section, Value

MOST_THREADS = 20
LEAST = 0.0001
WRITTEN = 1e-6   # seconds; a shorter time is told as none


def document(recording: Recording, summary: Summary, inflation: float | str | None, *, places: int) -> Document:
    """Return the report.

    Args:
        recording: The run.
        summary: What its processes come to.
        inflation: Times the CPU time with the GIL on, or why that is not known; None: not asked for.
        places: How many places of the program to show.
    """
    sections: list[Section] = [Heading(_title(recording, summary), 1)]
    sections.append(Lines("Waits", tuple(_waits(recording, summary))))
    sections.append(_threads(summary))
    contended = tuple(place for place in summary.places if not place.idle)
    if contended:
        sections.append(_places(contended[:places]))
    sections.append(Lines("Measured", tuple(_measured(recording, summary, inflation))))
    return Document(tuple(sections))


def _title(recording: Recording, summary: Summary) -> str:
    first = recording.processes[0]
    build = f"Python {first.version}{'t' if first.free_threaded else ''}"
    gil = "" if not first.free_threaded else ", GIL on" if recording.gil_used else ", no GIL"
    processes = "1 process" if summary.processes == 1 else f"{summary.processes} processes"
    return f"{build}{gil}: {processes}, {_counted(len(summary.threads), 'thread')}, {format_seconds(summary.wall)}"


def _waits(recording: Recording, summary: Summary) -> Iterator[str]:
    if not recording.gil_used:
        yield "For the GIL: none, it is off."
    elif not summary.waits:
        yield "For the GIL: none."
    else:
        yield (f"For the GIL: {format_seconds(summary.waited)} in {_counted(summary.waits, 'wait')}, "
               f"{summary.share:.1%} of the threads' time; {summary.wanted_share:.0%} of the time in which they wanted "
               "it while others did.")
        yield f"Longest: {format_seconds(summary.longest)}, by {summary.longest_thread}."
        yield (f"It changed hands {summary.handovers:,} times; threads tried {summary.failed:,} times in vain, and "
               f"asked the holder {summary.requests:,} times to let go.")
    if summary.parks or summary.spins:
        yield (f"For locks and shared objects: {summary.blocked_share:.1%} of the threads' time; parked "
               f"{format_seconds(summary.parked)} in {_counted(summary.parks, 'wait')}, spinning "
               f"{format_seconds(summary.spun)} in {_counted(summary.spins, 'wait')}.")
    else:
        yield "For locks and shared objects: none."
    if summary.idle > WRITTEN:
        yield f"Idle, as the program wants it (joins, events, queues): {format_seconds(summary.idle)}; no contention."


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _threads(summary: Summary) -> Table:
    titles = ("there", "waited", "share", "longest", "waits", "blocked", "idle", "CPU", "no core")
    columns = [Column(title="thread", key=True, align="left"), *(Column(title=title) for title in titles)]
    several = summary.processes > 1
    ranked = sorted(summary.threads, key=lambda row: -(row.waited + row.parked + row.spun))
    rows = tuple(_row(row, several=several) for row in ranked[:MOST_THREADS])
    left_out = len(ranked) - len(rows)
    note = (f"{left_out} more threads waited less",) if left_out else ()
    return Table(title="Threads", columns=tuple(columns), rows=rows, footnotes=note)


def _row(row: ThreadSummary, *, several: bool) -> tuple[Entry, ...]:
    name = f"{row.process} {row.name}" if several else row.name
    values = (
        Duration(row.seconds), _time(row.waited), Share(row.waited / row.seconds if row.seconds else 0.0),
        _time(row.longest), Quantity(row.waits, ""), _time(row.parked + row.spun), _time(row.idle), _time(row.cpu),
        _time(row.run_queue))
    return (Entry(name), *map(Entry, values))


def _time(seconds: float | None) -> Value:
    if seconds is None:
        return "?"
    return "-" if seconds < WRITTEN else Duration(seconds)


def _places(places: tuple[Place, ...]) -> Table:
    columns = (Column(title="time", key=True), Column(title="times"), Column(title="longest"),
               Column(title="waited for", align="left"), Column(title="where", align="left"))
    rows = tuple(
        (Entry(Duration(place.seconds)), Entry(Quantity(place.count, "")), Entry(Duration(place.longest)),
         Entry(place.what), Entry(f"{place.function} ({_short(place.file)}:{place.line})"))
        for place in places
    )
    return Table(title="Who waited where", columns=columns, rows=rows)


def _short(file: str) -> str:
    """Return a path from the current folder, or its last two parts."""
    path = PurePath(file)
    return str(PurePath(*path.parts[-2:])) if len(path.parts) > 2 else file   # noqa: PLR2004  as the sentence says


def _measured(recording: Recording, summary: Summary, inflation: float | str | None) -> Iterator[str]:
    share = summary.overhead_share
    of_cpu = "" if share is None else f", {share:.2%} of the program's" if share >= LEAST else ", below 0.01% of it"
    yield f"Measuring took {format_seconds(summary.overhead)} of CPU time{of_cpu}, by costs measured at the start."
    queued = queued_share(recording)
    if queued is not None and queued > BUSY and len(summary.threads) > 1:
        yield (f"The machine was busy: the threads waited for a core {queued:.0%} of the time in which they wanted "
               "one. Who holds a lock then keeps it longer than on a quiet machine.")
    if isinstance(inflation, float):
        yield (f"CPU inflation: {inflation:.2f} times the CPU time of the same work with the GIL on. "
               "What is above 1 is the price of sharing, which no wait shows.")
    elif inflation is not None:
        yield f"CPU inflation: not told, as {inflation}."
    elif recording.free_threaded:
        yield "CPU inflation: not measured; --inflation runs the program again with the GIL on."
    if summary.killed:
        yield (f"{summary.killed} of {summary.processes} processes left no end: killed, or still there. "
               "All waits but the last are known, CPU time is not.")
    if summary.threads_lost:
        yield f"{summary.threads_lost} threads are missing: there is room for 2,048 in each process."
    if not summary.sites_known:
        yield "Places are missing: the frames of this version of Python are not known."
