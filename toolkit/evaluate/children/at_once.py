"""Several calls at once that wait for processes, and their end when the user wants to stop."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.processes.supervised import end_all

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from concurrent.futures import Future

_AGAIN_SECONDS = 0.1   # between two looks for what a thread has started meanwhile


def at_once[S, T](function: Callable[[S], T], items: Iterable[S], most: int) -> list[T]:
    """Return what `function` returns for each item, at most so many at once.

    A Ctrl-C comes to the main thread alone.  It ends what the others wait for, and waits until they have cleaned up.
    """
    with ThreadPoolExecutor(most) as pool:
        futures = [pool.submit(function, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException as error:
            _stop(pool, futures, error)
            raise


def as_they_come[S, T](function: Callable[[S], T], items: Iterable[S], most: int) -> Generator[T]:
    """Yield what `function` returns for each item as soon as it does, otherwise as `at_once`."""
    with ThreadPoolExecutor(most) as pool:
        futures = [pool.submit(function, item) for item in items]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException as error:   # also that nobody wants the others
            _stop(pool, futures, error)
            raise


def _stop(pool: ThreadPoolExecutor, futures: Sequence[Future[Any]], error: BaseException) -> None:
    pool.shutdown(wait=False, cancel_futures=True)
    begun = [future for future in futures if not future.cancelled()]
    while not isinstance(error, Exception) and wait(begun, _AGAIN_SECONDS).not_done:
        end_all()
