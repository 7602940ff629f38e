"""Foreign locks: context managers and acquire/release pairs of extension types, which count as locks."""

from __future__ import annotations

import sys
from sys import _getframe

from gilscope.toolkit.race.effects import LOCK_PAIRS
from tests.race.model.object_kinds import MISSING, holder, lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from tests.race.model.locks import LockTracker
    from tests.race.model.monitor import Monitor
    from tests.race.model.state import VectorClock
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


class ForeignLockState:
    """A foreign lock, which must not die: its number, and the vector clock of its releases."""

    def __init__(self, lock: object, uid: int) -> None:
        self.lock = lock
        self.uid = uid
        self.clock: VectorClock | None = None


class ForeignLockTable:
    """The foreign locks that threads of one core hold."""

    def __init__(self, holding: LockTracker, monitor: Monitor) -> None:
        self._holding = holding
        self._monitor = monitor
        self._known: dict[int, ForeignLockState] = {}      # by id
        self._held: dict[tuple[int, int], list[tuple[int, int]]] = {}    # thread's uid, lock's -> its holds

    def acquired(self, lock: object, frame: FrameType) -> None:
        """Note that this thread has just got the lock; a second time, the lock is one that may be acquired again."""
        def action(state: ThreadState) -> None:
            if state.muted or state.quiet:
                return
            known = self._state(lock, frame)
            holds = self._held.setdefault((state.uid, known.uid), [])
            if not holds:
                state.held.append((known.uid, self._holding.next_serial()))
                if known.clock is not None:
                    state.join_order(known.clock)
            holds.append(state.held[-1])

        self._monitor.change(action)

    def releasing(self, lock: object, frame: FrameType) -> bool:
        """Note that the lock is about to be released once; return True if this thread held it."""
        held = False

        def action(state: ThreadState) -> None:
            nonlocal held
            known = self._state(lock, frame)
            holds = self._held.get((state.uid, known.uid))
            held = bool(holds)
            if holds:
                holds.pop()
                if holds:
                    return
            for other in [state] if held else self._monitor.threads.live():   # another thread's holding ends
                self._held.pop((other.uid, known.uid), None)
                other.held = [hold for hold in other.held if hold[0] != known.uid]
            if not (state.muted or state.quiet):
                now = state.moment()
                state.time += 1
                known.clock = now if known.clock is None else known.clock.union(now)

        self._monitor.change(action)
        return held

    def _state(self, lock: object, frame: FrameType) -> ForeignLockState:
        if id(lock) not in self._known:
            self._known[id(lock)] = ForeignLockState(lock, self._holding.name_foreign(lock, frame))
        return self._known[id(lock)]


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
        self._table.releasing(self._lock, _getframe(1))
        return _special(self._lock, "__exit__")(*error)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._lock, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            held = name not in LOCK_PAIRS and self._table.releasing(self._lock, _getframe(1))
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
