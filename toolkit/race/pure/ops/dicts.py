"""What the methods of dict, set and Counter do to keys and structure."""

from __future__ import annotations

from gilscope.toolkit.race.pure.detection import detect, handoff, structure
from gilscope.toolkit.race.pure.ops.items import absent
from gilscope.toolkit.race.pure.state.object_kinds import MISSING, one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from gilscope.toolkit.race.pure.detection.detect import Step, Transfer, Verb
    from gilscope.toolkit.race.pure.ops.items import Items

_ASKS_NOTHING = (list, tuple, set, frozenset, dict, str)     # to iterate over these runs no code of the program
MOST_KEYS = 64      # of an argument of `update` that are noted one by one


def _item(verb: Verb, container: Any, key: Any) -> Step:
    return verb, container, "item", key


def _structure(verb: Verb, container: Any) -> Step:
    return verb, container, "structure", None


def get(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Do `d.get(key, default)`."""
    if kwargs or not 1 <= len(args) <= 2:  # noqa: PLR2004  what get takes
        return native(*args, **kwargs)
    value = native(args[0], MISSING)
    if value is MISSING:
        items.note(_item(detect.missed, container, args[0]))
        return args[1] if len(args) > 1 else None
    items.note(_item(detect.got, container, args[0]))
    return value


def setdefault(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
               kwargs: dict[str, Any]) -> Any:
    """Do `d.setdefault(key, value)`."""
    key = args[0] if args else kwargs.get("key", MISSING)
    if key is MISSING:
        return native(*args, **kwargs)
    missing = absent(container, key)
    # Not after the insertion it finds: had it come earlier, it would have inserted itself.
    steps = [_item(detect.atomic, container, key)]
    if missing is not False:
        steps.append(_item(handoff.hand, container, key))
    if missing:
        steps.append(_structure(structure.grow, container))
    items.note(*steps)
    value = native(*args, **kwargs)
    items.note(_item(handoff.take, container, key))
    return value


def pop(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Do `d.pop(key, default)`."""
    key = args[0] if args else kwargs.get("key", MISSING)
    if key is MISSING:
        return native(*args, **kwargs)
    steps = [_item(detect.atomic, container, key)]
    if absent(container, key) is not True:
        steps = [_item(handoff.take, container, key), *steps, _structure(structure.shrink, container)]
    items.note(*steps)
    value = native(*args, **kwargs)
    items.note(_item(handoff.take, container, key), _item(handoff.removed, container, key))
    return value


def popitem(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
            kwargs: dict[str, Any]) -> Any:
    """Do `d.popitem()`."""
    pair = native(*args, **kwargs)
    items.note(_item(handoff.take, container, pair[0]), _item(handoff.removed, container, pair[0]),
               _structure(structure.shrink, container))
    return pair


def update(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> Any:
    """Do `d.update(other, **more)`."""
    keys: list[Any] = list(kwargs)
    if len(args) == 1 and isinstance(args[0], dict):
        keys = [*dict.keys(args[0]), *keys]
    elif len(args) == 1 and one_of(type(args[0]), (list, tuple)):
        keys = [*(pair[0] for pair in args[0] if type(pair) is tuple and pair), *keys]
    return _several(items, container, keys, lambda: native(*args, **kwargs), unseen=True)


def add(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Do `s.add(item)`."""
    if len(args) == 1:
        steps = [_item(detect.atomic, container, args[0])]
        if absent(container, args[0]) is not False:
            steps += _item(handoff.hand, container, args[0]), _structure(structure.grow, container)
        items.note(*steps)
    return native(*args, **kwargs)


def discard(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
            kwargs: dict[str, Any]) -> Any:
    """Do `s.discard(item)` or `s.remove(item)`."""
    if len(args) == 1:
        steps = [_item(detect.atomic, container, args[0])]
        if absent(container, args[0]) is not True:
            steps = [_item(handoff.take, container, args[0]), *steps, _structure(structure.shrink, container)]
        items.note(*steps)
    return native(*args, **kwargs)


def set_pop(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
            kwargs: dict[str, Any]) -> Any:
    """Do `s.pop()`."""
    item = native(*args, **kwargs)
    items.note(_item(handoff.take, container, item), _item(handoff.removed, container, item),
               _structure(structure.shrink, container))
    return item


def set_update(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
               kwargs: dict[str, Any]) -> Any:
    """Do `s.update(other, ...)`."""
    unseen = not all(one_of(type(arg), _ASKS_NOTHING) for arg in args)
    return _several(items, container, _known(args), lambda: native(*args, **kwargs), unseen=unseen)


def _several(items: Items, container: Any, keys: list[Any], act: Callable[[], Any], *, unseen: bool) -> Any:
    """Insert several keys at once; of those that are not known in time the container hands over what it can."""
    steps: list[Step] = []
    for key in keys[:MOST_KEYS]:
        steps += _item(detect.atomic, container, key), _item(handoff.hand, container, key)
    unknown: tuple[Transfer, ...] = ((handoff.hand_unknown, container, ()),) if unseen or len(keys) > MOST_KEYS else ()
    items.note(*steps, _structure(structure.grow, container), transfers=unknown)
    result = act()
    if unknown and len(keys) <= MOST_KEYS:
        items.note(transfers=unknown)     # what an iterator made on its way
    return result


def count_up(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
             kwargs: dict[str, Any]) -> Any:
    """Do `counter.update(other, **more)` or `subtract`, which load and store each key in turn."""
    steps: list[Step] = []
    grows = False
    for key in [*_known(args), *kwargs][:MOST_KEYS]:
        new = absent(container, key)
        grows = grows or new is True
        steps += ((_item(detect.missed_to_store, container, key), _item(detect.insert, container, key)) if new else
                  (_item(detect.got_to_store, container, key), _item(detect.write, container, key)))
    if grows:
        steps.append(_structure(structure.grow, container))
    items.note(*steps)
    return native(*args, **kwargs)


def _known(args: Iterable[Any]) -> list[Any]:
    """Return the items of those arguments whose iteration changes and asks nothing, each once."""
    found: dict[int, Any] = {}
    for arg in args:
        if one_of(type(arg), _ASKS_NOTHING):
            found.update((id(item), item) for item in list(arg))
    return list(found.values())


DICT_METHODS = {"get": get, "setdefault": setdefault, "pop": pop, "popitem": popitem, "update": update}
SET_METHODS = {"add": add, "discard": discard, "remove": discard, "pop": set_pop, "update": set_update}
