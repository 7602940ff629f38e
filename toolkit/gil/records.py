"""Read the recordings of the shim, one file per process, into plain values.

`_shim/shim.h` defines the layout.  A file is readable at any time, even if its process was killed.  Nanoseconds of
CLOCK_MONOTONIC become seconds since the process's recording began.
"""

from __future__ import annotations

import errno
import operator
import os
import struct
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from pathlib import Path

from gilscope.toolkit.bounded_reading import opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

SUFFIX = ".gil"
FORMAT = 4
PAGE = 4096
SITES, SITE = 4096, 1024
SLOTS, SLOT = 2048, 1024
CHUNKS, CHUNK, SPANS = 8192, 8192, 255
HISTOGRAM = 40
_SLOTS_AT = PAGE + SITES * SITE
_CHUNKS_AT = _SLOTS_AT + SLOTS * SLOT
_HEADER = struct.Struct("=8s12I5Q256s1024s")
_SITE = struct.Struct("=2I5Q2I12QQ224s88s40s2I224s88s")
_SLOT = struct.Struct(f"=2I2Q16s128s2IQ28Q18Q{HISTOGRAM}I128s2IQ")
_CHUNK = struct.Struct("=2IQ16x")
_SPAN = struct.Struct("=2QI3H2BI")
_FREE_THREADED, _SITES_KNOWN, _ENDED, _FORKED, _ALL_HOLDS, _GIL_ON = 1, 2, 4, 8, 32, 64
_PYTHON, _SLOT_ENDED, _MAIN, _USAGE_KNOWN = 1, 2, 4, 8


class BadRecordError(Exception):
    """A file that the shim did not write, or another version of it."""


class SpanKind(IntEnum):
    """The kinds of spans of a thread's time."""

    WAIT = 1     # for the GIL
    HOLD = 2     # has the GIL while another thread waits; from the start of the hold if it waited for the GIL itself
    SWITCH = 3   # has released the GIL on request and waits until another thread has it
    PARK = 4     # parked by the interpreter in contention for a lock or a critical section
    IDLE = 5     # parked because the program waits on purpose: a join, an event, a queue
    SPIN = 6     # yields its CPU repeatedly until a lock is free; if it is parked then, this is part of PARK


class WaitReason(StrEnum):
    """The reasons for which a thread waits, in the order of the shim's numbers, from 0 on."""

    GIL = "gil"
    OBJECT = "object"           # the mutex in an object's header: a critical section of a free-threaded build
    LOCK = "lock"               # a threading.Lock or RLock
    WORLD = "stop-the-world"    # all threads are stopped, for the garbage collector for instance
    RAW = "inner-lock"          # a lock inside the interpreter
    OTHER = "other"             # an event, a queue, the end of another thread
    SPIN = "spin"               # a lock or an object that was free again before the thread was parked
    STOPPING = "stopping"       # does not wait: it has stopped all others


@dataclass(frozen=True, slots=True)
class SpanTotal:
    """The sum of spans of one kind, in seconds."""

    count: int
    seconds: float
    longest: float
    longest_at: float    # begin of the longest


@dataclass(frozen=True, slots=True)
class ThreadSpan:
    """One stretch of a thread's time."""

    kind: SpanKind
    begin: float
    end: float
    site: int            # index of Process.sites; 0: unknown
    attempts: int        # WAIT: number of tries
    timeouts: int        # WAIT: number of requests for the GIL after the switch interval
    holder: int | None   # WAIT: the number of the thread that had the GIL when the wait began
    gil: int             # 0: the main interpreter's

    @property
    def seconds(self) -> float:
        """Its duration."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of Python code."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitSite:
    """One place in the program at which one thread waited, for one reason, or had the GIL."""

    thread: int          # Thread.number
    file: str
    line: int
    function: str
    caller: CodeLine | None  # the program's own innermost line that led there; None: the place itself is, or none is
    reason: WaitReason
    idle: bool           # a thread that is parked there waits on purpose
    on: str              # the type of the object parked on: "list"
    waited: SpanTotal        # for the GIL
    parked: SpanTotal
    held: SpanTotal          # had the GIL while other threads waited for it
    caused: float        # seconds that the others waited meanwhile, added up

    @property
    def own(self) -> CodeLine:
        """The program's own line, else the place itself."""
        return self.caller or CodeLine(self.file, self.line, self.function)

    @property
    def inside(self) -> CodeLine | None:
        """The place itself if `own` is another one."""
        return CodeLine(self.file, self.line, self.function) if self.caller else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One thread that the interpreter started, or that used it."""

    number: int          # of its slot, in order of appearance
    tid: int
    name: str            # as the operating system has it: Python's own name from 3.14 on
    called: str          # its name in `threading` at its start; "" for other threads
    entry: str           # the outermost function of the program that it ran; "" if it was never sampled
    main: bool
    ended: bool          # False: it was alive when the recording ended, or the process was killed
    start: float
    end: float           # the recording's end when it had not ended
    totals: dict[SpanKind, SpanTotal]
    attempts: int        # tries of all waits; more than the waits are failed ones
    timeouts: int
    handovers: int       # acquisitions of the GIL after another thread had it
    acquired: int        # acquisitions of the GIL
    acquired_free: int   # acquisitions without waiting
    histogram: tuple[int, ...]  # waits for the GIL by power of two of their nanoseconds
    cpu: float | None    # CPU seconds; None, as the next three, of a process that ended without recording them
    run_queue: float | None     # seconds it was ready and had no CPU
    voluntary: int | None       # context switches
    involuntary: int | None     # context switches
    yields: int          # of its CPU while it tried to get a lock
    spans: tuple[ThreadSpan, ...]     # the latest, by time
    spans_lost: int      # older ones that were overwritten; the totals include them
    sampling: float      # seconds spent on sampling where it waits
    unfinished: tuple[SpanKind, float] | None  # the last activity in a killed process, and its begin
    unfinished_at: int   # the site of the last activity, index of Process.sites; 0: unknown

    @property
    def seconds(self) -> float:
        """Its lifetime."""
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The recording of one process."""

    pid: int
    parent: int
    version: str
    free_threaded: bool
    sites_known: bool    # False: this version's frames cannot be read
    ended: bool          # False: it was killed, or is still running
    forked: bool
    gil_used: bool       # False: it is off, except for a moment at each import of an extension module
    all_holds: bool      # holds were recorded even if no thread waited
    started: float       # seconds since the epoch
    seconds: float       # of the recording
    executable: str
    command: tuple[str, ...]
    threads: tuple[Thread, ...]
    sites: tuple[WaitSite | None, ...]
    threads_lost: int
    sites_lost: int
    gils_lost: int
    switch_interval: float | None   # seconds; None if no thread waited for a GIL
    looks: int           # samples of the place of the GIL's holder
    clock_cost: float    # seconds per reading of the clock
    hold_cost: float     # seconds per hold recorded: two readings and their sums


def read_folder(folder: str | Path, until: int = 0) -> list[Process]:
    """Return the recordings in `folder` by start time; processes that were killed during their start are left out.

    Args:
        folder: The folder.
        until: The end of our child, in nanoseconds of the monotonic clock; 0: unknown.  If it was killed, what its
            threads did last went on until then.

    Raises:
        BadRecordError: A file is not the shim's.
    """
    found = (read(path, until) for path in Path(folder).glob(f"*{SUFFIX}") if _begun(path))
    return sorted(found, key=lambda process: (process.started, process.pid))


def refusal(folder: str | Path) -> str | None:
    """Return why a process could not create its recording in `folder`: the shim names an empty file after the error."""
    for path in Path(folder).glob(f"*{SUFFIX}.*"):
        number = path.suffix[1:]
        if number.isdecimal() and int(number) in errno.errorcode:
            return os.strerror(int(number))
    return None


def _begun(path: Path) -> bool:
    try:
        with opened(path) as file:
            return file.read(8) != bytes(8)
    except OSError as error:
        raise BadRecordError(f"{path} cannot be read: {error.strerror}") from error


def read(path: str | Path, until: int = 0) -> Process:
    """Return the recording in the file `path`; for `until` see `read_folder`.

    Raises:
        BadRecordError: The file is not the shim's.
    """
    try:
        with opened(Path(path)) as file:
            fixed = file.read(_CHUNKS_AT)
            if len(fixed) < _CHUNKS_AT or not fixed.startswith(b"gilscope"):
                raise BadRecordError(f"{path} was not written by gilscope's shim")
            header = _HEADER.unpack_from(fixed)
            if header[1] != FORMAT:
                raise BadRecordError(f"{path} has format {header[1]}, this gilscope reads {FORMAT}")
            chunks = file.read(min(header[10], CHUNKS) * CHUNK)
    except OSError as error:
        raise BadRecordError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return _process(header, fixed, chunks, until)
    except (ValueError, LookupError, struct.error) as error:   # the program may have written into it
        raise BadRecordError(f"{path} is damaged: {error}") from error


def _process(header: tuple[Any, ...], fixed: bytes, chunks: bytes, until: int) -> Process:
    (_, _, pid, parent, python, flags, used, lost, sites_lost, gils_lost, _, interval, looks, start, real, end, clock,
     pair, executable, command) = header
    spans = _spans(chunks, start)
    last = end or max(_latest(fixed, chunks, used, start), until if parent == os.getpid() else 0)
    threads = tuple(_thread(fixed, number, start, last, spans.get(number, []))
                    for number in range(min(used, SLOTS)))
    return Process(
        pid=pid, parent=parent, version=f"{python >> 24}.{python >> 16 & 255}.{python >> 8 & 255}",
        free_threaded=bool(flags & _FREE_THREADED), sites_known=bool(flags & _SITES_KNOWN),
        ended=bool(flags & _ENDED), forked=bool(flags & _FORKED),
        gil_used=bool(flags & _GIL_ON) or not flags & _FREE_THREADED,
        all_holds=bool(flags & _ALL_HOLDS), started=real / 1e9, seconds=(last - start) / 1e9,
        executable=_text(executable), command=tuple(map(_text, command.rstrip(b"\0").split(b"\0"))),
        threads=tuple(thread for thread in threads if thread is not None), sites=tuple(_sites(fixed, start)),
        threads_lost=lost, sites_lost=sites_lost, gils_lost=gils_lost,
        switch_interval=interval / 1e6 if interval else None, looks=looks, clock_cost=clock / 1e12,
        hold_cost=pair / 1e12,
    )


def _latest(fixed: bytes, chunks: bytes, used: int, start: int) -> int:
    """Return the last moment that the recording of a killed process contains."""
    latest = start
    for number in range(min(used, SLOTS)):
        fields = _SLOT.unpack_from(fixed, _SLOTS_AT + number * SLOT)
        latest = max(latest, fields[2], fields[3], fields[8], fields[-1])
    for chunk, count, _ in _chunks(chunks):
        if count:
            latest = max(latest, _SPAN.unpack_from(chunks, chunk + _CHUNK.size + (count - 1) * _SPAN.size)[1])
    return latest


def _chunks(chunks: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield each chunk's offset, the number of its spans, and its slot."""
    for offset in range(0, len(chunks) - CHUNK + 1, CHUNK):
        slot, count, _ = _CHUNK.unpack_from(chunks, offset)
        yield offset, min(count, SPANS), slot


def _spans(chunks: bytes, start: int) -> dict[int, list[ThreadSpan]]:
    found: dict[int, list[ThreadSpan]] = {}
    for offset, count, slot in _chunks(chunks):
        first = offset + _CHUNK.size
        for begin, end, site, attempts, timeouts, other, kind, gil, _ in _SPAN.iter_unpack(
            chunks[first : first + count * _SPAN.size]
        ):
            span = ThreadSpan(SpanKind(kind), (begin - start) / 1e9, (end - start) / 1e9, site, attempts, timeouts,
                              other - 1 if other else None, gil)
            found.setdefault(slot, []).append(span)
    for each in found.values():
        each.sort(key=lambda span: (span.begin, span.end))
    return found


def _thread(fixed: bytes, number: int, start: int, last: int, spans: list[ThreadSpan]) -> Thread | None:
    (tid, flags, born, died, name, entry, state, _, since, *rest) = _SLOT.unpack_from(fixed, _SLOTS_AT + number * SLOT)
    if not flags & _PYTHON or not born:
        return None
    totals, numbers, histogram, (called, at, _, _) = rest[:28], rest[28:46], rest[46:-4], rest[-4:]
    attempts, timeouts, handovers, free, acquired, _, spans_lost, _, sampling, yields, *usage = numbers
    ended, counted = bool(flags & _SLOT_ENDED), bool(flags & _USAGE_KNOWN)
    cpu, run_queue, voluntary, involuntary = map(operator.sub, usage[:4], usage[4:])
    return Thread(
        number=number, tid=tid, name=_text(name), called=_text(called), entry=_text(entry),
        main=bool(flags & _MAIN), ended=ended,
        start=(born - start) / 1e9, end=((died if ended else last) - start) / 1e9,
        totals={kind: _total(totals[4 * kind : 4 * kind + 4], start) for kind in SpanKind},
        attempts=attempts, timeouts=timeouts, handovers=handovers, acquired=acquired, acquired_free=free,
        histogram=tuple(histogram), cpu=cpu / 1e9 if counted else None,
        run_queue=run_queue / 1e9 if counted else None, voluntary=voluntary if counted else None,
        involuntary=involuntary if counted else None, yields=yields,
        spans=tuple(spans), spans_lost=spans_lost, sampling=sampling / 1e9,
        unfinished=None if ended or not state else (SpanKind(state), max(0, since - start) / 1e9),
        unfinished_at=0 if ended or not state else at,
    )


def _sites(fixed: bytes, start: int) -> Iterator[WaitSite | None]:
    for number in range(SITES):
        fields = _SITE.unpack_from(fixed, PAGE + number * SITE)
        if fields[0] != 2:  # 2: written whole
            yield None
            continue
        (_, line, *_, reason, idle), totals, caused, tail = fields[:9], fields[9:21], fields[21], fields[22:]
        file, function, on, thread, caller_line, caller_file, caller_function = tail
        waited, parked, held = (_total(totals[first : first + 4], start) for first in (0, 4, 8))
        caller = CodeLine(_text(caller_file), caller_line, _text(caller_function)) if caller_file.strip(b"\0") else None
        yield WaitSite(thread=thread, file=_text(file), line=line, function=_text(function), caller=caller,
                       reason=_reason(reason), idle=bool(idle), on=_text(on), waited=waited, parked=parked,
                       held=held, caused=caused / 1e9)


def _reason(number: int) -> WaitReason:
    reasons = tuple(WaitReason)
    if number >= len(reasons):
        raise ValueError(f"there is no reason of waits with the number {number}")
    return reasons[number]


def _total(fields: tuple[int, ...] | list[int], start: int) -> SpanTotal:
    count, total, longest, begin = fields
    return SpanTotal(count, total / 1e9, longest / 1e9, (begin - start) / 1e9 if count else 0.0)


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode(errors="replace")

