"""The only code that takes the core's lock: notes operations, orders threads and reports conflicts.

No code of the program runs under the guard, except what the interpreter itself slips in between two instructions (a
finalizer, a signal handler).  Such code is not noted.  If it waits for a thread that waits for the guard, that thread
gives up after a time limit and continues without a note.
"""

from __future__ import annotations

from gilscope.toolkit.race.core import NO_VALUE
from tests.race.model import detection, shadow
from tests.race.model.patching import complain, guarded
from tests.race.model.shadow import RangeBox
from tests.race.model.spans import Operation
from tests.race.model.state import OURS, CallStacks, VectorClock
from tests.race.model.threads import ThreadTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import Any

    from gilscope.toolkit.race.core import Conflict
    from tests.race.model.detection import Step, Transfer
    from tests.race.model.locks import LockRef
    from tests.race.model.spans import Found
    from tests.race.model.state import ReferenceSite
    from tests.race.model.threads import ThreadState


class Monitor:
    """All the state of one core."""

    def __init__(self) -> None:
        self.active = False
        self.table = shadow.ShadowTable()
        self.contexts = CallStacks()
        self.threads = ThreadTable(self.table.clear)
        self.dead_locks: list[LockRef] = []     # appended to by the interpreter
        self.counts: dict[tuple[int, int], int] = {}
        self._told: set[tuple[str, int, int]] = set()
        self._serial = 0
        self._handler: Callable[[Conflict], bool] | None = None

    def start(self, handler: Callable[[Conflict], bool]) -> None:
        """Begin to note, with nothing remembered."""
        self._handler = handler
        self.change(lambda _: self.table.clear())
        self.active = True

    def stop(self) -> None:
        """Note nothing more."""
        self.active = False

    def watches(self) -> bool:
        """Return True if there is more than one thread, so that accesses must be recorded."""
        return self.active and not self.threads.single

    def note(self, frame: FrameType, site: ReferenceSite, steps: Sequence[Step], transfers: Sequence[Transfer] = (),
             value: Any = NO_VALUE, seen: Callable[[], Any] | None = None) -> None:
        """Note one operation in `frame` and report its conflicts.

        Args:
            frame: Of the activation that does it.
            site: Where.
            steps: What it does to which locations.
            transfers: What values enter or leave which containers.
            value: What it stores, if that is known.
            seen: Returns what it loads, without running code of the program.
        """
        def action(touch: Operation) -> None:
            touch.seen = seen
            self._apply(touch, steps, transfers)

        self._noted(frame, site, action, value)

    def follow_worker(self) -> None:
        """Add an edge from this worker's other logical threads, which share its thread-locals."""
        def action(state: ThreadState) -> None:
            below = state.parent
            while below is not None:
                if below.chain is not None:
                    state.join(below.chain)
                if below.announced:
                    state.join(below.moment())
                    below.time += 1
                below = below.parent

        if self.threads.current().parent is not None:
            self.change(action)

    def _noted(self, frame: FrameType, site: ReferenceSite, action: Callable[[Operation], None], value: Any) -> None:
        state = self.threads.current()
        if state.inside or state.quiet or not self.watches():
            return
        touch: Operation | None = None

        def run() -> None:
            nonlocal touch
            self._serial += 1
            self._bury_locks()
            touch = Operation(state, site, frame, self.contexts, self._serial)
            action(touch)
            self.table.sweep()
            self._count(touch)

        self._guarded(state, run)
        if touch is not None and touch.conflicts:
            self._tell(state, touch.conflicts, value)

    def change(self, action: Callable[[ThreadState], object]) -> None:
        """Do something to this thread's clocks or the shadows under the guard."""
        state = self.threads.current()
        if state.inside:
            return

        def run() -> None:
            self._bury_locks()
            action(state)
            self.threads.alone(state)

        self._guarded(state, run)

    def _guarded(self, state: ThreadState, action: Callable[[], None]) -> None:
        try:
            self.threads.guard.run(state, action)
        except Exception as error:     # a note that fails must not make the program fail
            if not _of_ours(error):
                raise
            complain()
        if self.table.trash:
            state.quiet += 1      # finalizers of dropped objects run here because of us
            try:
                shadow.drop(self.table.empty())
            finally:
                state.quiet -= 1

    def look_back(self, frame: FrameType, site: ReferenceSite, action: Callable[[Operation], None]) -> None:
        """Do something about accesses that this thread noted before."""
        self._noted(frame, site, action, NO_VALUE)

    def number_of(self, owner: object) -> int:
        """Return the number of the object's shadow; 0 within the model's own code."""
        found: list[int] = []
        self.change(lambda _: found.append(self.table.of(owner).number))
        return found[0] if found else 0

    def release(self, owner: object) -> None:
        """Add an edge from here to each later acquisition of the object."""
        def action(state: ThreadState) -> None:
            shadowed = self.table.of(owner)
            now = state.moment()
            state.time += 1
            shadowed.sync = now if shadowed.sync is None else shadowed.sync.union(now)

        if not self.threads.single:
            self.change(action)

    def acquire(self, owner: object) -> None:
        """Add an edge from every release of the object."""
        def action(state: ThreadState) -> None:
            shadowed = self.table.find(owner)
            if shadowed is not None and shadowed.sync is not None:
                state.join(shadowed.sync)

        if not self.threads.single:
            self.change(action)

    def end_thread(self) -> VectorClock:
        """End this thread; return its last moment."""
        clock = self.threads.end()
        shadow.drop(self.table.empty())     # nothing of this thread is noted any more
        return clock

    def tidy(self) -> None:
        """Let go of what the clocks' owner forgot."""
        self.change(lambda _: None)

    def snapshot(self) -> VectorClock:
        """Return this moment; what this thread does from now on is not before it."""
        moment = VectorClock({}, {})
        state = self.threads.current()

        def take() -> None:
            nonlocal moment
            moment = state.moment()
            state.time += 1
            self.threads.single = False

        # Not through `change`: the only thread is about to start another one.
        if not state.inside:
            self.threads.guard.run(state, take, must=True)
        return moment

    def _apply(self, touch: Operation, steps: Sequence[Step], transfers: Sequence[Transfer]) -> None:
        state = touch.state
        state.position += 1
        if state.polled is not None:
            detection.polled(touch)
        for verb, owner, part, key in steps:
            shadowed = self.table.of(owner)
            location = shadowed.location(part, key)
            verb(touch, location)
            if type(key) is RangeBox:
                for other in shadowed.overlapping(key):
                    detection.across(touch, location, other, stores=verb is detection.write)
        for transfer, owner, values in transfers:
            transfer(touch, self.table.of(owner), values)
        if touch.publishes:
            state.time += 1

    def _bury_locks(self) -> None:
        while self.dead_locks:
            uid = self.dead_locks.pop().uid
            for state in self.threads.live():
                state.held = [hold for hold in state.held if hold[0] != uid]

    def _count(self, touch: Operation) -> None:
        for _, _, first, second in touch.conflicts:
            pair = min(first.site, second.site), max(first.site, second.site)
            self.counts[pair] = self.counts.get(pair, 0) + 1

    def _tell(self, state: ThreadState, conflicts: Sequence[Found], value: Any) -> None:
        state.quiet += 1
        try:
            for sort, location, first, second in conflicts:
                pair = sort, min(first.site, second.site), max(first.site, second.site)
                owner = location.shadow.owner()
                if pair in self._told or owner is None or self._handler is None:
                    continue
                key = location.key
                key = key.key() if type(key) is RangeBox else shadow.original(key, location.guards)
                conflict = sort, owner, location.part, key, first.raw(), second.raw(), value
                if guarded(self._handler, conflict):
                    self._told.add(pair)
        finally:
            state.quiet -= 1


def _of_ours(error: Exception) -> bool:
    """Return True if our own code raised this, as near the recursion limit, and not a signal handler of the program."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(OURS)
