"""What `gilscope gil` says of a recorded program, as a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.commands.gil.tables import WRITTEN, places_table, threads_legend, threads_table
from gilscope.toolkit.gil.recorder import BUSY, queued_share
from gilscope.toolkit.report.document import Document, Heading, Lines
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.gil.recorder import Recording
    from gilscope.toolkit.gil.summary import Summary
    from gilscope.toolkit.report.document import Section

LEAST = 0.0001


def document(recording: Recording, summary: Summary, inflation: float | str | None, *, places: int) -> Document:
    """Return the report.

    Args:
        recording: The run.
        summary: What its processes come to.
        inflation: Times the CPU time with the GIL on, or why that is not known; None: not asked for.
        places: How many rows of who waited where to show.
    """
    sections: list[Section] = [Heading(_title(recording, summary), 1)]
    sections.append(Lines("Waits", tuple(_waits(recording, summary))))
    gil = recording.gil_used or summary.waits > 0
    sections.append(threads_table(summary, gil=gil))
    sections.append(Lines("", (threads_legend(gil=gil),)))
    contended = tuple(place for place in summary.thread_places if not place.idle)
    if contended:
        left_out = max(0, len(contended) - places)
        sections.append(places_table(contended[:places], left_out, lost=bool(summary.sites_lost)))
    sections.append(Lines("Measured", tuple(_measured(recording, summary, inflation))))
    return Document(tuple(sections))


def _title(recording: Recording, summary: Summary) -> str:
    first = recording.processes[0]
    build = f"Python {first.version}{'t' if first.free_threaded else ''}"
    gil = "" if not first.free_threaded else ", GIL on" if recording.gil_used else ", no GIL"
    at_least = "at least " if summary.killed else ""   # to the last event that was seen
    processes = "1 process" if summary.processes == 1 else f"{summary.processes} processes"
    threads = _counted(len(summary.threads), "thread")
    return f"{build}{gil}: {processes}, {threads}, {at_least}{format_seconds(summary.wall)}"


def _waits(recording: Recording, summary: Summary) -> Iterator[str]:
    if not recording.gil_used:
        during = f", but during imports of extension modules: {format_seconds(summary.waited)}" if summary.waits else ""
        yield f"For the GIL: none, it is off{during}."
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
        yield (f"{summary.killed} of {summary.processes} processes left no end: killed, ended by os._exit, or still "
               "there. All waits but the last are known. How long its threads were there is known up to their last "
               "wait, and their CPU time is not.")
    if summary.threads_lost:
        yield f"{summary.threads_lost} threads are missing: there is room for 2,048 in each process."
    if not summary.sites_known:
        yield "Places are missing: the frames of this version of Python are not known."
