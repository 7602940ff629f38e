"""The lock on the machine: runs that must measure alone hold it in exclusion of all others, round by round.

One file is the lock, the other the queue for it: a process that releases the lock and wants it again stands behind
those that have waited.  The locks end with their process.
"""

from __future__ import annotations

import contextlib
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gilscope.toolkit.file_locks import lock, try_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = "/tmp"  # noqa: S108  not TMPDIR: hosts on one machine have separate temporary folders, but share this one
VARIABLE = "GILSCOPE_MACHINE"   # another folder, for machines that share one and for tests
HOLDER = "GILSCOPE_TURN"        # the process that holds the lock, for its children
WAITING = "waiting for another gilscope that measures on this machine"


class MachineLock:
    """Gives this process the machine while it measures."""

    def __init__(
        self, *, alone: bool, waiting: Callable[[], None], children_join: bool = False, folder: str | None = None,
    ) -> None:
        """Prepare to hold the lock.

        Args:
            alone: Keep all others out; otherwise only those that must be alone.
            waiting: Called before the first wait.
            children_join: Let processes that are started meanwhile join in, as they may be another gilscope.
            folder: Of the two files; None: $GILSCOPE_MACHINE, or the machine's.
        """
        self._shared = not alone
        self._waiting: Callable[[], None] | None = waiting
        self._children_join = children_join
        self._folder = folder or os.environ.get(VARIABLE) or FOLDER

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait for the lock, and hold it; without locks in the file system, go on at once.

        A gilscope that another one started while it holds the lock, as `gilscope gil` does, joins in: it would wait
        for ever behind the process that waits for its end.
        """
        if _is_inside(os.environ.get(HOLDER, "")):
            yield
            return
        with contextlib.ExitStack() as held:
            with contextlib.ExitStack() as queued:
                self._take("queue", queued, shared=False)
                self._take("turn", held, shared=self._shared)
            if self._children_join:
                os.environ[HOLDER] = str(os.getpid())
                held.callback(os.environ.pop, HOLDER, None)
            yield

    def _take(self, name: str, stack: contextlib.ExitStack, *, shared: bool) -> None:
        handle = _opened(os.path.join(self._folder, f"gilscope-{name}.lock"))
        if handle is None:
            return
        stack.callback(os.close, handle)
        try:
            taken = try_lock(handle, shared=shared)
        except OSError:
            return   # no locks in this file system, so other measurements cannot be detected
        if not taken:
            lock(handle, self._announce, shared=shared)

    def _announce(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting:
            waiting()


def _is_inside(holder: str) -> bool:
    """Return True if the process that started this one, or one above it, lives and holds the lock."""
    if not holder.isdecimal() or int(holder) == os.getpid():
        return False
    try:
        os.kill(int(holder), 0)
    except PermissionError:
        return True   # it is another user's
    except (OSError, OverflowError):
        return False
    return True


def _opened(path: str) -> int | None:
    """Open the file, which every user of the machine may lock; return None if that is impossible."""
    for flags in (os.O_RDONLY, os.O_RDONLY | os.O_CREAT):   # O_CREAT fails on another user's file in /tmp
        with contextlib.suppress(OSError):
            handle = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o444)
            if stat.S_ISREG(os.fstat(handle).st_mode):
                return handle
            os.close(handle)
    return None
