"""Run several calls that wait for processes at the same time, and end them all on Ctrl-C."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.processes.supervised import end_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future

_AGAIN_SECONDS = 0.1   # between two checks for processes that threads have started meanwhile


def at_once[S, T](function: Callable[[S], T], items: Iterable[S], most: int) -> list[T]:
    """Return the function's result for each item, computing at most `most` at the same time.

    Ctrl-C reaches only the main thread, which then ends the others' processes and waits until they have cleaned up.
    """
    with ThreadPoolExecutor(most) as pool:
        futures = [pool.submit(function, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException as error:
            _stop(pool, futures, error)
            raise


def _stop(pool: ThreadPoolExecutor, futures: Sequence[Future[Any]], error: BaseException) -> None:
    pool.shutdown(wait=False, cancel_futures=True)
    begun = [future for future in futures if not future.cancelled()]
    while not isinstance(error, Exception) and wait(begun, _AGAIN_SECONDS).not_done:
        end_all()
