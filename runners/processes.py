"""Processes by ProcessPoolExecutor, one runner per start method.

multiprocessing (12 ms) is imported only where it is used, since every measured process imports the catalog.  Workers
never run the caller's `__main__` again (see `without_main`): its side effects and imports do not belong to the model.
So tasks must be in importable modules.  A script that calls this needs a main guard, like any script that starts
processes.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gilscope.runners import _worker
from gilscope.runners._teardown import closing, shut_down
from gilscope.runners.base import Appearance, Runner
from gilscope.runners.errors import TeardownError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

    from gilscope.runners.base import Payload, Result, Shared, Task

KILLED_SECONDS = 5.0  # for the executor to notice that its workers were killed
OURS = "gilscope-"    # prefix of our temporary folders


class ProcessCounter:
    """A number in shared memory and the lock that belongs to it."""

    def __init__(self, context: BaseContext) -> None:
        self.lock = context.Lock()
        self._number: Any = context.RawValue("q", 0)

    @property
    def value(self) -> int:
        """Return the current number."""
        return int(self._number.value)

    @value.setter
    def value(self, value: int) -> None:
        self._number.value = value


class ProcessPool:
    """An executor whose processes are all up."""

    def __init__(self, executor: ProcessPoolExecutor, *, shares: bool) -> None:
        self._executor = executor
        self._shares = shares

    def map(self, task: Task, payloads: Sequence[Payload]) -> list[Result]:
        """Run every payload, return the results in order, raise the first task's exception.

        Raises:
            BrokenProcessPool: a worker died.
        """
        run = partial(_worker.call_shared, task) if self._shares else task
        return list(self._executor.map(run, payloads, chunksize=1))


class ProcessesRunner(Runner):
    """Run tasks in processes started by one start method."""

    shares: frozenset[Shared] = frozenset({"counter"})
    parallel = True
    pickles = True
    family = "processes"
    appearance = Appearance("#CC79A7", "D", "dash-dot", "xxxx")

    def __init__(self, method: str, summary: str, *, effort: int) -> None:
        self.name = f"processes-{method}"
        self.method = method
        self.summary = summary
        self.effort = effort

    def unavailable(self) -> str | None:
        """Return the reason why this system lacks the start method, or None."""
        import multiprocessing

        if self.method in multiprocessing.get_all_start_methods():
            return None
        return f"this system has no {self.method}"

    @contextmanager
    def pool(self, workers: int, shared: Shared | None = None) -> Iterator[ProcessPool]:
        """Open a pool; every process is up when it is entered.

        The fork server and the resource tracker stay up for further pools and end with this process.

        Raises:
            ValueError: something is to be shared that cannot be.
            BrokenProcessPool: a worker could not start.
        """
        if shared is not None and shared not in self.shares:
            raise ValueError(f"{self.name} cannot share a {shared} between workers")
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        context: Any = multiprocessing.get_context(self.method)
        if self.method == "forkserver":
            context.set_forkserver_preload([])  # the default is the caller's __main__ and all it imports
        name_semaphores()
        not_ours = set(multiprocessing.active_children())
        common = (context.Barrier(workers), ProcessCounter(context) if shared else None)
        executor = ProcessPoolExecutor(workers, context, _worker.join_pool, common)
        with closing(lambda seconds: _close(executor, not_ours, seconds)):
            _start_all(executor, workers)
            yield ProcessPool(executor, shares=shared is not None)


def _start_all(executor: ProcessPoolExecutor, workers: int) -> None:
    # A process starts per submission unless one is idle; none is idle while all wait for each other.
    with without_main():
        for future in [executor.submit(_worker.meet_at_barrier) for _ in range(workers)]:
            future.result()


@contextmanager
def without_main() -> Iterator[None]:
    """Hide the caller's `__main__`, which multiprocessing would import again in every worker."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _close(executor: ProcessPoolExecutor, not_ours: set[BaseProcess], seconds: float) -> None:
    if shut_down(executor, seconds):
        return
    kill_children(not_ours)
    if not shut_down(executor, KILLED_SECONDS):
        raise TeardownError("a process pool did not end although its workers were killed")


def kill_children(not_ours: set[BaseProcess]) -> None:
    """Kill the processes that multiprocessing has started in this one, except those in `not_ours`."""
    import multiprocessing

    for child in set(multiprocessing.active_children()) - not_ours:
        child.kill()
        child.join(KILLED_SECONDS)


def name_semaphores() -> None:
    """Name further semaphores of multiprocessing after our temporary folder, if there is one.

    By that name gilscope finds what was left of those that were killed.  multiprocessing has no other way to say it;
    workers take it over from their parent.  On Linux alone: elsewhere names must be short, and nothing lists them.
    """
    from multiprocessing import process
    from tempfile import gettempdir

    folder = next((part for part in gettempdir().split("/") if part.startswith(OURS)), None)
    if folder and sys.platform == "linux":
        config = process.current_process()._config  # type: ignore[attr-defined]  # noqa: SLF001
        config["semprefix"] = f"/{folder}"


SPAWN = ProcessesRunner("spawn", "ProcessPoolExecutor, each worker a new Python", effort=5)
FORKSERVER = ProcessesRunner("forkserver", "ProcessPoolExecutor, each worker forked from a clean server", effort=4)
FORK = ProcessesRunner("fork", "ProcessPoolExecutor, each worker forked from the caller", effort=6)
