"""Tracked locks: the locks that each thread holds, and the happens-before edges from a release to the next acquire."""

from __future__ import annotations

import _thread
from _weakref import ref
from itertools import starmap
from sys import _getframe, modules

from tests.race.model.object_kinds import descends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, Protocol, Self

    from gilscope.toolkit.race.core import Place
    from tests.race.model.state import CallStacks, VectorClock
    from tests.race.model.threads import ThreadState, ThreadTable

    class Watching(Protocol):
        """The part of the monitor that locks need."""

        contexts: CallStacks
        dead_locks: list[LockRef]
        threads: ThreadTable

        def change(self, action: Callable[[ThreadState], object]) -> None: ...
        def tidy(self) -> None: ...

_MOST_ORIGINS = 4096     # locks whose origin is remembered, even if they no longer exist


class LockRef(ref):    # type: ignore[type-arg]  # generic for checkers only
    """A reference to a lock, by which its death is noticed: a lock may die while it is held."""

    __slots__ = ("uid",)
    uid: int


class LockState:
    """The state of a tracked lock: its name, the vector clock of its last release, its holder."""

    __slots__ = ("clock", "holder", "lock", "uid")

    def __init__(self, lock: object, died: Callable[[LockRef], None]) -> None:
        self.lock = LockRef(lock, died)
        self.lock.uid = self.uid = 0               # given at the first acquisition
        self.clock: VectorClock | None = None
        self.holder: tuple[ThreadState, tuple[int, int]] | None = None


class LockTracker:
    """The locks of one core."""

    def __init__(self, monitor: Watching) -> None:
        self._monitor = monitor
        self._uids = 0
        self._serial = 0
        self._origins: dict[int, tuple[int, Callable[[], object | None]]] = {}

    def record(self, lock: object) -> LockState:
        """Return the state of a new lock."""
        return LockState(lock, self._monitor.dead_locks.append)

    def acquired(self, record: LockState, frame: FrameType) -> None:
        """Note that this thread has just got the lock."""
        self._monitor.change(lambda state: self._hold(state, record, frame))

    def released(self, record: LockState) -> None:
        """Note that this thread is about to release the lock, which another thread may hold."""
        self._monitor.change(lambda state: self._let_go(state, record))

    def publish(self, record: LockState) -> None:
        """Add an edge from here to the next acquisition, although this thread does not release the lock."""
        def action(state: ThreadState) -> None:
            now = state.moment()
            state.time += 1
            record.clock = now if record.clock is None else record.clock.union(now)

        self._monitor.change(action)

    def observe(self, record: LockState) -> None:
        """Add an edge from the last release, although this thread does not acquire the lock."""
        def action(state: ThreadState) -> None:
            if record.clock is not None:
                state.join_order(record.clock)

        self._monitor.change(action)

    def dropped(self, record: LockState) -> None:
        """Note that no thread holds the lock any more, as after a fork."""
        self._monitor.change(lambda _: self._unhold(record))

    def held(self) -> tuple[int, ...]:
        """Return the uids of the locks this thread holds, innermost first."""
        self._monitor.tidy()
        return tuple(uid for uid, _ in reversed(self._monitor.threads.current().held))

    def origin(self, uid: int) -> tuple[tuple[Place, ...], object | None]:
        """Return the stack of a lock's first acquisition, and the lock if it still exists."""
        context, lock = self._origins.get(uid, (0, None))
        return self._monitor.contexts.places(context), lock and lock()

    def next_serial(self) -> int:
        """Return the number of another acquisition."""
        self._serial += 1
        return self._serial

    def name_foreign(self, lock: object, frame: FrameType) -> int:
        """Return a number for a lock that is not one of these classes."""
        self._uids += 1
        self._origins[self._uids] = self._monitor.contexts.of(frame), lambda: lock
        return self._uids

    def _hold(self, state: ThreadState, record: LockState, frame: FrameType) -> None:
        self._unhold(record)
        if state.muted or state.quiet:
            return
        if record.clock is not None:
            state.join_order(record.clock)
        if not record.uid:
            self._name(record, frame)
        hold = record.uid, self.next_serial()
        record.holder = state, hold
        state.held.append(hold)

    def _let_go(self, state: ThreadState, record: LockState) -> None:
        self._unhold(record)
        if not (state.muted or state.quiet):
            record.clock = state.moment()
            state.time += 1

    def _unhold(self, record: LockState) -> None:
        if record.holder is not None:
            holder, hold = record.holder
            record.holder = None
            if hold in holder.held:
                holder.held.remove(hold)

    def _name(self, record: LockState, frame: FrameType) -> None:
        self._uids += 1
        record.lock.uid = record.uid = self._uids
        self._origins[record.uid] = self._monitor.contexts.of(frame), record.lock
        if len(self._origins) > _MOST_ORIGINS:
            gone = [uid for uid, (_, where) in self._origins.items() if where() is None]
            for uid in gone[:_MOST_ORIGINS // 2]:
                del self._origins[uid]


_native_lock = _thread.allocate_lock
_NativeLock = type(_thread.allocate_lock())
_NativeRLock: Any = _thread.RLock     # final for checkers only


def classes(holding: LockTracker) -> tuple[type, type]:
    """Return the classes of tracked locks of one core."""
    lock_class = _LockMeta("lock", (_Lock,), {
        "__slots__": (), "__module__": "_thread", "__doc__": _NativeLock.__doc__, "_holding": holding})
    rlock_class = type("RLock", (_RLock,), {
        "__slots__": (), "__module__": "_thread", "__doc__": _NativeRLock.__doc__, "_holding": holding})
    return lock_class, rlock_class


class _LockMeta(type):
    """Makes plain locks instances of the tracked class, too: some are older than the tracking."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance) is _NativeLock or type.__instancecheck__(cls, instance)


class _Lock:
    __slots__ = ("__weakref__", "_native", "_record")
    _holding: LockTracker
    _native: Any
    _record: LockState

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        native = _native_lock(*args, **kwargs)
        self = object.__new__(cls)
        self._native = native
        self._record = self._holding.record(self)
        return self

    def __init_subclass__(cls) -> None:
        if cls.__module__ != "_thread":
            raise TypeError("type '_thread.lock' is not an acceptable base type")

    @property     # type: ignore[misc]  # isinstance asks for it
    def __class__(self) -> type:
        return _NativeLock

    def acquire(self, *args: Any, **kwargs: Any) -> bool:
        if kwargs:
            if args or not kwargs.keys() <= {"blocking", "timeout"}:
                return self._acquired(_getframe(1), *_checked(self._native.acquire, args, kwargs))
            args = kwargs.get("blocking", True), kwargs.get("timeout", -1)
        return self._acquired(_getframe(1), *args)

    def _acquired(self, frame: Any, *args: Any) -> bool:
        got: list[bool] = []
        try:
            # In one go: a signal handler may raise after the call, and nobody would know that the lock is held.
            got.extend(starmap(self._native.acquire, (args,)))
            if got[0]:
                self._holding.acquired(self._record, frame)
        except BaseException:
            if got and got[0]:
                self._native.release()
            raise
        return got[0]

    def release(self) -> None:
        try:
            if self._native.locked():
                self._holding.released(self._record)
        finally:
            self._native.release()

    def __enter__(self) -> bool:
        return self._acquired(_getframe(1))

    def __exit__(self, *_: object) -> None:
        self.release()

    def locked(self) -> bool:
        locked: bool = self._native.locked()
        return locked

    acquire_lock, release_lock, locked_lock = acquire, release, locked

    def _at_fork_reinit(self) -> None:
        self._native._at_fork_reinit()
        self._holding.dropped(self._record)

    def __repr__(self) -> str:
        state = "locked" if self._native.locked() else "unlocked"
        return f"<{state} _thread.lock object at {id(self):#x}>"

    def __reduce_ex__(self, _: object) -> Any:
        raise TypeError("cannot pickle '_thread.lock' object")


class _RLock(_NativeRLock):     # type: ignore[misc]  # see above
    __slots__ = ("_record",)
    _holding: LockTracker

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self: Self = _NativeRLock.__new__(cls, *args, **kwargs)
        self._record = self._holding.record(self)
        return self

    def __init__(self, *_: Any, **__: Any) -> None:
        """Take what `__new__` has judged."""

    def acquire(self, *args: Any, **kwargs: Any) -> bool:
        return self._acquired(_getframe(1), *args, **kwargs)

    def _acquired(self, frame: Any, *args: Any, **kwargs: Any) -> bool:
        before = self._recursion_count()
        try:
            got: bool = _NativeRLock.acquire(self, *args, **kwargs)
            if got and not before:
                self._holding.acquired(self._record, frame)
        except BaseException:     # as above
            if self._recursion_count() > before:
                _NativeRLock.release(self)
            raise
        return got

    def release(self) -> None:
        try:
            if self._recursion_count() == 1:
                self._holding.released(self._record)
        finally:
            _NativeRLock.release(self)

    def __enter__(self) -> bool:
        return self._acquired(_getframe(1))

    def __exit__(self, *_: object) -> None:
        self.release()

    if not hasattr(_NativeRLock, "_recursion_count"):     # 3.12.0
        def _recursion_count(self) -> int:
            return int(repr(self).rpartition("count=")[2].split()[0]) if self._is_owned() else 0

    def _release_save(self) -> Any:
        if self._is_owned():
            self._holding.released(self._record)
        return super()._release_save()

    def _acquire_restore(self, state: Any) -> None:
        super()._acquire_restore(state)
        self._holding.acquired(self._record, _getframe(1))

    def _at_fork_reinit(self) -> None:
        super()._at_fork_reinit()
        self._holding.dropped(self._record)

    def __repr__(self) -> str:
        text: str = _NativeRLock.__repr__(self)
        return text.replace(" RLock object", " _thread.RLock object", 1)

    def __reduce_ex__(self, _: object) -> Any:
        raise TypeError("cannot pickle '_thread.RLock' object")


def _checked(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return `acquire(blocking, timeout=...)` as positional arguments, or raise what the original raises."""
    if len(args) == 1 and kwargs.keys() == {"timeout"}:
        return args[0], kwargs["timeout"]
    function(*args, **kwargs)
    raise AssertionError("the original takes arguments that this does not know")


def record_of(lock: Any) -> LockState | None:
    """Return the state of a tracked lock, or None for any other object."""
    if descends(type(lock), _RLock) or descends(type(lock), _Lock):
        record: LockState = lock._record
        return record
    return None


def install(holding: LockTracker) -> Callable[[], None]:
    """Put the tracked classes where the originals are found; return what puts the originals back."""
    lock_class, rlock_class = classes(holding)
    swaps: dict[int, Any] = {
        id(_native_lock): lock_class, id(_NativeLock): lock_class, id(_NativeRLock): rlock_class}
    done: list[tuple[Any, str, Any]] = []
    for module in (_thread, modules.get("threading")):
        for name, value in list(vars(module).items()) if module else ():
            if id(value) in swaps:
                done.append((module, name, value))
                setattr(module, name, swaps[id(value)])

    def undo() -> None:
        for module, name, value in done:
            if id(getattr(module, name)) in (id(lock_class), id(rlock_class)):
                setattr(module, name, value)

    return undo
