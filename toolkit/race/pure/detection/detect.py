"""The verbs for loads and stores: what each does to a location's records, and when two of them conflict.

FastTrack (Flanagan & Freund, PLDI 2009).  `structure` has the verbs for containers as a whole, `handoff` those for
what leaves one thread's hands for another's.  All under the guard.
"""

from __future__ import annotations

from gilscope.toolkit.race.pure.detection import handoff, spans
from gilscope.toolkit.race.site import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from gilscope.toolkit.race.pure.detection.touch import Touch
    from gilscope.toolkit.race.pure.state.record import Access
    from gilscope.toolkit.race.pure.state.shadow import Location, Shadow

    Verb = Callable[[Touch, Location], None]
    # A verb, the object it is about, and which part of it: (verb, owner, part, key)
    Step = tuple[Verb, Any, str, Any]
    # Or a verb, a container, and values that enter or leave it
    Transfer = tuple[Callable[[Touch, Shadow, Sequence[Any]], None], Any, Sequence[Any]]

READ, WRITE, ATOMIC = int(Kind.READ), int(Kind.WRITE), int(Kind.ATOMIC)
CONSTANT, POLL, SPAN_READ = int(Flag.CONSTANT), int(Flag.POLL), int(Flag.SPAN_READ)
RECHECKED, MEMO = int(Flag.RECHECKED), int(Flag.MEMO)
CHANGING = frozenset(map(int, (Kind.WRITE, Kind.ATOMIC, Kind.GROW, Kind.SHRINK, Kind.RESHAPE)))
_WHOLES = 64      # reads of many items of one container at once
# Loads that come after the store they saw: those that poll, all, those that found a container made for that store.
BY_POLLS, BY_ALL, BY_FRESH = 1, 2, 4


def share(touch: Touch, location: Location) -> None:
    """Tell what another thread has done to this location before, in order or not, where one of the two writes."""
    noted = bool(touch.kinds)      # to look whether there is something, or how much, leaves nothing that could conflict
    kind = next((kind for kind in touch.kinds if kind in CHANGING), touch.kinds[0] if noted else READ)
    mine = touch.access(kind)
    for uid, other in location.users.items():
        if uid != mine.uid and (kind in CHANGING or other.kind in CHANGING):
            touch.conflict("shared", location, other, mine)
            break
    known = location.users.get(mine.uid)
    if noted and (kind in CHANGING or known is None or known.kind not in CHANGING):
        location.users[mine.uid] = mine


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
    if not access.presence and location.shadow.wholes:
        _against_wholes(touch, location, access)
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
    handoff.hand(touch, location)


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


def whole(touch: Touch, location: Location) -> None:
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


def _against_wholes(touch: Touch, location: Location, access: Access) -> None:
    for (_, indexes), other in location.shadow.wholes.items():
        if (location.part == "item" and unseen(touch, other)
                and (indexes is None or (type(location.key) is int and location.key in indexes))):
            touch.conflict("order", location, other, access)
