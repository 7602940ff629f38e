"""Vector clocks: what a thread knows of the others' past, once in all order and once in order without locks."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
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
