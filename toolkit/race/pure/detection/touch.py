"""One operation of the program as the detection sees it: who does it, where, and what it conflicts with."""

from __future__ import annotations

from gilscope.toolkit.race.pure.state.record import Access

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from gilscope.toolkit.race.pure.sites import Site
    from gilscope.toolkit.race.pure.state.call_stacks import Contexts
    from gilscope.toolkit.race.pure.state.shadow import Location
    from gilscope.toolkit.race.pure.state.thread import ThreadState

    Found = tuple[str, Location, Access, Access]     # sort, where, first, second


class Touch:
    """An operation while it is noted."""

    __slots__ = ("_context", "_contexts", "conflicts", "frame", "kinds", "locks", "publishes", "seen", "serial",
                 "site", "state")

    def __init__(self, state: ThreadState, site: Site, frame: FrameType, contexts: Contexts, serial: int) -> None:
        self.state = state
        self.site = site
        self.frame = frame
        self.serial = serial
        self.locks = tuple(uid for uid, _ in reversed(state.held))
        self.publishes = False       # others may learn of this moment: the thread's time must advance
        self.conflicts: list[Found] = []
        self.seen: Callable[[], Any] | None = None     # returns what it loads
        self.kinds: list[int] = []   # of its accesses to one location
        self._contexts = contexts
        self._context = -1

    def access(self, kind: int, span_site: int = -1) -> Access:
        """Return this operation as an access of that kind."""
        if self._context < 0:
            self._context = self._contexts.of(self.frame.f_back)
        state = self.state
        self.kinds.append(kind)
        return Access(state.uid, state.slot, state.time, self.serial, self.site.number, kind, self._context,
                      self.locks, span_site)

    def repeats(self, earlier: Access | None) -> bool:
        """Claim that `earlier` is this same operation and that no order or lock has changed since."""
        return (earlier is not None and earlier.site == self.site.number and earlier.time == self.state.time
                and earlier.locks == self.locks)

    def sees_fresh(self) -> bool:
        """Claim that it loads a container, which whoever stored it under a lock may have made for that."""
        kind = type(None if self.seen is None else self.seen())
        return kind is tuple or kind is list or kind is dict or kind is set or kind is frozenset

    def conflict(self, sort: str, location: Location, first: Access, second: Access) -> None:
        """Remember a conflict; it is told once the guard is released."""
        self.conflicts.append((sort, location, first, second))
