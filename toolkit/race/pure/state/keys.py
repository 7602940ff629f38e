"""Keys by which locations are told apart, without running anybody's `__eq__` or `__hash__`."""

from __future__ import annotations

from _weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DEPTH = 4     # of tuples in tuples that are looked into


class Same:
    """Stands in a token for an object that is told apart by its identity."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return type(other) is Same and other.number == self.number

    def __hash__(self) -> int:
        return hash(self.number)


def plain(key: object) -> bool:
    """Claim that equality of such keys is the interpreter's own, and costs nothing to ask for."""
    kind = type(key)
    if kind is tuple:
        return all(map(plain, key))     # type: ignore[call-overload]  # a tuple, as its type says
    return (kind is str or kind is int or kind is float or kind is bytes or kind is bool or key is None
            or kind is complex)


def token(key: Any, depth: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Return a hashable stand-in for `key`, and the objects whose ids are in it."""
    if plain(key):
        return key, ()
    if type(key) is tuple and depth < _DEPTH:
        parts = [token(part, depth + 1) for part in key]
        return tuple(part for part, _ in parts), tuple(guard for _, guards in parts for guard in guards)
    return Same(id(key)), (key,)


def guard(key: Any) -> Any:
    """Return what tells later whether `key` still lives: a weak reference, or else the key itself in a cell."""
    try:
        return ref(key)
    except TypeError:
        return lambda: key


def original(key: Any, guards: tuple[Any, ...]) -> Any:
    """Return the key that a token stands for; None when it is no more."""
    alive = iter(guards)

    def back(part: Any) -> Any:
        if type(part) is Same:
            return next(alive)()
        return tuple(back(inner) for inner in part) if type(part) is tuple else part

    return back(key)
