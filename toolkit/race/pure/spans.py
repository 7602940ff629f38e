"""Atomicity: a read, a later write that depends on it, and another thread's write that fits in between.

After AVIO (Lu et al., ASPLOS 2006), held to what the rewriter's data flow says: only a write whose site names the
read's as its partner closes a span.  Locks do not order here, they only exclude: two threads that each lock the read
and the write, but not both together, are told of.  All under the guard.
"""

from __future__ import annotations

from toolkit.race.pure.clocks import Opened
from toolkit.race.pure.marks import DIRECTIONS, GUARDED
from toolkit.race.pure.record import Span
from toolkit.race.site import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.race.pure.record import Access, Location
    from toolkit.race.pure.touch import Touch

READ, WRITE, ATOMIC, GROW = int(Kind.READ), int(Kind.WRITE), int(Kind.ATOMIC), int(Kind.GROW)
SHRINK, RESHAPE = int(Kind.SHRINK), int(Kind.RESHAPE)
SPAN_READ, AUGMENTED = int(Flag.SPAN_READ), int(Flag.AUGMENTED)
MOST_RECORDS = 32      # spans, and writes, that a location remembers
MOST_OPENS = 64        # reads that one activation may still act upon
MOST_FRAMES = 64       # activations of one thread with such reads
LOGGED = 16            # accesses that `reads` and `writes` can look back on


def violates(kind: int, act: int) -> bool:
    """Claim that a write of `kind` spoils what was read before an `act`."""
    if act in (GROW, SHRINK):
        return kind in (act, RESHAPE)
    return act in (WRITE, ATOMIC) and kind in (WRITE, ATOMIC)


def begin(touch: Touch, location: Location, *, own: bool = False, ordered: bool = False, gets: bool = False) -> None:
    """Remember a read for the writes that may depend on it.

    Args:
        touch: The operation.
        location: What it reads.
        own: The same site will write, too.
        ordered: A store that this read does not come after is a conflict of its own.
        gets: The read gets an item, so it comes after the insertion.
    """
    state = touch.state
    opened = Opened(state)
    opens = own or touch.site.flags & (SPAN_READ | AUGMENTED)
    if opens:
        failed_check(touch, location, opened, ordered=ordered)
    if gets:
        handed = location.handed or location.shadow.unknown
        if handed is not None:
            state.join(handed)
            opened.hard = state.hard
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
        if (span.write.slot != state.slot and violates(access.kind, span.write.kind)
                and _apart(span.locks, access.locks) and not state.sees_hard(span.write.slot, span.write.time)
                and not _in_conflict(touch, span.write, access)):
            touch.conflict("span", location, span.write, access)
    opens = state.opens.get(id(touch.frame), {})
    for number in (*touch.site.partners, touch.site.number):
        opened = opens.get((number, location))
        if opened is not None:
            close(touch, location, touch.access(access.kind, number), opened, state.held)
    _keep(location.acts, (state.slot, access.kind, access.locks), access)


def close(touch: Touch, location: Location, write: Access, opened: Opened, held: Iterable[tuple[int, int]]) -> None:
    """Note that `write`, under the locks `held`, depends on a read: another thread's write may fall between them."""
    locks = tuple(uid for uid, serial in held if (uid, serial) in opened.held)
    for act in location.acts.values():
        if (act.slot != write.slot and violates(act.kind, write.kind) and _apart(locks, act.locks)
                and opened.hard.get(act.slot, 0) < act.time and not _in_conflict(touch, act, write)):
            touch.conflict("span", location, act, write)
    _keep(location.spans, (write.slot, write.span_site, locks), Span(write, opened.hard, locks))


def failed_check(touch: Touch, location: Location, opened: Opened, *, ordered: bool = False) -> None:
    """Note a check that finds another thread's check and act done: had it come earlier, both would have acted.

    Only where this check guards an act of the same direction (a consumer that looks whether there is something has
    nothing to do with a producer that looks whether there is nothing), or where it is the very same site and nothing
    but the hand-off of that item orders the two.
    """
    guarded = GUARDED.get(touch.site.number, ())
    for span in location.spans.values():
        write = span.write
        alike = DIRECTIONS.get(write.site) in guarded or (
            location.handed is not None and write.span_site == touch.site.number)
        if (alike and write.slot != touch.state.slot and opened.before.get(write.slot, 0) < write.time
                and _apart(span.locks, tuple(uid for uid, _ in opened.held))
                and not (ordered and write.kind == WRITE and not touch.state.sees(write.slot, write.time))):
            touch.conflict("span", location, write, touch.access(READ))


def _apart(locks: tuple[int, ...], others: tuple[int, ...]) -> bool:
    return not any(lock in others for lock in locks)


def _in_conflict(touch: Touch, other: Access, access: Access) -> bool:
    """Claim that this pair is already told of as unordered."""
    return (other.kind == WRITE and access.kind == WRITE
            and not touch.state.sees(other.slot, other.time))


def _keep(records: dict[tuple[int, int, tuple[int, ...]], Access] | dict[tuple[int, int, tuple[int, ...]], Span],
          key: tuple[int, int, tuple[int, ...]], record: Access | Span) -> None:
    records.pop(key, None)
    if len(records) >= MOST_RECORDS:
        del records[next(iter(records))]
    records[key] = record    # type: ignore[assignment]  # each caller brings what its dict holds
