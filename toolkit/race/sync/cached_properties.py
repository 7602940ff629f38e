"""`functools.cached_property` has no lock since Python 3.12: two threads may run its function, and get two objects.

Each run counts as a check and a write of the property, if the value is more than a number or text and two of them make
a difference: an object that is no container, or a function with side effects.
"""

from __future__ import annotations

from gilscope.toolkit.race.site import SiteInfo, all_sites, register_sites
from gilscope.toolkit.race.sync.layer import ObjectStates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.sync.layer import SyncLayer

_VALUES = (int, float, complex, str, bytes, bool, type(None), tuple, frozenset)
_CONTAINERS = (list, dict, set)


class CachedPropertyPatches:
    """Patch of functools."""

    def __init__(self, layer: SyncLayer) -> None:
        self._layer = layer
        self._core: Core = layer.core
        self._slots = ObjectStates()       # instance -> name -> what stands for the property
        self._sites: dict[CodeType, tuple[object, object] | None] = {}

    def patch(self, module: Any) -> None:
        """Patch what runs if the instance has no value yet."""
        self._layer.wrap(module.cached_property, "__get__", None, self.after_get, muted=False)

    def after_get(self, _state: object, value: object, made: Any, instance: Any, *_owner: Any, **_named: Any) -> None:
        """Note that a value was looked for, not found and stored."""
        code = getattr(made.func, "__code__", None)
        if instance is None or code is None or type(value) in _VALUES:
            return
        if type(value) in _CONTAINERS and not _has_side_effects(code):
            return
        if code not in self._sites:
            self._sites[code] = self._sites_of(code, made.attrname)
        if (sites := self._sites[code]) is not None:
            slots = self._slots.make(instance, dict)
            slot = slots.setdefault(made.attrname, type(type(instance).__name__, (), {})())
            self._core.ops["attr_read"](slot, sites[0])
            self._core.ops["attr_write"](slot, sites[1])

    def _sites_of(self, code: CodeType, name: str) -> tuple[object, object] | None:
        """Return the sites of the check and the store, None if the function is not the program's."""
        from gilscope.toolkit.race.terms import Flag

        path, first = code.co_filename, code.co_firstlineno
        if not any(site.path == path for site in all_sites):
            return None
        last = max(line for _, _, line in code.co_lines() if line is not None)
        check = SiteInfo(path, first, 0, first, 0, code.co_qualname, "attr_read", name, f"self.{name}",
                         int(Flag.TEST | Flag.SPAN_READ), (), None)
        store = check._replace(line=last, end_line=last, op="attr_write", flags=int(Flag.GUARD), partners=(0,))
        number = register_sites([check, store])
        return self._core.site(all_sites[number], number), self._core.site(all_sites[number + 1], number + 1)


def _has_side_effects(code: CodeType) -> bool:
    """Return True if a function calls a method that changes a container."""
    from gilscope.toolkit.race.effects import CHANGING

    return not CHANGING.isdisjoint(code.co_names)
