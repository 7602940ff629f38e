"""Ops for attributes, globals and closure variables.

The native operation stays in the program: these note it and pass the object (or the value) through.
"""

from __future__ import annotations

from _thread import _local
from sys import _getframe

from gilscope.toolkit.race.core import NO_VALUE
from gilscope.toolkit.race.pure.detection import detect
from gilscope.toolkit.race.pure.ops import call_spans
from gilscope.toolkit.race.pure.state.object_kinds import MISSING, attribute, descends, lookup, runs_code, value_of
from gilscope.toolkit.race.site import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from gilscope.toolkit.race.pure.detection.detect import Step, Verb
    from gilscope.toolkit.race.pure.monitor import Monitor
    from gilscope.toolkit.race.pure.sites import Site

DELETE = int(Flag.DELETE)


class Token:
    """One activation of a function whose closure variables are watched."""

    __slots__ = ("__weakref__",)


def ops(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    """Return the ops of this module for one core."""
    return {**_attributes(monitor), **_variables(monitor), "token": Token}


def note_attribute(monitor: Monitor, frame: FrameType, site: Site, obj: Any, name: str, verb: Verb,
                   value: Any = NO_VALUE) -> None:
    """Note a load or store of `obj.name`."""
    stores = verb is detect.write
    steps = tuple((verb, *where) for where in attribute(obj, name, store=stores))
    if steps:
        monitor.note(frame, site, steps, value=value, seen=None if stores else lambda: value_of(obj, name))
    elif descends(type(obj), _local) and lookup(type(obj), name) is MISSING:     # what the class has is shared
        monitor.follow_worker()


def _attributes(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    def passing(verb: Verb) -> Callable[[Any, Site], Any]:
        def note(obj: Any, site: Site) -> Any:
            if monitor.watches():
                note_attribute(monitor, _getframe(1), site, obj, site.key, verb)
            return obj
        return note

    def attr_update(obj: Any, site: Site) -> Any:
        steps = _update(obj, site.key) if monitor.watches() else ()
        if not steps and monitor.watches() and runs_code(obj, site.key):
            return _AttributeProxy(monitor, obj, site)
        if steps:
            monitor.note(_getframe(1), site, steps)
        return obj

    def attr_store(value: Any, obj: Any, site: Site) -> None:
        if monitor.watches():
            note_attribute(monitor, _getframe(1), site, obj, site.key, detect.write, value)
        setattr(obj, site.key, value)

    def attr_proxy(obj: Any, site: Site) -> Any:
        return _AttributeProxy(monitor, obj, site) if monitor.watches() else obj

    return {"attr_read": passing(detect.read), "attr_write": passing(detect.write), "attr_update": attr_update,
            "attr_store": attr_store, "attr_proxy": attr_proxy}


def _update(obj: Any, name: str) -> tuple[Step, ...]:
    stored = attribute(obj, name, store=True)
    # The first of all updates finds the value in the class.
    loaded = tuple(where for where in attribute(obj, name) if stored and where[0] is not obj)
    return *((detect.load, *where) for where in loaded), *((detect.update, *where) for where in stored)


class _AttributeProxy:
    """Stands for an object between the load and the store of `x.a += f()`."""

    __slots__ = ("_monitor", "_obj", "_site")

    def __init__(self, monitor: Monitor, obj: Any, site: Site) -> None:
        _set_own(self, "_monitor", monitor)
        _set_own(self, "_obj", obj)
        _set_own(self, "_site", site)

    def __getattribute__(self, name: str) -> Any:
        obj = _own(self, "_obj")
        if runs_code(obj, name):
            monitor, site = _own(self, "_monitor"), _own(self, "_site")
            since = call_spans.start(monitor)
            value = getattr(obj, name)
            monitor.look_back(_getframe(1), site, lambda touch: call_spans.open_reads(touch, since))
            return value
        _note(self, _getframe(1), name, detect.load_to_store)
        return getattr(obj, name)

    def __setattr__(self, name: str, value: Any) -> None:
        obj = _own(self, "_obj")
        if runs_code(obj, name):
            monitor, site = _own(self, "_monitor"), _own(self, "_site")
            since = call_spans.start(monitor)
            setattr(obj, name, value)
            monitor.look_back(_getframe(1), site, lambda touch: call_spans.close_writes(touch, since))
            return
        _note(self, _getframe(1), name, detect.write)
        setattr(obj, name, value)

    def __delattr__(self, name: str) -> None:
        _note(self, _getframe(1), name, detect.write)
        delattr(_own(self, "_obj"), name)


_own = object.__getattribute__
_set_own = object.__setattr__


def _note(proxy: _AttributeProxy, frame: FrameType, name: str, verb: Verb) -> None:
    note_attribute(_own(proxy, "_monitor"), frame, _own(proxy, "_site"), _own(proxy, "_obj"), name, verb)


def _variables(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    def globals_op(verb: Verb, *, stores: bool) -> Callable[[Any, Site], Any]:
        def note(value: Any, site: Site) -> Any:
            if monitor.watches():
                frame = _getframe(1)
                known = value if stores and not site.flags & DELETE else NO_VALUE
                monitor.note(frame, site, ((verb, frame.f_globals, "item", site.key),), value=known,
                             seen=lambda: value)
            return value
        return note

    def cells_op(verb: Verb, *, stores: bool) -> Callable[[Any, Any, Site], Any]:
        def note(value: Any, token: Any, site: Site) -> Any:
            if monitor.watches():
                known = value if stores and not site.flags & DELETE else NO_VALUE
                monitor.note(_getframe(1), site, ((verb, token, "cell", site.key),), value=known, seen=lambda: value)
            return value
        return note

    return {
        "global_read": globals_op(detect.read, stores=False),
        "global_write": globals_op(detect.write, stores=True),
        "global_update": globals_op(detect.update, stores=False),
        "cell_read": cells_op(detect.read, stores=False),
        "cell_write": cells_op(detect.write, stores=True),
        "cell_update": cells_op(detect.update, stores=False),
    }
