"""The standard library's InterpreterPoolExecutor with its defaults, from 3.14 on."""

from __future__ import annotations

import os
import selectors
import sys
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from gilscope.runners import _worker
from gilscope.runners._teardown import close_threads, closing
from gilscope.runners.base import Appearance, Runner
from gilscope.runners.errors import WorkerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Executor, Future

    from gilscope.runners.base import Payload, Result, Shared, Task

START_SECONDS = 120.0  # an interpreter takes 10 ms, far longer beside busy processes
CHECK_SECONDS = 0.05   # interval between checks for a failed start


class InterpreterPool:
    """An executor whose interpreters are all up."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def map(self, task: Task, payloads: Sequence[Payload]) -> list[Result]:
        """Run every payload, return the results in order, raise the first task's exception."""
        # A function that seems to use no globals is sent as bare code; 3.14 and 3.15 overlook globals that only its
        # generator expressions use, and it fails with NameError.  Inside a partial it is sent by name.
        return list(self._executor.map(partial(task), payloads))


class InterpreterPoolRunner(Runner):
    """Run tasks in the standard interpreter pool."""

    name = "interpreter-pool"
    summary = "the standard library's InterpreterPoolExecutor, 3.14+"
    parallel = True
    isolated = True
    pickles = True
    effort = 3
    appearance = Appearance("#009E73", "<", "short dashes", "**")

    def unavailable(self) -> str | None:
        """Return the reason why there is no such executor here, or None."""
        import concurrent.futures

        if hasattr(concurrent.futures, "InterpreterPoolExecutor"):
            return None
        return "needs CPython 3.14: before it, concurrent.futures has no InterpreterPoolExecutor"

    @contextmanager
    def pool(self, workers: int, shared: Shared | None = None) -> Iterator[InterpreterPool]:
        """Open a pool; every interpreter is up when it is entered.

        Raises:
            ValueError: something is to be shared.
            WorkerError: an interpreter could not start.
            TeardownError: one did not end in time, since a task still runs in it or left a thread behind.
        """
        if shared is not None:
            raise ValueError(f"{self.name} cannot share a {shared} between workers")
        executor = _executor_class()(workers, initializer=_worker.set_path, initargs=(list(sys.path),))
        with closing(lambda seconds: close_threads(executor, seconds)):
            _start_all(executor, workers)
            yield InterpreterPool(executor)


def _executor_class() -> Any:
    import concurrent.futures  # 4 ms, which other runners need not pay

    # By name, since a checker for 3.12 does not know it.
    return getattr(concurrent.futures, "InterpreterPoolExecutor")  # noqa: B009 - see above


def _start_all(executor: Executor, workers: int) -> None:
    from concurrent.futures import wait

    # A thread with its interpreter starts per submission unless one is idle; none is idle while all wait together.
    arrived, arrive = os.pipe()
    leave, let_leave = os.pipe()
    started = [executor.submit(_worker.meet_by_pipe, arrive, leave) for _ in range(workers)]
    try:
        _await_arrivals(arrived, started)
    finally:
        os.write(let_leave, b"." * workers)
        # A descriptor that a worker may still use stays open: its number could be reused otherwise.
        if not wait(started, START_SECONDS).not_done:
            for fd in (arrived, arrive, leave, let_leave):
                os.close(fd)
    for future in started:
        future.result()


def _await_arrivals(arrived: int, started: list[Future[None]]) -> None:
    deadline = monotonic() + START_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(arrived, selectors.EVENT_READ)
        for _ in started:
            while not selector.select(CHECK_SECONDS):
                failures = [future.exception() for future in started if future.done()]
                if failures:  # a worker is only done before all have met if it failed
                    raise WorkerError(f"an interpreter could not start: {failures[0]}") from failures[0]
                if monotonic() > deadline:
                    raise WorkerError(f"the interpreters did not all start within {START_SECONDS:g} s")
            os.read(arrived, 1)
