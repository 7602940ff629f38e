"""Who holds which lock, and the order that locks make."""

from __future__ import annotations

from _weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Protocol

    from gilscope.toolkit.race.core import Place
    from gilscope.toolkit.race.pure.state.call_stacks import Contexts
    from gilscope.toolkit.race.pure.state.clocks import Clock
    from gilscope.toolkit.race.pure.state.thread import ThreadState
    from gilscope.toolkit.race.pure.state.threads import Threads

    class Watching(Protocol):
        """What the locks need of the core's state."""

        contexts: Contexts
        dead_locks: list[LockRef]
        threads: Threads

        def change(self, action: Callable[[ThreadState], object]) -> None: ...
        def tidy(self) -> None: ...

_MOST_ORIGINS = 4096     # locks whose origin is remembered although they may be gone


class LockRef(ref):    # type: ignore[type-arg]  # generic for checkers only
    """A reference to a lock, by which its death is noticed: a lock may die while it is held."""

    __slots__ = ("uid",)
    uid: int


class Record:
    """What a tracked lock carries: its name, the moment of its last release, who holds it."""

    __slots__ = ("clock", "holder", "lock", "uid")

    def __init__(self, lock: object, died: Callable[[LockRef], None]) -> None:
        self.lock = LockRef(lock, died)
        self.lock.uid = self.uid = 0               # given at the first acquisition
        self.clock: Clock | None = None
        self.holder: tuple[ThreadState, tuple[int, int]] | None = None


class Holding:
    """The locks of one core."""

    def __init__(self, monitor: Watching) -> None:
        self._monitor = monitor
        self._uids = 0
        self._serial = 0
        self._origins: dict[int, tuple[int, LockRef]] = {}

    def record(self, lock: object) -> Record:
        """Return what a new lock is to carry."""
        return Record(lock, self._monitor.dead_locks.append)

    def acquired(self, record: Record, frame: FrameType) -> None:
        """Note that this thread has just got the lock."""
        self._monitor.change(lambda state: self._hold(state, record, frame))

    def released(self, record: Record) -> None:
        """Note that this thread is about to release the lock, whoever holds it."""
        self._monitor.change(lambda state: self._let_go(state, record))

    def publish(self, record: Record) -> None:
        """Let the next holder come after now, although this thread does not release the lock."""
        def action(state: ThreadState) -> None:
            now = state.moment()
            state.time += 1
            record.clock = now if record.clock is None else record.clock.union(now)

        self._monitor.change(action)

    def observe(self, record: Record) -> None:
        """Come after the last release, although this thread does not acquire the lock."""
        def action(state: ThreadState) -> None:
            if record.clock is not None:
                state.join_order(record.clock)

        self._monitor.change(action)

    def dropped(self, record: Record) -> None:
        """Note that nobody holds the lock any more, as after a fork."""
        self._monitor.change(lambda _: self._unhold(record))

    def held(self) -> tuple[int, ...]:
        """Return the uids of the locks this thread holds, innermost first."""
        self._monitor.tidy()
        return tuple(uid for uid, _ in reversed(self._monitor.threads.current().held))

    def origin(self, uid: int) -> tuple[tuple[Place, ...], object | None]:
        """Return where a lock was first acquired, and the lock if it lives."""
        context, lock = self._origins.get(uid, (0, None))
        return self._monitor.contexts.places(context), lock and lock()

    def _hold(self, state: ThreadState, record: Record, frame: FrameType) -> None:
        self._unhold(record)
        if state.muted or state.quiet:
            return
        if record.clock is not None:
            state.join_order(record.clock)
        if not record.uid:
            self._name(record, frame)
        self._serial += 1
        hold = record.uid, self._serial
        record.holder = state, hold
        state.held.append(hold)

    def _let_go(self, state: ThreadState, record: Record) -> None:
        self._unhold(record)
        if not (state.muted or state.quiet):
            record.clock = state.moment()
            state.time += 1

    def _unhold(self, record: Record) -> None:
        if record.holder is not None:
            holder, hold = record.holder
            record.holder = None
            if hold in holder.held:
                holder.held.remove(hold)

    def _name(self, record: Record, frame: FrameType) -> None:
        self._uids += 1
        record.lock.uid = record.uid = self._uids
        self._origins[record.uid] = self._monitor.contexts.of(frame), record.lock
        if len(self._origins) > _MOST_ORIGINS:
            gone = [uid for uid, (_, where) in self._origins.items() if where() is None]
            for uid in gone[:_MOST_ORIGINS // 2]:
                del self._origins[uid]
