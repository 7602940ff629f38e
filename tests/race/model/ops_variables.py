"""Ops for attributes, globals and closure variables, and for calls whose result or effect is a read or write."""

from __future__ import annotations

from _thread import _local
from collections import deque
from sys import _getframe

from gilscope.toolkit.race.core import NO_VALUE
from gilscope.toolkit.race.site import OP_PREFIX
from gilscope.toolkit.race.terms import Flag
from tests.race.model import detection, spans
from tests.race.model.object_kinds import MISSING, attribute, descends, lookup, runs_code, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from tests.race.model.detection import Step, Verb
    from tests.race.model.monitor import Monitor
    from tests.race.model.spans import Operation
    from tests.race.model.state import ReferenceSite

GUARD, VALUE, AUGMENTED, RECHECKED = int(Flag.GUARD), int(Flag.VALUE), int(Flag.AUGMENTED), int(Flag.RECHECKED)


def ops(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    """Return the ops of this module for one core."""
    def begin() -> int:
        return start(monitor)

    def reads(position: int, value: Any, site: ReferenceSite) -> Any:
        if monitor.watches():
            monitor.look_back(_getframe(1), site, lambda touch: open_reads(touch, position))
        return value

    def writes(position: int, value: Any, site: ReferenceSite) -> Any:
        if monitor.watches():
            monitor.look_back(_getframe(1), site, lambda touch: close_writes(touch, position))
        return value

    return {"begin": begin, "reads": reads, "writes": writes}


def start(monitor: Monitor) -> int:
    """Return the number of operations of this thread so far, and log its accesses from now on."""
    state = monitor.threads.current()
    if state.reads is None:
        state.reads, state.writes = deque(maxlen=spans.LOGGED), deque(maxlen=spans.LOGGED)
    return state.position


def open_reads(touch: Operation, since: int) -> None:
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
    """Return True if the caller alone decided what the setter stores, and if it does."""
    if setter & GUARD:
        return not inner & (GUARD | RECHECKED)
    return (kind == detection.WRITE and part in ("attr", "item", "cell")
            and not inner & (VALUE | GUARD | AUGMENTED | RECHECKED))


def close_writes(touch: Operation, since: int) -> None:
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


DELETE = int(Flag.DELETE)


class CellToken:
    """One activation of a function whose closure variables are watched."""

    __slots__ = ("__weakref__",)


def variable_ops(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    """Return the ops of this module for one core."""
    return {**_attributes(monitor), **_variables(monitor), "token": CellToken}


def note_attribute(monitor: Monitor, frame: FrameType, site: ReferenceSite, obj: Any, name: str, verb: Verb,
                   value: Any = NO_VALUE) -> None:
    """Note a load or store of `obj.name`."""
    stores = verb is detection.write
    steps = tuple((verb, *where) for where in attribute(obj, name, store=stores))
    if steps:
        monitor.note(frame, site, steps, value=value, seen=None if stores else lambda: value_of(obj, name))
    elif descends(type(obj), _local) and lookup(type(obj), name) is MISSING:     # what the class has is shared
        monitor.follow_worker()


def _attributes(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    def passing(verb: Verb) -> Callable[[Any, ReferenceSite], Any]:
        def note(obj: Any, site: ReferenceSite) -> Any:
            if monitor.watches():
                note_attribute(monitor, _getframe(1), site, obj, site.key, verb)
            return obj
        return note

    def attr_update(obj: Any, site: ReferenceSite) -> Any:
        steps = _update(obj, site.key) if monitor.watches() else ()
        if not steps and monitor.watches() and runs_code(obj, site.key):
            return _AttributeProxy(monitor, obj, site)
        if steps:
            monitor.note(_getframe(1), site, steps)
        return obj

    def attr_store(value: Any, obj: Any, site: ReferenceSite) -> None:
        if monitor.watches():
            note_attribute(monitor, _getframe(1), site, obj, site.key, detection.write, value)
        setattr(obj, site.key, value)

    def attr_proxy(obj: Any, site: ReferenceSite) -> Any:
        return _AttributeProxy(monitor, obj, site) if monitor.watches() else obj

    return {"attr_read": passing(detection.read), "attr_write": passing(detection.write), "attr_update": attr_update,
            "attr_store": attr_store, "attr_proxy": attr_proxy}


def _update(obj: Any, name: str) -> tuple[Step, ...]:
    stored = attribute(obj, name, store=True)
    # The first of all updates finds the value in the class.
    loaded = tuple(where for where in attribute(obj, name) if stored and where[0] is not obj)
    return *((detection.load, *where) for where in loaded), *((detection.update, *where) for where in stored)


class _AttributeProxy:
    """Stands for an object between the load and the store of `x.a += f()`."""

    __slots__ = ("_monitor", "_obj", "_site")

    def __init__(self, monitor: Monitor, obj: Any, site: ReferenceSite) -> None:
        _set_own(self, "_monitor", monitor)
        _set_own(self, "_obj", obj)
        _set_own(self, "_site", site)

    def __getattribute__(self, name: str) -> Any:
        obj = _own(self, "_obj")
        if runs_code(obj, name):
            monitor, site = _own(self, "_monitor"), _own(self, "_site")
            since = start(monitor)
            value = getattr(obj, name)
            monitor.look_back(_getframe(1), site, lambda touch: open_reads(touch, since))
            return value
        _note(self, _getframe(1), name, detection.load_to_store)
        return getattr(obj, name)

    def __setattr__(self, name: str, value: Any) -> None:
        obj = _own(self, "_obj")
        if runs_code(obj, name):
            monitor, site = _own(self, "_monitor"), _own(self, "_site")
            since = start(monitor)
            setattr(obj, name, value)
            monitor.look_back(_getframe(1), site, lambda touch: close_writes(touch, since))
            return
        _note(self, _getframe(1), name, detection.write)
        setattr(obj, name, value)

    def __delattr__(self, name: str) -> None:
        _note(self, _getframe(1), name, detection.write)
        delattr(_own(self, "_obj"), name)


_own = object.__getattribute__
_set_own = object.__setattr__


def _note(proxy: _AttributeProxy, frame: FrameType, name: str, verb: Verb) -> None:
    note_attribute(_own(proxy, "_monitor"), frame, _own(proxy, "_site"), _own(proxy, "_obj"), name, verb)


def _variables(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    def globals_op(verb: Verb, *, stores: bool) -> Callable[[Any, ReferenceSite], Any]:
        def note(value: Any, site: ReferenceSite) -> Any:
            if monitor.watches():
                frame = _getframe(1)
                known = value if stores and not site.flags & DELETE else NO_VALUE
                monitor.note(frame, site, ((verb, frame.f_globals, "item", site.key),), value=known,
                             seen=lambda: value)
            return value
        return note

    def cells_op(verb: Verb, *, stores: bool) -> Callable[[Any, Any, ReferenceSite], Any]:
        def note(value: Any, token: Any, site: ReferenceSite) -> Any:
            if monitor.watches():
                known = value if stores and not site.flags & DELETE else NO_VALUE
                monitor.note(_getframe(1), site, ((verb, token, "cell", site.key),), value=known, seen=lambda: value)
            return value
        return note

    return {
        "global_read": globals_op(detection.read, stores=False),
        "global_write": globals_op(detection.write, stores=True),
        "global_update": globals_op(detection.update, stores=False),
        "cell_read": cells_op(detection.read, stores=False),
        "cell_write": cells_op(detection.write, stores=True),
        "cell_update": cells_op(detection.update, stores=False),
    }


_DYNAMIC: dict[int, tuple[int, Verb]] = {
    # the builtin's id -> how many arguments it takes at least, and what it does
    id(getattr): (2, detection.read),
    id(hasattr): (2, detection.read),
    id(setattr): (3, detection.write),
    id(delattr): (2, detection.write),
}


def call_ops(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    """Return the ops of this module for one core."""
    def dynamic(function: Callable[..., Any], site: ReferenceSite, *args: Any) -> Any:
        needed, verb = _DYNAMIC.get(id(function), (len(args) + 1, detection.read))
        if len(args) >= needed and type(args[1]) is str and monitor.watches():
            if verb is detection.write and function is setattr:
                note_attribute(monitor, _getframe(1), site, args[0], args[1], verb, args[2])
            else:
                note_attribute(monitor, _getframe(1), site, args[0], args[1], verb)
        return function(*args)

    def enter(_: ReferenceSite) -> None:
        monitor.threads.current().opens.pop(id(_getframe(1)), None)

    def locals_(names: Any) -> Any:
        if type(names) is list:      # dir()
            return [name for name in names if not _ours(name)]
        return {name: value for name, value in names.items() if not _ours(name)}

    return {"dynamic": dynamic, "enter": enter, "locals_": locals_, **ops(monitor)}


def _ours(name: Any) -> bool:
    return type(name) is str and name.startswith(OP_PREFIX)
