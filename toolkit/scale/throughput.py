"""Throughput on a busy machine: only calls count during which every thread had its core, in parts all threads share.

The plain mean would hide contention: while a thread waits for a core, the others meet nobody at the shared object.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    Row = Sequence[int]      # begin, end, CPU time, time without a core: nanoseconds

UNDISTURBED = 0.03     # share of a chunk that its thread may have waited for a core
COVERED = 0.95         # share of it in which every other thread ran undisturbed, too
FAR = 2.0              # times the first decile of the times of a cache line
GAP = 20_000           # nanoseconds between two chunks of a thread that count as none
LEAST_CLEAN = 0.006    # seconds that one value needs: contrasts of a quarter are then beyond the noise


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanCalls:
    """The calls of some measurements that were not disturbed, and what all of their calls cost; sums over threads."""

    threads: int
    calls: int = 0
    spent: int = 0          # nanoseconds of those calls
    made: int = 0           # calls, disturbed ones, too
    lasted: int = 0         # of all calls, disturbed ones, too
    queued: int = 0         # of `lasted`, without a core
    switches: int = 0       # voluntary ones
    collections: int = 0    # of the garbage collector
    one_core: int = 0       # measurements during which threads shared a core, as hyperthreads
    handoff: float = 0.0    # longest time of a cache line from CPU to CPU, in nanoseconds; 0.0: not known

    @property
    def clean_seconds(self) -> float:
        """How long all threads ran undisturbed at the same time."""
        return self.spent / self.threads / 1e9

    @property
    def rate(self) -> float:
        """Calls a second of all threads together; 0.0 if none was undisturbed."""
        return self.threads * self.calls / self.spent * 1e9 if self.spent else 0.0

    @property
    def rate_on_cores(self) -> float:
        """Calls a second of all threads together, disturbed ones too, without the time in which they lacked a core.

        Neighbours hide contention: while a thread lacks a core, the others meet nobody.  Threads that wait for each
        other's lock are never undisturbed beside neighbours, and have this rate alone.
        """
        time = self.lasted - self.queued
        return self.threads * self.made / time * 1e9 if time > 0 else 0.0

    @property
    def queued_share(self) -> float:
        """Share of the threads' time in which they waited for a core."""
        return self.queued / self.lasted if self.lasted else 0.0

    def enough(self, quota: float = LEAST_CLEAN) -> bool:
        """Return True if the rate is worth something: so many seconds were clean."""
        return self.clean_seconds >= quota


def clean_calls(answer: Mapping[str, Any]) -> CleanCalls:
    """Return the undisturbed calls of one measurement of `child.zygote`."""
    rows: list[list[Row]] = answer["rows"]
    quiet = [_merged((row[0], row[1]) for row in thread if row[3] <= UNDISTURBED * (row[1] - row[0]))
             for thread in rows]
    spent = chunks = 0
    for number, thread in enumerate(rows):
        others = [each for place, each in enumerate(quiet) if place != number]
        for begin, end, _, queued in thread:
            if queued <= UNDISTURBED * (end - begin) and all(
                    _covered(each, begin, end) >= COVERED * (end - begin) for each in others):
                spent += end - begin
                chunks += 1
    every = [row for thread in rows for row in thread]
    return CleanCalls(
        threads=len(rows), calls=chunks * answer["calls"], spent=spent, made=len(every) * answer["calls"],
        lasted=sum(row[1] - row[0] for row in every), queued=sum(row[3] for row in every),
        switches=answer["switches"], collections=answer["collections"], one_core=int(answer["one_core"]),
        # Of more than two threads, it is that of any two.
        handoff=answer["handoff"] if len(rows) == 2 else 0.0)


def pooled(parts: Iterable[CleanCalls]) -> CleanCalls:
    """Return several measurements as one: those with little clean time weigh little.

    Raises:
        ValueError: There is none.
    """
    all_parts = list(parts)
    if not all_parts:
        raise ValueError("no measurement to pool")
    return CleanCalls(threads=all_parts[0].threads, handoff=max(each.handoff for each in all_parts), **{
        name: sum(getattr(each, name) for each in all_parts)
        for name in CleanCalls.__slots__ if name not in {"threads", "handoff"}})


def near_limit(handoffs: Iterable[float]) -> float:
    """Return the time of a cache line up to which CPUs are near, in nanoseconds, from those that were measured.

    Infinite if none was.  Where a host moves the CPUs of a virtual machine, sharing costs several times as much in some
    moments as in others: docs/numbers.md.
    """
    ordered = sorted(each for each in handoffs if each)
    return FAR * ordered[len(ordered) // 10] if ordered else inf


def apart_or_all(parts: Iterable[CleanCalls]) -> list[CleanCalls]:
    """Return the measurements on cores apart, or all if there are none.

    Hyperthreads of one core have their caches in common, which hides contention.
    """
    all_parts = list(parts)
    return [each for each in all_parts if not each.one_core] or all_parts


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for begin, end in spans:
        if merged and begin - merged[-1][1] < GAP:
            merged[-1] = merged[-1][0], end
        else:
            merged.append((begin, end))
    return merged


def _covered(spans: Sequence[tuple[int, int]], begin: int, end: int) -> int:
    """Return how much of the time from `begin` to `end` is within `spans`, which are in order."""
    place = max(0, bisect_right(spans, (begin, 1 << 62)) - 1)
    covered = 0
    for span_begin, span_end in spans[place:]:
        if span_begin >= end:
            break
        covered += max(0, min(end, span_end) - max(begin, span_begin))
    return covered
