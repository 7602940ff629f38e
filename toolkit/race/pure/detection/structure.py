"""The verbs for containers as a whole: looked at, gone through, grown, shrunk, rewritten.

Changes of a structure do not conflict with each other, so the last one of each kind of each thread is kept.  All under
the guard.
"""

from __future__ import annotations

from gilscope.toolkit.race.pure.detection import handoff, spans
from gilscope.toolkit.race.pure.detection.detect import unseen
from gilscope.toolkit.race.site import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gilscope.toolkit.race.pure.detection.touch import Touch
    from gilscope.toolkit.race.pure.state.record import Access
    from gilscope.toolkit.race.pure.state.shadow import Location

ITERATE, GROW, SHRINK, RESHAPE = int(Kind.ITERATE), int(Kind.GROW), int(Kind.SHRINK), int(Kind.RESHAPE)
POLL, SPAN_READ = int(Flag.POLL), int(Flag.SPAN_READ)
_AGAINST = {
    ITERATE: (GROW, SHRINK, RESHAPE),
    GROW: (ITERATE, RESHAPE),
    SHRINK: (ITERATE, RESHAPE),
    RESHAPE: (ITERATE, GROW, SHRINK, RESHAPE),
}


def size(touch: Touch, location: Location) -> None:
    """Note that a container's size was looked at."""
    spans.begin(touch, location)
    if touch.site.flags & POLL:
        handoff.take_all(touch, location)


def snapshot(touch: Touch, location: Location) -> None:
    """Note that a container was copied."""
    spans.begin(touch, location)
    if not touch.site.flags & SPAN_READ:
        handoff.take_all(touch, location)


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
