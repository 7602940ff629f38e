"""The op `method`: calls of methods of built-in containers, and of getters and setters."""

from __future__ import annotations

import sysconfig
from collections import OrderedDict, deque
from sys import _getframe

from gilscope.toolkit.race.effects import EFFECTS, METHODS, Container, Function, Method, SideEffect
from gilscope.toolkit.race.terms import AccessKind
from tests.race.model import detection, handoff
from tests.race.model.object_kinds import MISSING, descends, family, holder, loaded, one_of
from tests.race.model.ops_items import absent, default_steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from tests.race.model.detection import Step, Transfer, Verb
    from tests.race.model.monitor import Monitor
    from tests.race.model.ops_items import ItemOps
    from tests.race.model.shadow import Shadow
    from tests.race.model.spans import Operation
    from tests.race.model.state import ReferenceSite

    Taken = Callable[[Operation, Shadow, Sequence[Any]], None]
    Called = Callable[[ItemOps, Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


def append(items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> Any:
    """Do `append` or `insert`, whose last argument is the value."""
    if args:
        _grow(items, container, (handoff.hand_right, container, args[-1:]))
    return native(*args, **kwargs)


def appendleft(items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
               kwargs: dict[str, Any]) -> Any:
    """Do `appendleft`."""
    if args:
        _grow(items, container, (handoff.hand_left, container, args))
    return native(*args, **kwargs)


def extend(items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> Any:
    """Do `extend`."""
    return native(*_grow_by(items, container, handoff.hand_right, args), **kwargs)


def extendleft(items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
               kwargs: dict[str, Any]) -> Any:
    """Do `extendleft`."""
    return native(*_grow_by(items, container, handoff.hand_left, args), **kwargs)


def pop(
    items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Do `pop`, at the right end unless an index says otherwise."""
    if not args:
        return _take(items, container, native, handoff.take_right)
    taken = handoff.take_left if type(args[0]) is int and args[0] == 0 else handoff.take_within
    return _take(items, container, lambda: native(*args, **kwargs), taken)


def popleft(items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
            kwargs: dict[str, Any]) -> Any:
    """Do `popleft`."""
    return _take(items, container, lambda: native(*args, **kwargs), handoff.take_left)


def _take(items: ItemOps, container: Any, native: Callable[[], Any], taken: Taken) -> Any:
    value = native()
    items.note(transfers=((taken, container, (value,)),))     # first: the removal comes after it, too
    items.note((detection.shrink, container, "structure", None))
    return value


def remove(items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> Any:
    """Do `remove(value)`."""
    items.note((detection.shrink, container, "structure", None))
    return native(*args, **kwargs)


def _grow(items: ItemOps, container: Any, transfer: Transfer) -> None:
    items.note((detection.grow, container, "structure", None), transfers=(transfer,))


def _grow_by(items: ItemOps, container: Any, hand: Taken, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the argument of `extend`, where need be as an iterator that hands over each value it yields."""
    if len(args) != 1 or args[0] is container:
        return args
    kind = type(args[0])
    if kind is list or kind is tuple:
        _grow(items, container, (hand, container, tuple(args[0])))
        return args
    items.note((detection.grow, container, "structure", None))
    return (_Handing(items, container, hand, args[0]),)


class _Handing:
    """An iterator that notes each value as inserted before a container takes it."""

    __slots__ = ("container", "hand", "items", "native", "source")

    def __init__(self, items: ItemOps, container: Any, hand: Taken, source: Any) -> None:
        self.items = items
        self.container = container
        self.hand = hand
        self.source = source
        self.native = iter(source)

    def __iter__(self) -> _Handing:
        return self

    def __next__(self) -> Any:
        value = next(self.native)
        self.items.note(transfers=((self.hand, self.container, (value,)),))
        return value

    def __length_hint__(self) -> int:
        from operator import length_hint

        return length_hint(self.source)


_ASKS_NOTHING = (list, tuple, set, frozenset, dict, str)     # to iterate over these runs no code of the program
MOST_KEYS = 64      # of an argument of `update` that are noted one by one


def _item(verb: Verb, container: Any, key: Any) -> Step:
    return verb, container, "item", key


def _structure(verb: Verb, container: Any) -> Step:
    return verb, container, "structure", None


def get(
    items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Do `d.get(key, default)`."""
    if kwargs or not 1 <= len(args) <= 2:  # what get takes
        return native(*args, **kwargs)
    value = native(args[0], MISSING)
    if value is MISSING:
        items.note(_item(detection.missed, container, args[0]))
        return args[1] if len(args) > 1 else None
    items.note(_item(detection.got, container, args[0]))
    return value


def setdefault(items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
               kwargs: dict[str, Any]) -> Any:
    """Do `d.setdefault(key, value)`."""
    key = args[0] if args else kwargs.get("key", MISSING)
    if key is MISSING:
        return native(*args, **kwargs)
    items.note(*default_steps(container, key))
    value = native(*args, **kwargs)
    items.note(_item(handoff.take, container, key))
    return value


def pop_key(
    items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Do `d.pop(key, default)`."""
    key = args[0] if args else kwargs.get("key", MISSING)
    if key is MISSING:
        return native(*args, **kwargs)
    steps = [_item(detection.remove, container, key)]
    if absent(container, key) is not True:
        steps = [_item(handoff.take, container, key), *steps, _structure(detection.shrink, container)]
    items.note(*steps)
    value = native(*args, **kwargs)
    items.note(_item(handoff.take, container, key), _item(handoff.removed, container, key))
    return value


def popitem(items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
            kwargs: dict[str, Any]) -> Any:
    """Do `d.popitem()`."""
    pair = native(*args, **kwargs)
    items.note(_item(handoff.take, container, pair[0]), _item(handoff.removed, container, pair[0]),
               _structure(detection.shrink, container))
    return pair


def update(items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> Any:
    """Do `d.update(other, **more)`."""
    keys: list[Any] = list(kwargs)
    if len(args) == 1 and descends(type(args[0]), dict):     # isinstance() may run its `__class__`
        keys = [*dict.keys(args[0]), *keys]
    elif len(args) == 1 and one_of(type(args[0]), (list, tuple)):
        keys = [*(pair[0] for pair in args[0] if type(pair) is tuple and pair), *keys]
    return _several(items, container, keys, lambda: native(*args, **kwargs), unseen=True)


def add(
    items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Do `s.add(item)`."""
    if len(args) == 1:
        steps = [_item(detection.atomic, container, args[0])]
        if absent(container, args[0]) is not False:
            steps += _item(handoff.hand, container, args[0]), _structure(detection.grow, container)
        items.note(*steps)
    return native(*args, **kwargs)


def discard(items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
            kwargs: dict[str, Any]) -> Any:
    """Do `s.discard(item)` or `s.remove(item)`."""
    if len(args) == 1:
        steps = [_item(detection.remove, container, args[0])]
        if absent(container, args[0]) is not True:
            steps = [_item(handoff.take, container, args[0]), *steps, _structure(detection.shrink, container)]
        items.note(*steps)
    return native(*args, **kwargs)


def set_pop(items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
            kwargs: dict[str, Any]) -> Any:
    """Do `s.pop()`."""
    item = native(*args, **kwargs)
    items.note(_item(handoff.take, container, item), _item(handoff.removed, container, item),
               _structure(detection.shrink, container))
    return item


def set_update(items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
               kwargs: dict[str, Any]) -> Any:
    """Do `s.update(other, ...)`."""
    unseen = not all(one_of(type(arg), _ASKS_NOTHING) for arg in args)
    return _several(items, container, _known(args), lambda: native(*args, **kwargs), unseen=unseen)


def _several(items: ItemOps, container: Any, keys: list[Any], act: Callable[[], Any], *, unseen: bool) -> Any:
    """Insert several keys at once; of those that are not known in time the container hands over what it can."""
    steps: list[Step] = []
    for key in keys[:MOST_KEYS]:
        steps += _item(detection.atomic, container, key), _item(handoff.hand, container, key)
    unknown: tuple[Transfer, ...] = ((handoff.hand_unknown, container, ()),) if unseen or len(keys) > MOST_KEYS else ()
    items.note(*steps, _structure(detection.grow, container), transfers=unknown)
    result = act()
    if unknown and len(keys) <= MOST_KEYS:
        items.note(transfers=unknown)     # what an iterator made on its way
    return result


def count_up(items: ItemOps, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
             kwargs: dict[str, Any]) -> Any:
    """Do `counter.update(other, **more)` or `subtract`, which load and store each key in turn."""
    steps: list[Step] = []
    grows = False
    for key in [*_known(args), *kwargs][:MOST_KEYS]:
        new = absent(container, key)
        grows = grows or new is True
        steps += (
            (_item(detection.missed_to_store, container, key), _item(detection.insert, container, key)) if new else
            (_item(detection.got_to_store, container, key), _item(detection.write, container, key)))
    if grows:
        steps.append(_structure(detection.grow, container))
    items.note(*steps)
    return native(*args, **kwargs)


def _known(args: Iterable[Any]) -> list[Any]:
    """Return the items of those arguments whose iteration has no side effects, each once."""
    found: dict[int, Any] = {}
    for arg in args:
        if one_of(type(arg), _ASKS_NOTHING):
            found.update((id(item), item) for item in list(arg))
    return list(found.values())


# What does an effect that depends on arguments or result; `remove any` is another method for a set.
CALLS = {"get key": get, "set default": setdefault, "remove key": pop_key, "remove any": popitem,
         "insert keys": update, "count keys": count_up, "add key": add, "discard key": discard, "insert right": append,
         "insert left": appendleft, "extend right": extend, "extend left": extendleft, "pop right": pop,
         "pop left": popleft, "remove value": remove}
_CALLS_OF_SETS = {"remove any": set_pop, "insert keys": set_update}
_GIL_BUILD = not sysconfig.get_config_var("Py_GIL_DISABLED")
_VERBS = {AccessKind.ITERATE: detection.iterate, AccessKind.GROW: detection.grow, AccessKind.SHRINK: detection.shrink,
          AccessKind.RESHAPE: detection.reshape}
_UNORDERED_VERBS = {AccessKind.SIZE: detection.size, AccessKind.GROW: detection.put, AccessKind.SHRINK: detection.get}


def effect_steps(name: str, container: Any, *, keys_only: bool = False, in_steps: bool = False) -> tuple[Step, ...]:
    """Return the accesses of an effect on a container as a whole, which may be several where others are one step."""
    effect = EFFECTS[name]._replace(kind=AccessKind.ITERATE) if in_steps else EFFECTS[name]
    assert effect.kind is not None
    if effect.side & SideEffect.UNORDERED:
        return (_structure(_UNORDERED_VERBS[effect.kind], container),)
    takes = bool(effect.side & SideEffect.TAKE)
    if effect.kind == AccessKind.SIZE:
        steps = [_structure(detection.snapshot if takes else detection.size, container)]
    else:
        steps = [_structure(_VERBS[effect.kind], container)]
        steps += [_structure(handoff.give_all, container)] if effect.side & SideEffect.HAND else []
        steps += [_structure(handoff.take_all, container)] if takes else []
    if effect.side & SideEffect.FORGET:
        steps.append(_structure(handoff.cleared, container))
    reads = SideEffect.READ_VALUES | (SideEffect.NONE if keys_only else SideEffect.READ_ITEMS)
    if effect.side & reads and not descends(type(container), set):
        steps.append((detection.whole, container, "whole", None))
    return tuple(steps)


def in_steps(row: Method | Function, container: Any, view: Any) -> bool:
    """Return True if the effect on a container, of which a view may be read, is no single step in this build."""
    if _GIL_BUILD or descends(type(container), list):
        return False
    if descends(type(container), OrderedDict):
        kind = Container.ORDERED
    elif descends(type(container), dict):
        kind = (Container.VIEW if view is not container else
                Container.DICT if type(container) is dict else Container.SUBCLASS)
    else:
        kind = Container.SET if descends(type(container), set) else Container.DEQUE
    return bool(row.in_steps & kind)


def ops(monitor: Monitor) -> dict[str, Callable[..., Any]]:
    """Return the op of this module for one core."""
    def method(container: Any, site: ReferenceSite) -> Any:
        if not monitor.watches():
            return container
        column = _column(container, site.key)
        row = METHODS.get(site.key)
        effect = getattr(row, column) if row is not None and column else ""
        if not effect:
            return container
        called = (_CALLS_OF_SETS.get(effect) if column == "sets" else None) or CALLS.get(effect)
        if called is not None:
            return _Caller(monitor, container, site, called)
        assert row is not None
        monitor.note(_getframe(1), site, effect_steps(effect, container, in_steps=in_steps(row, container, container)))
        return container

    return {"method": method}


def _column(container: Any, name: str) -> str:
    """Return the column of `Method` for the type that has the method, or ""."""
    if is_queue(container, name):
        return "queues"
    kind = family(container, name)
    if kind is None:
        return ""
    kinds = {dict: "dicts", loaded("collections", "Counter"): "counters", set: "sets", list: "sequences",
             deque: "sequences", bytearray: "arrays", loaded("array", "array"): "arrays"}
    return next((column for one, column in kinds.items() if one is kind), "")


def is_queue(container: Any, name: str) -> bool:
    """Return True if the method is that of a standard library queue, which has its own lock."""
    home = holder(type(container), name)
    queues = tuple(loaded("queue", kind) for kind in ("Queue", "LifoQueue", "PriorityQueue", "SimpleQueue"))
    return home is not None and one_of(home, queues)


class _Caller:
    """Stands for a container where one of its methods is called."""

    __slots__ = ("call", "container", "monitor", "site")

    def __init__(self, monitor: Monitor, container: Any, site: ReferenceSite, call: Called) -> None:
        self.monitor = monitor
        self.container = container
        self.site = site
        self.call = call

    def __getattr__(self, name: str) -> Callable[..., Any]:
        from tests.race.model.ops_items import ItemOps

        native = getattr(self.container, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return self.call(ItemOps(self.monitor, _getframe(1), self.site), self.container, native, args, kwargs)

        return call
