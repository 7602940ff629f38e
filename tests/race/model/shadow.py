"""Shadow state: for each location, the accesses that a later one may conflict with.

Locations are told apart without running any `__eq__` or `__hash__` of the program.
"""

from __future__ import annotations

from _weakref import ref
from itertools import count
from sys import getrefcount

from tests.race.model.object_kinds import descends, is_fixed, loaded, own_length, own_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tests.race.model.state import AccessRecord, OpenSpan, VectorClock

_DEPTH = 4     # of tuples in tuples that are looked into


class IdentityKey:
    """Stands for an object in a token, and compares by the object's identity."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return type(other) is IdentityKey and other.number == self.number

    def __hash__(self) -> int:
        return hash(self.number)


def plain(key: object) -> bool:
    """Return True if comparing such keys runs only the interpreter's own, fast code."""
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
    return IdentityKey(id(key)), (key,)


def guard(key: Any) -> Any:
    """Return a weak reference to `key`, or a function that returns it if it cannot have one."""
    try:
        return ref(key)
    except TypeError:
        return lambda: key


def original(key: Any, guards: tuple[Any, ...]) -> Any:
    """Return the key of a token, or None if it no longer exists."""
    alive = iter(guards)

    def back(part: Any) -> Any:
        if type(part) is IdentityKey:
            return next(alive)()
        return tuple(back(inner) for inner in part) if type(part) is tuple else part

    return back(key)


class RangeBox:
    """A rectangular part of an array: one range per axis.  Equal boxes are one location."""

    __slots__ = ("axes",)

    def __init__(self, axes: tuple[range, ...]) -> None:
        self.axes = axes

    def __eq__(self, other: object) -> bool:
        return type(other) is RangeBox and other.axes == self.axes

    def __hash__(self) -> int:
        return hash(self.axes)

    def __repr__(self) -> str:
        return repr(self.key())

    def single(self) -> bool:
        """Return True if this is a single item."""
        return all(len(axis) == 1 for axis in self.axes)

    def key(self) -> Any:
        """Return the box as a report names it: an int, a slice's (start, stop, step), or a tuple of those."""
        parts = tuple(axis.start if len(axis) == 1 else (axis.start, axis.stop, axis.step) for axis in self.axes)
        return parts[0] if len(parts) == 1 else parts

    def overlaps(self, other: RangeBox) -> bool:
        """Return True if the two have an item in common."""
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
    return number if number >= 0 else number + own_length(container)


def bounds(container: Any, key: slice) -> tuple[int, int, int] | None:
    """Return start, stop and step of a list's slice; None for all of it, or where bounds are not plain."""
    if all(bound is None or type(bound) is int for bound in (key.start, key.stop, key.step)):
        length = own_length(container)
        found = range(length)[key]
        if len(found) < length:
            return found.start, found.stop, found.step
    return None


def part(container: Any, key: Any) -> Any:
    """Return the box that a key of an array, bytearray or memoryview selects; None for a whole array."""
    sizes = own_shape(container)
    keys = key if type(key) is tuple else (key,)
    if len(keys) > len(sizes):
        return RangeBox(tuple(map(range, sizes)))
    axes = list(map(range, sizes))
    for axis, one in enumerate(keys):
        mask = type(one) is bool and descends(type(container), loaded("numpy", "ndarray"))
        number = None if mask else _whole(one)
        if type(one) is slice and all(bound is None or type(bound) is int for bound in (one.start, one.stop, one.step)):
            axes[axis] = axes[axis][one]
        elif number is not None:
            number = number if number >= 0 else number + sizes[axis]
            axes[axis] = range(number, number + 1)
        else:
            return RangeBox(tuple(map(range, sizes)))
    return RangeBox(tuple(axes))


def _whole(key: Any) -> int | None:
    kind = type(key)
    if kind is int or kind is bool:
        return int(key)
    if descends(kind, loaded("numpy", "integer")) and is_fixed(kind):     # its int() is C
        return int(key)
    return None


_SWEEP = 256        # strong references that may come before the first sweep
_BOXES = 256        # different slices of an array
_MOST = 20_000      # strong references at any time; the oldest go first


class _Ref(ref):    # type: ignore[type-arg]  # generic for checkers only
    __slots__ = ("key",)
    key: int


class Location:
    """One attribute, item, structure, iterator or cell of one object."""

    __slots__ = ("acts", "by", "guards", "handed", "key", "kinds", "part", "published", "reads", "relying", "removal",
                 "shadow", "spans", "write")

    def __init__(self, shadow: Shadow, part: str, key: Any, guards: tuple[Any, ...]) -> None:
        self.shadow = shadow
        self.part = part
        self.key = key                 # a token, see `keys`
        self.guards = guards           # what keeps the ids in the token true
        self.write: AccessRecord | None = None                         # the last plain store
        self.reads: dict[tuple[int, bool], AccessRecord] = {}          # (slot, polling) -> last load since then
        self.relying: dict[tuple[int, bool], bool] = {}                # whether others rely on it, or it on others
        self.removal: AccessRecord | None = None                       # the last removal in one step since then
        self.kinds: dict[tuple[int, int], AccessRecord] = {}           # (slot, kind) -> last, for structures
        self.spans: dict[tuple[int, int, tuple[int, ...]], OpenSpan] = {}
        self.acts: dict[tuple[int, int, tuple[int, ...], bool], AccessRecord] = {}
        self.handed: VectorClock | None = None     # the moment of the insertion
        self.published: VectorClock | None = None  # the moment of the last store that a load may be ordered after
        self.by = 0                          # and which loads may: bits of `detect`


_numbers = count(1)


class Shadow:
    """All that is remembered of one object."""

    __slots__ = ("boxes", "locations", "number", "ref", "strong", "sync", "unknown", "values", "wholes")

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.ref: _Ref | None = None
        self.strong: Any = None
        self.locations: dict[tuple[str, Any], Location] = {}
        self.boxes: list[Location] = []              # of more than one item
        self.sync: VectorClock | None = None               # the object as a means of synchronisation
        # (slot, indexes) -> last read of many items at once
        self.wholes: dict[tuple[int, range | None], AccessRecord] = {}
        # id of an inserted value -> slot and moment of each insertion, as they stand from left to right
        self.values: dict[int, list[tuple[int, VectorClock]]] = {}
        self.unknown: VectorClock | None = None            # moment of insertions whose values were not seen

    def owner(self) -> Any:
        """Return the object, or None if it no longer exists."""
        return self.strong if self.ref is None else self.ref()

    def location(self, part: str, key: Any) -> Location:
        """Return the location of that part and key; a new one if its key no longer exists."""
        name, alive = (key, ()) if type(key) is RangeBox else token(key)
        found = self.locations.get((part, name))
        if found is not None and all(map(_is, found.guards, alive)):
            return found
        fresh = Location(self, part, name, tuple(map(guard, alive)))
        self.locations[part, name] = fresh
        if type(key) is RangeBox and not key.single():
            self.boxes = [*self.boxes[1 - _BOXES:], fresh]
        return fresh

    def overlapping(self, box: RangeBox) -> list[Location]:
        """Return the other locations of an array that share an item with this one."""
        others = self.boxes if box.single() else [location for (_, key), location in self.locations.items()
                                                  if type(key) is RangeBox]
        return [other for other in others if other.key != box and other.key.overlaps(box)]

    def unshared(self) -> bool:
        """Return True if nothing but this shadow refers to the object."""
        return self.ref is None and getrefcount(self.strong) <= _UNSHARED


def _is(guarded: Any, key: Any) -> bool:
    return guarded() is key


def _count_of_unshared() -> int:
    """Return the `getrefcount` of an object with one reference, which depends on the interpreter."""
    shadow = Shadow()
    shadow.strong = []
    return getrefcount(shadow.strong)


_UNSHARED = _count_of_unshared()


class ShadowTable:
    """Shadows by the id of their object.  All methods under the guard."""

    def __init__(self) -> None:
        self._shadows: dict[int, Shadow] = {}
        self._dead: list[_Ref] = []        # appended to by the interpreter when an object dies
        self._strong: dict[int, Shadow] = {}
        self._limit = _SWEEP
        self.trash: list[Shadow] = []      # no longer in the table; emptied where user code may run

    def of(self, owner: Any) -> Shadow:
        """Return the shadow of `owner`."""
        while self._dead:
            self._bury(self._dead.pop())
        shadow = self._shadows.get(id(owner))
        if shadow is not None and shadow.owner() is owner:
            return shadow
        return self._cast(owner)

    def find(self, owner: Any) -> Shadow | None:
        """Return the shadow of `owner` if it has one."""
        shadow = self._shadows.get(id(owner))
        return shadow if shadow is not None and shadow.owner() is owner else None

    def clear(self) -> None:
        """Forget everything."""
        self.trash += self._shadows.values()
        self._shadows = {}
        self._strong = {}
        self._limit = _SWEEP

    def empty(self) -> list[Shadow]:
        """Return the objects to pass to `drop` outside of the core's lock."""
        trash, self.trash = self.trash, []
        return trash

    def sweep(self) -> None:
        """Forget the objects without other references, and the oldest if there are too many."""
        if len(self._strong) < self._limit:
            return
        dropped = [shadow for shadow in self._strong.values() if shadow.unshared()]
        left = len(self._strong) - len(dropped)
        if left > _MOST:
            dropped += list(self._strong.values())[:left - _MOST]
        for shadow in dropped:
            self._strong.pop(id(shadow.strong), None)
            self._shadows.pop(id(shadow.strong), None)
        self._limit = max(_SWEEP, 2 * len(self._strong))
        self.trash += dropped

    def _cast(self, owner: Any) -> Shadow:
        shadow = Shadow()
        key = id(owner)
        try:
            shadow.ref = _Ref(owner, self._dead.append)
            shadow.ref.key = key
        except TypeError:
            shadow.strong = owner
            self._strong[key] = shadow
        self._shadows[key] = shadow
        return shadow

    def _bury(self, dead: _Ref) -> None:
        shadow = self._shadows.get(dead.key)
        if shadow is not None and shadow.ref is dead:
            self.trash.append(self._shadows.pop(dead.key))


def drop(trash: list[Shadow]) -> None:
    """Drop the objects of these shadows; their finalizers may run here."""
    for shadow in trash:
        shadow.strong = None
        shadow.locations.clear()
        shadow.boxes.clear()
        shadow.wholes.clear()
    trash.clear()
