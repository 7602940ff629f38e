"""Tasks on their way to an interpreter and back: Futures that cost little, maps, and the frames of both."""

from __future__ import annotations

import threading

# The C half of pickle does all the work; see `_worker`.
from _pickle import loads
from concurrent.futures import CancelledError, Future
from time import monotonic
from typing import TYPE_CHECKING, Any

from gilscope.runners import _worker
from gilscope.runners.errors import RemoteTraceback, WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Args = tuple[Any, ...]
    Task = tuple["TaskFuture", bytes, Args]       # its future, its function, its arguments


class Settled:
    """The condition of a Future that was done before anybody waited: nobody will."""

    def acquire(self) -> bool:
        """Do nothing, as the other methods."""
        return True

    def release(self, *_: object) -> None:
        """Do nothing."""

    __enter__, __exit__ = acquire, release


SETTLED = Settled()
LAZY: dict[str, Callable[[], object]] = {"_condition": threading.Condition, "_waiters": list, "_done_callbacks": list}


class TaskFuture(Future[Any]):
    """A Future that costs a tenth until somebody waits for it: its condition and its lists are made on first use.

    Two pairs may meet: `start` and `cancel`, and `settle` and whoever waits.  Who is first in the dictionary wins.
    """

    _result: Any = None
    _exception: BaseException | None = None
    __init__ = object.__init__   # what Future's makes is made on first use

    @property
    def _state(self) -> str:
        return "FINISHED" if self.__dict__.get("_condition") is SETTLED else self.__dict__.get("_status", "PENDING")

    @_state.setter
    def _state(self, state: str) -> None:
        self.__dict__["_status"] = state

    def __getattr__(self, name: str) -> Any:
        """Make what `Future.__init__` makes."""
        if name not in LAZY:
            raise AttributeError(name)
        return self.__dict__.setdefault(name, LAZY[name]())

    def start(self) -> bool:
        """Mark the task as gone to a worker; return False if it was cancelled before."""
        return bool(self.__dict__.setdefault("_status", "RUNNING") == "RUNNING")

    def cancel(self) -> bool:
        """Cancel the task unless it has gone to a worker; see `Future.cancel`."""
        if not self.__dict__.setdefault("_status", "CANCELLED").startswith("CANCELLED"):
            return False
        with self._condition:
            if self._state != "CANCELLED":
                return True       # another thread cancelled it
            self.set_running_or_notify_cancel()
        self._invoke_callbacks()
        return True

    def result(self, timeout: float | None = None) -> Any:
        """Return the result, or raise the task's exception; see `Future.result`."""
        if self._exception is None and self.__dict__.get("_condition") is SETTLED:
            return self._result
        return super().result(timeout)

    def settle(self, result: Any) -> None:
        """Set the outcome, and tell whoever waits."""
        if type(result) is _worker.Failed:
            self._exception = rebuild_exception(*result.parts)
        else:
            self._result = result
        if self.__dict__.setdefault("_condition", SETTLED) is SETTLED:
            return
        if self._exception is None:
            self.set_result(result)
        else:
            self.set_exception(self._exception)


class Batch:
    """The tasks of one map: their arguments, and lists of results by the place of the first."""

    def __init__(self, key: bytes, calls: list[Args], *, stops: bool = False) -> None:
        self.key = key
        self.calls: list[Any] = calls
        self.results: dict[int, list[Any]] = {}
        self.missing = len(calls)
        self.cancelled = False
        self._stops = stops     # True: nothing begins after the first failure
        self.changed = threading.Condition()

    def put(self, begin: int, results: list[Any]) -> None:
        """Store the results of the tasks from `begin` on."""
        with self.changed:
            if results:
                self.results[begin] = results
            self.calls[begin:begin + len(results)] = [None] * len(results)
            self.missing -= len(results)
            if self._stops and any(type(each) is _worker.Failed for each in results):
                self.cancelled = True
            self.changed.notify_all()

    def take(self, place: int, deadline: float | None) -> list[Any]:
        """Wait for the result at a place; return it with those that came with it, the last first, and forget them.

        Raises:
            CancelledError: it will never come.
            TimeoutError: it did not come in time.
        """
        with self.changed:
            seconds = None if deadline is None else deadline - monotonic()
            if not self.changed.wait_for(lambda: place in self.results or self.cancelled, seconds):
                raise TimeoutError
            if place not in self.results:
                raise CancelledError
            return self.results.pop(place)[::-1]

    def cancel(self) -> None:
        """Send nothing more, and wake who waits."""
        with self.changed:
            self.cancelled = True
            self.changed.notify_all()


class Span:
    """Tasks of a map that wait to be sent, or are on their way together."""

    __slots__ = ("batch", "begin", "end", "key")

    def __init__(self, batch: Batch, begin: int, end: int) -> None:
        self.batch, self.begin, self.end = batch, begin, end
        self.key = batch.key

    def count(self) -> int:
        """Return how many tasks these are."""
        return self.end - self.begin

    def start(self) -> bool:
        """Return False if they were cancelled."""
        return not self.batch.cancelled

    def arguments(self) -> list[Args]:
        """Return the arguments of the tasks."""
        return self.batch.calls[self.begin:self.end]

    def cut(self, count: int) -> list[Task | Span]:
        """Keep the first tasks, and return the others in the form in which they wait."""
        rest = Span(self.batch, self.begin + count, self.end)
        if rest.begin >= rest.end:
            return []
        self.end = rest.begin
        return [rest]

    def cancel(self) -> None:
        """Cancel the map."""
        self.batch.cancel()

    def settle(self, results: list[Any]) -> None:
        """Give the tasks their results."""
        self.batch.put(self.begin, results)


class Tasks:
    """Tasks of one function with Futures that are on their way together."""

    __slots__ = ("key", "tasks")

    def __init__(self, key: bytes, tasks: Sequence[Task] = ()) -> None:
        self.key = key
        self.tasks = [*tasks]

    def count(self) -> int:
        """Return how many tasks these are."""
        return len(self.tasks)

    def start(self) -> bool:
        """Leave out those that were cancelled; return False if none is left."""
        self.tasks = [task for task in self.tasks if task[0].start()]
        return bool(self.tasks)

    def arguments(self) -> list[Args]:
        """Return the arguments of the tasks."""
        return [args for _, _, args in self.tasks]

    def cut(self, count: int) -> list[Task | Span]:
        """Keep the first tasks, and return the others in the form in which they wait."""
        rest: list[Task | Span] = [*self.tasks[count:]]
        del self.tasks[count:]     # no call after it: see Dispatcher
        return rest

    def cancel(self) -> None:
        """Cancel the tasks."""
        for future, _, _ in self.tasks:
            future.cancel()

    def settle(self, results: list[Any]) -> None:
        """Give the tasks their results."""
        futures = [future for future, _, _ in self.tasks]
        self.tasks.clear()     # who has a result may count on it that its arguments were let go
        for future, result in zip(futures, results, strict=True):
            future.settle(result)


def fail(tasks: Span | Tasks, error: BaseException) -> None:
    """Give all tasks the same error."""
    tasks.settle([_worker.failure(error)] * tasks.count())


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
