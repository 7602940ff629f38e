"""Who had the GIL while others waited for it: thread, line of the program, how long, and who waited meanwhile.

Where the holder was is what the waiters saw: one that has waited for the switch interval in vain looks at the holder's
frames, and again after each further interval.  A hold that nobody saw belongs to the line at which it ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from gilscope.toolkit.gil.records import Kind
from gilscope.toolkit.gil.summary import thread_labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gilscope.toolkit.gil.records import Line, Process, Site, Span, Thread

MOST_HOLDS = 10       # single holds that are told
MOST_WAITERS = 5      # of one holder
FULL = 0.8            # of the switch interval, from which on a wait lasted it
SHORT = 0.2           # of it, up to which a hold is that of a thread which gives the GIL away by itself
REPEATED = 10         # such waits, from which on they are a convoy
WORTH_TELLING = 0.1   # share of its life that a thread spends in them, likewise


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long one thread waited while another one had the GIL."""

    thread: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A thread at a line of the program that had the GIL while others waited for it."""

    thread: str
    file: str
    line: int
    function: str
    inside: Line | None   # where in a library most of it was, which that line had called; None: there itself
    holds: int
    seconds: float        # while others waited
    longest: float
    longest_at: float     # seconds since its process's recording began
    caused: float         # seconds that others waited meanwhile, added up
    share: float          # of all that threads waited while somebody had the GIL
    waiting: tuple[Waiting, ...]   # who waited meanwhile, the most first; of the spans that were kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One of the longest times in which a thread had the GIL while others waited for it."""

    thread: str
    file: str
    line: int
    function: str
    begin: float          # seconds since its process's recording began; when the first of the others began to wait
    seconds: float
    waiting: tuple[Waiting, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Convoy:
    """A thread that gives the GIL away by itself, again and again, and waits the switch interval to get it back.

    Source: David Beazley, "Understanding the Python GIL", PyCon 2010.
    """

    thread: str
    waits: int             # those that lasted the switch interval or longer
    interval: float        # the switch interval, seconds
    cost: float            # waits times interval, seconds: what they cost at least
    waited: float          # by all its waits; more than the cost where several threads are asked one after the other
    seconds: float         # how long it was there
    holder: Holder | None  # behind which it waited longest


def find_holders(processes: Sequence[Process]) -> tuple[Holder, ...]:
    """Return who had the GIL while others waited, those who made them wait longest first."""
    sites: dict[tuple[str, Line], list[Site]] = defaultdict(list)
    waiting: dict[tuple[str, Line], dict[str, float]] = defaultdict(dict)
    for process in processes:
        names = thread_labels(process, processes)
        for site in filter(None, process.sites):
            if site.held.count:
                sites[names.get(site.thread, "?"), site.own].append(site)
        for hold, site in _holds(process):
            meanwhile = waiting[names.get(site.thread, "?"), site.own]
            for number, seconds in hold.waiting.items():
                meanwhile[names[number]] = meanwhile.get(names[number], 0.0) + seconds
    total = sum(site.caused for group in sites.values() for site in group)
    found = [_holder(*key, group, waiting[key], total) for key, group in sites.items()]
    return tuple(sorted(found, key=lambda holder: (-holder.caused, holder.file, holder.line)))


def _holder(thread: str, own: Line, sites: list[Site], waiting: Mapping[str, float], total: float) -> Holder:
    longest = max((site.held for site in sites), key=lambda held: held.longest)
    caused = sum(site.caused for site in sites)
    return Holder(
        thread=thread, file=own.file, line=own.line, function=own.function,
        inside=max(sites, key=lambda site: site.caused).inside, holds=sum(site.held.count for site in sites),
        seconds=sum(site.held.seconds for site in sites), longest=longest.longest, longest_at=longest.longest_at,
        caused=caused, share=caused / total if total else 0.0, waiting=_ranked(waiting),
    )


def longest_holds(processes: Sequence[Process]) -> tuple[Hold, ...]:
    """Return the longest single holds, the longest first; of the spans that were kept."""
    found = []
    for process in processes:
        names = thread_labels(process, processes)
        for hold, site in _holds(process):
            found.append(Hold(
                thread=names.get(site.thread, "?"), file=site.own.file, line=site.own.line, function=site.own.function,
                begin=hold.contended, seconds=hold.span.end - hold.contended,
                waiting=_ranked({names[number]: seconds for number, seconds in hold.waiting.items()})))
    return tuple(sorted(found, key=lambda hold: (-hold.seconds, hold.begin))[:MOST_HOLDS])


def _ranked(waiting: Mapping[str, float]) -> tuple[Waiting, ...]:
    ranked = sorted(waiting.items(), key=lambda each: (-each[1], each[0]))
    return tuple(Waiting(*each) for each in ranked[:MOST_WAITERS])


@dataclass(slots=True)
class _Contended:
    """A hold, since when others waited, and how many seconds each of them by its number."""

    span: Span
    contended: float
    waiting: dict[int, float]


def _holds(process: Process) -> Iterator[tuple[_Contended, Site]]:
    """Yield the holds of known places in which others waited."""
    by_gil: dict[int, list[_Contended]] = defaultdict(list)
    for thread in process.threads:
        for span in thread.spans:
            if span.kind is Kind.HOLD and span.site:
                by_gil[span.gil].append(_Contended(span, span.end, {}))
    for gil, holds in by_gil.items():
        holds.sort(key=lambda hold: hold.span.begin)
        ends = [hold.span.end for hold in holds]     # in order, too: one thread at a time has a GIL
        for thread in process.threads:
            for wait in thread.spans:
                if wait.kind is Kind.WAIT and wait.gil == gil:
                    _cut(wait, thread, holds, bisect_right(ends, wait.begin))
        for hold in holds:
            site = process.sites[hold.span.site]
            if hold.waiting and site is not None:
                yield hold, site


def _cut(wait: Span, thread: Thread, holds: list[_Contended], first: int) -> None:
    """Share a wait out among the holds that it lasted through, from the first that it can be."""
    for position in range(first, len(holds)):
        hold = holds[position]
        if hold.span.begin >= wait.end:
            return
        begin, end = max(wait.begin, hold.span.begin), min(wait.end, hold.span.end)
        hold.contended = min(hold.contended, begin)
        hold.waiting[thread.number] = hold.waiting.get(thread.number, 0.0) + end - begin


def find_convoys(processes: Sequence[Process], holders: Sequence[Holder]) -> tuple[Convoy, ...]:
    """Return the threads that wait in a convoy, the one that it costs most first."""
    found = []
    for process in processes:
        names = thread_labels(process, processes)
        for thread in process.threads:
            if waits := _convoy_waits(thread, process.switch_interval or 0.0):
                interval, name = process.switch_interval or 0.0, names[thread.number]
                behind = max(((each.seconds, -rank) for rank, holder in enumerate(holders) for each in holder.waiting
                              if each.thread == name), default=None)
                found.append(Convoy(
                    thread=name, waits=waits, interval=interval, cost=waits * interval, seconds=thread.seconds,
                    waited=thread.totals[Kind.WAIT].seconds, holder=holders[-behind[1]] if behind else None))
    return tuple(sorted(found, key=lambda convoy: -convoy.cost))


def _convoy_waits(thread: Thread, interval: float) -> int:
    """Return how many waits of the thread are those of a convoy; 0 when it is in none."""
    if not interval:
        return 0
    waits = [span for span in thread.spans if span.kind is Kind.WAIT and span.seconds >= FULL * interval]
    holds = [span.seconds for span in thread.spans if span.kind is Kind.HOLD]
    made_to = thread.totals[Kind.SWITCH].count   # times it was asked to hand the GIL over: it computes
    lasted = sum(span.seconds for span in waits)
    convoy = (len(waits) >= REPEATED and holds and median(holds) < SHORT * interval
              and made_to < SHORT * len(waits) and lasted >= WORTH_TELLING * thread.seconds)
    return len(waits) if convoy else 0
