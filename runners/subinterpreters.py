"""Long-lived interpreters with a GIL each: those of `SubinterpreterExecutor`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from gilscope.runners import _interpreters
from gilscope.runners._teardown import closing
from gilscope.runners.base import Appearance, Runner

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.runners.base import Payload, Result, Shared, Task
    from gilscope.runners.executor import SubinterpreterExecutor


class SubinterpreterPool:
    """Interpreters that are up and waiting for requests."""

    def __init__(self, executor: SubinterpreterExecutor) -> None:
        self._executor = executor

    def map(self, task: Task, payloads: Sequence[Payload]) -> list[Result]:
        """Run every payload, return the results in order, raise the first task's exception.

        No task starts after one has failed; those in flight are waited for.

        Raises:
            BrokenSubinterpreters: an interpreter has ended.
            TypeError: `task` cannot be sent to another interpreter.
            WorkerError: the task's exception could not travel.
        """
        return self._executor.run(task, payloads)


class SubinterpretersRunner(Runner):
    """Run tasks in interpreters with a GIL each that are entered once and stay."""

    name = "subinterpreters"
    summary = "long-lived interpreters with a GIL each, entered once: gilscope.SubinterpreterExecutor"
    parallel = True
    isolated = True
    pickles = True
    effort = 8   # the standard library has no such pool, and many extension modules do not load in it
    appearance = Appearance("#009E73", "^", "dots", "....")

    def unavailable(self) -> str | None:
        """Return the reason why this build has no interpreters, or None."""
        return _interpreters.unavailable()

    @contextmanager
    def pool(self, workers: int, shared: Shared | None = None) -> Iterator[SubinterpreterPool]:
        """Open a pool; every interpreter is up and reading when it is entered.

        `fork` is fatal for the child from here on, even after the pool is closed: one model per process.

        Raises:
            BrokenSubinterpreters: an interpreter could not start.
            TeardownError: one did not end in time, since a task still runs in it or left a thread behind.
            ValueError: something is to be shared.
        """
        from gilscope.runners.executor import SubinterpreterExecutor  # what lists the models needs none

        if shared is not None:
            raise ValueError(f"{self.name} cannot share a {shared} between workers")
        executor = SubinterpreterExecutor(workers)
        with closing(executor.stop):
            yield SubinterpreterPool(executor)
