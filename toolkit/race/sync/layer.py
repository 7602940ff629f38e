"""What all parts of the synchronisation layer share: the core, the patches made so far, state kept beside objects."""

from __future__ import annotations

from _thread import allocate_lock, get_ident  # allocate_lock: before a core replaces it
from _weakref import ref
from time import sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.core import Core

    Hook = Callable[..., Any] | None

__all__ = ["Attached", "Layer", "allocate_lock", "like"]

MOMENTS = 64            # at most that many pauses in a process: 64 ms in all
MOMENTS_A_THREAD = 3    # enough for every worker of a pool to get its share of short tasks


class Layer:
    """The patches of one `install`, with the core they speak to.

    Attributes:
        core: Where the order goes.
        overlap: Seconds a new thread waits before it runs its target, and a worker before its first tasks; 0: none.
        in_executor: Event loops that are within `run_in_executor`, by the ident of the thread.
    """

    def __init__(self, core: Core, overlap: float) -> None:
        self.core = core
        self.overlap = overlap
        self.in_executor: dict[int, Any] = {}
        self._undos: list[Callable[[], None]] = []
        self._moments: dict[int, int] = {}      # thread ident -> pauses it made
        self._moments_left = MOMENTS if overlap > 0 else 0

    def put(self, owner: Any, name: str, replacement: object) -> bool:
        """Replace an attribute until `undo`; return whether the core was able to."""
        undo = self.core.patch(owner, name, replacement)
        if undo is None:
            return False
        self._undos.append(undo)
        return True

    def hook(self, owner: Any, name: str, before: Hook = None, after: Hook = None, failed: Hook = None, *,
             muted: bool = True) -> bool:
        """Put `core.wrap` around an attribute that `owner` itself defines; return whether there is one to wrap."""
        original = vars(owner).get(name)
        if original is None:
            return False
        return self.put(owner, name, self.core.wrap(original, before, after, failed, muted=muted))

    def unmuted(self, owner: Any, name: str) -> bool:
        """Make a method that calls the program's code from within a primitive count as the program's code."""
        return self.hook(owner, name, self.unmute, self.remute, self.remute, muted=False)

    def unmute(self, *_arguments: Any, **_named: Any) -> int:
        """Let this thread's locks order again; return what `remute` needs."""
        level = self.core.mute()
        self.core.restore(0)
        return level

    def remute(self, level: int, *_arguments: Any, **_named: Any) -> None:
        """End what `unmute` began."""
        self.core.restore(level)

    def mute(self, *_arguments: Any, **_named: Any) -> int:
        """Mute this thread from a hook that must run in muted threads, too; `remute` ends it."""
        return self.core.mute()

    def is_muted(self) -> bool:
        """Return whether this thread is inside a primitive."""
        level = self.core.mute()
        self.core.restore(level)
        return level > 0

    def on_undo(self, undo: Callable[[], None]) -> None:
        """Call `undo` among those of the patches, last in first out."""
        self._undos.append(undo)

    def undo(self) -> None:
        """Take all patches back; what was created meanwhile keeps working."""
        while self._undos:
            self._undos.pop()()

    def thread_ended(self) -> None:
        """Forget what this thread did; its ident may come again."""
        self._moments.pop(get_ident(), None)

    def pause(self) -> None:
        """Wait a moment, so that other threads come to do their share.

        A thread that does all the work before the next one starts shows what it does, but not what the other would have
        done: two tasks in one worker are ordered.  A few pauses per thread and process make that rarer, and the verdict
        steadier.  Nothing depends on them.
        """
        if self._moments_left <= 0:
            return
        ident = get_ident()
        made = self._moments.get(ident, 0)
        if made < MOMENTS_A_THREAD:
            self._moments[ident] = made + 1
            self._moments_left -= 1    # unlocked: one more or less does not matter
            sleep(self.overlap)


class Attached:
    """State kept beside objects, by identity, forgotten when they die.

    Not in the object's own __dict__: programs print, compare and copy those.  Needs no lock of its own.  (Not generic:
    that would import typing at the program's start.)
    """

    def __init__(self) -> None:
        self._states: dict[int, tuple[object, Any]] = {}

    def get(self, owner: object) -> Any:
        """Return the state of `owner`, None if it has none."""
        entry = self._states.get(id(owner))
        return None if entry is None else entry[1]

    def set(self, owner: object, state: Any) -> None:
        """Give `owner` a state in place of any earlier one."""
        self._states[id(owner)] = self._entry(owner, state)

    def make(self, owner: object, fresh: Callable[[], Any]) -> Any:
        """Return the state of `owner`; if it has none, the first of all threads that come here gives it one."""
        entry = self._states.get(id(owner))
        if entry is None:
            entry = self._states.setdefault(id(owner), self._entry(owner, fresh()))
        return entry[1]

    def _entry(self, owner: object, state: Any) -> tuple[object, Any]:
        def forget(_gone: object, key: int = id(owner)) -> None:
            states.pop(key, None)
        states = self._states
        return ref(owner, forget), state


def like(original: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """Give our function the name, place and text of what it replaces; functools would be one more import."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(ours, name, getattr(original, name))
    ours.__wrapped__ = original   # type: ignore[attr-defined]  # what inspect.unwrap looks for
    return ours
