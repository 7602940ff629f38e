"""Op `method`: calls of container methods, noted by what the builtin type's method does.

Where the key or the value matters the op returns a stand-in whose method does the call; the arguments are evaluated
after the method is looked up, as in the program.
"""

from __future__ import annotations

from collections import deque
from sys import _getframe

from gilscope.toolkit.race.pure.detection import detect, handoff, structure
from gilscope.toolkit.race.pure.ops.dicts import DICT_METHODS, SET_METHODS, count_up
from gilscope.toolkit.race.pure.ops.sequences import SEQUENCE_METHODS
from gilscope.toolkit.race.pure.state.object_kinds import family, holder, loaded, one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType
    from typing import Any

    from gilscope.toolkit.race.pure.detection.detect import Verb
    from gilscope.toolkit.race.pure.monitor import Monitor
    from gilscope.toolkit.race.pure.ops.items import Items
    from gilscope.toolkit.race.pure.sites import Site

    Method = Callable[[Items, Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]

_DICT = {"clear": structure.shrink, "copy": structure.snapshot, "keys": structure.size, "values": structure.snapshot,
         "items": structure.snapshot, "move_to_end": structure.reshape}
_SET = {"clear": structure.shrink, "copy": structure.snapshot, "difference_update": structure.shrink,
        "intersection_update": structure.shrink, "symmetric_difference_update": structure.reshape}
_LIST = {"clear": structure.shrink, "copy": structure.snapshot, "count": structure.size, "index": structure.size,
         "sort": structure.reshape, "reverse": structure.reshape, "rotate": structure.reshape}
_MORE: dict[str, tuple[tuple[Verb, str], ...]] = {
    "copy": ((detect.whole, "whole"),), "clear": ((handoff.cleared, "structure"),)}
_QUEUE = {"empty": structure.size, "full": structure.size, "qsize": structure.size, "get": structure.get,
          "get_nowait": structure.get, "put": structure.put, "put_nowait": structure.put}
_ARRAY = {"append": structure.grow, "extend": structure.grow, "insert": structure.grow, "pop": structure.shrink,
          "remove": structure.shrink, "reverse": structure.reshape, "clear": structure.shrink}


def ops(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    """Return the op of this module for one core."""
    def method(container: Any, site: Site) -> Any:
        if not monitor.watches():
            return container
        name = site.key
        if is_queue(container, name):
            note(container, _getframe(1), site, _QUEUE.get(name))
            return container
        kind = family(container, name)
        called = _calls(kind).get(name)
        if called is not None:
            return _Caller(monitor, container, site, called)
        note(container, _getframe(1), site, _structural(kind).get(name))
        return container

    def note(container: Any, frame: FrameType, site: Site, verb: Verb | None) -> None:
        if verb is not None:
            more = ((also, container, part, None) for also, part in _MORE.get(site.key, ()))
            monitor.note(frame, site, ((verb, container, "structure", None), *more))

    return {"method": method}


def _calls(kind: Any) -> Mapping[str, Method]:
    if kind is dict:
        return DICT_METHODS
    if kind is set:
        return SET_METHODS
    if kind is list or kind is deque:
        return SEQUENCE_METHODS
    if kind is not None and kind is loaded("collections", "Counter"):
        return {"update": count_up, "subtract": count_up}
    return {}


def _structural(kind: Any) -> Mapping[str, Verb]:
    if kind is dict or (kind is not None and kind is loaded("collections", "Counter")):
        return _DICT
    if kind is set:
        return _SET
    if kind is list or kind is deque:
        return _LIST
    return _ARRAY if kind is bytearray or (kind is not None and kind is loaded("array", "array")) else {}


def is_queue(container: Any, name: str) -> bool:
    """Claim that the method is that of a queue of the standard library, which locks for itself."""
    home = holder(type(container), name)
    queues = tuple(loaded("queue", kind) for kind in ("Queue", "LifoQueue", "PriorityQueue", "SimpleQueue"))
    return home is not None and one_of(home, queues)


class _Caller:
    """Stands for a container where one of its methods is called."""

    __slots__ = ("call", "container", "monitor", "site")

    def __init__(self, monitor: Monitor, container: Any, site: Site, call: Method) -> None:
        self.monitor = monitor
        self.container = container
        self.site = site
        self.call = call

    def __getattr__(self, name: str) -> Callable[..., Any]:
        from gilscope.toolkit.race.pure.ops.items import Items

        native = getattr(self.container, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return self.call(Items(self.monitor, _getframe(1), self.site), self.container, native, args, kwargs)

        return call
