"""Tasks of the benchmarks of SubinterpreterExecutor: they import nothing that does not load in an interpreter."""

from __future__ import annotations

import mmap
import time

FAILS_EVERY = 29    # a task that fails ends its frame: the others are sent again
marks: dict[int, mmap.mmap] = {}


def work(fd: int, size: int, number: int, payload: bytes, answer: int, pause: float) -> tuple[int, int, bytes]:
    """Mark in shared memory that task `number` ran, and answer with what it got."""
    if fd not in marks:
        marks[fd] = mmap.mmap(fd, size)
    marks[fd][number] += 1
    if pause:
        time.sleep(pause)
    if number % FAILS_EVERY == 0:
        raise LookupError(number)
    return number, len(payload), bytes(answer)


def nap(seconds: float) -> None:
    """Sleep, if it is worth it."""
    if seconds:
        time.sleep(seconds)


def spin(loops: int) -> None:
    """Compute, with the GIL."""
    for _ in range(loops):
        pass


def square(number: int) -> int:
    """Do next to nothing."""
    return number * number


def size_of(value: bytes) -> int:
    """Return the length of what came."""
    return len(value)
