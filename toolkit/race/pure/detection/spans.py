"""Atomicity: a read, a later write that depends on it, and another thread's write that fits in between.

After AVIO (Lu et al., ASPLOS 2006), held to what the rewriter's data flow says: only a write whose site names the
read's as its partner closes a span.  A lock that each of read, write and the other write took for itself only excludes,
it does not order: the three could have come in another order as well.  All under the guard.
"""

from __future__ import annotations

from gilscope.toolkit.race.pure.sites import DIRECTIONS, GUARDED
from gilscope.toolkit.race.pure.state.clocks import Clock
from gilscope.toolkit.race.pure.state.record import Opened, Span
from gilscope.toolkit.race.site import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.race.pure.detection.touch import Touch
    from gilscope.toolkit.race.pure.state.clocks import Times
    from gilscope.toolkit.race.pure.state.record import Access
    from gilscope.toolkit.race.pure.state.shadow import Location

READ, WRITE, ATOMIC, GROW = int(Kind.READ), int(Kind.WRITE), int(Kind.ATOMIC), int(Kind.GROW)
SHRINK, RESHAPE = int(Kind.SHRINK), int(Kind.RESHAPE)
SPAN_READ, AUGMENTED = int(Flag.SPAN_READ), int(Flag.AUGMENTED)
MOST_RECORDS = 32      # spans, and writes, that a location remembers
MOST_OPENS = 64        # reads that one activation may still act upon
MOST_FRAMES = 64       # activations of one thread with such reads
LOGGED = 16            # accesses that `reads` and `writes` can look back on


def violates(other: Access, act: int, *, presence: bool) -> bool:
    """Claim that a write spoils what was read before an `act`; of a read that asked for presence: a change of that."""
    if act in (GROW, SHRINK):
        return other.kind in (act, RESHAPE)
    return act in (WRITE, ATOMIC) and other.kind in (WRITE, ATOMIC) and (other.presence or not presence)


def begin(touch: Touch, location: Location, *, own: bool = False, ordered: bool = False, gets: bool = False,
          presence: bool = False) -> None:
    """Remember a read for the writes that may depend on it.

    Args:
        touch: The operation.
        location: What it reads.
        own: The same site will write, too.
        ordered: A store that this read does not come after is a conflict of its own.
        gets: The read gets an item, so it comes after the insertion.
        presence: It asks whether there is something, not what.
    """
    state = touch.state
    opened = Opened(Clock(state.order, state.hard), tuple(state.held), presence=presence)
    opens = own or touch.site.flags & (SPAN_READ | AUGMENTED)
    if opens:
        failed_check(touch, location, opened, ordered=ordered)
    handed = (location.handed or location.shadow.unknown) if gets else None
    if handed is not None:
        state.join(handed)
        opened.after = Clock(state.order, state.hard)
    if state.reads is not None:
        state.reads.append((state.position, location, opened))
    if opens:
        open_at(touch, location, opened)


def open_at(touch: Touch, location: Location, opened: Opened) -> None:
    """Open a span at this operation's site in this activation."""
    opens = touch.state.opens
    frame = id(touch.frame)
    mine = opens.get(frame)
    if mine is None:
        if len(opens) >= MOST_FRAMES:
            del opens[next(iter(opens))]
        mine = opens[frame] = {}
    mine.pop((touch.site.number, location), None)
    if len(mine) >= MOST_OPENS:
        del mine[next(iter(mine))]
    mine[touch.site.number, location] = opened


def arrive(touch: Touch, location: Location, access: Access) -> None:
    """Note a write: it may fall into another thread's span, and may close one of this thread."""
    state = touch.state
    if state.writes is not None:
        state.writes.append((state.position, location, access, tuple(state.held), touch.site.flags))
    for span in location.spans.values():
        write = span.write
        if (write.slot != state.slot and violates(access, write.kind, presence=span.presence)
                and _apart(span.locks, access.locks) and not _in_conflict(touch, write, access)
                and not _past(state.hard if span.relies_on(access.locks) else state.order, write)):
            touch.conflict("span", location, write, access)
    opens = state.opens.get(id(touch.frame), {})
    for number in (*touch.site.partners, touch.site.number):
        opened = opens.get((number, location))
        if opened is not None and opened.serves(access.serial):
            write = touch.access(access.kind, number)
            write.presence = access.presence
            close(touch, location, write, opened, state.held)
    _use_up(touch, location, access.serial)
    _keep(location.acts, (state.slot, access.kind, access.locks, access.presence), access)


def _use_up(touch: Touch, location: Location, serial: int) -> None:
    """Let no later write depend on what was read before this one, in any activation."""
    for opens in touch.state.opens.values():
        for (_, where), opened in opens.items():
            if where is location and opened.used < 0:
                opened.used = serial


def close(touch: Touch, location: Location, write: Access, opened: Opened, held: Iterable[tuple[int, int]]) -> None:
    """Note that `write`, under the locks `held`, depends on a read: another thread's write may fall between them."""
    span = Span(write, opened, tuple(held))
    for act in location.acts.values():
        if (act.slot != write.slot and violates(act, write.kind, presence=opened.presence)
                and _apart(span.locks, act.locks) and not _in_conflict(touch, act, write)
                and not _past(opened.after.hard if span.relies_on(act.locks) else opened.after.order, act)):
            touch.conflict("span", location, act, write)
    _keep(location.spans, (write.slot, write.span_site, span.locks), span)


def failed_check(touch: Touch, location: Location, opened: Opened, *, ordered: bool = False) -> None:
    """Note a check that finds another thread's check and act done: had it come earlier, both would have acted.

    Only where this check guards an act of the same direction (a consumer that looks whether there is something has
    nothing to do with a producer that looks whether there is nothing), or where it is the very same site and nothing
    but the hand-off of that item orders the two.
    """
    guarded = GUARDED.get(touch.site.number, ())
    held = tuple(uid for uid, _ in opened.held)
    for span in location.spans.values():
        write = span.write
        alike = DIRECTIONS.get(write.site) in guarded or (
            write.presence and location.handed is not None and write.span_site == touch.site.number)
        if (alike and write.slot != touch.state.slot and _apart(span.locks, held)
                and (write.presence or not opened.presence)
                and not _past(opened.before.hard if span.relies_on(held) else opened.before.order, write)
                and not (ordered and write.kind == WRITE and not touch.state.sees(write.slot, write.time))):
            touch.conflict("span", location, write, touch.access(READ))


def _past(times: Times, access: Access) -> bool:
    return times.get(access.slot, 0) >= access.time


def _apart(locks: tuple[int, ...], others: tuple[int, ...]) -> bool:
    return not any(lock in others for lock in locks)


def _in_conflict(touch: Touch, other: Access, access: Access) -> bool:
    """Claim that this pair is already told of as unordered."""
    return (other.kind == WRITE and access.kind == WRITE
            and not touch.state.sees(other.slot, other.time))


def _keep[Key, Record](records: dict[Key, Record], key: Key, record: Record) -> None:
    records.pop(key, None)
    if len(records) >= MOST_RECORDS:
        del records[next(iter(records))]
    records[key] = record
