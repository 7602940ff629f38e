"""The core's one lock.

The program's code does not run under it, but the interpreter may slip in a finalizer or a signal handler between any
two instructions.  Should that wait for a thread which itself waits here, the latter goes on without its note after a
while: losing one is better than a hang.
"""

from __future__ import annotations

from _thread import RLock
from os import getpid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.pure.state.thread import ThreadState

_Native = RLock     # as it is before locks are tracked
_PATIENCE = 10.0    # seconds
_HASTE = 0.05       # seconds, while somebody is known to hang


class Guard:
    """A lock that gives up in the end, and that an exception out of nowhere does not leave locked."""

    __slots__ = ("_hangs", "_lock", "_process")

    def __init__(self) -> None:
        self._lock = _Native()
        self._process = getpid()
        self._hangs = False

    def run(self, state: ThreadState, action: Callable[[], None], *, must: bool = False) -> None:
        """Run `action` under the lock, with this thread marked as inside.

        If the lock is not to be had, `action` does not run, or, where it `must`, runs without.  A handler may raise
        between any two steps, so whether the lock is held is asked of the lock.
        """
        lock = self._lock
        try:
            state.inside = True
            if self._taken() or must:
                action()
        finally:
            try:
                _let_go(lock)
            finally:
                state.inside = False
                _let_go(lock)     # that, too, may have been interrupted

    def _taken(self) -> bool:
        if self._lock.acquire(blocking=False):
            return True
        if getpid() != self._process:
            # In the child of a fork, before the core hears of it, other modules' locks come; who held this is no more.
            self._process = getpid()
            _made_anew(self._lock)
            return self._lock.acquire(blocking=False)
        taken = self._lock.acquire(timeout=_HASTE if self._hangs else _PATIENCE)
        self._hangs = not taken
        return taken


def _let_go(lock: Any) -> None:
    if lock._is_owned():  # noqa: SLF001  as Condition asks
        lock.release()


def _made_anew(lock: Any) -> None:
    lock._at_fork_reinit()  # noqa: SLF001  as the library's locks do
