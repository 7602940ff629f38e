"""Find the bottleneck of a program: GIL, lock, shared object, pauses, cores, I/O, or nothing; in a sentence or two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePath

from gilscope.toolkit.gil.records import CodeLine, WaitReason
from gilscope.toolkit.gil.summary import WAITED_FOR
from gilscope.toolkit.units import counted, percent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.gil.holders import Holder, Stopper
    from gilscope.toolkit.gil.summary import RecordingSummary, ThreadSummary, WaitPlace

LIMITS = 0.1       # share of the threads' time in waits for one thing, from which on that limits the program
MOSTLY = 0.5       # share of their time outside Python and its waits, from which on the program waits for I/O
HARDLY = 0.2       # of the highest demand to run, and of their own time: threads with less do not count
SEEN = 0.001       # smaller shares are left out of sentences


class Limiter(StrEnum):
    """The possible bottlenecks of a program."""

    GIL = "gil"
    LOCK = "lock"
    OBJECT = "object"      # threads wait for a shared object in critical sections
    PAUSES = "pauses"      # all threads are stopped repeatedly
    CORES = "cores"        # threads that are ready to run wait for a core
    IO = "io"
    NOTHING = "nothing"
    UNKNOWN = "unknown"    # the work of killed processes was not recorded


# What limits a program whose threads contend for these reasons; that they wait on purpose limits nothing.
LIMITERS = {
    WaitReason.GIL: Limiter.GIL, WaitReason.OBJECT: Limiter.OBJECT, WaitReason.WORLD: Limiter.PAUSES,
    WaitReason.LOCK: Limiter.LOCK, WaitReason.RAW: Limiter.LOCK, WaitReason.SPIN: Limiter.LOCK,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The bottleneck of a program, with its share and place."""

    what: Limiter
    share: float           # of its threads' time, without idle time
    thread: str | None     # GIL: its main holder; pauses: who caused most
    place: CodeLine | None   # GIL: the place of the holder; lock, object, pauses: the place of most waits
    queued: float          # share of the same time in which they waited for a core
    sentence: str
    also: tuple[Limiter, ...] = ()   # other waits of at least `LIMITS` of that time, partly at the same time


def find_limit(
    summary: RecordingSummary, holders: Sequence[Holder], *, stoppers: Sequence[Stopper] = (),
) -> Limit:
    """Find the bottleneck of the program.

    Args:
        summary: The summary of its processes.
        holders: The holders of the GIL, the worst first.
        stoppers: The threads that stopped all others, the worst first.
    """
    found = _bottleneck(summary, holders)
    return replace(found, thread=stoppers[0].thread) if found.what is Limiter.PAUSES and stoppers else found


def _bottleneck(summary: RecordingSummary, holders: Sequence[Holder]) -> Limit:
    working = _working(summary)
    waited = sum(row.waited for row in working)
    held = held_share(summary, holders)
    queued = sum(row.run_queue or 0.0 for row in working)
    of_gil = _share(waited * held, working)
    of_locks = _share(sum(row.parked + row.spun for row in working), working)
    # While the next holder of the GIL waits for a core, all others wait for the GIL, and nobody has it.
    of_cores = _share(max(queued, min(waited * (1 - held), queued * len(working))), working)
    rest = asleep_share(summary)
    asleep = rest if rest is not None and len(working) == len(summary.threads) else 0.0    # shares of the same time
    cores_first = of_cores >= LIMITS and of_cores > max(of_gil, of_locks, asleep)
    if cores_first and not summary.killed:
        found = _cores(of_cores, summary)
    elif max(of_gil, of_locks) >= LIMITS:
        found = _gil(of_gil, holders) if of_gil >= of_locks else _lock(of_locks, summary)
    elif summary.killed:
        found = _unknown(summary)
    elif rest is not None and rest >= MOSTLY:
        found = _io(rest, of_gil, of_locks)
    else:
        found = _nothing(summary, of_gil, of_locks)
    return _with_other_waits(replace(found, queued=of_cores), of_gil, of_locks, summary)


def _with_other_waits(found: Limit, of_gil: float, of_locks: float, summary: RecordingSummary) -> Limit:
    """Return the limit with the waits that count beside it, which a run on a quiet machine may still have."""
    contended, name, place = _contention(summary)
    of_others = f"{'in' if contended is Limiter.PAUSES else 'for'} {name}{_most_at(contended, place)}"
    others = [(Limiter.GIL, of_gil, f"for {WAITED_FOR[WaitReason.GIL]}"), (contended, of_locks, of_others)]
    others = [other for other in others if other[0] is not found.what and other[1] >= LIMITS]
    if others:
        texts = " and ".join(f"{percent(share)} {text}" for _, share, text in others)
        also = f"Partly at the same time, they waited {texts}."
    elif found.what is Limiter.CORES and len(summary.threads) > 1:
        also = "Whether they wait for each other, only a run with enough cores shows."
    else:
        return found
    return replace(found, also=tuple(what for what, _, _ in others), sentence=f"{found.sentence} {also}")


def held_share(summary: RecordingSummary, holders: Sequence[Holder]) -> float:
    """Return the share of the waits for the GIL in which a thread held it; else its next holder had no core."""
    if not holders or not summary.waited:
        return 1.0
    return min(1.0, sum(holder.caused for holder in holders) / summary.waited)


def _working(summary: RecordingSummary) -> Sequence[ThreadSummary]:
    """Return the threads that are not mostly asleep; all if the others did not work for as long as the program ran."""
    highest = max(map(_wanted, summary.threads), default=0.0)
    rows = [row for row in summary.threads if _wanted(row) >= HARDLY * min(highest, row.seconds - row.idle)]
    return rows if sum(row.seconds - row.idle for row in rows) >= summary.wall else summary.threads


def _wanted(row: ThreadSummary) -> float:
    """Return the seconds in which a thread ran or was ready to run; for a killed one, all but its idle ones."""
    if row.cpu is None:
        return row.seconds - row.idle
    return row.cpu + (row.run_queue or 0.0) + row.waited + row.handing_over + row.parked + row.spun


def _share(seconds: float, rows: Iterable[ThreadSummary]) -> float:
    time = sum(row.seconds - row.idle for row in rows)
    return min(1.0, seconds / time) if time > 0 else 0.0


def asleep_share(summary: RecordingSummary) -> float | None:
    """Return the share of all threads' time in which they neither ran nor waited for the GIL, locks or objects."""
    known = [row for row in summary.threads if row.cpu is not None]
    if not known:
        return None
    return _share(sum(max(0.0, row.seconds - row.idle - _wanted(row)) for row in known), known)


def _cores(share: float, summary: RecordingSummary) -> Limit:
    if len(summary.threads) == 1:   # it needs one core, and has it: others run there, too
        sentence = f"Other programs used its core: it waited for one {percent(share)} of the time it had work."
    else:
        sentence = (f"It needs more cores than it got: threads that were ready to run waited for one {percent(share)} "
                    "of the time they had work.")
    return Limit(what=Limiter.CORES, share=share, thread=None, place=None, queued=share, sentence=sentence)


def _gil(share: float, holders: Sequence[Holder]) -> Limit:
    worst = holders[0] if holders else None
    return Limit(what=Limiter.GIL, share=share, thread=worst.thread if worst else None,
                 place=CodeLine(worst.file, worst.line, worst.function) if worst else None, queued=0.0,
                 sentence=f"The GIL limits it: {gil_waits(share)}")


def gil_waits(share: float) -> str:
    """Return how long threads waited for the GIL, as the end of a sentence."""
    return f"threads waited for it {percent(share)} of the time they had work."


def _contention(summary: RecordingSummary) -> tuple[Limiter, str, CodeLine | None]:
    """Return what threads contend for most, its name, and the place of most of these waits."""
    seconds = {Limiter.LOCK: summary.on_locks, Limiter.OBJECT: summary.on_objects, Limiter.PAUSES: summary.paused}
    what = max(seconds, key=lambda each: seconds[each])
    places = [place for place in summary.places if not place.idle and place.reason is not WaitReason.GIL]
    worst = next((place for place in places if LIMITERS.get(place.reason) is what), places[0] if places else None)
    names = {Limiter.LOCK: "a lock", Limiter.PAUSES: "pauses in which all threads are stopped",
             Limiter.OBJECT: f"{worst.what if worst else 'an object'} that threads share"}
    if summary.spun > seconds[what]:     # one that was free before the thread was parked
        names[what] = "a lock or an object that threads share"
    return what, names[what], CodeLine(worst.file, worst.line, worst.function) if worst else None


def _most_at(what: Limiter, place: CodeLine | None) -> str:
    # Where a thread is stopped is not why.
    return f", most at {place_text(place)}" if place and what is not Limiter.PAUSES else ""


def _lock(share: float, summary: RecordingSummary) -> Limit:
    what, name, place = _contention(summary)
    limit = "limit" if what is Limiter.PAUSES else "limits"
    sentence = (f"{name[0].upper()}{name[1:]} {limit} it: threads that want to run waited {percent(share)} of the time "
                f"they had work{_most_at(what, place)}.")
    return Limit(what=what, share=share, thread=None, place=place, queued=0.0, sentence=sentence)


def _unknown(summary: RecordingSummary) -> Limit:
    lost = counted(summary.killed, "process left no end: its", "processes left no end: their")
    return Limit(what=Limiter.UNKNOWN, share=0.0, thread=None, place=None, queued=0.0,
                 sentence=f"What limits it is not known, as {lost} work is missing.")


def _io(share: float, of_gil: float, of_locks: float) -> Limit:
    sentence = (f"It waits for I/O or sleeps for {percent(share)} of its threads' time, joins and queues aside. "
                f"{_little(of_gil, of_locks)}.")
    return Limit(what=Limiter.IO, share=share, thread=None, place=None, queued=0.0, sentence=sentence)


def _nothing(summary: RecordingSummary, of_gil: float, of_locks: float) -> Limit:
    if len(summary.threads) <= summary.processes:
        each = "" if summary.processes == 1 else " in each process"
        sentence = f"Nothing that threads wait for limits it: it had one thread{each}."
    else:
        sentence = f"Nothing limits it: {_little(of_gil, of_locks, begin='its threads')}."
    return Limit(what=Limiter.NOTHING, share=max(of_gil, of_locks), thread=None, place=None, queued=0.0,
                 sentence=sentence)


def _little(of_gil: float, of_locks: float, begin: str = "They") -> str:
    """Return a clause on how little threads wait for each other; negligible shares are left out."""
    parts = (of_gil, WAITED_FOR[WaitReason.GIL]), (of_locks, "locks and objects")
    shares = [f"for {what} {percent(share, 1)}" for share, what in parts if share >= SEEN]
    if not shares:
        return f"{begin} hardly waited for each other"
    return f"{begin} waited {' and '.join(shares)} of the time they had work"


def place_text(place: CodeLine | Holder | WaitPlace) -> str:
    """Return file, line and function."""
    return f"{file_line(place)} {place.function}"


def file_line(place: CodeLine | Holder | WaitPlace) -> str:
    """Return file and line; the file with its folder if its name is `__init__` or `__main__`."""
    file = place.file[len("<frozen "):-1] if place.file.startswith("<frozen ") else place.file
    path = PurePath(file.rpartition("importlib.")[2])
    name = str(PurePath(*path.parts[-2:])) if path.stem in {"__init__", "__main__"} else path.name
    return f"{name}:{place.line}"
