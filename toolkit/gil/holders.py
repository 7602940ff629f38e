"""Holders of the GIL while others waited for it: thread, line of the program, duration, and the waiting threads.

On a free-threaded build: the threads that stopped all others, as for the garbage collector.

Waiters sample the place of the holder: a thread that has waited for a full switch interval reads the holder's
frames, and reads them again after each further interval.  A hold without a sample is attributed to the line where it
ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from gilscope.toolkit.gil.records import SpanKind, WaitReason
from gilscope.toolkit.gil.summary import thread_labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gilscope.toolkit.gil.records import CodeLine, Process, SpanTotal, Thread, ThreadSpan, WaitSite

MOST_HOLDS = 10       # single holds in a report
MOST_WAITERS = 5      # of one holder in a report
FULL = 0.8            # share of the switch interval, from which on a wait counts as a whole interval
SHORT = 0.2           # longest hold, as a share of the switch interval, that counts as voluntary
ANSWERED = 2          # switch intervals, within which Python code hands the GIL over when asked; a C call may not
REPEATED = 10         # waits of a whole interval, from which on they are a convoy
STALL = 0.05          # seconds; ten times the default switch interval: the holder does not answer requests
WORTH_TELLING = 0.1   # share of a thread's life in such waits, from which on they are a convoy


@dataclass(frozen=True, slots=True)
class Waiting:
    """The wait of one thread while another one had the GIL."""

    thread: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A thread at a line of the program that had the GIL while others waited for it."""

    thread: str
    file: str
    line: int
    function: str
    inside: CodeLine | None   # the line of a library, called from there, with most of it; None: that line itself
    holds: int
    seconds: float        # while others waited
    longest: float
    longest_at: float     # seconds since its process's recording began
    caused: float         # seconds that others waited meanwhile, added up
    share: float          # of all waits while some thread had the GIL
    waiting: tuple[Waiting, ...]   # the waiting threads, the longest first; from the stored spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One of the longest holds of the GIL while others waited for it."""

    thread: str
    file: str
    line: int
    function: str
    begin: float          # of the first wait, in seconds since its process's recording began
    seconds: float
    waiting: tuple[Waiting, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """A thread that repeatedly waited for the GIL while another one had it at one place; each time for long."""

    thread: str           # that waited
    holder: str
    place: CodeLine       # of the holder
    times: int
    longest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopper:
    """A thread at a line of the program that stopped all others."""

    thread: str
    place: CodeLine
    seconds: float        # that others were stopped, added up
    longest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Convoy:
    """A thread that repeatedly releases the GIL for I/O, and waits the switch interval to get it back.

    Source: David Beazley, "Understanding the Python GIL", PyCon 2010.
    """

    thread: str
    waits: int             # of at least the switch interval
    interval: float        # the switch interval, seconds
    cost: float            # waits times interval, seconds: a lower bound of their cost
    waited: float          # in all its waits; more than the cost if several threads hold the GIL one after another
    seconds: float         # of its life
    holder: Holder | None  # for which it waited longest


def find_holders(processes: Sequence[Process]) -> tuple[Holder, ...]:
    """Return the holders of the GIL while others waited, those that caused the longest waits first."""
    sites: dict[tuple[str, CodeLine], list[WaitSite]] = defaultdict(list)
    waiting: dict[tuple[str, CodeLine], dict[str, float]] = defaultdict(dict)
    for process in processes:
        names = thread_labels(process, processes)
        for site in filter(None, process.sites):
            if site.held.count and site.reason is WaitReason.GIL:
                sites[names.get(site.thread, "?"), site.own].append(site)
        for hold, site in _holds(process):
            meanwhile = waiting[names.get(site.thread, "?"), site.own]
            for number, seconds in hold.waiting.items():
                meanwhile[names[number]] = meanwhile.get(names[number], 0.0) + seconds
    total = sum(site.caused for group in sites.values() for site in group)
    found = [_holder(*key, group, waiting[key], total) for key, group in sites.items()]
    return tuple(sorted(found, key=lambda holder: (-holder.caused, holder.file, holder.line)))


def _holder(thread: str, own: CodeLine, sites: list[WaitSite], waiting: Mapping[str, float], total: float) -> Holder:
    longest = max((site.held for site in sites), key=lambda held: held.longest)
    caused = sum(site.caused for site in sites)
    return Holder(
        thread=thread, file=own.file, line=own.line, function=own.function,
        inside=max(sites, key=lambda site: site.caused).inside, holds=sum(site.held.count for site in sites),
        seconds=sum(site.held.seconds for site in sites), longest=longest.longest, longest_at=longest.longest_at,
        caused=caused, share=caused / total if total else 0.0, waiting=_ranked(waiting),
    )


def longest_holds(processes: Sequence[Process]) -> tuple[Hold, ...]:
    """Return the longest single holds among the stored spans, the longest first."""
    found = []
    for process in processes:
        names = thread_labels(process, processes)
        for hold, site in _holds(process):
            found.append(Hold(
                thread=names.get(site.thread, "?"), file=site.own.file, line=site.own.line, function=site.own.function,
                begin=hold.contended, seconds=hold.span.end - hold.contended,
                waiting=_ranked({names[number]: seconds for number, seconds in hold.waiting.items()})))
    return tuple(sorted(found, key=lambda hold: (-hold.seconds, hold.begin))[:MOST_HOLDS])


def worst_stall(processes: Sequence[Process]) -> Stall | None:
    """Return the stall of the thread that waited longest at one place of a holder, or None if none waited for long.

    What a holder's lack of a core may have added does not make a wait long.
    """
    found: dict[tuple[str, str, CodeLine], list[float]] = defaultdict(list)
    for process in processes:
        names = thread_labels(process, processes)
        for number, site, seconds, with_core in _waits_for_holds(process):
            if with_core >= STALL:
                found[names[number], names.get(site.thread, "?"), site.own].append(seconds)
    if not found:
        return None
    (thread, holder, place), waits = max(found.items(), key=lambda item: sum(item[1]))
    return Stall(thread=thread, holder=holder, place=place, times=len(waits), longest=max(waits))


def _waits_for_holds(process: Process) -> Iterator[tuple[int, WaitSite, float, float]]:
    """Yield waiting thread, place of the hold, and the seconds waited, in all and while the holder had a core."""
    share_with_core = {thread.number: _share_with_core(thread) for thread in process.threads}
    for hold, site in _holds(process):
        for number, seconds in hold.waiting.items():
            yield number, site, seconds, seconds * share_with_core.get(site.thread, 1.0)


def _share_with_core(thread: Thread) -> float:
    """Return the share of a thread's holds in which it had a core, or slept: at least the larger of two estimates."""
    queued, held = thread.run_queue or 0.0, thread.totals[SpanKind.HOLD].seconds
    if not queued or not held:
        return 1.0
    ran = thread.cpu or 0.0
    return max(ran / (ran + queued), 1 - queued / held)


def stuck_seconds(processes: Sequence[Process]) -> float:
    """Return the longest time in which all threads of a process waited, and two or more of them for locks."""
    return max(map(_stuck_seconds, processes), default=0.0)


def _stuck_seconds(process: Process) -> float:
    # Time, change of the number of threads that do not wait, change of the number of those that wait for locks.
    changes: list[tuple[float, int, int]] = []
    for thread in process.threads:
        changes += [(thread.start, 1, 0), (thread.end, -1, 0)]
        for span in thread.spans:
            if span.kind in {SpanKind.PARK, SpanKind.IDLE}:
                site = process.sites[span.site]
                for_lock = int(span.kind is SpanKind.PARK and site is not None and site.reason is WaitReason.LOCK)
                changes += [(span.begin, -1, for_lock), (span.end, 1, -for_lock)]
    longest = last = 0.0
    active = locked = 0
    for when, of_active, of_locked in sorted(changes):
        if not active and locked > 1:
            longest = max(longest, when - last)
        active, locked, last = active + of_active, locked + of_locked, when
    return longest


def _ranked(waiting: Mapping[str, float]) -> tuple[Waiting, ...]:
    ranked = sorted(waiting.items(), key=lambda each: (-each[1], each[0]))
    return tuple(Waiting(*each) for each in ranked[:MOST_WAITERS])


@dataclass(slots=True)
class _Contended:
    """A hold, the begin of the first wait for it, and the seconds of each waiting thread by its number."""

    span: ThreadSpan
    contended: float
    waiting: dict[int, float]


def _holds(process: Process) -> Iterator[tuple[_Contended, WaitSite]]:
    """Yield the contended holds with a known place."""
    by_gil: dict[int, list[_Contended]] = defaultdict(list)
    for thread in process.threads:
        for span in thread.spans:
            if span.kind is SpanKind.HOLD and span.site:
                by_gil[span.gil].append(_Contended(span, span.end, {}))
    for gil, holds in by_gil.items():
        holds.sort(key=lambda hold: hold.span.begin)
        ends = [hold.span.end for hold in holds]     # ascending, as one thread at a time has a GIL
        for thread in process.threads:
            for wait in thread.spans:
                if wait.kind is SpanKind.WAIT and wait.gil == gil:
                    _cut(wait, thread, holds, bisect_right(ends, wait.begin))
        for hold in holds:
            site = process.sites[hold.span.site]
            if hold.waiting and site is not None:
                yield hold, site


def _cut(wait: ThreadSpan, thread: Thread, holds: list[_Contended], first: int) -> None:
    """Divide a wait among the holds that it overlaps, from the first possible one on."""
    for position in range(first, len(holds)):
        hold = holds[position]
        if hold.span.begin >= wait.end:
            return
        begin, end = max(wait.begin, hold.span.begin), min(wait.end, hold.span.end)
        hold.contended = min(hold.contended, begin)
        hold.waiting[thread.number] = hold.waiting.get(thread.number, 0.0) + end - begin


def find_stoppers(processes: Sequence[Process]) -> tuple[Stopper, ...]:
    """Return the threads that stopped all others, the one with the longest pauses first."""
    pauses: dict[tuple[str, CodeLine], list[SpanTotal]] = defaultdict(list)
    for process in processes:
        names = thread_labels(process, processes)
        for site in filter(None, process.sites):
            if site.held.count and site.reason is WaitReason.STOPPING:
                pauses[names.get(site.thread, "?"), site.own].append(site.held)
    found = [Stopper(thread=thread, place=place, seconds=sum(each.seconds for each in totals),
                     longest=max(each.longest for each in totals)) for (thread, place), totals in pauses.items()]
    return tuple(sorted(found, key=lambda stopper: -stopper.seconds))


def find_convoys(processes: Sequence[Process], holders: Sequence[Holder]) -> tuple[Convoy, ...]:
    """Return the threads in a convoy, the one with the highest cost first."""
    found = []
    for process in processes:
        names, interval = thread_labels(process, processes), process.switch_interval or 0.0
        answers: dict[int, list[float]] = defaultdict(list)
        for number, _, seconds, with_core in _waits_for_holds(process):
            if seconds >= FULL * interval:
                answers[number].append(with_core)
        for thread in process.threads:
            if waits := _convoy_waits(thread, interval, answers[thread.number]):
                name = names[thread.number]
                behind = max(((each.seconds, -rank) for rank, holder in enumerate(holders) for each in holder.waiting
                              if each.thread == name), default=None)
                found.append(Convoy(
                    thread=name, waits=waits, interval=interval, cost=waits * interval, seconds=thread.seconds,
                    waited=thread.totals[SpanKind.WAIT].seconds, holder=holders[-behind[1]] if behind else None))
    return tuple(sorted(found, key=lambda convoy: -convoy.cost))


def _convoy_waits(thread: Thread, interval: float, answers: Sequence[float]) -> int:
    """Return the number of convoy waits of the thread; 0 if it is in no convoy.

    Args:
        thread: The thread.
        interval: The switch interval, seconds; 0: not known.
        answers: How long it waited for single holds, seconds; none: it is not known who had the GIL.
    """
    if not interval or (answers and median(answers) > ANSWERED * interval):
        return 0
    waits = [span for span in thread.spans if span.kind is SpanKind.WAIT and span.seconds >= FULL * interval]
    holds = [span.seconds for span in thread.spans if span.kind is SpanKind.HOLD]
    # Many requests to hand the GIL over mean that it computes; many parks, that it releases the GIL for locks, not I/O.
    otherwise = sum(thread.totals[kind].count for kind in (SpanKind.SWITCH, SpanKind.PARK, SpanKind.IDLE))
    lasted = sum(span.seconds for span in waits)
    convoy = (len(waits) >= REPEATED and holds and median(holds) < SHORT * interval
              and otherwise < SHORT * len(waits) and lasted >= WORTH_TELLING * thread.seconds)
    return len(waits) if convoy else 0
