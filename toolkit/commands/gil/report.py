"""The report of `gilscope gil` as a document: its answer alone, or everything below the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.gil.answer import answer_lines, last_text, missing_texts, short_name, where_text
from gilscope.toolkit.gil.bottleneck import SEEN, held_share, place_text
from gilscope.toolkit.gil.recorder import BUSY
from gilscope.toolkit.gil.records import WaitReason
from gilscope.toolkit.report.document import Column, Document, Entry, Heading, Lines, Quantity, Table, summary_lines
from gilscope.toolkit.units import format_seconds, inflect, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.gil.diagnosis import Diagnosis
    from gilscope.toolkit.gil.holders import Convoy, Holder, Stopper
    from gilscope.toolkit.gil.summary import RecordingSummary, ThreadSummary, WaitPlace
    from gilscope.toolkit.report.document import Section, Value

MOST_THREADS = 20
LONGEST_NAME = 22    # characters: a table that is wider than the terminal would be split into two parts
HOLDERS_LEGEND = "share: of the time that threads waited for the GIL; held, longest: while others waited."
# What the shares above the tables are of; the answer leaves idle time out, and says so.
ALL_TIME = "all threads' lives, idle or not"
WRITTEN = 1e-6      # seconds; a shorter time is reported as none
SHORTER = {WaitReason.WORLD: "a pause", WaitReason.SPIN: "a lock (spin)", WaitReason.RAW: "an inner lock"}
LEAST_OVERHEAD = 0.0001   # share of the program's CPU time; a smaller one is reported as below it
MOST_HELD = 0.8      # share of the waits for the GIL in which a thread held it; a smaller one gets a sentence
WORST = 3            # holders whose waiting threads are listed; threads that stopped all others
SHOWN = 0.005        # smaller shares would be written as 0 %
MOST_LAST = 10       # threads of killed processes whose last activity is listed


def answer_document(found: Diagnosis) -> Document:
    """Return the answer alone: at most twelve lines of 100 columns."""
    return Document((Lines("", (*answer_lines(found), f"{_title(found)}; all of it: gilscope gil --full ...")),))


def document(found: Diagnosis, *, places: int) -> Document:
    """Return the whole report, the answer first.

    Args:
        found: The program's run.
        places: Number of rows to show of the places of waits, and of the holders of the GIL.
    """
    summary = found.summary
    gil = found.gil_used or summary.waits > 0
    sections: list[Section] = [Heading(_title(found), 1), summary_lines(answer_lines(found)),
                               Lines("Waits", tuple(_waits(found)))]
    holders = [holder for holder in found.holders if holder.share >= SHOWN]
    if holders and summary.share >= SHOWN:
        sections.append(holders_table(holders[:places], max(0, len(holders) - places)))
        sections.append(Lines("", (HOLDERS_LEGEND, *map(_longest_hold, holders[:WORST]))))
    sections.append(threads_table(summary, gil=gil))
    sections.append(Lines("", (threads_legend(summary, gil=gil),)))
    contended = tuple(place for place in summary.thread_places
                      if not place.idle and place.seconds >= SEEN * summary.wall)
    if contended:
        left_out = max(0, len(contended) - places)
        sections.append(places_table(contended[:places], left_out, lost=bool(summary.sites_lost)))
    if found.last_seen:
        sections.append(Lines("When it was ended", tuple(map(last_text, found.last_seen[:MOST_LAST]))))
    sections.append(Lines("Measured", tuple(_measured(found))))
    return Document(tuple(sections))


def _title(found: Diagnosis) -> str:
    summary = found.summary
    build = f"Python {found.version}{'t' if found.free_threaded else ''}"
    gil = "" if not found.free_threaded else ", GIL on" if found.gil_used else ", no GIL"
    at_least = "at least " if summary.killed else ""   # the last recorded event is not the end
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
        yield (f"Threads waited {format_seconds(summary.waited)} for the GIL, in {_counted(summary.waits, 'wait')}: "
               f"{percent(summary.share, 1)} of {ALL_TIME}, and {percent(summary.wanted_share)} of the time when "
               "more than one wanted it.")
        held = held_share(summary, found.holders)
        if held < MOST_HELD:
            yield f"For {percent(1 - held)} of that nobody had it: the next thread had no core."
        yield f"Longest: {format_seconds(summary.longest)}, by {summary.longest_thread}."
        yield (f"It changed hands {summary.handovers:,} times; threads made {summary.failed:,} failed tries, "
               f"and asked the holder {summary.requests:,} times to release it.")
    yield from map(_convoy, found.convoys)
    yield from _contention(summary, free_threaded=found.free_threaded)
    yield from map(_stopped, found.stoppers[:WORST])
    if summary.idle > WRITTEN:
        yield f"Idle, as the program wants it (joins, events, queues): {format_seconds(summary.idle)}; no contention."


def _convoy(convoy: Convoy) -> str:
    behind = f" behind {convoy.holder.thread} at {place_text(convoy.holder)}" if convoy.holder else ""
    return (f"In a convoy: {convoy.thread}{behind}: {convoy.waits:,} x {format_seconds(convoy.interval)} = "
            f"{format_seconds(convoy.cost)} at least, {format_seconds(convoy.waited)} in all, of its "
            f"{format_seconds(convoy.seconds)}.")


def _contention(summary: RecordingSummary, *, free_threaded: bool) -> Iterator[str]:
    """Yield the time that threads waited for locks, for shared objects, and in pauses of all threads."""
    if not summary.parks and not summary.spins:
        yield "For locks and shared objects: none." if free_threaded else "For locks: none."
        return
    parts = [("for locks", summary.on_locks), ("for objects that threads share", summary.on_objects),
             ("while all threads were stopped, as by the garbage collector", summary.paused),
             ("spinning until a lock or an object was free", summary.spun)]
    reasons = "; ".join(f"{format_seconds(seconds)} {what}" for what, seconds in parts if seconds > 0)
    share = f", {percent(summary.blocked_share, 1)} of {ALL_TIME}" if summary.blocked_share >= SEEN else ""
    waits = _counted(summary.parks + summary.spins, "wait")
    subject = "For locks and shared objects" if free_threaded or summary.on_objects else "For locks"
    yield f"{subject}: {waits}{share}: {reasons}."


def _stopped(stopper: Stopper) -> str:
    return (f"{stopper.thread} stopped all others at {place_text(stopper.place)}: for "
            f"{format_seconds(stopper.seconds)} in all, and up to {format_seconds(stopper.longest)} at a time.")


def _longest_hold(holder: Holder) -> str:
    inside = f", in {place_text(holder.inside)}" if holder.inside else ""
    longest = f"its longest hold {format_seconds(holder.longest)}, from {format_seconds(holder.longest_at)} on"
    waited = ", ".join(f"{each.thread} {format_seconds(each.seconds)}" for each in holder.waiting)
    in_all = f"; waits for it in all: {waited}" if waited else ""
    return f"{holder.thread} at {place_text(holder)}{inside}: {longest}{in_all}."


def _counted(count: int, what: str) -> str:
    return f"{count:,} {inflect(count, what)}"


def _measured(found: Diagnosis) -> Iterator[str]:
    summary = found.summary
    share = summary.overhead_share
    least = f", below {percent(LEAST_OVERHEAD, 2)} of it"
    of_cpu = "" if share is None else f", {percent(share, 2)} of the program's" if share >= LEAST_OVERHEAD else least
    yield f"Measuring took {format_seconds(summary.overhead)} of CPU time{of_cpu}, by costs measured at the start."
    queued = found.queued_share
    if queued is not None and queued > BUSY and len(summary.threads) > 1:
        yield (f"The machine was busy: the threads waited for a core {percent(queued)} of the time in which they "
               "wanted one. A thread that holds a lock then keeps it longer than on a quiet machine.")
    if summary.killed:
        yield (f"{summary.killed} of {summary.processes} processes left no end: killed, ended by os._exit, replaced "
               "by exec, or still running. Waits that were cut off, and the lifetimes of their threads, count up to "
               "the last recorded event; the CPU time of these threads is unknown.")
    yield from (f"{text[0].upper()}{text[1:]}." for text in missing_texts(summary))


def holders_table(holders: Sequence[Holder], left_out: int) -> Table:
    """Return the table of the GIL's holders, those that caused the longest waits first.

    Args:
        holders: In this order.
        left_out: Number of further holders.
    """
    columns = (Column(title="share", key=True), Column(title="held"), Column(title="longest"),
               Column(title="thread", key=True, align="left"), Column(title="where", align="left"))
    rows = tuple(
        (Entry(Quantity(holder.share, "share")), Entry(Quantity(holder.seconds, "seconds")),
         Entry(Quantity(holder.longest, "seconds")), Entry(short_name(holder.thread, LONGEST_NAME)),
         Entry(where_text(holder)))
        for holder in holders
    )
    notes = [f"{left_out} more caused shorter waits; --places shows more of them"] if left_out else []
    return Table(title="Who had the GIL while others waited for it", columns=columns, rows=rows, footnotes=tuple(notes))


def threads_table(summary: RecordingSummary, *, gil: bool) -> Table:
    """Return the table of each thread's time by activity; with `gil`, the process used a GIL."""
    other = _contention_titles(summary)
    titles = ("life", "CPU", "no core", *(("GIL", "share") if gil else ()), *other, "idle")
    columns = [Column(title="thread", key=True, align="left"), *(Column(title=title) for title in titles)]
    several = summary.processes > 1
    ranked = sorted(summary.threads, key=lambda row: -(row.waited + row.parked + row.spun))
    rows = tuple(_thread(row, other, several=several, gil=gil) for row in ranked[:MOST_THREADS])
    left_out = len(ranked) - len(rows)
    note = (f"{left_out} more threads waited less",) if left_out else ()
    return Table(title="Where each thread's time went", columns=tuple(columns), rows=rows, footnotes=note)


def _contention_titles(summary: RecordingSummary) -> list[str]:
    """Return the titles of the columns of waits other than for the GIL: "locks", and each other that has waits."""
    seconds = {"objects": summary.on_objects, "pauses": summary.paused, "spins": summary.spun}
    return ["locks", *(title for title, there in seconds.items() if there >= WRITTEN)]


def threads_legend(summary: RecordingSummary, *, gil: bool) -> str:
    """Return the explanations of the headings of `threads_table`."""
    meanings = {"locks": "waited for locks", "objects": "for objects that threads share",
                "pauses": "while all threads were stopped", "spins": "until a lock or an object was free"}
    other = "; ".join(f"{title}: {meanings[title]}" for title in _contention_titles(summary))
    of_gil = "GIL, share: waited for the GIL, in all and of its life; " if gil else ""
    return (f"life: from its start to its end; CPU: ran; no core: could have run, but no core was free; {of_gil}"
            f"{other}; idle: waited as the program wants it. Columns may overlap: a thread that waits may also "
            "lack a core. Not listed: sleeping, reading and the like.")


def _thread(row: ThreadSummary, other: Sequence[str], *, several: bool, gil: bool) -> tuple[Entry, ...]:
    contention = {"locks": row.parked - row.on_objects - row.paused, "objects": row.on_objects, "pauses": row.paused,
                  "spins": row.spun}
    share = Quantity(row.waited / row.seconds, "share") if row.waited >= WRITTEN and row.seconds else "-"
    waited = (_time(row.waited), share) if gil else ()
    values = (Quantity(row.seconds, "seconds"), _time(row.cpu), _time(row.run_queue), *waited,
              *(_time(contention[title]) for title in other), _time(row.idle))
    return (Entry(short_name(f"{row.process} {row.name}" if several else row.name, LONGEST_NAME)), *map(Entry, values))


def _time(seconds: float | None) -> Value:
    if seconds is None:
        return "?"
    return "-" if seconds < WRITTEN else Quantity(seconds, "seconds")


def places_table(places: Sequence[WaitPlace], left_out: int, *, lost: bool) -> Table:
    """Return the table of waits by place and reason, the longest first.

    Args:
        places: Of single threads, the most seconds first.
        left_out: Number of further places.
        lost: True if the places of some waits are unknown.
    """
    columns = (Column(title="waited", key=True), Column(title="times"), Column(title="thread", key=True, align="left"),
               Column(title="for", align="left"), Column(title="where", align="left"))
    rows = tuple(
        (Entry(Quantity(place.seconds, "seconds")), Entry(Quantity(place.count, "")),
         Entry(short_name(place.thread or "", LONGEST_NAME)),
         Entry(SHORTER.get(place.reason, place.what)), Entry(where_text(place)))
        for place in places
    )
    notes = [f"{left_out} more waited less; --places shows more of them"] if left_out else []
    notes += ["there was no room for all places: some waits are missing here"] if lost else []
    return Table(title="Who waited for what, where", columns=columns, rows=rows, footnotes=tuple(notes))
