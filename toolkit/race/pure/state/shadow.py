"""The shadow of each object that threads may share: its locations, and what hands its content over.

Objects are found by id.  Those that can be weakly referenced take their shadow with them when they die.  The others
(list, dict, instances of classes with `__slots__` and no `__weakref__`) are kept alive by their shadow until a sweep
finds that nobody else refers to them; one that is part of a cycle lives until the process has one thread again, or
until it is the oldest of too many.  A finalizer of what such an object contains runs that much later.
"""

from __future__ import annotations

from _weakref import ref
from sys import getrefcount

from gilscope.toolkit.race.pure.state.keys import guard, token
from gilscope.toolkit.race.pure.state.ranges import Box

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gilscope.toolkit.race.pure.state.clocks import Clock
    from gilscope.toolkit.race.pure.state.record import Access, Span

_SWEEP = 256        # strong references that may come before the first sweep
_BOXES = 256        # different slices of an array
_MOST = 20_000      # strong references at any time; the oldest go first


class _Ref(ref):    # type: ignore[type-arg]  # generic for checkers only
    __slots__ = ("key",)
    key: int


class Location:
    """One attribute, item, structure, iterator or cell of one object."""

    __slots__ = ("acts", "by", "guards", "handed", "key", "kinds", "part", "published", "reads", "shadow", "spans",
                 "users", "write")

    def __init__(self, shadow: Shadow, part: str, key: Any, guards: tuple[Any, ...]) -> None:
        self.shadow = shadow
        self.part = part
        self.key = key                 # a token, see `keys`
        self.guards = guards           # what keeps the ids in the token true
        self.write: Access | None = None                         # the last plain store
        self.reads: dict[tuple[int, bool], Access] = {}          # (slot, polling) -> last load since then
        self.kinds: dict[tuple[int, int], Access] = {}           # (slot, kind) -> last, for structures
        self.spans: dict[tuple[int, int, tuple[int, ...]], Span] = {}
        self.acts: dict[tuple[int, int, tuple[int, ...], bool], Access] = {}
        self.users: dict[int, Access] = {}   # uid of a thread -> its last write, or read where it has none
        self.handed: Clock | None = None     # the moment of the insertion
        self.published: Clock | None = None  # the moment of the last store, where a load may come after it for that
        self.by = 0                          # and which loads may: bits of `detect`


class Shadow:
    """All that is remembered of one object."""

    __slots__ = ("boxes", "locations", "ref", "strong", "sync", "unknown", "values", "wholes")

    def __init__(self) -> None:
        self.ref: _Ref | None = None
        self.strong: Any = None
        self.locations: dict[tuple[str, Any], Location] = {}
        self.boxes: list[Location] = []              # of more than one item
        self.sync: Clock | None = None               # the object as a means of synchronisation
        self.wholes: dict[tuple[int, range | None], Access] = {}   # (slot, indexes) -> last read of many items at once
        # id of an inserted value -> slot and moment of each insertion, as they stand from left to right
        self.values: dict[int, list[tuple[int, Clock]]] = {}
        self.unknown: Clock | None = None            # moment of insertions whose values were not seen

    def owner(self) -> Any:
        """Return the object, or None when it is no more."""
        return self.strong if self.ref is None else self.ref()

    def location(self, part: str, key: Any) -> Location:
        """Return the location of that part and key; one whose key died meanwhile starts anew."""
        name, alive = (key, ()) if type(key) is Box else token(key)
        found = self.locations.get((part, name))
        if found is not None and all(map(_is, found.guards, alive)):
            return found
        fresh = Location(self, part, name, tuple(map(guard, alive)))
        self.locations[part, name] = fresh
        if type(key) is Box and not key.single():
            self.boxes = [*self.boxes[1 - _BOXES:], fresh]
        return fresh

    def overlapping(self, box: Box) -> list[Location]:
        """Return the other locations of an array that share an item with this one."""
        others = self.boxes if box.single() else [location for (_, key), location in self.locations.items()
                                                  if type(key) is Box]
        return [other for other in others if other.key != box and other.key.overlaps(box)]

    def unshared(self) -> bool:
        """Claim that nothing but this shadow refers to the object."""
        return self.ref is None and getrefcount(self.strong) <= _UNSHARED


def _is(guarded: Any, key: Any) -> bool:
    return guarded() is key


def _count_of_unshared() -> int:
    """Return what `getrefcount` says of an object with one reference, which depends on the interpreter."""
    shadow = Shadow()
    shadow.strong = []
    return getrefcount(shadow.strong)


_UNSHARED = _count_of_unshared()


class Table:
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
        """Return what is to be given to `drop` outside the guard."""
        trash, self.trash = self.trash, []
        return trash

    def sweep(self) -> None:
        """Forget the objects that nobody else refers to, and the oldest of too many."""
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
    """Let go of the objects of these shadows; their finalizers may run here."""
    for shadow in trash:
        shadow.strong = None
        shadow.locations.clear()
        shadow.boxes.clear()
        shadow.wholes.clear()
    trash.clear()
