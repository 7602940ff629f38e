"""Vector clocks: what a thread knows of the others' past, once in all order and once in order without locks."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque

    from gilscope.toolkit.race.pure.state.record import Access, Location

    Times = dict[int, int]     # slot -> the last time of it that is known to be past


class Clock:
    """A moment of a thread, with all that happened before it; never changed once it is made."""

    __slots__ = ("hard", "order")

    def __init__(self, order: Times, hard: Times) -> None:
        self.order = order     # through anything that orders
        self.hard = hard       # through anything but Lock and RLock

    def union(self, other: Clock) -> Clock:
        """Return what either of the two moments knows."""
        return Clock(merged(self.order, other.order), merged(self.hard, other.hard))


def merged(times: Times, others: Times, own: int = -1) -> Times:
    """Return the later time of each slot but `own`; `times` itself when nothing is later."""
    later = None
    for slot, time in others.items():
        if slot != own and times.get(slot, 0) < time:
            if later is None:
                later = times.copy()
            later[slot] = time
    return times if later is None else later


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


class Opened:
    """A read that a later write may depend on: what was past at it, and which locks were held in which acquisition."""

    __slots__ = ("after", "before", "held", "presence", "used")

    def __init__(self, state: ThreadState, *, presence: bool) -> None:
        self.before = self.after = Clock(state.order, state.hard)   # the item that it gets is handed over in between
        self.presence = presence     # whether there is something was asked, not what
        self.used = -1               # serial of the thread's own next write there, after which nothing depends on it
        self.held = tuple(state.held)

    def serves(self, serial: int) -> bool:
        """Claim that the write of that serial may still depend on this read."""
        return self.used in (-1, serial)
