"""What is known of one thread."""

from __future__ import annotations

from gilscope.toolkit.race.pure.state.clocks import Clock, merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque

    from gilscope.toolkit.race.pure.state.clocks import Times
    from gilscope.toolkit.race.pure.state.record import Access, Opened
    from gilscope.toolkit.race.pure.state.shadow import Location


class ThreadState:
    """One thread's clocks, the locks it holds and the reads that it may still act upon.

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
        self.chain: Clock | None = None            # the last moments of its logical threads so far
        self.opens: dict[int, dict[tuple[int, Location], Opened]] = {}     # id of the frame -> its reads
        self.position = 0          # operations noted so far
        self.reads: deque[tuple[int, Location, Opened]] | None = None
        self.writes: deque[tuple[int, Location, Access, tuple[tuple[int, int], ...], int]] | None = None
        self.polled: tuple[Location, Access | None] | None = None

    def sees(self, slot: int, time: int) -> bool:
        """Claim that what happened there and then is past for this thread."""
        return slot == self.slot or self.order.get(slot, 0) >= time

    def sees_hard(self, slot: int, time: int) -> bool:
        """Claim the same without the help of locks."""
        return slot == self.slot or self.hard.get(slot, 0) >= time

    def moment(self) -> Clock:
        """Return now; later accesses are only after it once `time` has advanced."""
        own = {self.slot: self.time}
        return Clock(self.order | own, self.hard | own)

    def join(self, clock: Clock) -> None:
        """Come after a moment in all order."""
        self.order = merged(self.order, clock.order, self.slot)
        self.hard = merged(self.hard, clock.hard, self.slot)

    def join_order(self, clock: Clock) -> None:
        """Come after a moment as the next holder of a lock does."""
        self.order = merged(self.order, clock.order, self.slot)
