"""The state of each thread, the table of all threads, and the lock of the core."""

from __future__ import annotations

from _thread import RLock, _local
from os import getpid

from tests.race.model.state import VectorClock, merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable
    from typing import Any

    from tests.race.model.shadow import Location
    from tests.race.model.state import AccessRecord, PendingRead, Times


class ThreadState:
    """The state of one thread: its vector clocks, the locks it holds, and the reads that a write may still depend on.

    `order` and `hard` are replaced, never changed, so a reference to one is a snapshot of it.
    """

    __slots__ = ("__weakref__", "announced", "chain", "ended", "hard", "held", "inside", "muted", "opens", "order",
                 "parent", "polled", "position", "quiet", "reads", "slot", "time", "uid", "writes")

    def __init__(self) -> None:
        self.uid = 0
        self.announced = False     # somebody said that it begins; else it was met by its first operation
        self.slot = 0
        self.time = 1
        self.order: Times = {}
        self.hard: Times = {}
        self.held: list[tuple[int, int]] = []     # (lock's uid, serial of the acquisition), innermost last
        self.muted = 0             # locks make no order
        self.quiet = 0             # nothing is noted: our own code runs
        self.inside = False        # the core's own code runs in this thread; set before the guard is taken
        self.ended = False
        self.parent: ThreadState | None = None     # whose logical thread this is
        self.chain: VectorClock | None = None            # the last moments of its logical threads so far
        self.opens: dict[int, dict[tuple[int, Location], PendingRead]] = {}     # id of the frame -> its reads
        self.position = 0          # operations noted so far
        self.reads: deque[tuple[int, Location, PendingRead]] | None = None
        self.writes: deque[tuple[int, Location, AccessRecord, tuple[tuple[int, int], ...], int]] | None = None
        self.polled: tuple[Location, AccessRecord | None] | None = None

    def sees(self, slot: int, time: int) -> bool:
        """Return True if that moment of the slot happened before this thread's present."""
        return slot == self.slot or self.order.get(slot, 0) >= time

    def sees_hard(self, slot: int, time: int) -> bool:
        """Return True if it happened before even without edges through locks."""
        return slot == self.slot or self.hard.get(slot, 0) >= time

    def moment(self) -> VectorClock:
        """Return the present; later accesses follow it only once `time` has advanced."""
        own = {self.slot: self.time}
        return VectorClock(self.order | own, self.hard | own)

    def join(self, clock: VectorClock) -> None:
        """Add a happens-before edge from a moment to this thread's present."""
        self.order = merged(self.order, clock.order, self.slot)
        self.hard = merged(self.hard, clock.hard, self.slot)

    def join_order(self, clock: VectorClock) -> None:
        """Add an edge from a moment as a lock does: from its last release to its next acquire."""
        self.order = merged(self.order, clock.order, self.slot)


_Native = RLock     # as it is before locks are tracked
_PATIENCE = 10.0    # seconds
_HASTE = 0.05       # seconds, while somebody is known to hang


class CoreLock:
    """The core's lock: gives up after a while, and stays unlocked after an exception from anywhere."""

    __slots__ = ("_hangs", "_lock", "_process")

    def __init__(self) -> None:
        self._lock = _Native()
        self._process = getpid()
        self._hangs = False

    def run(self, state: ThreadState, action: Callable[[], None], *, must: bool = False) -> None:
        """Run `action` under the lock, with this thread marked as inside.

        If the lock cannot be acquired, `action` does not run, or with `must`, runs without it.  A signal handler may
        raise between any two steps, so only the lock itself knows if it is held.
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
            # In the child of a fork, before our fork hook has run: the holder does not exist in this process.
            self._process = getpid()
            _made_anew(self._lock)
            return self._lock.acquire(blocking=False)
        taken = self._lock.acquire(timeout=_HASTE if self._hangs else _PATIENCE)
        self._hangs = not taken
        return taken


def _let_go(lock: Any) -> None:
    if lock._is_owned():
        lock.release()


def _made_anew(lock: Any) -> None:
    lock._at_fork_reinit()


class ThreadTable:
    """All threads of the process; what is marked so is called under the guard only."""

    def __init__(self, forget: Callable[[], None]) -> None:
        self.guard = CoreLock()
        self.single = True               # nothing that is still to come can be concurrent with anything
        self._forget = forget            # drops the shadow state
        self._live: dict[int, ThreadState] = {}
        self._past: list[tuple[int, int]] = []   # slot and last time of ended threads
        self._gone: list[ThreadState] = []    # ended without a word
        self._slots = 0
        self._uids = 0
        self._local = _local()
        self._local.state = state = ThreadState()
        state.announced = True
        self._enlist(state, None)

    def current(self) -> ThreadState:
        """Return this thread's state; an unannounced thread begins after everything that has happened so far."""
        state: ThreadState
        try:
            state = self._local.state
        except AttributeError:
            state = self.begin(None, announced=False)
        return state

    def muted(self) -> int:
        """Return the number of times that this thread is muted; an unknown thread stays unknown."""
        state: ThreadState | None = getattr(self._local, "state", None)
        return 0 if state is None else state.muted

    def begin(self, clock: VectorClock | None, *, announced: bool = True) -> ThreadState:
        """Begin this thread after `clock`, or after everything so far.

        If it has begun already, this begins a logical thread on top of it: tasks of one worker are ordered by chance
        only.
        """
        state = ThreadState()
        state.inside = True          # set before the guard is taken: a finalizer may run while it is held
        state.announced = announced
        below: ThreadState | None = getattr(self._local, "state", None)
        strange = below is not None and not below.announced and not below.position
        if below is not None and not below.ended:
            state.muted, state.quiet = below.muted, below.quiet
        if below is not None and not below.ended and not strange:
            state.parent = below
        else:
            self._local.end = _End(state, self._gone)
        self._local.state = state

        def enlist() -> None:
            if below is not None and strange:
                below.ended = True      # it took a lock, perhaps, before it was announced; it touched nothing
                self._live.pop(below.uid, None)
            self._enlist(state, clock)
            self._settle()

        self.guard.run(state, enlist, must=True)
        return state

    def end(self) -> VectorClock:
        """End this thread, or the topmost logical one, and return its last moment."""
        state = self.current()

        def retire() -> None:
            self._retire(state)
            self._settle()

        self.guard.run(state, retire, must=True)
        state.inside = True      # whatever this thread still does is not noted
        clock = state.moment()
        below = state.parent
        if below is not None:
            below.chain = clock if below.chain is None else below.chain.union(clock)
            self._local.state = below
        return clock

    def live(self) -> list[ThreadState]:
        """Return the threads that have not ended.  Under the guard."""
        return list(self._live.values())

    def alone(self, state: ThreadState) -> None:
        """Look again whether `state` is after all that others did.  Under the guard."""
        while self._gone:
            self._retire(self._gone.pop())
        if not self.single and len(self._live) == 1:
            for slot, time in self._past:
                if not (state.sees(slot, time) and state.sees_hard(slot, time)):
                    return
            self.single = True
            self._forget()

    def fork(self) -> None:
        """Go on in the child of a fork, where no other thread is left."""
        state = self.current()
        self.guard = CoreLock()     # somebody may have held the old one
        mine: list[ThreadState] = [state]
        while mine[-1].parent is not None:
            mine.append(mine[-1].parent)
        self._gone.clear()
        for other in list(self._live.values()):
            if other not in mine:
                self._retire(other)
        for slot, time in self._past:
            state.join(VectorClock({slot: time}, {slot: time}))
        state.inside = False
        self.alone(state)

    def _enlist(self, state: ThreadState, clock: VectorClock | None) -> None:
        self._uids += 1
        state.uid = self._uids - 1       # the main thread is 0
        self._live[state.uid] = state
        if clock is None:
            clock = VectorClock({}, {})
            for other in list(self._live.values()):
                if other is not state:
                    clock = clock.union(other.moment())
                    other.time += 1
            for slot, time in self._past:
                clock = clock.union(VectorClock({slot: time}, {slot: time}))
        state.slot, state.time = self._slot(clock)
        state.join(clock)

    def _slot(self, clock: VectorClock) -> tuple[int, int]:
        """Return a slot and its first time: an ended thread's where everything it did is past for the new one."""
        for index, (slot, time) in enumerate(self._past):
            if clock.order.get(slot, 0) >= time and clock.hard.get(slot, 0) >= time:
                del self._past[index]
                return slot, time + 1
        self._slots += 1
        return self._slots - 1, 1

    def _retire(self, state: ThreadState) -> None:
        if not state.ended:
            state.ended = True
            state.opens.clear()
            self._live.pop(state.uid, None)
            self._past.append((state.slot, state.time))

    def _settle(self) -> None:
        self.single = False if len(self._live) > 1 else self.single
        for state in list(self._live.values()):
            self.alone(state)


class _End:
    """Reports that the thread which owned it has ended."""

    __slots__ = ("gone", "state")

    def __init__(self, state: ThreadState, gone: list[ThreadState]) -> None:
        self.state = state
        self.gone = gone

    def __del__(self) -> None:
        if not self.state.ended:
            self.gone.append(self.state)
