"""Indexes: of lists, and of arrays whose slices overlap with their items."""

from __future__ import annotations

from gilscope.toolkit.race.pure.state.object_kinds import descends, loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Box:
    """A rectangular part of an array: one range per axis.  Equal boxes are one location."""

    __slots__ = ("axes",)

    def __init__(self, axes: tuple[range, ...]) -> None:
        self.axes = axes

    def __eq__(self, other: object) -> bool:
        return type(other) is Box and other.axes == self.axes

    def __hash__(self) -> int:
        return hash(self.axes)

    def __repr__(self) -> str:
        return repr(self.key())

    def single(self) -> bool:
        """Claim that this is one item."""
        return all(len(axis) == 1 for axis in self.axes)

    def key(self) -> Any:
        """Return the box as a report names it: an int, a slice's (start, stop, step), or a tuple of those."""
        parts = tuple(axis.start if len(axis) == 1 else (axis.start, axis.stop, axis.step) for axis in self.axes)
        return parts[0] if len(parts) == 1 else parts

    def overlaps(self, other: Box) -> bool:
        """Claim that the two have an item in common."""
        return all(map(_meet, self.axes, other.axes))


def _meet(one: range, other: range) -> bool:
    if one.step < 0:
        one = one[::-1]
    if other.step < 0:
        other = other[::-1]
    if not one or not other or one[0] > other[-1] or other[0] > one[-1]:
        return False
    few, many = (one, other) if len(one) <= len(other) else (other, one)
    skipped = max(0, -(-(many[0] - few[0]) // few.step))     # those before the other range begins
    # What is left over when divided by `many.step` repeats after that many.
    return any(number in many for number in few[skipped:skipped + many.step])


def index(container: Any, key: Any) -> int | None:
    """Return the item's index from the start, or None when the key is no plain index."""
    number = _whole(key)
    if number is None:
        return None
    return number if number >= 0 else number + len(container)


def bounds(container: Any, key: slice) -> tuple[int, int, int] | None:
    """Return start, stop and step of a list's slice; None for all of it, or where bounds are not plain."""
    if all(bound is None or type(bound) is int for bound in (key.start, key.stop, key.step)):
        found = range(len(container))[key]
        if len(found) < len(container):
            return found.start, found.stop, found.step
    return None


def part(container: Any, key: Any) -> Any:
    """Return the box that a key of an array, bytearray or memoryview means; None for a whole array."""
    shape: Sequence[int] | None = getattr(container, "shape", None)
    sizes = (len(container),) if shape is None else shape
    keys = key if type(key) is tuple else (key,)
    if len(keys) > len(sizes):
        return Box(tuple(map(range, sizes)))
    axes = list(map(range, sizes))
    for axis, one in enumerate(keys):
        number = _whole(one)
        if type(one) is slice and all(bound is None or type(bound) is int for bound in (one.start, one.stop, one.step)):
            axes[axis] = axes[axis][one]
        elif number is not None:
            number = number if number >= 0 else number + sizes[axis]
            axes[axis] = range(number, number + 1)
        else:
            return Box(tuple(map(range, sizes)))
    return Box(tuple(axes))


def _whole(key: Any) -> int | None:
    kind = type(key)
    if kind is int or kind is bool:
        return int(key)
    if descends(kind, loaded("numpy", "integer")):     # its int() is C
        return int(key)
    return None
