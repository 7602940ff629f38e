"""SubinterpreterExecutor: an executor over interpreters with a GIL each; `_dispatch` has the hand-off of tasks."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref

# The C half of pickle does all the work; see `_worker`.
from _pickle import dumps
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from itertools import islice, repeat
from pathlib import Path
from time import monotonic
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gilscope.runners import _interpreters, _worker
from gilscope.runners._dispatch import STOP_SECONDS, BrokenSubinterpreters, Dispatcher
from gilscope.runners._tasks import Batch, Span, TaskFuture, rebuild_exception
from gilscope.runners.errors import TeardownError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gilscope.runners._tasks import Args

__all__ = ["BrokenSubinterpreters", "SubinterpreterExecutor"]

START_SECONDS = 120.0            # an interpreter takes 10 ms; 3.13t beside busy processes takes seconds
STACK_BYTES = 16 * 1024 * 1024   # 3.12 and 3.13 overflow a small stack before their recursion limit: SIGSEGV
MOST_WORKERS = 64
R = TypeVar("R")


class SubinterpreterExecutor(Executor):
    """Run calls in interpreters with a GIL each, which are entered once and stay; see `concurrent.futures.Executor`.

    Extension modules that do not support several interpreters, such as NumPy, do not load inside: hand over arrays as
    `memoryview`, and use `memoryview.cast`, `array` or `struct` there.

    Functions, arguments and results are pickled, and a script is run again in each interpreter that needs a name of
    it, as with processes: it needs `if __name__ == "__main__":`.  A `memoryview` of 64 KB or more is handed over
    without a copy on 3.14 and newer, and must not be changed until the task is done.

    `os.fork()` is fatal for the child while an interpreter lives.
    """

    def __init__(
        self, max_workers: int | None = None, *, initializer: Callable[..., object] | None = None, initargs: Args = (),
    ) -> None:
        """Start the interpreters and wait until each is ready.

        Args:
            max_workers: Their number; None: the usable cores.
            initializer: Called in each interpreter before its first task.
            initargs: Its arguments.

        Raises:
            BrokenSubinterpreters: an interpreter could not start, or its initializer failed.
            ModuleNotFoundError: this Python has no interpreters.
            RuntimeError: a script starts it when it runs in an interpreter.
            ValueError: `max_workers` is not from 1 to 64.
        """
        workers = min(usable_cores(), MOST_WORKERS) if max_workers is None else max_workers
        if workers < 1:
            raise ValueError("max_workers must be greater than 0")
        if workers > MOST_WORKERS:
            raise ValueError(f"max_workers must be at most {MOST_WORKERS}")
        if (reason := _interpreters.unavailable()) is not None:
            raise ModuleNotFoundError(reason)
        if _worker.runs_script():
            raise RuntimeError("this script runs in an interpreter, for its functions: start executors only below "
                               '`if __name__ == "__main__":`')
        _interpreters.prepare_main()
        sys.modules.setdefault(_worker.SCRIPT, sys.modules["__main__"])    # as which workers know it
        initial = None if initializer is None else dumps((initializer, initargs), _worker.PROTOCOL)
        self._keys: dict[Any, bytes] = {}
        self._dispatcher = dispatcher = Dispatcher(workers)
        dispatcher.collector.start()
        OPEN.add(dispatcher)
        weakref.finalize(self, dispatcher.close).atexit = False   # who lets it go gets what was submitted
        deadline = monotonic() + START_SECONDS
        with deep_stacks():
            for index in range(workers):
                dispatcher.start_worker(bootstrap(dispatcher, initial))
                if _interpreters.ONE_AT_A_TIME or index == workers - 1:
                    self._wait_for_start(workers, deadline)

    def _wait_for_start(self, workers: int, deadline: float) -> None:
        dispatcher = self._dispatcher
        in_time = all(dispatcher.started.acquire(timeout=max(0.0, deadline - monotonic()))
                      for _ in range(1 if _interpreters.ONE_AT_A_TIME else workers))
        if in_time and dispatcher.broken is None:
            return
        why = dispatcher.errors[0] if dispatcher.errors else f"it did not start within {START_SECONDS:g} s"
        for _ in range(workers - len(dispatcher.threads)):
            dispatcher.say_gone()
        with suppress(TeardownError):
            self.stop(STOP_SECONDS)
        raise BrokenSubinterpreters(f"a subinterpreter could not start: {why}") from dispatcher.broken

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        """Send a call; return its Future.

        Raises:
            BrokenSubinterpreters: an interpreter has ended.
            RuntimeError: the executor was shut down.
            TypeError: the function cannot be sent.
        """
        dispatcher = self._dispatcher
        if dispatcher.closing or dispatcher.stopped:
            self._refuse()
        future: TaskFuture = TaskFuture()
        function: Callable[..., Any] = fn
        if kwargs or type(fn) not in NAMED:
            function, args = _worker.call, (fn, args, kwargs)
        dispatcher.add((future, self._keys.get(function) or self._key(function), args))
        return future

    def _key(self, fn: Callable[..., Any]) -> bytes:
        """Return the pickle of a function: its name.

        Raises:
            TypeError: it has none by which it is found.
        """
        try:
            key = self._keys[fn] = dumps(fn, _worker.PROTOCOL)
        except Exception as error:
            raise TypeError(f"{fn!r} cannot be sent to another interpreter: {error}; "
                            "put a function at the top level of a module") from error
        return key

    def map(
        self, fn: Callable[..., R], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[R]:
        """Return the results of the calls in order; see `Executor.map`.

        Args:
            fn: The function.
            iterables: Its arguments.
            timeout: Seconds from now, in which the last result is to be there.
            chunksize: The tasks that go together at first; how many fill a frame is learnt then.
            buffersize: The most results that are not taken yet; None: all.

        Raises:
            BrokenSubinterpreters: an interpreter has ended.
            RuntimeError: the executor was shut down.
            TypeError: the function cannot be sent, or `buffersize` is no integer.
            ValueError: `chunksize` or `buffersize` is below 1.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if buffersize is not None and not isinstance(buffersize, int):
            raise TypeError("buffersize must be an integer or None")
        if buffersize is not None and buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
        calls: Any = zip(*iterables, strict=False)
        function: Any = fn
        if type(fn) not in NAMED:
            calls = zip(repeat(fn), calls, repeat({}))
            function = _worker.call
        batch = self._send_batch(function, [*islice(calls, buffersize)], chunksize)
        deadline = None if timeout is None else monotonic() + timeout
        return cast("Iterator[R]", self._results(batch, calls, deadline))

    def _send_batch(self, fn: Callable[..., Any], calls: list[Args], chunk: int = 1, *, stops: bool = False) -> Batch:
        if self._dispatcher.closing or self._dispatcher.stopped:
            self._refuse()
        batch = Batch(self._keys.get(fn) or self._key(fn), calls, stops=stops)
        self._dispatcher.add_batch(batch, chunk)
        return batch

    def _results(self, batch: Batch, more: Iterator[Args], deadline: float | None) -> Iterator[Any]:
        place = 0
        try:
            while place < len(batch.calls):
                ready = batch.take(place, deadline)
                place += len(ready)
                while ready:
                    if (call := next(more, None)) is not None:
                        batch.calls.append(call)
                        self._dispatcher.add(Span(batch, len(batch.calls) - 1, len(batch.calls)))
                    if type(ready[-1]) is _worker.Failed:
                        raise rebuild_exception(*ready[-1].parts)
                    yield ready.pop()      # and keep no reference
        finally:
            batch.cancelled = True

    def run(self, task: Callable[[Any], R], payloads: Sequence[Any]) -> list[R]:
        """Run every payload and return the results in order, or raise the exception of the earliest that failed.

        No task starts after one has failed; those in flight are waited for.

        Raises:
            BrokenSubinterpreters: an interpreter has ended.
            CancelledError: the executor was shut down meanwhile, and cancels what waits.
            RuntimeError: the executor was shut down.
            TypeError: the task cannot be sent.
        """
        batch = self._send_batch(task, [(each,) for each in payloads], stops=True)
        try:
            with batch.changed:
                batch.changed.wait_for(lambda: not batch.missing or (
                    batch.cancelled and not self._dispatcher.has_any_of(batch)))
        finally:
            batch.cancelled = True
        results = [each for place in sorted(batch.results) for each in batch.results[place]]
        for each in results:
            if type(each) is _worker.Failed:
                raise rebuild_exception(*each.parts)
        if batch.missing:
            raise CancelledError
        return results

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as Executor
        """Let the interpreters end when all tasks are done; wait for that if asked to.

        Raises:
            TeardownError: an interpreter did not end within 10 s after its last task, as that left a thread behind.
        """
        self._dispatcher.cancels |= cancel_futures
        self._dispatcher.close()
        if wait:
            self._dispatcher.join(None)

    def stop(self, seconds: float) -> None:
        """End the interpreters within a deadline, whatever they do; tasks that wait are cancelled.

        Raises:
            TeardownError: one did not end, since a task still runs in it or left a thread behind.
        """
        self._dispatcher.cancels = True
        self._dispatcher.close()
        self._dispatcher.join(seconds)

    def _refuse(self) -> None:
        if (broken := self._dispatcher.broken) is not None:
            raise BrokenSubinterpreters(str(broken)) from broken
        raise RuntimeError("cannot schedule new futures after shutdown")


NAMED = (FunctionType, type)     # what pickle knows by name, whatever state it has
OPEN: weakref.WeakSet[Dispatcher] = weakref.WeakSet()   # their threads keep them alive


@atexit.register
def wait_at_exit() -> None:
    """Let all executors do what was submitted, as those of the standard library do."""
    for dispatcher in [*OPEN]:
        dispatcher.close()
        with suppress(TeardownError):
            dispatcher.join(None)


def bootstrap(dispatcher: Dispatcher, initial: bytes | None) -> str:
    """Return the code that a worker runs; a fresh interpreter has only the default path."""
    path = [entry for entry in sys.path if isinstance(entry, str)]
    main = sys.modules["__main__"]
    module, file = getattr(getattr(main, "__spec__", None), "name", None), getattr(main, "__file__", None)
    script = (module, None) if module is not None else (None, file and str(Path(file).absolute()))
    return (f"import sys\nsys.path[:] = {path!r}\n{_interpreters.PRELUDE}from gilscope.runners import _worker\n"
            f"_worker.serve({dispatcher.requests}, {dispatcher.reply_end}, {script!r}, {initial!r})\n")


def usable_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def deep_stacks() -> Iterator[None]:
    """Give threads that are started a stack that is deep enough for the recursion limit."""
    if sys.version_info >= (3, 14):
        yield  # raises RecursionError in time, whatever the size
        return
    before = threading.stack_size(STACK_BYTES)
    try:
        yield
    finally:
        threading.stack_size(before)
