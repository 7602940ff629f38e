"""Which threads there are, which slot of the clocks each has, and whether anything can be concurrent at all."""

from __future__ import annotations

from _thread import _local

from gilscope.toolkit.race.pure.state.clocks import Clock
from gilscope.toolkit.race.pure.state.guard import Guard
from gilscope.toolkit.race.pure.state.thread import ThreadState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Threads:
    """All threads of the process; what is marked so is called under the guard only."""

    def __init__(self, forget: Callable[[], None]) -> None:
        self.guard = Guard()
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
        """Return this thread's state; one that nobody announced begins after everything that has happened so far."""
        state: ThreadState
        try:
            state = self._local.state
        except AttributeError:
            state = self.begin(None, announced=False)
        return state

    def muted(self) -> int:
        """Return how often this thread is muted; one that nobody has met yet stays so."""
        state: ThreadState | None = getattr(self._local, "state", None)
        return 0 if state is None else state.muted

    def begin(self, clock: Clock | None, *, announced: bool = True) -> ThreadState:
        """Make this thread one that begins after `clock`, or after everything so far.

        On top of one that has begun already this is a logical thread: what one and the same worker does for
        several tasks is in order by luck only.
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

    def end(self) -> Clock:
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
        self.guard = Guard()     # somebody may have held the old one
        mine: list[ThreadState] = [state]
        while mine[-1].parent is not None:
            mine.append(mine[-1].parent)
        self._gone.clear()
        for other in list(self._live.values()):
            if other not in mine:
                self._retire(other)
        for slot, time in self._past:
            state.join(Clock({slot: time}, {slot: time}))
        state.inside = False
        self.alone(state)

    def _enlist(self, state: ThreadState, clock: Clock | None) -> None:
        self._uids += 1
        state.uid = self._uids - 1       # the main thread is 0
        self._live[state.uid] = state
        if clock is None:
            clock = Clock({}, {})
            for other in list(self._live.values()):
                if other is not state:
                    clock = clock.union(other.moment())
                    other.time += 1
            for slot, time in self._past:
                clock = clock.union(Clock({slot: time}, {slot: time}))
        state.slot, state.time = self._slot(clock)
        state.join(clock)

    def _slot(self, clock: Clock) -> tuple[int, int]:
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
    """Tells that the thread which owned it is no more."""

    __slots__ = ("gone", "state")

    def __init__(self, state: ThreadState, gone: list[ThreadState]) -> None:
        self.state = state
        self.gone = gone

    def __del__(self) -> None:
        if not self.state.ended:
            self.gone.append(self.state)
