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
    from collections.abc import Callable, Sequence
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
    """Note a load that no write depends on."""
    poll = bool(touch.site.flags & POLL)
    if poll:
        _poll(touch, location)
    else:
        _against_write(touch, location, None)
    slot = touch.state.slot
    if not touch.repeats(location.reads.get((slot, poll))):
        location.reads[slot, poll] = touch.access(READ)


def _poll(touch: Touch, location: Location) -> None:
    write = location.write
    if location.flag is not None and write is not None and unseen(touch, write):
        touch.conflict("order", location, write, touch.access(READ))
        touch.state.join(location.flag)
    else:
        _against_write(touch, location, None)
        # The value is loaded after this note: the store may come in between.
        touch.state.polled = location, write


def polled(touch: Touch) -> None:
    """Come after a store of a literal that the poll just before may have seen."""
    location, before = touch.state.polled or (None, None)
    touch.state.polled = None
    if location is not None and location.write is not before and location.flag is not None:
        touch.state.join(location.flag)


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
    spans.begin(touch, location)
    if location.handed is not None:
        touch.state.join(location.handed)
    load(touch, location)


def missed(touch: Touch, location: Location) -> None:
    """Note that a key was looked for and is not there."""
    spans.begin(touch, location)


def found(touch: Touch, location: Location) -> None:
    """Note that a key was looked for in a set and is there; that is no load of anything."""
    spans.begin(touch, location)
    if location.handed is not None:
        touch.state.join(location.handed)


def write(touch: Touch, location: Location) -> None:
    """Note a store."""
    access = touch.access(WRITE)
    _against_write(touch, location, access)
    for other in location.reads.values():
        if unseen(touch, other):
            touch.conflict("order", location, other, access)
    spans.arrive(touch, location, access)
    location.reads.clear()
    location.write = access
    if touch.site.flags & CONSTANT:
        location.flag = touch.state.moment()
        touch.publishes = True
    else:
        location.flag = None


def across(touch: Touch, location: Location, other: Location, *, stores: bool) -> None:
    """Look for conflicts with another part of the same array that has items in common with this one."""
    access = touch.access(WRITE if stores else READ)
    against = [other.write, *other.reads.values()] if stores else [other.write]
    for earlier in against:
        if earlier is not None and unseen(touch, earlier):
            touch.conflict("order", location, earlier, access)


def insert(touch: Touch, location: Location) -> None:
    """Note the store of a key that is not there yet: it hands over what this thread did before."""
    write(touch, location)
    hand(touch, location)


def hand(touch: Touch, location: Location) -> None:
    """Let those who get this item come after now."""
    now = touch.state.moment()
    location.handed = now if location.handed is None else location.handed.union(now)
    touch.publishes = True


def take(touch: Touch, location: Location) -> None:
    """Come after the insertion of an item."""
    if location.handed is not None:
        touch.state.join(location.handed)


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
    spans.begin(touch, location, own=True)
    take(touch, location)
    load(touch, location)


def missed_to_store(touch: Touch, location: Location) -> None:
    """Note the same for an item that is not there yet."""
    spans.begin(touch, location, own=True)


def atomic(touch: Touch, location: Location) -> None:
    """Note a step that reads and writes a key at once."""
    spans.arrive(touch, location, touch.access(ATOMIC))


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
    for clock, _ in shadow.values.values():
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


def hand_values(touch: Touch, shadow: Shadow, values: Sequence[Any]) -> None:
    """Let those who get these values from the container come after now; they are told apart by identity."""
    now = touch.state.moment()
    touch.publishes = True
    _prune(shadow)
    for value in values:
        clock, count = shadow.values.get(id(value), (now, 0))
        shadow.values[id(value)] = clock.union(now), count + 1


def hand_unknown(touch: Touch, shadow: Shadow, _: Sequence[Any]) -> None:
    """Let those who get any value come after now whose insertion was not seen."""
    now = touch.state.moment()
    touch.publishes = True
    shadow.unknown = now if shadow.unknown is None else shadow.unknown.union(now)


def see_values(touch: Touch, shadow: Shadow, values: Sequence[Any]) -> None:
    """Come after the insertions of these values."""
    for value in values:
        clock, _ = shadow.values.get(id(value), (None, 0))
        _come_after(touch, clock or shadow.unknown)


def take_values(touch: Touch, shadow: Shadow, values: Sequence[Any]) -> None:
    """Come after the insertions of these values, which have left the container."""
    for value in values:
        clock, count = shadow.values.get(id(value), (None, 0))
        _come_after(touch, clock or shadow.unknown)
        if count > 1 and clock is not None:
            shadow.values[id(value)] = clock, count - 1
        elif count:
            del shadow.values[id(value)]


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


def _come_after(touch: Touch, clock: Clock | None) -> None:
    if clock is not None:
        touch.state.join(clock)
