"""The ops of rewritten code in a confirming run: each does what the program wrote, and tells the watchers of its place.

Where the native operation follows an op (`attr_read(x, S).a`), a proxy stands between, so that a pause fits between
reading and writing.
"""

from __future__ import annotations

import gc
import sys
from collections import deque

from gilscope.toolkit.race.confirm.pausing.spots import Recent
from gilscope.toolkit.race.confirm.pausing.watch import ANY
from gilscope.toolkit.race.confirm.plan import ITERATES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from gilscope.toolkit.race.confirm.pausing.spots import Spot

VIEWS: tuple[type[Any], ...] = (type({}.keys()), type({}.values()), type({}.items()))
STRUCTURED: tuple[type[Any], ...] = (dict, list, set, deque, *VIEWS)
READING = frozenset({"copy", "count", "empty", "full", "get", "index", "items", "keys", "qsize", "values"})


class AttributeProxy:
    """An object of the program for one attribute access."""

    __slots__ = ("_object", "_recent", "_spot")

    def __init__(self, owner: Any, spot: Spot, recent: Recent) -> None:
        object.__setattr__(self, "_object", owner)
        object.__setattr__(self, "_spot", spot)
        object.__setattr__(self, "_recent", recent)

    def __getattribute__(self, name: str) -> Any:
        owner, spot, recent = _parts(self)
        spot.arrive(owner, name)
        value = getattr(owner, name)
        recent.read(owner, name)
        spot.read(owner, name)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        owner, spot, recent = _parts(self)
        spot.write(owner, name)
        setattr(owner, name, value)
        recent.wrote(owner, name)
        spot.wrote(owner, name)

    def __delattr__(self, name: str) -> None:
        owner, spot, recent = _parts(self)
        spot.write(owner, name)
        delattr(owner, name)
        recent.wrote(owner, name)
        spot.wrote(owner, name)


def _parts(proxy: AttributeProxy) -> tuple[Any, Spot, Recent]:
    get = object.__getattribute__
    return get(proxy, "_object"), get(proxy, "_spot"), get(proxy, "_recent")


class ItemProxy:
    """A container of the program for accesses of its items."""

    __slots__ = ("_ops", "_owner", "_spot")

    def __init__(self, owner: Any, spot: Spot, ops: Ops) -> None:
        self._owner = owner
        self._spot = spot
        self._ops = ops

    def __getitem__(self, key: Any) -> Any:
        return self._ops.item_read(self._owner, key, self._spot)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._ops.item_write(value, self._owner, key, self._spot)

    def __delitem__(self, key: Any) -> None:
        self._ops.item_delete(self._owner, key, self._spot)


class MethodProxy:
    """A container of the program for one call of one of its methods."""

    __slots__ = ("_owner", "_recent", "_spot")

    def __init__(self, owner: Any, spot: Spot, recent: Recent) -> None:
        self._owner = owner
        self._spot = spot
        self._recent = recent

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._owner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            (self._recent.read if name in READING else self._recent.wrote)(self._owner, ANY)
            self._spot.write(self._owner, ANY)
            try:
                return method(*arguments, **named)
            finally:
                self._spot.read(self._owner, ANY)
                self._spot.wrote(self._owner, ANY)

        return call


class Ops:
    """The ops by their names, see `gilscope.toolkit.race.site.OPS`; every one does what the program wrote."""

    def __init__(self) -> None:
        self.recent = Recent()

    def attr_read(self, owner: Any, spot: Spot) -> Any:
        return AttributeProxy(owner, spot, self.recent) if spot.watchers or self.recent.wanted else owner

    attr_write = attr_update = attr_proxy = attr_read

    def attr_store(self, value: Any, owner: Any, spot: Spot) -> None:
        setattr(AttributeProxy(owner, spot, self.recent), spot.key, value)

    def item_read(self, owner: Any, key: Any, spot: Spot) -> Any:
        spot.arrive(owner, key)
        try:
            return owner[key]
        finally:   # also where it is missing: what follows may depend on that
            self.recent.read(owner, key)
            spot.read(owner, key)

    def item_write(self, value: Any, owner: Any, key: Any, spot: Spot) -> None:
        spot.write(owner, key)
        owner[key] = value
        self.recent.wrote(owner, key)
        spot.wrote(owner, key)

    def item_delete(self, owner: Any, key: Any, spot: Spot) -> None:
        spot.write(owner, key)
        try:
            del owner[key]
        finally:
            self.recent.wrote(owner, key)
            spot.wrote(owner, key)

    def item_proxy(self, owner: Any, spot: Spot) -> Any:
        return ItemProxy(owner, spot, self) if spot.watchers or self.recent.wanted else owner

    def global_read(self, value: Any, spot: Spot) -> Any:
        return self._variable_read(value, _globals_of_caller(), spot)

    def global_write(self, value: Any, spot: Spot) -> Any:
        return self._variable_write(value, _globals_of_caller(), spot)

    def global_update(self, value: Any, spot: Spot) -> Any:
        return self._variable_update(value, _globals_of_caller(), spot)

    def cell_read(self, value: Any, token: object, spot: Spot) -> Any:
        return self._variable_read(value, token, spot)

    def cell_write(self, value: Any, token: object, spot: Spot) -> Any:
        return self._variable_write(value, token, spot)

    def cell_update(self, value: Any, token: object, spot: Spot) -> Any:
        return self._variable_update(value, token, spot)

    def _variable_read(self, value: Any, owner: Any, spot: Spot) -> Any:
        spot.arrive(owner, spot.key)
        self.recent.read(owner, spot.key)
        spot.read(owner, spot.key)
        return value

    def _variable_write(self, value: Any, owner: Any, spot: Spot) -> Any:
        spot.write(owner, spot.key)
        self.recent.wrote(owner, spot.key)
        spot.wrote(owner, spot.key)
        return value

    def _variable_update(self, value: Any, owner: Any, spot: Spot) -> Any:
        # The variable's value is on the stack already, the sum is stored right after: the pause is between.
        spot.arrive(owner, spot.key)
        spot.read(owner, spot.key)
        self.recent.wrote(owner, spot.key)
        spot.wrote(owner, spot.key)
        return value

    def method(self, owner: Any, spot: Spot) -> Any:
        return MethodProxy(owner, spot, self.recent) if spot.watchers or self.recent.wanted else owner

    def contains(self, key: Any, owner: Any, spot: Spot) -> bool:
        spot.arrive(owner, key)
        found = key in owner
        self.recent.read(owner, key)
        spot.read(owner, key)
        return found

    def size(self, owner: Any, spot: Spot) -> Any:
        spot.arrive(owner, ANY)
        self.recent.read(owner, ANY)
        spot.read(owner, ANY)
        return owner

    def iterate(self, owner: Any, spot: Spot) -> Any:
        if not spot.watchers or not isinstance(owner, STRUCTURED):
            self.advance(owner, spot)
            return owner
        spot.arrive(owner, ANY)
        return _followed(owner, spot)

    def advance(self, owner: Any, spot: Spot) -> Any:
        if spot.watchers:
            spot.write(owner, ANY)
            spot.wrote(owner, ANY)
        return owner

    def dynamic(self, function: Callable[..., Any], spot: Spot, *arguments: Any) -> Any:
        if not spot.watchers or len(arguments) < 2:  # noqa: PLR2004  object and name
            return function(*arguments)
        place = arguments[:2]
        if function in {setattr, delattr}:
            spot.write(*place)
            result = function(*arguments)
            spot.wrote(*place)
            return result
        spot.arrive(*place)
        result = function(*arguments)
        spot.read(*place)
        return result

    def enter(self, spot: Spot) -> None:
        """Nothing: a span that was left open is replaced by the next."""

    def begin(self) -> int:
        return self.recent.position()

    def reads(self, position: int, value: Any, spot: Spot) -> Any:
        if spot.watchers:
            for owner, key in self.recent.since(position, wrote=False)[-1:]:
                spot.read(owner, key)
        return value

    def writes(self, position: int, value: Any, spot: Spot) -> Any:
        if spot.watchers:
            for owner, key in self.recent.since(position, wrote=True):
                spot.wrote(owner, key)
        return value

    def token(self) -> object:
        return object()

    def locals_(self, found: Any) -> Any:
        if isinstance(found, dict):
            return {name: value for name, value in found.items() if not name.startswith("gilscope:")}
        return [name for name in found if not name.startswith("gilscope:")]

    slice_ = slice


def _globals_of_caller() -> dict[str, Any]:
    return sys._getframe(2).f_globals  # noqa: SLF001  the only way to them


def _followed(owner: Any, spot: Spot) -> Iterator[Any]:
    """Iterate, waiting between items for a change of the structure."""
    watchers = [watcher for watcher, roles in spot.watchers if roles & ITERATES]
    structure = gc.get_referents(owner)[0] if isinstance(owner, VIEWS) else owner
    for watcher in watchers:
        watcher.begin((structure, ANY))
    try:
        for item in owner:
            for watcher in watchers:
                watcher.iterating()
            yield item
    finally:
        for watcher in watchers:
            watcher.end()
