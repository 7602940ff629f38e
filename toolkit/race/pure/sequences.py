"""What the methods of list and deque do to the structure; values are handed over by identity."""

from __future__ import annotations

from toolkit.race.pure import detect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from toolkit.race.pure.detect import Transfer
    from toolkit.race.pure.items import Items


def append(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> Any:
    """Do `append`, `appendleft` or `insert`, whose last argument is the value."""
    if args:
        _grow(items, container, (detect.hand_values, container, args[-1:]))
    return native(*args, **kwargs)


def extend(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> Any:
    """Do `extend` or `extendleft`."""
    if len(args) == 1:
        kind = type(args[0])
        if kind is list or kind is tuple:
            _grow(items, container, (detect.hand_values, container, tuple(args[0])))
        else:
            _grow(items, container, (detect.hand_unknown, container, ()))
    return native(*args, **kwargs)


def pop(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Do `pop` or `popleft`."""
    if len(container):
        items.note((detect.shrink, container, "structure", None))
    value = native(*args, **kwargs)
    items.note(transfers=((detect.take_values, container, (value,)),))
    return value


def remove(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> Any:
    """Do `remove(value)`."""
    items.note((detect.shrink, container, "structure", None))
    return native(*args, **kwargs)


def _grow(items: Items, container: Any, transfer: Transfer) -> None:
    items.note((detect.grow, container, "structure", None), transfers=(transfer,))


SEQUENCE_METHODS = {"append": append, "appendleft": append, "insert": append, "extend": extend, "extendleft": extend,
                    "pop": pop, "popleft": pop, "remove": remove}
