"""Threads of this process by ThreadPoolExecutor: one pool, and two runners that differ in their promise about the GIL.

`threads` means that the GIL is on, `free-threaded` that it is off.  A free-threaded build offers both, and
PYTHON_GIL decides.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from itertools import repeat
from typing import TYPE_CHECKING, Any

from gilscope.runners._shared_objects import IN_PROCESS, make_shared
from gilscope.runners._teardown import close_threads, closing
from gilscope.runners.base import Appearance, Runner

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from gilscope.runners.base import Payload, Result, Shared, Task


class ThreadPool:
    """An executor whose threads are all up."""

    def __init__(self, executor: ThreadPoolExecutor, shared: Any) -> None:
        self._executor = executor
        self._rest = () if shared is None else (repeat(shared),)

    def map(self, task: Task, payloads: Sequence[Payload]) -> list[Result]:
        """Run every payload, return the results in order, raise the first task's exception."""
        return list(self._executor.map(task, payloads, *self._rest))


class ThreadsRunner(Runner):
    """Run tasks on threads, with the GIL on or off as promised."""

    shares: frozenset[Shared] = IN_PROCESS

    def __init__(self, *, name: str, gil: bool, summary: str, effort: int, appearance: Appearance) -> None:
        self.name = name
        self.gil = gil
        self.summary = summary
        self.parallel = not gil
        self.effort = effort
        self.appearance = appearance

    def unavailable(self) -> str | None:
        """Return the reason why the GIL of this process is not as promised, or None."""
        enabled = is_gil_enabled()
        if self.gil and not enabled:
            return "the GIL is disabled in this process: these would be free-threaded"
        if enabled and not self.gil:
            return "the GIL is enabled in this process"
        return None

    @contextmanager
    def pool(self, workers: int, shared: Shared | None = None) -> Iterator[ThreadPool]:
        """Open a pool; every thread is up when it is entered.

        Raises:
            TeardownError: a task still ran when the deadline for closing was over.
        """
        from concurrent.futures import ThreadPoolExecutor  # 4 ms, which other runners need not pay

        executor = ThreadPoolExecutor(workers)
        with closing(lambda seconds: close_threads(executor, seconds)):
            _start_all(executor, workers)
            yield ThreadPool(executor, make_shared(shared))


def is_gil_enabled() -> bool:
    """Return True if this process has a GIL now; always so before 3.13."""
    ask = getattr(sys, "_is_gil_enabled", None)
    return True if ask is None else bool(ask())


def _start_all(executor: ThreadPoolExecutor, workers: int) -> None:
    # The executor starts a thread per submission unless one is idle; none is idle while they wait for each other.
    barrier = threading.Barrier(workers)
    try:
        for future in [executor.submit(barrier.wait) for _ in range(workers)]:
            future.result()
    except BaseException:
        barrier.abort()  # a thread could not start, so the others must not wait for it
        raise


THREADS = ThreadsRunner(
    name="threads", gil=True, summary="ThreadPoolExecutor with the GIL on",
    effort=2, appearance=Appearance("#0072B2", "o", "solid", ""))
FREE_THREADED = ThreadsRunner(
    name="free-threaded", gil=False, summary="ThreadPoolExecutor with the GIL off",
    effort=1, appearance=Appearance("#D55E00", "s", "dashes", "////"))
