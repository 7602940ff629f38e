"""The values that shadow state is made of: sites, vector clocks, accesses and call stacks."""

from __future__ import annotations

from gilscope.toolkit.race import core
from gilscope.toolkit.race.effects import REMOVING
from gilscope.toolkit.race.terms import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

    from gilscope.toolkit.race.core import Place, RawAccess
    from gilscope.toolkit.race.site import SiteInfo

    Times = dict[int, int]     # slot -> the last time of it that is known to be past

GUARD, DELETE = int(Flag.GUARD), int(Flag.DELETE)
_STORING = ("attr_write", "attr_update", "attr_store", "attr_proxy")

DIRECTIONS: dict[int, str] = {}      # a write's site -> whether it stores or removes
GUARDED: dict[int, set[str]] = {}    # a check's site -> directions of the writes that it guards
STORED: set[str] = set()             # names of attributes that some site stores


class ReferenceSite:
    """A site under its number, with the fields that ops need as attributes."""

    __slots__ = ("flags", "info", "key", "number", "partners")

    def __init__(self, info: SiteInfo, number: int) -> None:
        self.info = info
        self.number = number
        self.key: str = info.key
        self.flags = int(info.flags)
        self.partners: tuple[int, ...] = tuple(info.partners)
        if info.op in _STORING:
            STORED.add(self.key)
        if self.partners:
            self._learn()

    def _learn(self) -> None:
        removes = (self.flags & DELETE or self.info.op == "item_delete"
                   or (self.info.op == "method" and self.key in REMOVING))
        DIRECTIONS[self.number] = "remove" if removes else "store"
        if self.flags & GUARD:
            for number in self.partners:
                GUARDED.setdefault(number, set()).add(DIRECTIONS[self.number])

    def __reduce__(self) -> tuple[object, ...]:
        return revive, (tuple(self.info), self.number)


def revive(fields: tuple[object, ...], number: int) -> ReferenceSite:
    """Return the site of a pickled code object: the same one here, or a new one in a process without it."""
    from gilscope.toolkit.race.site import SiteInfo, all_sites, register_sites

    info = SiteInfo(*fields)
    if number >= len(all_sites) or all_sites[number] != info:
        info = info._replace(partners=())     # their numbers are those of other sites here
        number = register_sites([info])
    return ReferenceSite(info, number)


class VectorClock:
    """A moment of a thread, with all moments that happened before it; immutable."""

    __slots__ = ("hard", "order")

    def __init__(self, order: Times, hard: Times) -> None:
        self.order = order     # through anything that orders
        self.hard = hard       # through anything but Lock and RLock

    def union(self, other: VectorClock) -> VectorClock:
        """Return the union of two vector clocks."""
        return VectorClock(merged(self.order, other.order), merged(self.hard, other.hard))


def merged(times: Times, others: Times, own: int = -1) -> Times:
    """Return the later time of each slot except `own`; `times` itself if nothing is later."""
    later = None
    for slot, time in others.items():
        if slot != own and times.get(slot, 0) < time:
            if later is None:
                later = times.copy()
            later[slot] = time
    return times if later is None else later


TOLD_LOCKS = 3      # innermost locks that a report names


class AccessRecord:
    """One access: its thread, time, site and lockset (uids, innermost first)."""

    __slots__ = ("context", "empties", "kind", "locks", "presence", "relies", "serial", "site", "slot", "span_site",
                 "time", "uid")

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
        self.relies = False          # on what a test found
        self.empties = False         # it may remove any item

    def raw(self) -> RawAccess:
        """Return the tuple that the conflict handler gets."""
        return (self.uid, self.site, self.kind, self.context, self.locks[:TOLD_LOCKS], self.span_site)


class PendingRead:
    """A read that a later write may depend on: what was past at it, and which locks were held in which acquisition."""

    __slots__ = ("after", "before", "held", "presence", "used")

    def __init__(self, moment: VectorClock, held: tuple[tuple[int, int], ...], *, presence: bool) -> None:
        self.before = self.after = moment   # the item that it gets is handed over in between
        self.presence = presence     # it tests whether an item exists and does not load it
        self.used = -1               # serial of the thread's own next write there, after which nothing depends on it
        self.held = held

    def serves(self, serial: int) -> bool:
        """Return True if the write with that serial number may still depend on this read."""
        return self.used in (-1, serial)


class OpenSpan:
    """A read and the write that depends on it."""

    __slots__ = ("guards", "locks", "presence", "write")

    def __init__(self, write: AccessRecord, opened: PendingRead, held: tuple[tuple[int, int], ...]) -> None:
        self.write = write
        self.presence = opened.presence
        self.locks = tuple(uid for uid, serial in held if (uid, serial) in opened.held)     # all the while
        self.guards = tuple(uid for uid, _ in held if uid not in self.locks)                       # since the read

    def relies_on(self, locks: tuple[int, ...]) -> bool:
        """Return True if the write and an access with these locks each acquired a lock that the read did not keep.

        Only then is the lock evidence that they might have come in another order; else a lock may well be part of
        some synchronisation made by hand, and what it orders is in order.
        """
        return any(uid in locks for uid in self.guards)


_DEEPEST = 100     # callers that are kept; a report has no use for more
CHECKER = core.__file__.rpartition("core")[0]         # the folder of the race checker
OURS = CHECKER, __file__.rpartition("state")[0]


class CallStacks:
    """Stacks by number; 0 is the empty one.  Under the guard."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {(): 0}
        self._stacks: list[list[tuple[CodeType, int]]] = [[]]

    def of(self, frame: FrameType | None) -> int:
        """Return the number of the stack that ends in `frame`."""
        frames: list[tuple[CodeType, int]] = []
        key: list[int] = []
        while frame is not None and len(frames) < _DEEPEST:
            code = frame.f_code
            frames.append((code, frame.f_lasti))
            key += id(code), frame.f_lasti     # the ids stay true: the code is kept below
            frame = frame.f_back
        known = tuple(key)
        number = self._numbers.get(known)
        if number is None:
            number = self._numbers[known] = len(self._stacks)
            self._stacks.append(frames)
        return number

    def places(self, number: int) -> tuple[Place, ...]:
        """Return path, line and function of each frame, innermost first, without our own."""
        return tuple((code.co_filename, _line(code, at), code.co_qualname) for code, at in self._stacks[number]
                     if not code.co_filename.startswith(OURS))


def _line(code: CodeType, at: int) -> int:
    for start, end, line in code.co_lines():
        if start <= at < end and line is not None:
            return line
    return code.co_firstlineno
