"""Who holds which lock, and the order that locks make."""

from __future__ import annotations

from _weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from toolkit.race.core import Place
    from toolkit.race.pure.clocks import ThreadState
    from toolkit.race.pure.monitor import Monitor

_MOST_ORIGINS = 4096     # locks whose origin is remembered although they may be gone


class Holding:
    """The locks of one core.  A lock carries its own clock, its uid and its holder."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._uids = 0
        self._serial = 0
        self._origins: dict[int, tuple[int, ref[Any]]] = {}

    def adopt(self, lock: Any) -> None:
        """Give a new lock what it carries."""
        lock._uid, lock._clock, lock._holder = 0, None, None

    def acquired(self, lock: Any, frame: FrameType) -> None:
        """Note that this thread has just got the lock."""
        self._monitor.change(lambda state: self._hold(state, lock, frame))

    def released(self, lock: Any) -> None:
        """Note that this thread is about to release the lock, whoever holds it."""
        self._monitor.change(lambda state: self._let_go(state, lock))

    def dropped(self, lock: Any) -> None:
        """Note that nobody holds the lock any more, as after a fork."""
        self._monitor.change(lambda _: self._unhold(lock))

    def held(self) -> tuple[int, ...]:
        """Return the uids of the locks this thread holds, innermost first."""
        return tuple(uid for uid, _ in reversed(self._monitor.threads.current().held))

    def origin(self, uid: int) -> tuple[tuple[Place, ...], object | None]:
        """Return where a lock was first acquired, and the lock if it lives."""
        context, lock = self._origins.get(uid, (0, lambda: None))
        return self._monitor.contexts.places(context), lock()

    def _hold(self, state: ThreadState, lock: Any, frame: FrameType) -> None:
        self._unhold(lock)
        if state.muted or state.quiet:
            return
        if lock._clock is not None:
            state.join_order(lock._clock)
        if not lock._uid:
            self._name(lock, frame)
        self._serial += 1
        hold = lock._uid, self._serial
        lock._holder = state, hold
        state.held.append(hold)

    def _let_go(self, state: ThreadState, lock: Any) -> None:
        self._unhold(lock)
        if not (state.muted or state.quiet):
            lock._clock = state.moment()
            state.time += 1

    def _unhold(self, lock: Any) -> None:
        if lock._holder is not None:
            holder, hold = lock._holder
            lock._holder = None
            if hold in holder.held:
                holder.held.remove(hold)

    def _name(self, lock: Any, frame: FrameType) -> None:
        self._uids += 1
        lock._uid = self._uids
        self._origins[lock._uid] = self._monitor.contexts.of(frame), ref(lock)
        if len(self._origins) > _MOST_ORIGINS:
            gone = [uid for uid, (_, where) in self._origins.items() if where() is None]
            for uid in gone[:_MOST_ORIGINS // 2]:
                del self._origins[uid]
