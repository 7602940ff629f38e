"""Ops for `c[k]`: they do what the program does and note what that was, by the type of the container."""

from __future__ import annotations

from collections import defaultdict, deque
from sys import _getframe

from gilscope.toolkit.race.core import NO_VALUE
from gilscope.toolkit.race.pure.detection import detect, handoff, structure
from gilscope.toolkit.race.pure.state import ranges
from gilscope.toolkit.race.pure.state.keys import plain
from gilscope.toolkit.race.pure.state.object_kinds import MISSING, family, is_environ, loaded, lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from gilscope.toolkit.race.pure.detection.detect import Step, Transfer
    from gilscope.toolkit.race.pure.monitor import Monitor
    from gilscope.toolkit.race.pure.sites import Site

_identity_hash = object.__hash__
_identity_eq = object.__eq__
_default_missing = defaultdict.__dict__["__missing__"]


def ops(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    """Return the ops of this module for one core."""
    def item_read(container: Any, key: Any, site: Site) -> Any:
        if not monitor.watches():
            return container[key]
        return Items(monitor, _getframe(1), site).load(container, key)

    def item_write(value: Any, container: Any, key: Any, site: Site) -> None:
        if not monitor.watches():
            container[key] = value
            return
        Items(monitor, _getframe(1), site).store(container, key, value)

    def item_delete(container: Any, key: Any, site: Site) -> None:
        if not monitor.watches():
            del container[key]
            return
        Items(monitor, _getframe(1), site).delete(container, key)

    def item_proxy(container: Any, site: Site) -> Any:
        return _ItemProxy(monitor, container, site) if monitor.watches() else container

    return {"item_read": item_read, "item_write": item_write, "item_delete": item_delete, "item_proxy": item_proxy,
            "slice_": slice}


class _ItemProxy:
    """Stands for a container where `c[k]` is a target."""

    __slots__ = ("container", "monitor", "site")

    def __init__(self, monitor: Monitor, container: Any, site: Site) -> None:
        self.monitor = monitor
        self.container = container
        self.site = site

    def __getitem__(self, key: Any) -> Any:
        return Items(self.monitor, _getframe(1), self.site, own=True).load(self.container, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        # A slice that is updated in place is stored back where it is already.
        Items(self.monitor, _getframe(1), self.site).store(self.container, key, value)

    def __delitem__(self, key: Any) -> None:
        Items(self.monitor, _getframe(1), self.site).delete(self.container, key)


def absent(container: Any, key: Any) -> bool | None:
    """Claim that a dict or set has no such key; None when asking might run code of the program."""
    kind = type(key)
    if plain(key) or (lookup(kind, "__hash__") is _identity_hash and lookup(kind, "__eq__") is _identity_eq):
        has = dict.__contains__ if isinstance(container, dict) else set.__contains__
        return not has(container, key)
    return None


class Items:
    """One operation on an item: done and noted."""

    __slots__ = ("frame", "monitor", "own", "site")

    def __init__(self, monitor: Monitor, frame: FrameType, site: Site, *, own: bool = False) -> None:
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
        if kind is dict or kind is loaded("collections", "Counter"):
            return self._load_key(container, key)
        value = container[key]
        if kind is list or kind is deque:
            self._loaded_index(container, key, value)
        elif is_environ(kind):
            self.note((detect.load_to_store if self.own else detect.read, container, "item", key))
        elif kind is not None and kind is not set:
            verb = detect.load_to_store if self.own else detect.read
            self.note((verb, container, "item", ranges.part(container, key)))
        return value

    def store(self, container: Any, key: Any, value: Any) -> None:
        """Do `container[key] = value`."""
        kind = family(container, "__setitem__")
        if kind is dict:
            self._store_key(container, key, value)
            return
        if kind is list or kind is deque:
            index = ranges.index(container, key)
            if type(key) is slice:
                self.note((structure.reshape, container, "structure", None))
            elif index is not None:
                self.note((detect.write, container, "item", index), value=value)
        elif is_environ(kind):
            self.note((detect.write, container, "item", key), value=value)
        elif kind is not None and kind is not set:
            self.note((detect.write, container, "item", ranges.part(container, key)), value=value)
        container[key] = value

    def delete(self, container: Any, key: Any) -> None:
        """Do `del container[key]`."""
        kind = family(container, "__delitem__")
        if kind is dict or kind is loaded("collections", "Counter"):
            if absent(container, key) is not True:
                self.note((detect.delete, container, "item", key), (structure.shrink, container, "structure", None))
        elif is_environ(kind):
            self.note((detect.write, container, "item", key))
        elif kind is list and type(key) is slice:
            self.note((structure.reshape, container, "structure", None))
        elif kind is list or kind is deque or kind is bytearray or kind is loaded("array", "array"):
            self.note((structure.shrink, container, "structure", None))
        del container[key]

    def _load_key(self, container: Any, key: Any) -> Any:
        if lookup(type(container), "__missing__") is _default_missing:
            self.own = True      # a load that stores if need be
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
        self._missed(container, key)
        factory = container.default_factory
        if factory is None:
            return container[key]
        value = factory()
        self._insert(container, key, value)
        container[key] = value
        return value

    def _got(self, container: Any, key: Any, value: Any) -> Any:
        self.note((detect.got_to_store if self.own else detect.got, container, "item", key), seen=lambda: value)
        return value

    def _missed(self, container: Any, key: Any) -> None:
        self.note((detect.missed_to_store if self.own else detect.missed, container, "item", key))

    def _insert(self, container: Any, key: Any, value: Any) -> None:
        self.note((detect.insert, container, "item", key), (structure.grow, container, "structure", None), value=value)

    def _store_key(self, container: Any, key: Any, value: Any) -> None:
        new = absent(container, key)
        if new is None:
            self._store_unasked(container, key, value)
            return
        if new:
            self._insert(container, key, value)
        else:
            self.note((detect.write, container, "item", key), value=value)
        container[key] = value

    def _store_unasked(self, container: Any, key: Any, value: Any) -> None:
        """Store under a key that must not be compared once more: the length tells whether it was new."""
        before = dict.__len__(container)
        self.note((detect.insert, container, "item", key), value=value)
        container[key] = value
        if dict.__len__(container) > before:
            self.note((structure.grow, container, "structure", None))

    def _loaded_index(self, container: Any, key: Any, value: Any) -> None:
        if type(key) is slice:
            self.note((structure.snapshot, container, "structure", None),
                      (detect.whole, container, "whole", ranges.bounds(container, key)))
            return
        index = ranges.index(container, key)
        if index is not None:
            self.note((detect.load_to_store if self.own else detect.read, container, "item", index),
                      transfers=((handoff.see_values, container, (value,)),), seen=lambda: value)
