"""Close a pool within a deadline, whatever ended its use."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from gilscope.runners.errors import TeardownError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

CLOSE_SECONDS = 10.0  # enough for workers that are idle or finish a task; waiting longer for a hung one is useless
HURRY_SECONDS = 1.0   # after Ctrl-C or SystemExit, as the user wants to leave


@contextmanager
def closing(close: Callable[[float], None]) -> Iterator[None]:
    """Call `close(seconds)` on exit, with a shorter deadline after Ctrl-C.

    Raises:
        TeardownError: from `close`; when an exception is on its way already, it becomes a note on that.
    """
    try:
        yield
    except BaseException as error:
        try:
            close(CLOSE_SECONDS if isinstance(error, Exception) else HURRY_SECONDS)
        except TeardownError as left_over:
            error.add_note(str(left_over))
        raise
    close(CLOSE_SECONDS)


def shut_down(executor: Executor, seconds: float) -> bool:
    """Cancel pending work of an executor and join its workers; return True if they ended in time.

    `Executor.shutdown` knows no deadline, so it runs on a thread that can be left behind.
    """
    closer = start_closing(partial(executor.shutdown, wait=True, cancel_futures=True))
    closer.join(seconds)
    return not closer.is_alive()


def start_closing(close: Callable[[], object]) -> threading.Thread:
    """Call `close` on a thread, which can be left behind, and return that."""
    closer = threading.Thread(target=close, name="closer", daemon=True)
    closer.start()
    return closer


def close_threads(executor: Executor, seconds: float) -> None:
    """Shut down an executor whose workers are threads of this process.

    Raises:
        TeardownError: a worker is still busy after `seconds`; a thread cannot be ended from outside.
    """
    if not shut_down(executor, seconds):
        raise TeardownError(
            f"a worker thread did not end within {seconds:g} s: a task still runs, or left a thread behind")
