"""Ops around calls: `getattr` by name, activations, `locals()`."""

from __future__ import annotations

from sys import _getframe

from gilscope.toolkit.race.pure.detection import detect
from gilscope.toolkit.race.pure.ops import call_spans
from gilscope.toolkit.race.pure.ops.variables import note_attribute
from gilscope.toolkit.race.site import OP_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.pure.detection.detect import Verb
    from gilscope.toolkit.race.pure.monitor import Monitor
    from gilscope.toolkit.race.pure.sites import Site

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

    return {"dynamic": dynamic, "enter": enter, "locals_": locals_, **call_spans.ops(monitor)}


def _ours(name: Any) -> bool:
    return type(name) is str and name.startswith(OP_PREFIX)
