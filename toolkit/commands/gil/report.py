"""What `gilscope gil` says of a recorded program, as a document.  It ends in one sentence: what limits the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.commands.gil.tables import (
    HOLDERS_LEGEND,
    WRITTEN,
    holders_table,
    places_table,
    threads_legend,
    threads_table,
)
from gilscope.toolkit.gil.bottleneck import SEEN, held_share, where
from gilscope.toolkit.gil.recorder import BUSY
from gilscope.toolkit.gil.records import Kind
from gilscope.toolkit.gil.rerun_without_gil import took_as_long
from gilscope.toolkit.report.document import Document, Heading, Lines
from gilscope.toolkit.units import format_seconds, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.gil.diagnosis import Diagnosis
    from gilscope.toolkit.gil.holders import Convoy, Holder
    from gilscope.toolkit.gil.rerun_without_gil import WithoutGil
    from gilscope.toolkit.gil.summary import Summary
    from gilscope.toolkit.gil.unfinished_waits import Last
    from gilscope.toolkit.report.document import Section

LEAST = 0.0001
DIFFERENT = 1.25     # the longest run over the shortest one, beyond which their median says little
ENOUGH = 10          # times, from which on a fraction says nothing
HELD = 0.8           # of the waits for the GIL, that somebody had it, below which that is told
WORST = 3            # holders of whom is told who waited meanwhile
SHOWN = 0.005        # a share below it says nothing: 0 %, as it is written
MOST_LAST = 10       # threads of a killed process
LAST = {Kind.WAIT: "waited for the GIL", Kind.HOLD: "had the GIL", Kind.SWITCH: "handed the GIL over",
        Kind.PARK: "was parked, for a lock or an object", Kind.IDLE: "waited for another thread", Kind.SPIN: "spun"}


def document(found: Diagnosis, *, places: int) -> Document:
    """Return the report.

    Args:
        found: The program's run.
        places: How many rows of who waited where to show, and of who had the GIL.
    """
    summary = found.summary
    gil = found.gil_used or summary.waits > 0
    sections: list[Section] = [Heading(_title(found), 1), Lines("Waits", tuple(_waits(found)))]
    holders = [holder for holder in found.holders if holder.share >= SHOWN]
    if holders and summary.share >= SHOWN:
        sections.append(holders_table(holders[:places], max(0, len(holders) - places)))
        sections.append(Lines("", (HOLDERS_LEGEND, *map(_meanwhile, holders[:WORST]))))
    sections.append(threads_table(summary, gil=gil))
    sections.append(Lines("", (threads_legend(summary, gil=gil),)))
    contended = tuple(place for place in summary.thread_places
                      if not place.idle and place.seconds >= SEEN * summary.wall)
    if contended:
        left_out = max(0, len(contended) - places)
        sections.append(places_table(contended[:places], left_out, lost=bool(summary.sites_lost)))
    if found.last_seen:
        sections.append(Lines("When it was ended", tuple(map(_last, found.last_seen[:MOST_LAST]))))
    sections.append(Lines("Measured", tuple(_measured(found))))
    sections.append(Lines("In short", tuple(_in_short(found))))
    return Document(tuple(sections))


def _title(found: Diagnosis) -> str:
    summary = found.summary
    build = f"Python {found.version}{'t' if found.free_threaded else ''}"
    gil = "" if not found.free_threaded else ", GIL on" if found.gil_used else ", no GIL"
    at_least = "at least " if summary.killed else ""   # to the last event that was seen
    processes = "1 process" if summary.processes == 1 else f"{summary.processes} processes"
    threads = _counted(len(summary.threads), "thread")
    return f"{build}{gil}: {processes}, {threads}, {at_least}{format_seconds(summary.wall)}"


def _waits(found: Diagnosis) -> Iterator[str]:
    summary = found.summary
    if not found.gil_used:
        during = f", but during imports of extension modules: {format_seconds(summary.waited)}" if summary.waits else ""
        yield f"For the GIL: none, it is off{during}."
    elif not summary.waits:
        yield "For the GIL: none."
    elif summary.share < SHOWN:
        yield (f"For the GIL: next to nothing: {format_seconds(summary.waited)} in {_counted(summary.waits, 'wait')}, "
               f"the longest {format_seconds(summary.longest)}, by {summary.longest_thread}.")
    else:
        yield (f"For the GIL: {format_seconds(summary.waited)} in {_counted(summary.waits, 'wait')}, "
               f"{percent(summary.share, 1)} of the threads' time; {percent(summary.wanted_share)} of the time in "
               "which they wanted it while others did.")
        held = held_share(summary, found.holders)
        if held < HELD:
            yield (f"For {percent(1 - held)} of that nobody had it: who was to have it next had no core. What limits "
                   "the program is told without that.")
        yield f"Longest: {format_seconds(summary.longest)}, by {summary.longest_thread}."
        yield (f"It changed hands {summary.handovers:,} times; threads tried {summary.failed:,} times in vain, and "
               f"asked the holder {summary.requests:,} times to let go.")
    yield from map(_convoy, found.convoys)
    yield from _contention(summary, free_threaded=found.free_threaded)
    if summary.idle > WRITTEN:
        yield f"Idle, as the program wants it (joins, events, queues): {format_seconds(summary.idle)}; no contention."


def _convoy(convoy: Convoy) -> str:
    behind = f" behind {convoy.holder.thread} at {where(convoy.holder)}" if convoy.holder else ""
    return (f"A convoy: {convoy.thread} gives the GIL away by itself, as for I/O, and gets it back after the switch "
            f"interval or later{behind}. {convoy.waits:,} x {format_seconds(convoy.interval)} = "
            f"{format_seconds(convoy.cost)} at least, {format_seconds(convoy.waited)} in all, of its "
            f"{format_seconds(convoy.seconds)}.")


def _contention(summary: Summary, *, free_threaded: bool) -> Iterator[str]:
    """Yield what threads waited for each other, without the GIL: locks, objects and pauses are three things."""
    if not summary.parks and not summary.spins:
        yield "For locks and shared objects: none." if free_threaded else "For locks: none."
        return
    parts = [("for locks", summary.on_locks), ("for objects that threads share", summary.on_objects),
             ("while all threads were stopped, as by the garbage collector", summary.paused),
             ("spinning until a lock or an object was free", summary.spun)]
    told = "; ".join(f"{format_seconds(seconds)} {what}" for what, seconds in parts if seconds > 0)
    share = f", {percent(summary.blocked_share, 1)} of the threads' time" if summary.blocked_share >= SEEN else ""
    waits = _counted(summary.parks + summary.spins, "wait")
    subject = "For locks and shared objects" if free_threaded or summary.on_objects else "For locks"
    yield f"{subject}: {waits}{share}: {told}."


def _meanwhile(holder: Holder) -> str:
    inside = f", in {where(holder.inside)}" if holder.inside else ""
    longest = f"its longest hold {format_seconds(holder.longest)}, from {format_seconds(holder.longest_at)} on"
    waited = ", ".join(f"{each.thread} {format_seconds(each.seconds)}" for each in holder.waiting)
    meanwhile = f"; meanwhile waited {waited}" if waited else ""
    return f"{holder.thread} at {where(holder)}{inside}: {longest}{meanwhile}."


def _last(last: Last) -> str:
    at = f", at {where(last.place)}" if last.place else ""
    return f"{last.thread} {LAST[last.kind]}, for {format_seconds(last.seconds)} or longer{at}."


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _measured(found: Diagnosis) -> Iterator[str]:
    summary = found.summary
    share = summary.overhead_share
    least = f", below {percent(LEAST, 2)} of it"
    of_cpu = "" if share is None else f", {percent(share, 2)} of the program's" if share >= LEAST else least
    yield f"Measuring took {format_seconds(summary.overhead)} of CPU time{of_cpu}, by costs measured at the start."
    queued = found.queued_share
    if queued is not None and queued > BUSY and len(summary.threads) > 1:
        yield (f"The machine was busy: the threads waited for a core {percent(queued)} of the time in which they "
               "wanted one. Who holds a lock then keeps it longer than on a quiet machine.")
    if isinstance(found.cpu_inflation, float):
        yield (f"CPU inflation: {found.cpu_inflation:.2f} times the CPU time of the same work with the GIL on. "
               "What is above 1 is the price of sharing, which no wait shows.")
    elif found.cpu_inflation is not None:
        yield f"CPU inflation: not told, as {found.cpu_inflation}."
    elif found.free_threaded:
        yield "CPU inflation: not measured; --inflation runs the program again with the GIL on."
    if summary.killed:
        yield (f"{summary.killed} of {summary.processes} processes left no end: killed, ended by os._exit, replaced "
               "by exec, or still there. Waits that this cut off count up to the last thing that was seen. How long "
               "its threads were there is known up to then, and their CPU time is not.")
    if summary.threads_lost:
        yield f"{summary.threads_lost} threads are missing: there is room for 2,048 in each process."
    if not summary.sites_known:
        yield "Places are missing: the frames of this version of Python are not known."


def _in_short(found: Diagnosis) -> Iterator[str]:
    if found.elsewhere is not None:
        yield _there(found.elsewhere, found)
    yield found.limit.sentence


def _there(there: WithoutGil, found: Diagnosis) -> str:
    if there.ratio is None or there.wall is None:
        return f"What {there.build} gives is not known: {there.refused}."
    here = format_seconds(found.summary.wall)
    without = "without the GIL"
    if there.version.split(".")[:2] != found.version.split(".")[:2]:
        without += f" and of another version than {found.version}"
    least, most = min(there.walls), max(there.walls)
    if most > DIFFERENT * least:
        return (f"On {there.build}, {without}, it took {format_seconds(least)} to {format_seconds(most)} in "
                f"{len(there.walls)} runs, in place of {here}: runs differ too much for one number.")
    runs = f"{len(there.walls)} runs there" if len(there.walls) > 1 else "one run each"
    times = f"{format_seconds(there.wall)} in place of {here}"
    if took_as_long(there) and not there.busy:
        return (f"On {there.build} it took as long: {times}, {runs}. A program that works until a time is over "
                "always does; see how much it did.")
    words = (f"was {_times(there.ratio)} times as fast" if there.ratio > 1 else
             f"took {_times(1 / there.ratio)} times as long")
    doubt = " The machine was busy, so that says little: repeat it on a quiet one." if there.busy else ""
    return f"On {there.build}, {without}, it {words}: {times}, {runs}.{doubt}"


def _times(ratio: float) -> str:
    """Return what a few runs tell of a ratio: two digits."""
    return f"{ratio:.1f}" if ratio < ENOUGH else f"{ratio:.0f}"
