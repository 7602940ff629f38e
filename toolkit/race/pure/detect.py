"""The verbs: what each sort of operation does to a location's records, and when two of them conflict.

FastTrack (Flanagan & Freund, PLDI 2009) for loads and stores of one location; for structures, whose changes do not
conflict with each other, the last one of each kind of each thread.  All under the guard.
"""

from __future__ import annotations

from collections import deque

from toolkit.race.pure import spans
from toolkit.race.site import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from toolkit.race.pure.clocks import Clock
    from toolkit.race.pure.record import Access, Location
    from toolkit.race.pure.shadow import Shadow
    from toolkit.race.pure.touch import Touch

    Verb = Callable[[Touch, Location], None]
    # A verb, the object it is about, and which part of it: (verb, owner, part, key)
    Step = tuple[Verb, Any, str, Any]
    # Or a verb, a container, and values that enter or leave it
    Transfer = tuple[Callable[[Touch, Shadow, Sequence[Any]], None], Any, Sequence[Any]]

READ, WRITE, ATOMIC = int(Kind.READ), int(Kind.WRITE), int(Kind.ATOMIC)
ITERATE, GROW, SHRINK, RESHAPE = int(Kind.ITERATE), int(Kind.GROW), int(Kind.SHRINK), int(Kind.RESHAPE)
CONSTANT, POLL, SPAN_READ = int(Flag.CONSTANT), int(Flag.POLL), int(Flag.SPAN_READ)
RECHECKED, MEMO = int(Flag.RECHECKED), int(Flag.MEMO)
# Loads that come after the store they saw: those that poll, all, those that found a container made for that store.
BY_POLLS, BY_ALL, BY_FRESH = 1, 2, 4
_EQUAL = 256      # insertions of one and the same object that are told apart
_UNSEEN = 64      # values of a container that may have left it unseen before it is looked through
_AGAINST = {
    ITERATE: (GROW, SHRINK, RESHAPE),
    GROW: (ITERATE, RESHAPE),
    SHRINK: (ITERATE, RESHAPE),
    RESHAPE: (ITERATE, GROW, SHRINK, RESHAPE),
}


def unseen(touch: Touch, access: Access | None) -> bool:
    """Claim that nothing orders `access` before this operation."""
    return access is not None and not touch.state.sees(access.slot, access.time)


def read(touch: Touch, location: Location) -> None:
    """Note a load."""
    spans.begin(touch, location, ordered=True)
    load(touch, location)


def load(touch: Touch, location: Location) -> None:
    """Note a load that no write depends on.

    A load that is fine without order comes after the store that it saw: a polled flag, an object made under a lock and
    checked for twice, a memo, a container made anew for each change.
    """
    _against_write(touch, location, None)
    poll = bool(touch.site.flags & POLL)
    write = location.write
    if location.published is not None and unseen(touch, write) and _saw_whole(touch, location.by):
        touch.state.join(location.published)
    elif poll:
        touch.state.polled = location, write     # the value is loaded after this note: a store may come in between
    slot = touch.state.slot
    if not touch.repeats(location.reads.get((slot, poll))):
        location.reads[slot, poll] = touch.access(READ)


def _saw_whole(touch: Touch, by: int) -> bool:
    return bool(by & BY_ALL or (by & BY_POLLS and touch.site.flags & POLL) or (by & BY_FRESH and touch.sees_fresh()))


def polled(touch: Touch) -> None:
    """Come after a store of a literal that the poll just before may have seen."""
    location, before = touch.state.polled or (None, None)
    touch.state.polled = None
    if (location is not None and location.write is not before and location.published is not None
            and location.by & (BY_POLLS | BY_ALL)):
        touch.state.join(location.published)


def _publish(touch: Touch, location: Location) -> None:
    flags = touch.site.flags
    by = (BY_POLLS if flags & CONSTANT else 0) | (BY_ALL if flags & (RECHECKED | MEMO) else 0)
    location.by = by | (BY_FRESH if touch.locks else 0)
    location.published = None
    if location.by:
        location.published = touch.state.moment()
        touch.publishes = True


def _against_write(touch: Touch, location: Location, access: Access | None) -> None:
    write = location.write
    if write is None or not unseen(touch, write):
        return
    earlier = location.reads.get((touch.state.slot, bool(touch.site.flags & POLL)))
    if access is None and earlier is not None and touch.repeats(earlier) and earlier.serial > write.serial:
        return     # told at the same operation before
    touch.conflict("order", location, write, access or touch.access(READ))


def got(touch: Touch, location: Location) -> None:
    """Note the load of a key: whoever gets an item comes after its insertion."""
    spans.begin(touch, location, gets=True)
    load(touch, location)


def missed(touch: Touch, location: Location) -> None:
    """Note that a key was looked for and is not there."""
    spans.begin(touch, location)


def has(touch: Touch, location: Location) -> None:
    """Note that a dict was asked for a key and has it."""
    spans.begin(touch, location, gets=True, presence=True)
    load(touch, location)


def lacks(touch: Touch, location: Location) -> None:
    """Note that a dict or set was asked for a key and has it not."""
    spans.begin(touch, location, presence=True)


def found(touch: Touch, location: Location) -> None:
    """Note that a set was asked for an item and has it; that is no load of anything."""
    spans.begin(touch, location, gets=True, presence=True)


def write(touch: Touch, location: Location) -> None:
    """Note a store."""
    _store(touch, location, touch.access(WRITE))


def delete(touch: Touch, location: Location) -> None:
    """Note the deletion of a key."""
    _present(touch, location)
    location.handed = None


def _present(touch: Touch, location: Location) -> None:
    access = touch.access(WRITE)
    access.presence = True
    _store(touch, location, access)


def _store(touch: Touch, location: Location, access: Access) -> None:
    _against_write(touch, location, access)
    for other in location.reads.values():
        if unseen(touch, other):
            touch.conflict("order", location, other, access)
    spans.arrive(touch, location, access)
    location.reads.clear()
    location.write = access
    _publish(touch, location)


def across(touch: Touch, location: Location, other: Location, *, stores: bool) -> None:
    """Look for conflicts with another part of the same array that has items in common with this one."""
    access = touch.access(WRITE if stores else READ)
    against = [other.write, *other.reads.values()] if stores else [other.write]
    for earlier in against:
        if earlier is not None and unseen(touch, earlier):
            touch.conflict("order", location, earlier, access)


def insert(touch: Touch, location: Location) -> None:
    """Note the store of a key that is not there yet: it hands over what this thread did before."""
    _present(touch, location)
    hand(touch, location)


def hand(touch: Touch, location: Location) -> None:
    """Let those who get this item come after now."""
    now = touch.state.moment()
    location.handed = now if location.handed is None else location.handed.union(now)
    touch.publishes = True


def take(touch: Touch, location: Location) -> None:
    """Come after the insertion of an item."""
    handed = location.handed or location.shadow.unknown
    if handed is not None:
        touch.state.join(handed)


def removed(_: Touch, location: Location) -> None:
    """Forget the insertion of an item that is no more."""
    location.handed = None


def update(touch: Touch, location: Location) -> None:
    """Note a load and a store that depends on it in one operation."""
    spans.begin(touch, location, own=True)
    load(touch, location)
    write(touch, location)


def load_to_store(touch: Touch, location: Location) -> None:
    """Note the load of an augmented assignment whose store comes later, at the same site."""
    spans.begin(touch, location, own=True)
    load(touch, location)


def got_to_store(touch: Touch, location: Location) -> None:
    """Note the same for an item."""
    spans.begin(touch, location, own=True, gets=True)
    load(touch, location)


def missed_to_store(touch: Touch, location: Location) -> None:
    """Note the same for an item that is not there yet."""
    spans.begin(touch, location, own=True)


def atomic(touch: Touch, location: Location) -> None:
    """Note a step that reads and writes a key at once."""
    access = touch.access(ATOMIC)
    access.presence = True
    spans.arrive(touch, location, access)


def size(touch: Touch, location: Location) -> None:
    """Note that a container's size was looked at."""
    spans.begin(touch, location)
    if touch.site.flags & POLL:
        take_all(touch, location)


def snapshot(touch: Touch, location: Location) -> None:
    """Note that a container was copied."""
    spans.begin(touch, location)
    if not touch.site.flags & SPAN_READ:
        take_all(touch, location)


def take_all(touch: Touch, location: Location) -> None:
    """Come after every insertion into the container."""
    shadow = location.shadow
    for item in shadow.locations.values():
        if item.handed is not None:
            touch.state.join(item.handed)
    for clocks in shadow.values.values():
        for _, clock in clocks:
            touch.state.join(clock)
    if shadow.unknown is not None:
        touch.state.join(shadow.unknown)


def iterate(touch: Touch, location: Location) -> None:
    """Note a step of an iteration over a container."""
    spans.begin(touch, location)
    _structural(touch, location, ITERATE)


def grow(touch: Touch, location: Location) -> None:
    """Note that a container gets an item."""
    spans.arrive(touch, location, _structural(touch, location, GROW))


def shrink(touch: Touch, location: Location) -> None:
    """Note that a container loses an item."""
    spans.arrive(touch, location, _structural(touch, location, SHRINK))


def reshape(touch: Touch, location: Location) -> None:
    """Note that a container is changed in several steps."""
    spans.arrive(touch, location, _structural(touch, location, RESHAPE))


def put(touch: Touch, location: Location) -> None:
    """Note a put into a queue, which orders for itself."""
    spans.arrive(touch, location, touch.access(GROW))


def get(touch: Touch, location: Location) -> None:
    """Note a get from a queue."""
    spans.arrive(touch, location, touch.access(SHRINK))


def _structural(touch: Touch, location: Location, kind: int) -> Access:
    access = touch.access(kind)
    slot = touch.state.slot
    earlier = location.kinds.get((slot, kind))
    seen = earlier.serial if earlier is not None and touch.repeats(earlier) else -1
    for (_, other_kind), other in location.kinds.items():
        if other_kind in _AGAINST[kind] and other.serial > seen and unseen(touch, other):
            touch.conflict("order", location, other, access)
    location.kinds[slot, kind] = access
    return access


def hand_right(touch: Touch, shadow: Shadow, values: Sequence[Any]) -> None:
    """Let those who get these values from the container's right end come after now; told apart by identity."""
    for value, clocks in _handing(touch, shadow, values):
        shadow.values[id(value)] = [*clocks, (touch.state.slot, touch.state.moment())]


def hand_left(touch: Touch, shadow: Shadow, values: Sequence[Any]) -> None:
    """Do the same at the left end."""
    for value, clocks in _handing(touch, shadow, values):
        shadow.values[id(value)] = [(touch.state.slot, touch.state.moment()), *clocks]


def _handing(touch: Touch, shadow: Shadow, values: Sequence[Any]) -> Iterator[tuple[Any, list[tuple[int, Clock]]]]:
    touch.publishes = True
    _prune(shadow)
    for value in values:
        yield value, shadow.values.get(id(value), [])[-_EQUAL:]


def hand_unknown(touch: Touch, shadow: Shadow, _: Sequence[Any]) -> None:
    """Let those who get any value come after now whose insertion was not seen."""
    now = touch.state.moment()
    touch.publishes = True
    shadow.unknown = now if shadow.unknown is None else shadow.unknown.union(now)


def see_values(touch: Touch, shadow: Shadow, values: Sequence[Any]) -> None:
    """Come after all insertions of these values."""
    for value in values:
        _come_after(touch, shadow, shadow.values.get(id(value), []))


def take_left(touch: Touch, shadow: Shadow, values: Sequence[Any]) -> None:
    """Come after the insertion of values that left the container at its left end.

    Where several threads inserted the same object, it may be the first of each.
    """
    for value in values:
        clocks = shadow.values.get(id(value), [])
        _come_after(touch, shadow, list(dict(reversed(clocks)).items()))
        _left(shadow, value, clocks[1:])


def take_right(touch: Touch, shadow: Shadow, values: Sequence[Any]) -> None:
    """Do the same at the right end."""
    for value in values:
        clocks = shadow.values.get(id(value), [])
        _come_after(touch, shadow, list(dict(clocks).items()))
        _left(shadow, value, clocks[:-1])


def take_within(touch: Touch, shadow: Shadow, values: Sequence[Any]) -> None:
    """Come after any insertion of values that left the container somewhere."""
    for value in values:
        clocks = shadow.values.get(id(value), [])
        _come_after(touch, shadow, clocks)
        _left(shadow, value, clocks[1:])


def _come_after(touch: Touch, shadow: Shadow, clocks: list[tuple[int, Clock]]) -> None:
    for _, clock in clocks:
        touch.state.join(clock)
    if not clocks and shadow.unknown is not None:
        touch.state.join(shadow.unknown)


def _left(shadow: Shadow, value: Any, clocks: list[tuple[int, Clock]]) -> None:
    if clocks:
        shadow.values[id(value)] = clocks
    else:
        shadow.values.pop(id(value), None)


def _prune(shadow: Shadow) -> None:
    """Forget values that left the container unseen."""
    owner = shadow.owner()
    if len(shadow.values) <= _UNSEEN + 2 * _length(owner):
        return
    there = set(map(id, _content(owner)))
    for number in [number for number in shadow.values if number not in there]:
        del shadow.values[number]


def _length(owner: Any) -> int:
    return list.__len__(owner) if isinstance(owner, list) else deque.__len__(owner)


def _content(owner: Any) -> list[Any]:
    try:
        return list(list.__iter__(owner) if isinstance(owner, list) else deque.__iter__(owner))
    except RuntimeError:     # a deque that another thread changes
        return _content(owner)
