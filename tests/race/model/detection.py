"""Find conflicts: compare each access with the earlier ones of its location.

The second half is about containers, whose structure is a location of its own.
"""

from __future__ import annotations

from gilscope.toolkit.race.terms import AccessKind, Flag
from tests.race.model import handoff, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tests.race.model.shadow import Location, Shadow
    from tests.race.model.spans import Operation
    from tests.race.model.state import AccessRecord

    Verb = Callable[[Operation, Location], None]
    # A verb, the object it is about, and which part of it: verb, owner, part, key
    Step = tuple[Verb, Any, str, Any]
    # Or a verb, a container, and values that enter or leave it
    Transfer = tuple[Callable[[Operation, Shadow, Sequence[Any]], None], Any, Sequence[Any]]

READ, WRITE, ATOMIC = int(AccessKind.READ), int(AccessKind.WRITE), int(AccessKind.ATOMIC)
CONSTANT, POLL, SPAN_READ = int(Flag.CONSTANT), int(Flag.POLL), int(Flag.SPAN_READ)
RECHECKED, MEMO, INIT = int(Flag.RECHECKED), int(Flag.MEMO), int(Flag.INIT)
COUNTED, NEW, RELIES = int(Flag.COUNTED), int(Flag.NEW), int(Flag.RELIES)
CHANGING = frozenset(map(int, (
    AccessKind.WRITE, AccessKind.ATOMIC, AccessKind.GROW, AccessKind.SHRINK, AccessKind.RESHAPE)))
_WHOLES = 64      # reads of many items of one container at once
# Loads with an edge from the store they read: polls, all loads, loads of a container made for that store, or of any
# object.
BY_POLLS, BY_ALL, BY_FRESH, BY_NEW = 1, 2, 4, 8


def unseen(touch: Operation, access: AccessRecord | None) -> bool:
    """Return True if no happens-before edge orders `access` before this operation."""
    return access is not None and not touch.state.sees(access.slot, access.time)


def read(touch: Operation, location: Location) -> None:
    """Note a load."""
    spans.begin(touch, location, ordered=True)
    load(touch, location)


def load(touch: Operation, location: Location) -> None:
    """Note a load that no write depends on.

    A load that is fine without order comes after the store that it saw: a polled flag, an object made under a lock and
    checked for twice, a memo, a container made anew for each change.
    """
    _against_write(touch, location, None)
    _against_removal(touch, location)
    poll = bool(touch.site.flags & POLL)
    write = location.write
    if location.published is not None and unseen(touch, write) and _saw_whole(touch, location.by):
        touch.state.join(location.published)
    if poll or touch.site.flags & NEW:
        touch.state.polled = location, write     # the value is loaded after this note: a store may come in between
    slot = touch.state.slot
    if not touch.repeats(location.reads.get((slot, poll))):
        location.reads[slot, poll] = touch.access(READ)
        location.relying[slot, poll] = bool(touch.site.flags & RELIES)


def _saw_whole(touch: Operation, by: int) -> bool:
    made = by & BY_NEW and not touch.site.flags & SPAN_READ
    return bool(by & BY_ALL or (by & BY_POLLS and touch.site.flags & POLL) or (by & BY_FRESH and touch.sees_fresh())
                or (made and touch.sees_object()))


def polled(touch: Operation) -> None:
    """Add an edge from a literal store that the preceding poll may have read."""
    location, before = touch.state.polled or (None, None)
    touch.state.polled = None
    if (location is not None and location.write is not before and location.published is not None
            and location.by & (BY_POLLS | BY_ALL | BY_NEW)):
        touch.state.join(location.published)


def _publish(touch: Operation, location: Location) -> None:
    flags = touch.site.flags
    by = (BY_POLLS if flags & (CONSTANT | COUNTED) else 0) | (BY_ALL if flags & (RECHECKED | MEMO) else 0)
    by |= BY_NEW if flags & NEW and not flags & INIT else 0
    location.by = by | (BY_FRESH if touch.locks else 0)
    location.published = None
    if location.by:
        location.published = touch.state.moment()
        touch.publishes = True


def _against_write(touch: Operation, location: Location, access: AccessRecord | None) -> None:
    write = location.write
    if write is None or not unseen(touch, write):
        return
    earlier = location.reads.get((touch.state.slot, bool(touch.site.flags & POLL)))
    if access is None and earlier is not None and touch.repeats(earlier) and earlier.serial > write.serial:
        return     # reported at the same operation before
    touch.conflict("order", location, write, access or touch.access(READ))


def _against_removal(touch: Operation, location: Location) -> None:
    removal = location.removal
    if touch.site.flags & RELIES and removal is not None and unseen(touch, removal):
        touch.conflict("order", location, removal, touch.access(READ))


def got(touch: Operation, location: Location) -> None:
    """Note the load of a key, which adds an edge from its insertion."""
    spans.begin(touch, location, gets=True)
    load(touch, location)


def missed(touch: Operation, location: Location) -> None:
    """Note that a key was looked for and is not there."""
    spans.begin(touch, location)


def has(touch: Operation, location: Location) -> None:
    """Note that a key was looked for in a dict and found."""
    spans.begin(touch, location, gets=True, presence=True)
    load(touch, location)


def lacks(touch: Operation, location: Location) -> None:
    """Note that a key was looked for in a dict or set and not found."""
    spans.begin(touch, location, presence=True)
    _against_removal(touch, location)


def found(touch: Operation, location: Location) -> None:
    """Note that an item was looked for in a set and found; this loads nothing."""
    spans.begin(touch, location, gets=True, presence=True)


def write(touch: Operation, location: Location) -> None:
    """Note a store."""
    _store(touch, location, touch.access(WRITE))


def delete(touch: Operation, location: Location) -> None:
    """Note the deletion of a key."""
    _present(touch, location)
    location.handed = None


def _present(touch: Operation, location: Location) -> None:
    access = touch.access(WRITE)
    access.presence = True
    _store(touch, location, access)


def _store(touch: Operation, location: Location, access: AccessRecord) -> None:
    _against_write(touch, location, access)
    for other in location.reads.values():
        if unseen(touch, other):
            touch.conflict("order", location, other, access)
    if not access.presence and location.shadow.wholes:
        _against_wholes(touch, location, access)
    spans.arrive(touch, location, access)
    location.reads.clear()
    location.write, location.removal = access, None
    _publish(touch, location)


def across(touch: Operation, location: Location, other: Location, *, stores: bool) -> None:
    """Look for conflicts with another part of the same array that has items in common with this one."""
    access = touch.access(WRITE if stores else READ)
    against = [other.write, *other.reads.values()] if stores else [other.write]
    for earlier in against:
        if earlier is not None and unseen(touch, earlier):
            touch.conflict("order", location, earlier, access)


def insert(touch: Operation, location: Location) -> None:
    """Note the store of a key that is not there yet: it hands over what this thread did before."""
    _present(touch, location)
    handoff.hand(touch, location)


def update(touch: Operation, location: Location) -> None:
    """Note a load and a store that depends on it in one operation."""
    spans.begin(touch, location, own=True)
    load(touch, location)
    write(touch, location)


def load_to_store(touch: Operation, location: Location) -> None:
    """Note the load of an augmented assignment whose store comes later, at the same site."""
    spans.begin(touch, location, own=True)
    load(touch, location)


def got_to_store(touch: Operation, location: Location) -> None:
    """Note the same for an item."""
    spans.begin(touch, location, own=True, gets=True)
    load(touch, location)


def missed_to_store(touch: Operation, location: Location) -> None:
    """Note the same for an item that is not there yet."""
    spans.begin(touch, location, own=True)


def atomic(touch: Operation, location: Location) -> None:
    """Note a step that reads and writes a key at once."""
    access = touch.access(ATOMIC)
    access.presence = True
    spans.arrive(touch, location, access)
    location.removal = None


def remove(touch: Operation, location: Location) -> None:
    """Note a step that removes a key at once: what a test found is gone when it is used."""
    for reader, other in location.reads.items():
        if location.relying.get(reader) and unseen(touch, other):
            touch.conflict("order", location, other, touch.access(ATOMIC))
    atomic(touch, location)
    if location.write is None:
        location.removal = touch.access(ATOMIC)


def whole(touch: Operation, location: Location) -> None:
    """Note that all items of a container are read at once, or those of a slice (start, stop, step)."""
    indexes = None if location.key is None else range(*location.key)
    shadow = location.shadow
    for (part, key), item in shadow.locations.items():
        if (part == "item" and item.write is not None and not item.write.presence
                and (indexes is None or (type(key) is int and key in indexes)) and unseen(touch, item.write)):
            touch.conflict("order", item, item.write, touch.access(READ))
    if len(shadow.wholes) >= _WHOLES:
        del shadow.wholes[next(iter(shadow.wholes))]
    shadow.wholes[touch.state.slot, indexes] = touch.access(READ)


def _against_wholes(touch: Operation, location: Location, access: AccessRecord) -> None:
    for (_, indexes), other in location.shadow.wholes.items():
        if (location.part == "item" and unseen(touch, other)
                and (indexes is None or (type(location.key) is int and location.key in indexes))):
            touch.conflict("order", location, other, access)


ITERATE, GROW = int(AccessKind.ITERATE), int(AccessKind.GROW)
SHRINK, RESHAPE = int(AccessKind.SHRINK), int(AccessKind.RESHAPE)
POLL, SPAN_READ = int(Flag.POLL), int(Flag.SPAN_READ)
_AGAINST = {
    ITERATE: (GROW, SHRINK, RESHAPE),
    GROW: (ITERATE, RESHAPE),
    SHRINK: (ITERATE, RESHAPE),
    RESHAPE: (ITERATE, GROW, SHRINK, RESHAPE),
}


def size(touch: Operation, location: Location) -> None:
    """Note that a container's size was looked at."""
    spans.begin(touch, location)
    if touch.site.flags & RELIES:
        relied_on(touch, location)
    if touch.site.flags & POLL:
        handoff.take_all(touch, location)


def snapshot(touch: Operation, location: Location) -> None:
    """Note that a container was copied."""
    spans.begin(touch, location)
    if not touch.site.flags & SPAN_READ:
        handoff.take_all(touch, location)


def iterate(touch: Operation, location: Location) -> None:
    """Note a step of an iteration over a container."""
    spans.begin(touch, location)
    _structural(touch, location, ITERATE)


def grow(touch: Operation, location: Location) -> None:
    """Note that a container gets an item."""
    spans.arrive(touch, location, _structural(touch, location, GROW))


def shrink(touch: Operation, location: Location) -> None:
    """Note that a container loses an item."""
    spans.arrive(touch, location, _structural(touch, location, SHRINK))


def reshape(touch: Operation, location: Location) -> None:
    """Note that a container is changed in several steps."""
    spans.arrive(touch, location, _structural(touch, location, RESHAPE))


def put(touch: Operation, location: Location) -> None:
    """Note a put into a queue, which orders for itself."""
    spans.arrive(touch, location, touch.access(GROW))


def get(touch: Operation, location: Location) -> None:
    """Note a get from a queue."""
    spans.arrive(touch, location, touch.access(SHRINK))


def _outdates(location: Location, change: AccessRecord) -> bool:
    """Return True if a removal may take away what a test found: any item of a sequence, as its indexes change."""
    keyed = isinstance(location.shadow.owner(), dict | set)
    return change.kind == SHRINK and (not keyed or change.empties)


def relied_on(touch: Operation, location: Location) -> None:
    """Note the use of an item of a container that was tested."""
    _structural(touch, location, ITERATE)


def _structural(touch: Operation, location: Location, kind: int) -> AccessRecord:
    access = touch.access(kind)
    slot = touch.state.slot
    earlier = location.kinds.get((slot, kind))
    seen = earlier.serial if earlier is not None and touch.repeats(earlier) else -1
    access.relies, access.empties = bool(touch.site.flags & RELIES), touch.site.key in ("clear", "popitem")
    for (_, other_kind), other in location.kinds.items():
        if other_kind in _AGAINST[kind] and other.serial > seen and unseen(touch, other) and not any(
                used.kind == ITERATE and used.relies and not _outdates(location, change)
                for used, change in ((access, other), (other, access))):
            touch.conflict("order", location, other, access)
    location.kinds[slot, kind] = access
    return access
