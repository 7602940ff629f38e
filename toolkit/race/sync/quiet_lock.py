"""Locks inside the standard library that keep its own state whole and mean nothing to the program."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.sync.layer import Layer


class Quiet:
    """Stands in for a lock and works as it does, without ordering anything and without being held.

    Muting the whole call around such a lock would not do: other code of the program may run inside it (`__str__` of
    what is logged), whose locks count.
    """

    def __init__(self, core: Core, lock: Any, counts: Callable[[], bool] | None = None) -> None:
        """Wrap `lock`; while `counts()` says so it orders as any lock, for the program's code relies on it."""
        self._core = core
        self._lock = lock
        self._counts = counts
        self._muted: list[bool] = []     # one per acquisition that lasts; touched by the holder alone

    def acquire(self, *arguments: Any, **named: Any) -> bool:
        """Acquire as the lock does."""
        muted = self._counts is None or not self._counts()
        level = self._core.mute() if muted else 0
        try:
            got: bool = self._lock.acquire(*arguments, **named)
        finally:
            if muted:
                self._core.restore(level)
        if got:
            self._muted.append(muted)
        return got

    def release(self) -> None:
        """Release as the lock does, and as it was acquired."""
        muted = self._muted.pop() if self._muted and self._owned() else True
        level = self._core.mute() if muted else 0
        try:
            self._lock.release()
        finally:
            if muted:
                self._core.restore(level)

    def _owned(self) -> bool:
        owned = getattr(self._lock, "_is_owned", None)
        return owned is None or bool(owned())

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_error: object) -> None:
        self.release()

    def _at_fork_reinit(self) -> None:
        self._muted.clear()
        self._lock._at_fork_reinit()  # noqa: SLF001  what locks offer to modules that survive a fork

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._lock.__reduce_ex__(protocol)      # says that locks cannot be pickled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lock, name)

    def __repr__(self) -> str:
        return repr(self._lock)


def quieten(layer: Layer, module: Any, name: str) -> None:
    """Put a quiet lock in the place of a module's own, if it has one of that name."""
    lock = vars(module).get(name)
    if lock is not None and not isinstance(lock, Quiet):
        layer.put(module, name, Quiet(layer.core, lock))
