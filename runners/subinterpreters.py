"""Long-lived interpreters with a GIL each: one host thread per worker enters once and loops inside.

Entering costs up to 300 us (free-threaded builds, and the main thread of 3.14+), so no task pays for it.
Requests and replies are frames on pipes.  The calling thread keeps one task in flight per worker: a worker
that gets a request is always reading, so blocking writes cannot deadlock.
"""

from __future__ import annotations

import os
import selectors
import sys
import threading

# The C half of pickle does all the work; see `_worker`.
from _pickle import dumps, loads
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from gilscope.runners import _interpreters, _worker
from gilscope.runners._teardown import closing
from gilscope.runners.base import Appearance, Runner
from gilscope.runners.errors import RemoteTraceback, TeardownError, WorkerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.runners.base import Payload, Result, Shared, Task

START_SECONDS = 120.0            # an interpreter takes 10 ms; 3.13t beside busy processes takes seconds
STACK_BYTES = 16 * 1024 * 1024   # 3.12 and 3.13 overflow a small stack before their recursion limit: SIGSEGV


class SubinterpreterWorker:
    """One interpreter, its host thread, and the two pipes to it."""

    def __init__(self) -> None:
        with ExitStack() as undo:
            self._request_end, self._requests = _open_pipe(undo)
            self._replies, self._reply_end = _open_pipe(undo)
            self.error: BaseException | None = None
            self.thread = threading.Thread(target=self._host, name="subinterpreter", daemon=True)
            self.thread.start()
            undo.pop_all()

    def fileno(self) -> int:
        """Return the descriptor that is readable when a reply waits."""
        return self._replies

    def send(self, frame: bytes) -> None:
        """Send a request.

        Raises:
            WorkerError: the worker has ended.
        """
        try:
            _worker.send(self._requests, frame)
        except BrokenPipeError:
            raise self._ended() from None

    def receive(self) -> bytearray:
        """Wait for the reply and return it.

        Raises:
            WorkerError: the worker has ended.
        """
        frame = _worker.receive(self._replies)
        if frame is None:
            raise self._ended()
        return frame

    def let_go(self) -> None:
        """Close this side's ends: an idle worker ends now, a busy one when it answers."""
        os.close(self._requests)
        os.close(self._replies)

    def _host(self) -> None:
        # The ends are closed before the interpreter: its close() may wait for threads, and the caller must not wait.
        try:
            interpreter = _interpreters.create()
            try:
                interpreter.exec(_bootstrap(self._request_end, self._reply_end))
            except BaseException as error:  # noqa: BLE001 - reported to the caller, which sees the pipes end
                self.error = error
            finally:
                self._close_far_ends()
                interpreter.close()
        except BaseException as error:  # noqa: BLE001 - likewise; create() and close() fail in their own ways
            self.error = self.error or error
            self._close_far_ends()

    def _close_far_ends(self) -> None:
        for name in ("_request_end", "_reply_end"):
            fd = getattr(self, name)
            if fd >= 0:
                setattr(self, name, -1)
                os.close(fd)

    def _ended(self) -> WorkerError:
        self.thread.join(1.0)
        ended = WorkerError(f"a subinterpreter ended: {self.error or 'nothing says why'}")
        ended.__cause__ = self.error
        return ended


class SubinterpreterPool:
    """Interpreters that are up and waiting for requests."""

    def __init__(self, workers: list[SubinterpreterWorker], selector: selectors.BaseSelector) -> None:
        self._workers = workers
        self._selector = selector
        self._interrupted = False

    def map(self, task: Task, payloads: Sequence[Payload]) -> list[Result]:
        """Run every payload, return the results in order, raise the first task's exception.

        No task starts after one has failed; those in flight are waited for, so the pool stays usable.

        Raises:
            TypeError: `task` cannot be found by name in another interpreter.
            WorkerError: a worker ended, or the task's exception could not travel.
        """
        if self._interrupted:
            raise WorkerError("an earlier map was interrupted: this pool cannot be used again")
        batch = _Batch(task, payloads)
        self._interrupted = True  # until all replies are read: a later map would take them for its own
        for worker in self._workers:
            batch.send_next(worker)
        while batch.in_flight:
            for key, _ in self._selector.select():
                batch.settle(key.data, key.data.receive())
                batch.send_next(key.data)
        self._interrupted = False
        return batch.outcome()


class _Batch:
    """The payloads, results and failures of one map."""

    def __init__(self, task: Task, payloads: Sequence[Payload]) -> None:
        self._address = task_address(task)
        self._todo = iter(enumerate(payloads))
        self._results: list[Result] = [None] * len(payloads)
        self._failures: dict[int, BaseException] = {}
        self.in_flight: dict[SubinterpreterWorker, int] = {}

    def send_next(self, worker: SubinterpreterWorker) -> None:
        """Send the next payload to an idle worker, unless there is none or a task has failed."""
        if self._failures or (following := next(self._todo, None)) is None:
            return
        index, payload = following
        try:
            request = dumps((*self._address, payload), _worker.PROTOCOL)
        except Exception as error:  # noqa: BLE001 - a payload's own pickling may raise anything
            self._failures[index] = error
            return
        self.in_flight[worker] = index
        worker.send(request)

    def settle(self, worker: SubinterpreterWorker, reply: bytearray) -> None:
        """Store the answer of a worker."""
        index = self.in_flight.pop(worker)
        try:
            succeeded, outcome = loads(reply)  # from our own process
        except Exception as error:  # noqa: BLE001 - a result's own unpickling may raise anything
            self._failures[index] = error
            return
        if succeeded:
            self._results[index] = outcome
        else:
            self._failures[index] = rebuild_exception(*outcome)

    def outcome(self) -> list[Result]:
        """Return the results, or raise the failure of the earliest payload."""
        if self._failures:
            raise self._failures[min(self._failures)]
        return self._results


class SubinterpretersRunner(Runner):
    """Run tasks in interpreters with a GIL each that are entered once and stay."""

    name = "subinterpreters"
    summary = "long-lived interpreters with a GIL each, entered once"
    parallel = True
    isolated = True
    pickles = True
    effort = 8   # its workers are made by hand: the standard library has no such pool
    appearance = Appearance("#009E73", "^", "dots", "....")

    def unavailable(self) -> str | None:
        """Return the reason why this build has no interpreters, or None."""
        return _interpreters.unavailable()

    @contextmanager
    def pool(self, workers: int, shared: Shared | None = None) -> Iterator[SubinterpreterPool]:
        """Open a pool; every interpreter is up and reading when it is entered.

        `fork` is fatal for the child from here on, even after the pool is closed: one model per process.

        Raises:
            ValueError: something is to be shared.
            WorkerError: an interpreter could not start.
            TeardownError: one did not end in time, since a task still runs in it or left a thread behind.
        """
        if shared is not None:
            raise ValueError(f"{self.name} cannot share a {shared} between workers")
        _interpreters.prepare_main()
        started: list[SubinterpreterWorker] = []
        with selectors.DefaultSelector() as selector, closing(lambda seconds: _close_all(started, seconds)):
            with _deep_stacks():
                for _ in range(workers):
                    started.append(SubinterpreterWorker())
                    selector.register(started[-1], selectors.EVENT_READ, started[-1])
                    if _interpreters.ONE_AT_A_TIME:
                        _wait_until_ready(started[-1:], selector)
            if not _interpreters.ONE_AT_A_TIME:
                _wait_until_ready(started, selector)
            yield SubinterpreterPool(started, selector)


def task_address(task: Task) -> tuple[str, str]:
    """Return the module and the qualified name by which a worker finds the task.

    Raises:
        TypeError: it has none: a closure, a lambda, a partial, a function of `__main__`.
    """
    module, qualname = getattr(task, "__module__", None), getattr(task, "__qualname__", None)
    if not (isinstance(module, str) and isinstance(qualname, str)) or "<" in qualname or module == "__main__":
        raise TypeError(f"{task!r} cannot be found by name in another interpreter: "
                        "put it at the top level of a module of its own")
    return module, qualname


def rebuild_exception(kind: str, message: str, trace: str, pickled: bytes | None) -> BaseException:
    """Return a task's exception, or a WorkerError that names it if it could not be sent."""
    error: BaseException = WorkerError(f"a task raised {kind}, which does not pickle: {message}")
    if pickled is not None:
        try:
            rebuilt = loads(pickled)  # from our own process
        except Exception as failure:  # noqa: BLE001 - a user's class may refuse in any way
            error.add_note(f"rebuilding it failed: {failure!r}")
        else:
            error = rebuilt if isinstance(rebuilt, BaseException) else error
    error.__cause__ = RemoteTraceback(trace)
    return error


def _bootstrap(requests: int, replies: int) -> str:
    # A fresh interpreter has only the default path, without additions of the script or its caller.
    path = [entry for entry in sys.path if isinstance(entry, str)]
    return (f"import sys\nsys.path[:] = {path!r}\n{_interpreters.PRELUDE}"
            f"from gilscope.runners import _worker\n_worker.loop({requests}, {replies})\n")


def _wait_until_ready(workers: list[SubinterpreterWorker], selector: selectors.BaseSelector) -> None:
    missing, deadline = set(workers), monotonic() + START_SECONDS
    while missing:
        for key, _ in selector.select(max(0.0, deadline - monotonic())):
            key.data.receive()
            missing.discard(key.data)
        if missing and monotonic() > deadline:
            raise WorkerError(f"{len(missing)} of {len(workers)} subinterpreters did not start "
                              f"within {START_SECONDS:g} s")


def _close_all(workers: list[SubinterpreterWorker], seconds: float) -> None:
    deadline = monotonic() + seconds
    for worker in workers:
        worker.let_go()
        if _interpreters.ONE_AT_A_TIME:
            worker.thread.join(max(0.0, deadline - monotonic()))
    for worker in workers:
        worker.thread.join(max(0.0, deadline - monotonic()))
    left = sum(worker.thread.is_alive() for worker in workers)
    if left:
        raise TeardownError(f"{left} of {len(workers)} subinterpreters did not end within {seconds:g} s: "
                            "a task still runs, or left a thread behind")


def _open_pipe(undo: ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    for fd in ends:
        undo.callback(os.close, fd)
    return ends


@contextmanager
def _deep_stacks() -> Iterator[None]:
    if sys.version_info >= (3, 14):
        yield  # raises RecursionError in time, whatever the size
        return
    before = threading.stack_size(STACK_BYTES)
    try:
        yield
    finally:
        threading.stack_size(before)
