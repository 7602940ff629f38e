"""The locks that were held at the places of a variable, and which of them count as one lock.

Locks of one name count as one: each instance of a class has its own `self.lock`, and each process its own instances.
They count separately if one location was accessed under different locks of that name, since those exclude nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.own_files import STDLIB, origin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.race.report.model import Access, HeldLock

    Place = tuple[str, int]     # path, line


class LockKey(NamedTuple):
    """The identity of a lock within the sentences on one variable."""

    name: str
    process: str = ""           # "" if all locks of this name count as one
    uid: int = 0


class OwnedVariable(NamedTuple):
    """One variable of one object in one process."""

    process: str
    owner: int      # number of the object
    variable: str


def is_own(lock: HeldLock) -> bool:
    """Return True unless the standard library was the first to take the lock: the program is not to hold its locks."""
    return lock.taken is None or origin(lock.taken.path)[0] != STDLIB


class Locksets:
    """The locks held at each place of a variable's conflicting accesses.

    Attributes:
        held: Those held every time.
        at_times: Those held at least once.
    """

    def __init__(self, accesses: Iterable[tuple[OwnedVariable, Access]]) -> None:
        accesses = list(accesses)
        self._ambiguous = _ambiguous_names(accesses)
        self.held: dict[Place, frozenset[LockKey]] = {}
        self.at_times: dict[Place, frozenset[LockKey]] = {}
        for location, access in accesses:
            place = (access.place.path, access.place.line)
            keys = self.keys(access, location.process)
            self.held[place] = self.held.get(place, keys) & keys
            self.at_times[place] = self.at_times.get(place, keys) | keys

    def at(self, access: Access, process: str) -> frozenset[LockKey]:
        """Return the keys that are held every time at the place of an access, or by it if the place is not known."""
        return self.held.get((access.place.path, access.place.line), self.keys(access, process))

    def keys(self, access: Access, process: str) -> frozenset[LockKey]:
        """Return the keys of the program's locks that an access held."""
        return frozenset(self._key(lock, process) for lock in access.locks if is_own(lock))

    def _key(self, lock: HeldLock, process: str) -> LockKey:
        return LockKey(lock.name, process, lock.uid) if lock.name in self._ambiguous else LockKey(lock.name)


def _ambiguous_names(accesses: Iterable[tuple[OwnedVariable, Access]]) -> set[str]:
    """Return the names of which one location was accessed under different locks."""
    found: set[str] = set()
    # The uids that every access of the location under the name held.
    common: dict[tuple[OwnedVariable, str], set[int]] = {}
    for location, access in accesses:
        for name in {lock.name for lock in access.locks}:
            uids = {lock.uid for lock in access.locks if lock.name == name}
            known = common.setdefault((location, name), uids)
            known &= uids
            if not known:
                found.add(name)
    return found
