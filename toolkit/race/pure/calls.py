"""Ops around calls: getters and setters that are spans, `getattr` by name, activations, `locals()`."""

from __future__ import annotations

from collections import deque
from sys import _getframe

from toolkit.race.pure import detect, spans
from toolkit.race.pure.names import note_attribute
from toolkit.race.site import OP_PREFIX, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from toolkit.race.pure.detect import Verb
    from toolkit.race.pure.marks import Site
    from toolkit.race.pure.monitor import Monitor
    from toolkit.race.pure.touch import Touch

GUARD, VALUE, AUGMENTED, RECHECKED = int(Flag.GUARD), int(Flag.VALUE), int(Flag.AUGMENTED), int(Flag.RECHECKED)
_DYNAMIC: dict[int, tuple[int, Verb]] = {
    # the builtin's id -> how many arguments it takes at least, and what it does
    id(getattr): (2, detect.read),
    id(hasattr): (2, detect.read),
    id(setattr): (3, detect.write),
    id(delattr): (2, detect.write),
}


def ops(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    """Return the ops of this module for one core."""
    def dynamic(function: Callable[..., Any], site: Site, *args: Any) -> Any:
        needed, verb = _DYNAMIC.get(id(function), (len(args) + 1, detect.read))
        if len(args) >= needed and type(args[1]) is str and monitor.watches():
            if verb is detect.write and function is setattr:
                note_attribute(monitor, _getframe(1), site, args[0], args[1], verb, args[2])
            else:
                note_attribute(monitor, _getframe(1), site, args[0], args[1], verb)
        return function(*args)

    def enter(_: Site) -> None:
        monitor.threads.current().opens.pop(id(_getframe(1)), None)

    def locals_(names: Any) -> Any:
        if type(names) is list:      # dir()
            return [name for name in names if not _ours(name)]
        return {name: value for name, value in names.items() if not _ours(name)}

    return {"dynamic": dynamic, "enter": enter, "locals_": locals_, **_getters(monitor)}


def _ours(name: Any) -> bool:
    return type(name) is str and name.startswith(OP_PREFIX)


def _getters(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    def begin() -> int:
        state = monitor.threads.current()
        if state.reads is None:
            state.reads, state.writes = deque(maxlen=spans.LOGGED), deque(maxlen=spans.LOGGED)
        return state.position

    def reads(position: int, value: Any, site: Site) -> Any:
        if monitor.watches():
            monitor.look_back(_getframe(1), site, lambda touch: _open_reads(touch, position))
        return value

    def writes(position: int, value: Any, site: Site) -> Any:
        if monitor.watches():
            monitor.look_back(_getframe(1), site, lambda touch: _close_writes(touch, position))
        return value

    return {"begin": begin, "reads": reads, "writes": writes}


def _open_reads(touch: Touch, since: int) -> None:
    written = {location for position, location, *_ in touch.state.writes or () if position > since}
    for position, location, opened in touch.state.reads or ():
        if position > since and location not in written:
            spans.failed_check(touch, location, opened, ordered=True)
            spans.open_at(touch, location, opened)


def _from_outside(setter: int, inner: int, part: str, kind: int) -> bool:
    """Claim that what the setter stores, or whether it does, was decided by its caller alone."""
    if setter & GUARD:
        return not inner & (GUARD | RECHECKED)
    return (kind == detect.WRITE and part in ("attr", "item", "cell")
            and not inner & (VALUE | GUARD | AUGMENTED | RECHECKED))


def _close_writes(touch: Touch, since: int) -> None:
    opens = touch.state.opens.get(id(touch.frame), {})
    for position, location, access, held, flags in touch.state.writes or ():
        counts = position > since and _from_outside(touch.site.flags, flags, location.part, access.kind)
        for number in touch.site.partners if counts else ():
            opened = opens.get((number, location))
            if opened is not None:
                write = touch.access(access.kind, number)
                write.time, write.serial, write.locks = access.time, access.serial, access.locks
                spans.close(touch, location, write, opened, held)
