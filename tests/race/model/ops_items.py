"""Ops for `c[k]`: they do what the program does and note what that was, by the type of the container."""

from __future__ import annotations

from collections import defaultdict, deque
from sys import _getframe

from gilscope.toolkit.race.core import NO_VALUE
from gilscope.toolkit.race.effects import is_atomic
from tests.race.model import detection, handoff, shadow
from tests.race.model.object_kinds import MISSING, descends, family, is_environ, loaded, lookup
from tests.race.model.shadow import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from tests.race.model.detection import Step, Transfer
    from tests.race.model.monitor import Monitor
    from tests.race.model.state import ReferenceSite

_identity_hash = object.__hash__
_identity_eq = object.__eq__
_KEEPS = is_atomic("defaultdict.__missing__")
_default_missing = defaultdict.__dict__["__missing__"]
_default_factory = defaultdict.__dict__["default_factory"].__get__      # a subclass may have a property of that name


def ops(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    """Return the ops of this module for one core."""
    def item_read(container: Any, key: Any, site: ReferenceSite) -> Any:
        if not monitor.watches():
            return container[key]
        return ItemOps(monitor, _getframe(1), site).load(container, key)

    def item_write(value: Any, container: Any, key: Any, site: ReferenceSite) -> None:
        if not monitor.watches():
            container[key] = value
            return
        ItemOps(monitor, _getframe(1), site).store(container, key, value)

    def item_delete(container: Any, key: Any, site: ReferenceSite) -> None:
        if not monitor.watches():
            del container[key]
            return
        ItemOps(monitor, _getframe(1), site).delete(container, key)

    def item_proxy(container: Any, site: ReferenceSite) -> Any:
        return _ItemProxy(monitor, container, site) if monitor.watches() else container

    return {"item_read": item_read, "item_write": item_write, "item_delete": item_delete, "item_proxy": item_proxy,
            "slice_": slice}


class _ItemProxy:
    """Stands for a container where `c[k]` is a target."""

    __slots__ = ("container", "monitor", "site")

    def __init__(self, monitor: Monitor, container: Any, site: ReferenceSite) -> None:
        self.monitor = monitor
        self.container = container
        self.site = site

    def __getitem__(self, key: Any) -> Any:
        return ItemOps(self.monitor, _getframe(1), self.site, own=True).load(self.container, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        # A slice that is updated in place is stored back where it is already.
        ItemOps(self.monitor, _getframe(1), self.site).store(self.container, key, value)

    def __delitem__(self, key: Any) -> None:
        ItemOps(self.monitor, _getframe(1), self.site).delete(self.container, key)


def absent(container: Any, key: Any) -> bool | None:
    """Return True if a dict or set has no such key; None if asking might run code of the program."""
    kind = type(key)
    if plain(key) or (lookup(kind, "__hash__") is _identity_hash and lookup(kind, "__eq__") is _identity_eq):
        has = dict.__contains__ if descends(type(container), dict) else set.__contains__
        return not has(container, key)
    return None


def default_steps(container: Any, key: Any) -> tuple[Step, ...]:
    """Return the accesses of an insertion that keeps what another thread has inserted before.

    No edge from the found insertion: in the other order this call would have inserted.
    """
    missing = absent(container, key)
    steps: list[Step] = [(detection.atomic, container, "item", key)]
    if missing is not False:
        steps.append((handoff.hand, container, "item", key))
    if missing:
        steps.append((detection.grow, container, "structure", None))
    return tuple(steps)


class ItemOps:
    """One operation on an item: done and noted."""

    __slots__ = ("frame", "monitor", "own", "site")

    def __init__(self, monitor: Monitor, frame: FrameType, site: ReferenceSite, *, own: bool = False) -> None:
        self.monitor = monitor
        self.frame = frame
        self.site = site
        self.own = own       # a store at the same site follows

    def note(self, *steps: Step, transfers: tuple[Transfer, ...] = (), value: Any = NO_VALUE,
             seen: Callable[[], Any] | None = None) -> None:
        """Note steps of this operation."""
        self.monitor.note(self.frame, self.site, steps, transfers, value, seen)

    def load(self, container: Any, key: Any) -> Any:
        """Return `container[key]`."""
        kind = family(container, "__getitem__")
        if self.site.flags & detection.RELIES and kind in (list, deque):
            self.note((detection.relied_on, container, "structure", None))
        if kind is dict or kind is loaded("collections", "Counter"):
            return self._load_key(container, key)
        value = container[key]
        if kind is list or kind is deque:
            self._loaded_index(container, key, value)
        elif is_environ(kind):
            self.note((detection.load_to_store if self.own else detection.read, container, "item", key))
        elif kind is not None and kind is not set:
            verb = detection.load_to_store if self.own else detection.read
            self.note((verb, container, "item", shadow.part(container, key)))
        return value

    def store(self, container: Any, key: Any, value: Any) -> None:
        """Do `container[key] = value`."""
        kind = family(container, "__setitem__")
        if kind is dict:
            self._store_key(container, key, value)
            return
        if kind is list or kind is deque:
            index = shadow.index(container, key)
            if type(key) is slice:
                self.note((detection.reshape, container, "structure", None))
            elif index is not None:
                self.note((detection.write, container, "item", index), value=value)
        elif is_environ(kind):
            self.note((detection.write, container, "item", key), value=value)
        elif kind is not None and kind is not set:
            self.note((detection.write, container, "item", shadow.part(container, key)), value=value)
        container[key] = value

    def delete(self, container: Any, key: Any) -> None:
        """Do `del container[key]`."""
        kind = family(container, "__delitem__")
        if kind is dict or kind is loaded("collections", "Counter"):
            if absent(container, key) is not True:
                self.note((detection.delete, container, "item", key), (detection.shrink, container, "structure", None))
        elif is_environ(kind):
            self.note((detection.write, container, "item", key))
        elif kind is list and type(key) is slice:
            self.note((detection.reshape, container, "structure", None))
        elif kind is list or kind is deque or kind is bytearray or kind is loaded("array", "array"):
            self.note((detection.shrink, container, "structure", None))
        del container[key]

    def _load_key(self, container: Any, key: Any) -> Any:
        if lookup(type(container), "__missing__") is _default_missing:
            self.own |= not _KEEPS     # a load that stores if need be
            value = dict.get(container, key, MISSING)
            return self._make(container, key) if value is MISSING else self._got(container, key, value)
        try:
            value = container[key]
        except KeyError:
            self._missed(container, key)
            raise
        if lookup(type(container), "__missing__") is not MISSING and absent(container, key):
            self._missed(container, key)
            return value
        return self._got(container, key, value)

    def _make(self, container: Any, key: Any) -> Any:
        """Do what `defaultdict.__missing__` does, with a note between making the value and storing it."""
        factory = _default_factory(container)
        if factory is None or not _KEEPS:
            self._missed(container, key)
        if factory is None:
            return container[key]
        value = factory()
        if _KEEPS:
            self.note(*default_steps(container, key))
            value = dict.setdefault(container, key, value)
            self.note((detection.got_to_store if self.own else handoff.take, container, "item", key))
            return value
        self._insert(container, key, value)
        container[key] = value
        return value

    def _got(self, container: Any, key: Any, value: Any) -> Any:
        self.note((detection.got_to_store if self.own else detection.got, container, "item", key), seen=lambda: value)
        return value

    def _missed(self, container: Any, key: Any) -> None:
        self.note((detection.missed_to_store if self.own else detection.missed, container, "item", key))

    def _insert(self, container: Any, key: Any, value: Any) -> None:
        self.note((detection.insert, container, "item", key), (detection.grow, container, "structure", None),
                  value=value)

    def _store_key(self, container: Any, key: Any, value: Any) -> None:
        new = absent(container, key)
        if new is None:
            self._store_unasked(container, key, value)
            return
        if new:
            self._insert(container, key, value)
        else:
            self.note((detection.write, container, "item", key), value=value)
        container[key] = value

    def _store_unasked(self, container: Any, key: Any, value: Any) -> None:
        """Store under a key that must not be compared once more: the length tells whether it was new."""
        before = dict.__len__(container)
        self.note((detection.insert, container, "item", key), value=value)
        container[key] = value
        if dict.__len__(container) > before:
            self.note((detection.grow, container, "structure", None))

    def _loaded_index(self, container: Any, key: Any, value: Any) -> None:
        if type(key) is slice:
            self.note((detection.snapshot, container, "structure", None),
                      (detection.whole, container, "whole", shadow.bounds(container, key)))
            return
        index = shadow.index(container, key)
        if index is not None:
            self.note((detection.load_to_store if self.own else detection.read, container, "item", index),
                      transfers=((handoff.see_values, container, (value,)),), seen=lambda: value)
