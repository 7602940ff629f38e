"""Getters and setters: calls whose accesses, at any depth, are a span of the caller."""

from __future__ import annotations

from collections import deque
from sys import _getframe

from gilscope.toolkit.race.pure.detection import detect, spans
from gilscope.toolkit.race.site import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.pure.detection.touch import Touch
    from gilscope.toolkit.race.pure.monitor import Monitor
    from gilscope.toolkit.race.pure.sites import Site

GUARD, VALUE, AUGMENTED, RECHECKED = int(Flag.GUARD), int(Flag.VALUE), int(Flag.AUGMENTED), int(Flag.RECHECKED)


def ops(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    """Return the ops of this module for one core."""
    def begin() -> int:
        return start(monitor)

    def reads(position: int, value: Any, site: Site) -> Any:
        if monitor.watches():
            monitor.look_back(_getframe(1), site, lambda touch: open_reads(touch, position))
        return value

    def writes(position: int, value: Any, site: Site) -> Any:
        if monitor.watches():
            monitor.look_back(_getframe(1), site, lambda touch: close_writes(touch, position))
        return value

    return {"begin": begin, "reads": reads, "writes": writes}


def start(monitor: Monitor) -> int:
    """Return how many operations this thread has noted, and log its accesses from now on."""
    state = monitor.threads.current()
    if state.reads is None:
        state.reads, state.writes = deque(maxlen=spans.LOGGED), deque(maxlen=spans.LOGGED)
    return state.position


def open_reads(touch: Touch, since: int) -> None:
    """Open a span at this site for what the thread has read since then, unless it wrote something as well.

    Such a call is no question: it has acted, and what it returns is its own.
    """
    if any(position > since for position, *_ in touch.state.writes or ()):
        return
    for position, location, opened in touch.state.reads or ():
        if position > since:
            spans.failed_check(touch, location, opened, ordered=True)
            spans.open_at(touch, location, opened)


def _from_outside(setter: int, inner: int, part: str, kind: int) -> bool:
    """Claim that what the setter stores, or whether it does, was decided by its caller alone."""
    if setter & GUARD:
        return not inner & (GUARD | RECHECKED)
    return (kind == detect.WRITE and part in ("attr", "item", "cell")
            and not inner & (VALUE | GUARD | AUGMENTED | RECHECKED))


def close_writes(touch: Touch, since: int) -> None:
    """Close this site's spans over what the thread has written since then."""
    opens = touch.state.opens.get(id(touch.frame), {})
    for position, location, access, held, flags in touch.state.writes or ():
        counts = position > since and _from_outside(touch.site.flags, flags, location.part, access.kind)
        for number in (*touch.site.partners, touch.site.number) if counts else ():
            opened = opens.get((number, location))
            if opened is not None and opened.serves(access.serial):
                write = touch.access(access.kind, number)
                write.time, write.serial, write.locks = access.time, access.serial, access.locks
                write.presence = access.presence
                spans.close(touch, location, write, opened, held)
