"""Foreign locks: context managers and acquire/release pairs of extension types, which are held but order nothing."""

from __future__ import annotations

import sys
from sys import _getframe

from gilscope.toolkit.race.core import FOREIGN_LOCK
from gilscope.toolkit.race.effects import LOCK_PAIRS
from tests.race.model.object_kinds import MISSING, holder, lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from tests.race.model.locks import LockTracker
    from tests.race.model.monitor import Monitor
    from tests.race.model.threads import ThreadState

PARTNERS = {"__enter__": "__exit__", **LOCK_PAIRS, **{last: first for first, last in LOCK_PAIRS.items()}}
NATIVE = ("method_descriptor", "wrapper_descriptor", "builtin_function_or_method", "instancemethod",
          "cython_function_or_method", "nb_method", "Boost.Python.function")     # names of the types of methods in C
_module_of = type.__dict__["__module__"].__get__


def is_foreign(lock: object, method: str) -> bool:
    """Return True if the method and its partner are written in C, outside of the standard library."""
    kind = type(lock)
    if not all(_is_native(kind, name) for name in (method, PARTNERS[method])):
        return False
    module = str(_module_of(holder(kind, method)))
    return module.partition(".")[0] not in sys.stdlib_module_names


def _is_native(kind: type, name: str) -> bool:
    found = lookup(kind, name)
    return found is not MISSING and type(found).__name__ in NATIVE


def _special(lock: object, name: str) -> Callable[..., Any]:
    """Return a method as `with` looks it up: in the class alone."""
    found = lookup(type(lock), name)
    bind = getattr(type(found), "__get__", None)
    method: Callable[..., Any] = found if bind is None else bind(found, lock, type(lock))
    return method


class ForeignLockTable:
    """The foreign locks that threads of one core hold."""

    def __init__(self, holding: LockTracker, monitor: Monitor) -> None:
        self._holding = holding
        self._monitor = monitor
        self._uids: dict[int, tuple[int, object]] = {}     # id -> uid, and the lock, which must not die
        self._held: dict[tuple[int, int], list[tuple[int, int]]] = {}    # thread's uid, lock's -> its holds

    def acquired(self, lock: object, frame: FrameType) -> None:
        """Note that this thread has just got the lock; a second time, the lock is one that may be acquired again."""
        def action(state: ThreadState) -> None:
            if state.muted or state.quiet:
                return
            uid = self._uid(lock, frame)
            holds = self._held.setdefault((state.uid, uid), [])
            if not holds:
                state.held.append((uid, self._holding.next_serial()))
            holds.append(state.held[-1])

        self._monitor.change(action)

    def releasing(self, lock: object) -> bool:
        """Note that the lock is about to be released once; return True if this thread held it."""
        held = False

        def action(state: ThreadState) -> None:
            nonlocal held
            uid = self._uids.get(id(lock), (0, None))[0]
            holds = self._held.get((state.uid, uid))
            if holds:
                held = True
                holds.pop()
                if not holds:
                    state.held = [hold for hold in state.held if hold[0] != uid]
                return
            for other in self._monitor.threads.live() if not state.muted else ():
                self._held.pop((other.uid, uid), None)
                other.held = [hold for hold in other.held if hold[0] != uid]

        self._monitor.change(action)
        return held

    def _uid(self, lock: object, frame: FrameType) -> int:
        if id(lock) not in self._uids:
            self._uids[id(lock)] = self._holding.name_foreign(lock, frame) | FOREIGN_LOCK, lock
        return self._uids[id(lock)][0]


def op(holding: LockTracker, monitor: Monitor) -> Callable[..., Any]:
    """Return the op `locking` of one core."""
    table = ForeignLockTable(holding, monitor)

    def locking(lock: Any, method: str = "__enter__") -> Any:
        return ForeignLock(table, lock) if monitor.active and is_foreign(lock, method) else lock

    return locking


class ForeignLock:
    """Stands for a foreign lock where `with` enters it or one of its methods is called."""

    __slots__ = ("_lock", "_table")

    def __init__(self, table: ForeignLockTable, lock: Any) -> None:
        self._table = table
        self._lock = lock

    def __enter__(self) -> Any:
        value = _special(self._lock, "__enter__")()
        self._table.acquired(self._lock, _getframe(1))
        return value

    def __exit__(self, *error: object) -> Any:
        self._table.releasing(self._lock)
        return _special(self._lock, "__exit__")(*error)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._lock, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            held = name not in LOCK_PAIRS and self._table.releasing(self._lock)
            try:
                result = method(*args, **kwargs)
            except BaseException:
                if held:
                    self._table.acquired(self._lock, _getframe(1))
                raise
            if name in LOCK_PAIRS and result is not False:
                self._table.acquired(self._lock, _getframe(1))
            return result

        return call
