"""Ops that look at a container as a whole: `in`, `len`, iteration; and `next` on what yields only once."""

from __future__ import annotations

from collections import OrderedDict, deque
from sys import _getframe

from gilscope.toolkit.race.effects import Function, readers
from tests.race.model import detection, handoff
from tests.race.model.object_kinds import descends, family, loaded, one_of
from tests.race.model.ops_methods import effect_steps, in_steps, is_queue
from tests.race.model.shadow import part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tests.race.model.detection import Step, Transfer
    from tests.race.model.monitor import Monitor
    from tests.race.model.state import ReferenceSite

_KEYS: tuple[Any, ...] = (type({}.keys()), type(OrderedDict().keys()))
_VALUES: tuple[Any, ...] = (type({}.values()), type(OrderedDict().values()))
_ITEMS: tuple[Any, ...] = (type({}.items()), type(OrderedDict().items()))
_VIEWS = (*_KEYS, *_VALUES, *_ITEMS)
_READERS = readers()
_GENERATOR = type(_ for _ in ())
_ONCE: tuple[Any, ...] = (
    _GENERATOR, map, zip, filter, enumerate, reversed, type(iter([])), type(iter(())), type(iter({})),
    type(iter({}.values())), type(iter({}.items())), type(iter(set())), type(iter(range(0))),
    type(iter(range(1 << 70))), type(iter("")), type(iter(b"")), type(iter(deque())), type(reversed([])))
_ITERTOOLS = ("accumulate", "batched", "chain", "combinations", "compress", "cycle", "dropwhile", "filterfalse",
              "groupby", "islice", "pairwise", "permutations", "product", "repeat", "starmap", "takewhile",
              "zip_longest")


def ops(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    """Return the ops of this module for one core."""
    def contains(key: Any, container: Any, site: ReferenceSite) -> bool:
        found = key in container
        if monitor.watches():
            steps, transfers = _membership(container, key, site, found=found)
            if steps:
                monitor.note(_getframe(1), site, steps, transfers)
        return found

    def size(container: Any, site: ReferenceSite) -> Any:
        if monitor.watches():
            steps = _look(container, site.key)
            if steps:
                monitor.note(_getframe(1), site, steps)
        return container

    return {"contains": contains, "size": size, **_iterations(monitor)}


def _look(looked_at: Any, by: str) -> tuple[Step, ...]:
    """Return the accesses of a builtin or function named `by` to its argument; "" stands for size or truth."""
    if is_queue(looked_at, "qsize"):
        return ((detection.size, looked_at, "structure", None),)
    container = _iterated(looked_at)
    if container is None:
        home = family(looked_at, "__len__")
        return () if home is None else ((detection.size, looked_at, "structure", None),)
    reader = _READERS.get(by, Function("snapshot"))
    return effect_steps(reader.effect, container, keys_only=_keys_only(looked_at, container),
                        in_steps=in_steps(reader, container, looked_at))


def _keys_only(looked_at: Any, container: Any) -> bool:
    """Return True if going through it reads no values."""
    return _has_keys(container) and not one_of(type(looked_at), (*_VALUES, *_ITEMS))


def _has_keys(container: Any) -> bool:
    return descends(type(container), dict) or descends(type(container), set)     # isinstance() may run its `__class__`


def _iterations(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    def iterate(iterable: Any, site: ReferenceSite) -> Any:
        if not monitor.watches():
            return iterable
        container = _iterated(iterable)
        if container is not None:
            values = () if _keys_only(iterable, container) else ((detection.whole, container, "whole", None),)
            monitor.note(_getframe(1), site, ((detection.iterate, container, "structure", None), *values))
            return _Steps(monitor, site, iterable, container)
        kind = family(iterable, "__iter__")
        if kind is not None and kind is not loaded("collections", "Counter"):     # an array
            monitor.note(_getframe(1), site, ((detection.read, iterable, "item", part(iterable, slice(None))),))
        return _Once(monitor, site, iterable) if _once(iterable) else iterable

    def advance(iterator: Any, site: ReferenceSite) -> Any:
        if monitor.watches() and _once(iterator):
            monitor.note(_getframe(1), site, ((detection.write, iterator, "iterator", None),))
        return iterator

    return {"iterate": iterate, "advance": advance}


def _membership(container: Any, key: Any, site: ReferenceSite, *,
                found: bool) -> tuple[tuple[Step, ...], tuple[Transfer, ...]]:
    kind = family(container, "__contains__")
    if kind is dict or (kind is not None and kind is loaded("collections", "Counter")):
        relied = ((detection.relied_on, container, "structure", None),) if site.flags & detection.RELIES else ()
        return (*relied, (detection.has if found else detection.lacks, container, "item", key)), ()
    if kind is set:
        return ((detection.found if found else detection.lacks, container, "item", key),), ()
    if kind is list or kind is deque:
        seen = ((handoff.see_values, container, (key,)),) if found else ()
        return ((detection.size, container, "structure", None),), seen
    return (), ()


def _iterated(iterable: Any) -> Any:
    """Return the container that a loop over `iterable` goes through; a view's is its dict."""
    if one_of(type(iterable), _VIEWS):
        from gc import get_referents

        behind = [one for one in get_referents(iterable) if isinstance(one, dict)]
        return behind[0] if behind else None
    kind = family(iterable, "__iter__")
    return iterable if kind is dict or kind is set or kind is list or kind is deque else None


def _once(iterator: Any) -> bool:
    kind = type(iterator)
    return one_of(kind, _ONCE) or one_of(kind, tuple(loaded("itertools", name) for name in _ITERTOOLS))


class _Steps:
    """Goes through a container and notes each step."""

    __slots__ = ("_container", "_monitor", "_native", "_site", "_take")

    def __init__(self, monitor: Monitor, site: ReferenceSite, iterable: Any, container: Any) -> None:
        self._monitor = monitor
        self._site = site
        self._container = container
        self._native: Iterator[Any] = iter(iterable)
        self._take = _taker(iterable, container)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        value = next(self._native)
        monitor = self._monitor
        if monitor.watches():
            steps, transfers = self._take(self._container, value)
            monitor.note(_getframe(1), self._site, ((detection.iterate, self._container, "structure", None), *steps),
                         transfers)
        return value

    def __length_hint__(self) -> int:
        return _hint(self._native)


def _taker(iterable: Any, container: Any) -> Callable[[Any, Any], tuple[tuple[Step, ...], tuple[Transfer, ...]]]:
    """Return the function that finds the insertion before a step of this iteration, for its happens-before edge."""
    if _has_keys(container):
        if one_of(type(iterable), _VALUES):
            return lambda container, _: (((handoff.take_all, container, "structure", None),), ())
        if one_of(type(iterable), _ITEMS):
            return lambda container, pair: (((handoff.take, container, "item", pair[0]),), ())
        return lambda container, key: (((handoff.take, container, "item", key),), ())
    return lambda container, value: ((), ((handoff.see_values, container, (value,)),))


class _Once:
    """Goes through an iterator that others may go through as well, and notes each step."""

    __slots__ = ("_monitor", "_native", "_site")

    def __init__(self, monitor: Monitor, site: ReferenceSite, native: Any) -> None:
        self._monitor = monitor
        self._site = site
        self._native = native

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._monitor.watches():
            self._monitor.note(_getframe(1), self._site, ((detection.write, self._native, "iterator", None),))
        return next(self._native)

    def __length_hint__(self) -> int:
        return _hint(self._native)


def _hint(native: Any) -> int:
    from operator import length_hint

    return length_hint(native)
