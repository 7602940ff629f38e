"""Who measures on this machine now: runs that must be alone take turns, round by round, with all others.

One file is the turn, one is the queue for it: who lets go of the turn and wants it again stands behind who has waited.
Locks end with their process, however it ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = "/tmp"  # noqa: S108  not TMPDIR: hosts on one machine have temporary folders of their own, and share this
VARIABLE = "GILSCOPE_MACHINE"   # another folder, for machines that share one and for tests
HOLDER = "GILSCOPE_TURN"        # the process that has a turn, told to what may be another gilscope
WAITING = "waiting for another gilscope that measures on this machine"


class Turns:
    """This process's turns to measure."""

    def __init__(
        self, *, alone: bool, waiting: Callable[[], None], told: bool = False, folder: str | None = None,
    ) -> None:
        """Prepare to take turns.

        Args:
            alone: Nobody else measures meanwhile; else others may that need not be alone, either.
            waiting: Called the first time that a turn has to be waited for.
            told: What is started in a turn is told of it, as it may be another gilscope.
            folder: Of the two files; None: what is said by the environment, or the machine's.
        """
        self._how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        self._waiting: Callable[[], None] | None = waiting
        self._told = told
        self._folder = folder or os.environ.get(VARIABLE) or FOLDER

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, and have it; where there are no locks nobody waits.

        What measures inside of somebody's turn and was told so, a gilscope that `gilscope gil` records, say, is part of
        that: waiting behind one who waits for its end would last for ever.
        """
        if _is_inside(os.environ.get(HOLDER, "")):
            yield
            return
        with contextlib.ExitStack() as held:
            with contextlib.ExitStack() as queued:
                self._take("queue", fcntl.LOCK_EX, queued)
                self._take("turn", self._how, held)
            if self._told:
                os.environ[HOLDER] = str(os.getpid())
                held.callback(os.environ.pop, HOLDER, None)
            yield

    def _take(self, name: str, how: int, stack: contextlib.ExitStack) -> None:
        handle = _opened(os.path.join(self._folder, f"gilscope-{name}.lock"))
        if handle is None:
            return
        stack.callback(os.close, handle)
        try:
            fcntl.flock(handle, how | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting, self._waiting = self._waiting, None
            if waiting:
                waiting()
            fcntl.flock(handle, how)
        except OSError:
            return   # no locks in this file system: nothing tells who else measures


def _is_inside(holder: str) -> bool:
    """Return whether the process that started this one, or one above it, is there and has a turn."""
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
    """Return the file, which every user of the machine may lock; None where there can be none."""
    for flags in (os.O_RDONLY, os.O_RDONLY | os.O_CREAT):   # another user's may be opened, and not be created, in /tmp
        with contextlib.suppress(OSError):
            handle = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o444)
            if stat.S_ISREG(os.fstat(handle).st_mode):
                return handle
            os.close(handle)
    return None
