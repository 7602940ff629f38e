"""What the methods of list and deque do to the structure; values are handed over by identity."""

from __future__ import annotations

from gilscope.toolkit.race.pure.detection import handoff, structure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from gilscope.toolkit.race.pure.detection.detect import Transfer
    from gilscope.toolkit.race.pure.detection.touch import Touch
    from gilscope.toolkit.race.pure.ops.items import Items
    from gilscope.toolkit.race.pure.state.shadow import Shadow

    Taken = Callable[[Touch, Shadow, Sequence[Any]], None]


def append(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> Any:
    """Do `append` or `insert`, whose last argument is the value."""
    if args:
        _grow(items, container, (handoff.hand_right, container, args[-1:]))
    return native(*args, **kwargs)


def appendleft(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
               kwargs: dict[str, Any]) -> Any:
    """Do `appendleft`."""
    if args:
        _grow(items, container, (handoff.hand_left, container, args))
    return native(*args, **kwargs)


def extend(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> Any:
    """Do `extend`."""
    return native(*_grow_by(items, container, handoff.hand_right, args), **kwargs)


def extendleft(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
               kwargs: dict[str, Any]) -> Any:
    """Do `extendleft`."""
    return native(*_grow_by(items, container, handoff.hand_left, args), **kwargs)


def pop(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Do `pop`, at the right end unless an index says otherwise."""
    if not args:
        return _take(items, container, native, handoff.take_right)
    taken = handoff.take_left if type(args[0]) is int and args[0] == 0 else handoff.take_within
    return _take(items, container, lambda: native(*args, **kwargs), taken)


def popleft(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
            kwargs: dict[str, Any]) -> Any:
    """Do `popleft`."""
    return _take(items, container, lambda: native(*args, **kwargs), handoff.take_left)


def _take(items: Items, container: Any, native: Callable[[], Any], taken: Taken) -> Any:
    value = native()
    items.note(transfers=((taken, container, (value,)),))     # first: the removal comes after it, too
    items.note((structure.shrink, container, "structure", None))
    return value


def remove(items: Items, container: Any, native: Callable[..., Any], args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> Any:
    """Do `remove(value)`."""
    items.note((structure.shrink, container, "structure", None))
    return native(*args, **kwargs)


def _grow(items: Items, container: Any, transfer: Transfer) -> None:
    items.note((structure.grow, container, "structure", None), transfers=(transfer,))


def _grow_by(items: Items, container: Any, hand: Taken, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the argument of `extend`, where need be as an iterator that hands over each value it yields."""
    if len(args) != 1 or args[0] is container:
        return args
    kind = type(args[0])
    if kind is list or kind is tuple:
        _grow(items, container, (hand, container, tuple(args[0])))
        return args
    items.note((structure.grow, container, "structure", None))
    return (_Handing(items, container, hand, args[0]),)


class _Handing:
    """An iterator whose values are handed over one by one on their way into a container."""

    __slots__ = ("container", "hand", "items", "native", "source")

    def __init__(self, items: Items, container: Any, hand: Taken, source: Any) -> None:
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


SEQUENCE_METHODS = {"append": append, "appendleft": appendleft, "insert": append, "extend": extend,
                    "extendleft": extendleft, "pop": pop, "popleft": popleft, "remove": remove}
