"""Happens-before edges through containers: getting an item is ordered after inserting it.

Items of dicts and sets are distinguished by key, those of lists and deques by identity.  All under the guard.
"""

from __future__ import annotations

from collections import deque

from tests.race.model.object_kinds import descends, own_length

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from tests.race.model.shadow import Location, Shadow
    from tests.race.model.spans import Operation
    from tests.race.model.state import VectorClock

_EQUAL = 256      # insertions of one object that are remembered separately
_UNSEEN = 64      # values of a container that may have left it unseen before it is looked through


def hand(touch: Operation, location: Location) -> None:
    """Add an edge from here to each later retrieval of this item."""
    now = touch.state.moment()
    location.handed = now if location.handed is None else location.handed.union(now)
    touch.publishes = True


def take(touch: Operation, location: Location) -> None:
    """Add an edge from the insertion of an item."""
    handed = location.handed or location.shadow.unknown
    if handed is not None:
        touch.state.join(handed)


def removed(_: Operation, location: Location) -> None:
    """Forget the insertion of an item that was removed."""
    location.handed = None


def take_all(touch: Operation, location: Location) -> None:
    """Add an edge from every insertion into the container."""
    shadow = location.shadow
    for item in shadow.locations.values():
        if item.handed is not None:
            touch.state.join(item.handed)
    for clocks in shadow.values.values():
        for _, clock in clocks:
            touch.state.join(clock)
    if shadow.unknown is not None:
        touch.state.join(shadow.unknown)


def give_all(touch: Operation, location: Location) -> None:
    """Add an edge from here to each later retrieval of any item of the container."""
    hand_unknown(touch, location.shadow, ())


def hand_right(touch: Operation, shadow: Shadow, values: Sequence[Any]) -> None:
    """Add edges from here to later retrievals of these values, which are now at the right end."""
    for value, clocks in _handing(touch, shadow, values):
        shadow.values[id(value)] = [*clocks, (touch.state.slot, touch.state.moment())]


def hand_left(touch: Operation, shadow: Shadow, values: Sequence[Any]) -> None:
    """Do the same at the left end."""
    for value, clocks in _handing(touch, shadow, values):
        shadow.values[id(value)] = [(touch.state.slot, touch.state.moment()), *clocks]


def _handing(
    touch: Operation, shadow: Shadow, values: Sequence[Any]
) -> Iterator[tuple[Any, list[tuple[int, VectorClock]]]]:
    touch.publishes = True
    _prune(shadow)
    for value in values:
        yield value, shadow.values.get(id(value), [])[-_EQUAL:]


def hand_unknown(touch: Operation, shadow: Shadow, _: Sequence[Any]) -> None:
    """Add an edge from here to each later retrieval of a value whose insertion was not seen."""
    now = touch.state.moment()
    touch.publishes = True
    shadow.unknown = now if shadow.unknown is None else shadow.unknown.union(now)


def see_values(touch: Operation, shadow: Shadow, values: Sequence[Any]) -> None:
    """Add an edge from every insertion of these values."""
    for value in values:
        _come_after(touch, shadow, shadow.values.get(id(value), []))


def take_left(touch: Operation, shadow: Shadow, values: Sequence[Any]) -> None:
    """Add an edge from the insertion of values that left the container at its left end.

    Where several threads inserted the same object, it may be the first of each.
    """
    for value in values:
        clocks = _there(shadow, value)
        _come_after(touch, shadow, list(dict(reversed(clocks)).items()))
        _left(shadow, value, clocks[1:])


def take_right(touch: Operation, shadow: Shadow, values: Sequence[Any]) -> None:
    """Do the same at the right end."""
    for value in values:
        clocks = _there(shadow, value)
        _come_after(touch, shadow, list(dict(clocks).items()))
        _left(shadow, value, clocks[:-1])


def take_within(touch: Operation, shadow: Shadow, values: Sequence[Any]) -> None:
    """Add an edge from every insertion of values that left the container at an unknown position."""
    for value in values:
        clocks = _there(shadow, value)
        _come_after(touch, shadow, clocks)
        _left(shadow, value, clocks[1:])


def _there(shadow: Shadow, value: Any) -> list[tuple[int, VectorClock]]:
    """Return the insertions of a value that has just left; no more than there can have been in the container.

    The oldest of too many left it unseen.
    """
    return shadow.values.get(id(value), [])[-1 - own_length(shadow.owner()):]


def cleared(_: Operation, location: Location) -> None:
    """Forget all insertions."""
    shadow = location.shadow
    shadow.values.clear()
    shadow.unknown = None
    for item in shadow.locations.values():
        item.handed = None


def _come_after(touch: Operation, shadow: Shadow, clocks: list[tuple[int, VectorClock]]) -> None:
    for _, clock in clocks:
        touch.state.join(clock)
    if not clocks and shadow.unknown is not None:
        touch.state.join(shadow.unknown)


def _left(shadow: Shadow, value: Any, clocks: list[tuple[int, VectorClock]]) -> None:
    if clocks:
        shadow.values[id(value)] = clocks
    else:
        shadow.values.pop(id(value), None)


def _prune(shadow: Shadow) -> None:
    """Forget values that left the container unseen."""
    owner = shadow.owner()
    if len(shadow.values) <= _UNSEEN + 2 * own_length(owner):
        return
    there = set(map(id, _content(owner)))
    for number in [number for number in shadow.values if number not in there]:
        del shadow.values[number]


def _content(owner: Any) -> list[Any]:
    try:
        return list(list.__iter__(owner) if descends(type(owner), list) else deque.__iter__(owner))
    except RuntimeError:     # a deque that another thread changes
        return _content(owner)
