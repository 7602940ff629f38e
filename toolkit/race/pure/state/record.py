"""What is remembered of a location: who touched it when, where and how."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:

    from gilscope.toolkit.race.core import RawAccess
    from gilscope.toolkit.race.pure.state.clocks import Clock

TOLD_LOCKS = 3      # innermost locks that a report names


class Access:
    """One access: whose, when, where, under which locks (uids, innermost first)."""

    __slots__ = ("context", "kind", "locks", "presence", "serial", "site", "slot", "span_site", "time", "uid")

    def __init__(self, uid: int, slot: int, time: int, serial: int, site: int, kind: int, context: int,
                 locks: tuple[int, ...], span_site: int = -1) -> None:
        self.uid = uid
        self.slot = slot
        self.time = time
        self.serial = serial         # in the order in which the process noted its accesses
        self.site = site
        self.kind = kind
        self.context = context
        self.locks = locks
        self.span_site = span_site
        self.presence = False        # it inserts or deletes, or may

    def raw(self) -> RawAccess:
        """Return what the handler of conflicts is told."""
        return (self.uid, self.site, self.kind, self.context, self.locks[:TOLD_LOCKS], self.span_site)


class Opened:
    """A read that a later write may depend on: what was past at it, and which locks were held in which acquisition."""

    __slots__ = ("after", "before", "held", "presence", "used")

    def __init__(self, moment: Clock, held: tuple[tuple[int, int], ...], *, presence: bool) -> None:
        self.before = self.after = moment   # the item that it gets is handed over in between
        self.presence = presence     # whether there is something was asked, not what
        self.used = -1               # serial of the thread's own next write there, after which nothing depends on it
        self.held = held

    def serves(self, serial: int) -> bool:
        """Claim that the write of that serial may still depend on this read."""
        return self.used in (-1, serial)


class Span:
    """A read and the write that depends on it."""

    __slots__ = ("locks", "presence", "retaken", "write")

    def __init__(self, write: Access, opened: Opened, held: tuple[tuple[int, int], ...]) -> None:
        self.write = write
        self.presence = opened.presence
        self.locks = tuple(uid for uid, serial in held if (uid, serial) in opened.held)     # all the while
        read = {uid for uid, _ in opened.held}
        self.retaken = tuple(uid for uid, _ in held if uid in read and uid not in self.locks)

    def relies_on(self, locks: tuple[int, ...]) -> bool:
        """Claim that read, write and somebody with these locks each took one and the same lock for themselves.

        Only then is the lock evidence that they might have come in another order; else a lock may well be part of
        some synchronisation made by hand, and what it orders is in order.
        """
        return any(uid in locks for uid in self.retaken)
