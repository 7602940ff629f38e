"""Base of the synchronisation layer: the patches made so far, untracked locks, and state stored beside objects."""

from __future__ import annotations

from _thread import allocate_lock, get_ident  # allocate_lock: before a core replaces it
from _weakref import ref
from time import sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.core import Core
    Callback = Callable[..., Any] | None
    IsChecked = Callable[[str, str], bool]

__all__ = ["ObjectStates", "SyncLayer", "UntrackedLock", "allocate_lock", "imitate", "untrack_lock"]

PAUSES = 64             # per process: 64 ms in total
PAUSES_PER_THREAD = 3   # enough for every worker of a pool to get some of the short tasks


class SyncLayer:
    """The patches of one `install`, with the core that they report to.

    Attributes:
        core: The core that receives the happens-before edges.
        is_checked: Returns True for name and path of a module whose own accesses are checked.
        overlap: Seconds that a new thread pauses before its target, and a worker before its first tasks; 0: none.
        started_process: True once this process has started another program.
        in_executor: Event loops inside of `run_in_executor`, by the ident of the thread.
    """

    def __init__(self, core: Core, overlap: float, is_checked: IsChecked = lambda _name, _path: False) -> None:
        self.core = core
        self.overlap = overlap
        self.is_checked = is_checked
        self.started_process = False
        self.in_executor: dict[int, Any] = {}
        self._undos: list[Callable[[], None]] = []
        self._pauses: dict[int, int] = {}      # thread ident -> pauses it made
        self._pauses_left = PAUSES if overlap > 0 else 0

    def replace(self, owner: Any, name: str, replacement: object) -> bool:
        """Replace an attribute until `undo`; return False if the core cannot."""
        undo = self.core.patch(owner, name, replacement)
        if undo is None:
            return False
        self._undos.append(undo)
        return True

    def wrap(self, owner: Any, name: str, before: Callback = None, after: Callback = None, failed: Callback = None, *,
             muted: bool = True) -> None:
        """Wrap an attribute that `owner` itself defines, see `core.wrap`; do nothing if it defines none."""
        original = vars(owner).get(name)
        if original is not None:
            self.replace(owner, name, self.core.wrap(original, before, after, failed, muted=muted))

    def unmuted(self, owner: Any, name: str) -> None:
        """Track a method that calls the program's code from inside a muted primitive."""
        self.wrap(owner, name, self.unmute, self.remute, self.remute, muted=False)

    def unmute(self, *_arguments: Any, **_named: Any) -> int:
        """Track this thread's locks again; return the level for `remute`."""
        level = self.core.mute()
        self.core.restore(0)
        return level

    def remute(self, level: int, *_arguments: Any, **_named: Any) -> None:
        """End what `unmute` began."""
        self.core.restore(level)

    def mute(self, *_arguments: Any, **_named: Any) -> int:
        """Mute this thread in a callback that runs in muted threads as well; `remute` ends it."""
        return self.core.mute()

    def is_muted(self) -> bool:
        """Return True if this thread is inside a muted primitive."""
        level = self.core.mute()
        self.core.restore(level)
        return level > 0

    def on_undo(self, undo: Callable[[], None]) -> None:
        """Add a callback to `undo`, which calls them last in, first out."""
        self._undos.append(undo)

    def undo(self) -> None:
        """Undo all patches; objects created in the meantime keep working."""
        while self._undos:
            self._undos.pop()()

    def thread_ended(self) -> None:
        """Forget this thread: its ident may be used again."""
        self._pauses.pop(get_ident(), None)

    def pause(self) -> None:
        """Sleep a moment, so that other threads run as well.

        If one thread does all the work before the next one starts, the accesses that the other would have made are
        missing: two tasks in one worker are ordered.  A few pauses per thread and process make this rarer, and the
        verdict more stable.  Nothing depends on them.
        """
        if self._pauses_left <= 0:
            return
        ident = get_ident()
        made = self._pauses.get(ident, 0)
        if made < PAUSES_PER_THREAD:
            self._pauses[ident] = made + 1
            self._pauses_left -= 1    # without a lock: one pause more or less does not matter
            sleep(self.overlap)


class ObjectStates:
    """State stored beside objects, by identity, and dropped with them.

    It is not in the object's __dict__, which programs print, compare and copy.  It needs no lock.  The class is not
    generic, as that would import typing at the program's start.
    """

    def __init__(self) -> None:
        self._states: dict[int, tuple[object, Any]] = {}

    def get(self, owner: object) -> Any:
        """Return the state of `owner`, None if it has none."""
        entry = self._states.get(id(owner))
        return None if entry is None else entry[1]

    def set(self, owner: object, state: Any) -> None:
        """Set or replace the state of `owner`."""
        self._states[id(owner)] = self._entry(owner, state)

    def make(self, owner: object, fresh: Callable[[], Any]) -> Any:
        """Return the state of `owner`; if it has none, create one, the same for all threads that call this at once."""
        entry = self._states.get(id(owner))
        if entry is None:
            entry = self._states.setdefault(id(owner), self._entry(owner, fresh()))
        return entry[1]

    def _entry(self, owner: object, state: Any) -> tuple[object, Any]:
        def forget(_gone: object, key: int = id(owner)) -> None:
            states.pop(key, None)
        states = self._states
        return ref(owner, forget), state


def imitate(original: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """Copy the metadata of a function to its replacement, as functools.wraps does, without the import."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(ours, name, getattr(original, name))
    ours.__wrapped__ = original   # type: ignore[attr-defined]  # what inspect.unwrap looks for
    return ours


class UntrackedLock:
    """A lock inside of the standard library that protects its own state and is no synchronisation edge for the program.

    It works like the lock that it wraps.  Muting the calls that hold it would mute code of the program that runs inside
    of them, such as `__str__` of a logged object, whose locks count.
    """

    def __init__(self, core: Core, lock: Any, counts: Callable[[], bool] | None = None) -> None:
        """Wrap `lock`; while `counts()` is true it is tracked like any lock, since code of the program relies on it."""
        self._core = core
        self._lock = lock
        self._counts = counts
        self._muted: list[bool] = []     # one per acquisition; accessed only by the holder

    def acquire(self, *arguments: Any, **named: Any) -> bool:
        """Acquire the wrapped lock."""
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
        """Release the wrapped lock, tracked as its acquisition was."""
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
        self._lock._at_fork_reinit()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._lock.__reduce_ex__(protocol)      # raises: locks cannot be pickled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lock, name)

    def __repr__(self) -> str:
        return repr(self._lock)


def untrack_lock(layer: SyncLayer, module: Any, name: str) -> None:
    """Replace a module's lock of that name, if there is one, by an untracked one."""
    lock = vars(module).get(name)
    if lock is not None and not isinstance(lock, UntrackedLock):
        layer.replace(module, name, UntrackedLock(layer.core, lock))
