"""Spans: the time from a read to the write that depends on it, and what falls into it."""

from __future__ import annotations

from gilscope.toolkit.race.terms import AccessKind, Flag
from tests.race.model.state import DIRECTIONS, GUARDED, AccessRecord, OpenSpan, PendingRead, VectorClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType
    from typing import Any

    from tests.race.model.shadow import Location
    from tests.race.model.state import CallStacks, ReferenceSite, Times
    from tests.race.model.threads import ThreadState

    Found = tuple[str, Location, AccessRecord, AccessRecord]     # sort, where, first, second


class Operation:
    """An operation of the program while it is recorded."""

    __slots__ = ("_context", "_contexts", "conflicts", "frame", "kinds", "locks", "publishes", "seen", "serial",
                 "site", "state")

    def __init__(self, state: ThreadState, site: ReferenceSite, frame: FrameType, contexts: CallStacks,
                 serial: int) -> None:
        self.state = state
        self.site = site
        self.frame = frame
        self.serial = serial
        self.locks = tuple(uid for uid, _ in reversed(state.held))
        self.publishes = False       # others may learn of this moment: the thread's time must advance
        self.conflicts: list[Found] = []
        self.seen: Callable[[], Any] | None = None     # returns what it loads
        self._contexts = contexts
        self._context = -1

    def access(self, kind: int, span_site: int = -1) -> AccessRecord:
        """Return this operation as an access of that kind."""
        if self._context < 0:
            self._context = self._contexts.of(self.frame.f_back)
        state = self.state
        return AccessRecord(state.uid, state.slot, state.time, self.serial, self.site.number, kind, self._context,
                            self.locks, span_site)

    def repeats(self, earlier: AccessRecord | None) -> bool:
        """Return True if `earlier` is the same operation and no clock or lockset has changed since."""
        return (earlier is not None and earlier.site == self.site.number and earlier.time == self.state.time
                and earlier.locks == self.locks)

    def sees_fresh(self) -> bool:
        """Return True if the operation loads a container that may have been published under a lock."""
        kind = type(None if self.seen is None else self.seen())
        return kind is tuple or kind is list or kind is dict or kind is set or kind is frozenset

    def sees_object(self) -> bool:
        """Return True if the operation loads anything but a number, a text or None."""
        value = None if self.seen is None else self.seen()
        return value is not None and not isinstance(value, int | float | str | bytes)

    def conflict(self, sort: str, location: Location, first: AccessRecord, second: AccessRecord) -> None:
        """Remember a conflict; it is reported after the guard is released."""
        self.conflicts.append((sort, location, first, second))


READ, WRITE, ATOMIC, GROW = int(AccessKind.READ), int(AccessKind.WRITE), int(AccessKind.ATOMIC), int(AccessKind.GROW)
SHRINK, RESHAPE = int(AccessKind.SHRINK), int(AccessKind.RESHAPE)
SPAN_READ, AUGMENTED = int(Flag.SPAN_READ), int(Flag.AUGMENTED)
MOST_RECORDS = 32      # spans, and writes, that a location remembers
MOST_OPENS = 64        # reads that one activation may still act upon
MOST_FRAMES = 64       # activations of one thread with such reads
LOGGED = 16            # accesses that `reads` and `writes` can look back on


def violates(other: AccessRecord, act: int, *, presence: bool) -> bool:
    """Return True if a write invalidates the read before an `act`, or the presence that it tested for."""
    if act in (GROW, SHRINK):
        return other.kind in (act, RESHAPE)
    return act in (WRITE, ATOMIC) and other.kind in (WRITE, ATOMIC) and (other.presence or not presence)


def begin(touch: Operation, location: Location, *, own: bool = False, ordered: bool = False, gets: bool = False,
          presence: bool = False) -> None:
    """Remember a read for the writes that may depend on it.

    Args:
        touch: The operation.
        location: What it reads.
        own: The same site will write, too.
        ordered: A store without an edge to this read is a separate conflict.
        gets: The read gets an item, so there is an edge from the insertion.
        presence: It tests whether an item exists and does not load it.
    """
    state = touch.state
    opened = PendingRead(VectorClock(state.order, state.hard), tuple(state.held), presence=presence)
    opens = own or touch.site.flags & (SPAN_READ | AUGMENTED)
    if opens:
        failed_check(touch, location, opened, ordered=ordered)
    handed = (location.handed or location.shadow.unknown) if gets else None
    if handed is not None:
        state.join(handed)
        opened.after = VectorClock(state.order, state.hard)
    if state.reads is not None:
        state.reads.append((state.position, location, opened))
    if opens:
        open_at(touch, location, opened)


def open_at(touch: Operation, location: Location, opened: PendingRead) -> None:
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


def arrive(touch: Operation, location: Location, access: AccessRecord) -> None:
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


def _use_up(touch: Operation, location: Location, serial: int) -> None:
    """Let no later write depend on what was read before this one, in any activation."""
    for opens in touch.state.opens.values():
        for (_, where), opened in opens.items():
            if where is location and opened.used < 0:
                opened.used = serial


def close(
    touch: Operation, location: Location, write: AccessRecord, opened: PendingRead, held: Iterable[tuple[int, int]]
) -> None:
    """Record that `write`, under the locks `held`, depends on a read; another thread's write may fall between them."""
    span = OpenSpan(write, opened, tuple(held))
    for act in location.acts.values():
        if (act.slot != write.slot and violates(act, write.kind, presence=opened.presence)
                and _apart(span.locks, act.locks) and not _in_conflict(touch, act, write)
                and not _past(opened.after.hard if span.relies_on(act.locks) else opened.after.order, act)):
            touch.conflict("span", location, act, write)
    _keep(location.spans, (write.slot, write.span_site, span.locks), span)


def failed_check(touch: Operation, location: Location, opened: PendingRead, *, ordered: bool = False) -> None:
    """Note a check that finds another thread's check and act done: had it come earlier, both would have acted.

    Only where this check guards an act of the same direction (a consumer that looks whether there is something has
    nothing to do with a producer that looks whether there is nothing), or where it is the very same site and nothing
    but the hand-off of that item orders the two.  At the same site, the act would have acquired the same locks.
    """
    guarded = GUARDED.get(touch.site.number, ())
    held = tuple(uid for uid, _ in opened.held)
    for span in location.spans.values():
        write = span.write
        same = write.span_site == touch.site.number
        alike = DIRECTIONS.get(write.site) in guarded or (write.presence and location.handed is not None and same)
        order = opened.before.hard if (span.guards if same else span.relies_on(held)) else opened.before.order
        if (alike and write.slot != touch.state.slot and _apart(span.locks, held)
                and (write.presence or not opened.presence)
                and not _past(order, write)
                and not (ordered and write.kind == WRITE and not touch.state.sees(write.slot, write.time)
                         and _apart(write.locks, held))):
            touch.conflict("span", location, write, touch.access(READ))


def _past(times: Times, access: AccessRecord) -> bool:
    return times.get(access.slot, 0) >= access.time


def _apart(locks: tuple[int, ...], others: tuple[int, ...]) -> bool:
    return not any(lock in others for lock in locks)


def _in_conflict(touch: Operation, other: AccessRecord, access: AccessRecord) -> bool:
    """Return True if this pair is already reported as unordered."""
    return (other.kind == WRITE and access.kind == WRITE
            and not touch.state.sees(other.slot, other.time))


def _keep[Key, Record](records: dict[Key, Record], key: Key, record: Record) -> None:
    records.pop(key, None)
    if len(records) >= MOST_RECORDS:
        del records[next(iter(records))]
    records[key] = record
