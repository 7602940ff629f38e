"""Summarise recorded processes: shares, threads, the longest wait, places of waits, and the overhead of measuring.

`holders` finds the causes of waits, `bottleneck` what limits the program.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from gilscope.toolkit.gil.records import SpanKind, WaitReason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.gil.records import CodeLine, Process, SpanTotal, Thread

WORKED = 0.01        # share of the process's CPU time, from which on a thread counts as working
# What a thread waits for, as reports word it; an object of a known type is worded by that: "a list".
WAITED_FOR = {
    WaitReason.GIL: "the GIL", WaitReason.OBJECT: "an object", WaitReason.LOCK: "a lock",
    WaitReason.WORLD: "the end of a pause", WaitReason.RAW: "a lock inside the interpreter",
    WaitReason.OTHER: "an event, a queue or a thread's end", WaitReason.SPIN: "a lock or an object, spinning",
}
PASS_COST = 12e-9    # seconds per release that is counted but not timed: 10 to 12 ns on 3.13 and 3.14


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitPlace:
    """One line of the program, or of a library that the program did not call, with its waits for one reason."""

    thread: str | None  # None: all threads, added up
    file: str
    line: int
    function: str
    reason: WaitReason
    on: str            # the type of the object waited for: "list"; "" if unknown, or if it is no object
    idle: bool         # it waits on purpose: a join, an event, a queue
    count: int
    seconds: float
    longest: float
    inside: CodeLine | None = None   # the line of a library, called from there, with most of it; None: that line itself

    @property
    def what(self) -> str:
        """The wording of the reason in reports, such as "a lock" or "a list"."""
        return f"a {self.on}" if self.on else WAITED_FOR[self.reason]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSummary:
    """One thread; seconds."""

    process: int
    tid: int
    name: str
    seconds: float            # of its life
    waited: float             # for the GIL
    waits: int
    longest: float
    failed: int               # tries that did not get the GIL
    requests: int             # to the holder to release the GIL, after the switch interval
    handovers: int
    held: float
    handing_over: float       # after a request, until another thread had the GIL
    parked: float             # in contention for a lock or an object, or paused
    parks: int
    on_objects: float         # part of `parked`: for a shared object, in critical sections
    paused: float             # part of `parked`: all threads were stopped, for the garbage collector for instance
    spun: float               # yielded its CPU until a lock or an object was free
    spins: int
    yields: int               # of its CPU while it tried to get a lock
    idle: float               # parked on purpose
    cpu: float | None
    run_queue: float | None
    switches: int | None      # context switches, voluntary and involuntary


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingSummary:
    """All processes together; seconds of threads, added up."""

    processes: int
    wall: float               # from the first process's start to the last one's end
    thread_seconds: float
    waited: float
    held: float
    handing_over: float
    longest: float
    longest_thread: str
    waits: int
    failed: int
    requests: int
    handovers: int
    parked: float             # in contention for locks and objects, and paused
    parks: int
    on_objects: float         # of that, for objects: in critical sections
    paused: float             # of that, because all threads were stopped
    spun: float               # yielded the CPU until one was free
    spins: int
    idle: float
    cpu: float | None         # of the threads whose end was recorded; None if no end was
    run_queue: float | None
    system_calls: int         # each try, wake-up of a waiter, yield; the mutex around a GIL makes as many more
    context_switches: int | None
    overhead: float           # CPU seconds that measuring took, estimated from costs measured at the start
    threads: tuple[ThreadSummary, ...]
    places: tuple[WaitPlace, ...]   # the most seconds first
    thread_places: tuple[WaitPlace, ...]  # the same, separately for each thread
    sites_lost: int           # samples of a waiting thread that there was no room to store
    at_once: int              # threads that did something, at the same time in one process; its main one is not counted
    killed: int               # processes whose end was not recorded, neither by themselves nor by who killed them
    threads_lost: int
    sites_known: bool

    @property
    def share(self) -> float:
        """Waits for the GIL as a share of all thread time."""
        return self.waited / self.thread_seconds if self.thread_seconds else 0.0

    @property
    def wanted_share(self) -> float:
        """Waits for the GIL as a share of the time in which threads ran or were ready to run Python code."""
        wanted = self.waited + self.held + self.handing_over
        return self.waited / wanted if wanted else 0.0

    @property
    def blocked_share(self) -> float:
        """Time parked and spinning in contention for locks and objects as a share of all thread time."""
        return (self.parked + self.spun) / self.thread_seconds if self.thread_seconds else 0.0

    @property
    def on_locks(self) -> float:
        """Seconds parked for locks: the program's, and a few inside the interpreter."""
        return max(0.0, self.parked - self.on_objects - self.paused)

    @property
    def overhead_share(self) -> float | None:
        """The overhead of measuring as a share of the CPU time; None if that is unknown for a process."""
        return self.overhead / self.cpu if self.cpu and not self.killed else None


def summarize(processes: Sequence[Process]) -> RecordingSummary:
    """Summarise `processes`, at least one."""
    threads = [(process, thread, name) for process in processes
               for thread, name in zip(process.threads, thread_names(process), strict=True)]
    rows = tuple(_thread(*each) for each in threads)
    longest = max(rows, key=lambda row: row.longest, default=None)
    ends = [process.started + process.seconds for process in processes]
    return RecordingSummary(
        processes=len(processes), wall=max(ends) - min(process.started for process in processes),
        thread_seconds=sum(row.seconds for row in rows), waited=sum(row.waited for row in rows),
        held=sum(row.held for row in rows), handing_over=sum(row.handing_over for row in rows),
        longest=longest.longest if longest else 0.0, longest_thread=longest.name if longest else "",
        waits=sum(row.waits for row in rows), failed=sum(row.failed for row in rows),
        requests=sum(row.requests for row in rows), handovers=sum(row.handovers for row in rows),
        parked=sum(row.parked for row in rows), parks=sum(row.parks for row in rows),
        on_objects=sum(row.on_objects for row in rows), paused=sum(row.paused for row in rows),
        spun=sum(row.spun for row in rows), spins=sum(row.spins for row in rows),
        idle=sum(row.idle for row in rows), cpu=_known(row.cpu for row in rows),
        run_queue=_known(row.run_queue for row in rows), system_calls=sum(_calls(thread) for _, thread, _ in threads),
        context_switches=_known_count(row.switches for row in rows), overhead=sum(map(_overhead, processes)),
        threads=rows, places=_places(processes, by_thread=False),
        thread_places=_places(processes, by_thread=True), sites_lost=sum(process.sites_lost for process in processes),
        at_once=max(map(_at_once, processes), default=0),
        killed=sum(map(_is_cut_off, processes)),
        threads_lost=sum(process.threads_lost for process in processes),
        sites_known=all(process.sites_known for process in processes),
    )


def thread_names(process: Process) -> list[str]:
    """Return a name for each thread of the process: Python's own, or the function that it runs."""
    common = next((thread.name for thread in process.threads if thread.main), "")
    return [_name(thread, common) for thread in process.threads]


def _name(thread: Thread, common: str) -> str:
    if thread.main:
        return "main"
    # The system stores 15 bytes of a name; if they do not match, the thread was renamed later.
    named = bool(thread.name) and thread.name != common
    if thread.called and (not named or thread.called.startswith(thread.name.rstrip("\N{REPLACEMENT CHARACTER}"))):
        return thread.called
    if named:
        return thread.name
    return f"thread {thread.number}: {thread.entry}" if thread.entry else f"thread {thread.number}"


def _thread(process: Process, thread: Thread, name: str) -> ThreadSummary:
    totals = thread.totals
    switches = None if thread.voluntary is None else thread.voluntary + (thread.involuntary or 0)
    contended = [site for site in filter(None, process.sites) if site.thread == thread.number and not site.idle]
    return ThreadSummary(
        process=process.pid, tid=thread.tid, name=name, seconds=thread.seconds, waited=totals[SpanKind.WAIT].seconds,
        waits=totals[SpanKind.WAIT].count, longest=totals[SpanKind.WAIT].longest,
        failed=max(0, thread.attempts - totals[SpanKind.WAIT].count), requests=thread.timeouts,
        handovers=thread.handovers, held=totals[SpanKind.HOLD].seconds, handing_over=totals[SpanKind.SWITCH].seconds,
        parked=totals[SpanKind.PARK].seconds, parks=totals[SpanKind.PARK].count,
        on_objects=sum(site.parked.seconds for site in contended if site.reason is WaitReason.OBJECT),
        paused=sum(site.parked.seconds for site in contended if site.reason is WaitReason.WORLD),
        spun=totals[SpanKind.SPIN].seconds, spins=totals[SpanKind.SPIN].count, yields=thread.yields,
        idle=totals[SpanKind.IDLE].seconds, cpu=thread.cpu, run_queue=thread.run_queue, switches=switches,
    )


def _at_once(process: Process) -> int:
    total = sum(thread.cpu or 0.0 for thread in process.threads)
    worked = [thread for thread in process.threads if not thread.main and (
        bool(thread.entry) if thread.cpu is None else thread.cpu > WORKED * total)]
    # A thread that ends at the moment when another starts does not overlap with it.
    changes = sorted((when, change) for thread in worked
                     for when, change in ((thread.start, 1), (thread.end, -1)))
    most = there = 0
    for _, change in changes:
        there += change
        most = max(most, there)
    return most


def _is_cut_off(process: Process) -> bool:
    """Return True if the process did not record its end, nor did another one before it killed this one."""
    return not process.ended and (not process.threads or any(thread.cpu is None for thread in process.threads))


def _calls(thread: Thread) -> int:
    # A wait that sleeps and the wake-up that ends it are a call each; a yield is one.
    slept = (SpanKind.SWITCH, SpanKind.PARK, SpanKind.IDLE)
    woken = thread.totals[SpanKind.WAIT].count + 2 * sum(thread.totals[kind].count for kind in slept)
    return thread.attempts + woken + thread.yields


def _overhead(process: Process) -> float:
    recorded = sum(thread.totals[kind].count for thread in process.threads for kind in SpanKind)
    tried = sum(thread.attempts for thread in process.threads)
    sampled = sum(thread.sampling for thread in process.threads)
    passed = sum(thread.acquired for thread in process.threads)
    yields = sum(thread.yields for thread in process.threads)
    return (recorded * process.hold_cost + (tried + 2 * yields) * process.clock_cost + sampled + passed * PASS_COST)


def _known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _known_count(values: Iterable[int | None]) -> int | None:
    total = _known(values)
    return None if total is None else int(total)


def _places(processes: Sequence[Process], *, by_thread: bool) -> tuple[WaitPlace, ...]:
    found: dict[tuple[str | None, CodeLine, WaitReason, str, bool], list[tuple[SpanTotal, CodeLine | None]]]
    found = defaultdict(list)
    for process in processes:
        names = thread_labels(process, processes)
        for site in filter(None, process.sites):
            thread = names.get(site.thread, "?") if by_thread else None
            if site.waited.count:
                found[thread, site.own, WaitReason.GIL, "", False].append((site.waited, site.inside))
            if site.parked.count:
                on = site.on if site.reason is WaitReason.OBJECT else ""
                found[thread, site.own, site.reason, on, site.idle].append((site.parked, site.inside))
    places = [
        WaitPlace(thread=thread, file=own.file, line=own.line, function=own.function, reason=reason, on=on, idle=idle,
                  inside=max(parts, key=lambda part: part[0].seconds)[1],
                  count=sum(total.count for total, _ in parts), seconds=sum(total.seconds for total, _ in parts),
                  longest=max(total.longest for total, _ in parts))
        for (thread, own, reason, on, idle), parts in found.items()
    ]
    return tuple(sorted(places, key=lambda place: (-place.seconds, place.file, place.line)))


def thread_labels(process: Process, processes: Sequence[Process]) -> dict[int, str]:
    """Return the names of the process's threads by number, prefixed with its id if there are several processes."""
    names = thread_names(process)
    if len(processes) > 1:
        names = [f"{process.pid} {name}" for name in names]
    return dict(zip((thread.number for thread in process.threads), names, strict=True))
