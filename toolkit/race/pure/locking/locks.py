"""Lock and RLock that behave like the originals and tell the monitor who holds them.

The original Lock cannot be subclassed, so this one wraps it and answers for its class; the RLock is a subclass.
A signal handler that raises may do so where the originals' C code would not let it; all but one such place are seen
to: at the very entry of `release` the lock stays held.
"""

from __future__ import annotations

import _thread
from itertools import starmap
from sys import _getframe, modules

from gilscope.toolkit.race.pure.state.object_kinds import descends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from gilscope.toolkit.race.pure.locking.holding import Holding, Record

_native_lock = _thread.allocate_lock
_NativeLock = type(_thread.allocate_lock())
_NativeRLock: Any = _thread.RLock     # final for checkers only


def classes(holding: Holding) -> tuple[type, type]:
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
    _holding: Holding
    _native: Any
    _record: Record

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
        self._native._at_fork_reinit()  # noqa: SLF001  the original's own protocol
        self._holding.dropped(self._record)

    def __repr__(self) -> str:
        state = "locked" if self._native.locked() else "unlocked"
        return f"<{state} _thread.lock object at {id(self):#x}>"

    def __reduce_ex__(self, _: object) -> Any:
        raise TypeError("cannot pickle '_thread.lock' object")


class _RLock(_NativeRLock):     # type: ignore[misc]  # see above
    __slots__ = ("_record",)
    _holding: Holding

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


def record_of(lock: Any) -> Record | None:
    """Return what a tracked lock carries; None for anything else."""
    if descends(type(lock), _RLock) or descends(type(lock), _Lock):
        record: Record = lock._record  # noqa: SLF001  of this module
        return record
    return None


def install(holding: Holding) -> Callable[[], None]:
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
