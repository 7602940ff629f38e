"""What the ops are given as their last argument in place of the rewriter's markers."""

from __future__ import annotations

from gilscope.toolkit.race.site import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gilscope.toolkit.race.site import SiteInfo

GUARD, DELETE = int(Flag.GUARD), int(Flag.DELETE)
_REMOVING = ("clear", "discard", "get", "get_nowait", "pop", "popitem", "popleft", "remove")
_STORING = ("attr_write", "attr_update", "attr_store", "attr_proxy")

DIRECTIONS: dict[int, str] = {}      # a write's site -> whether it stores or removes
GUARDED: dict[int, set[str]] = {}    # a check's site -> directions of the writes that it guards
STORED: set[str] = set()             # names of attributes that some site stores


class Site:
    """A place of the program under its number, with what the ops ask for at hand."""

    __slots__ = ("flags", "info", "key", "number", "partners")

    def __init__(self, info: SiteInfo, number: int) -> None:
        self.info = info
        self.number = number
        self.key: str = info.key
        self.flags = int(info.flags)
        self.partners: tuple[int, ...] = tuple(info.partners)
        if info.op in _STORING:
            STORED.add(self.key)
        if self.partners:
            self._learn()

    def _learn(self) -> None:
        removes = (self.flags & DELETE or self.info.op == "item_delete"
                   or (self.info.op == "method" and self.key in _REMOVING))
        DIRECTIONS[self.number] = "remove" if removes else "store"
        if self.flags & GUARD:
            for number in self.partners:
                GUARDED.setdefault(number, set()).add(DIRECTIONS[self.number])

    def __reduce__(self) -> tuple[object, ...]:
        return revive, (tuple(self.info), self.number)


def revive(fields: tuple[object, ...], number: int) -> Site:
    """Return the site of a pickled code object: the same one here, or a new one where the process knows it not."""
    from gilscope.toolkit.race import site_registry
    from gilscope.toolkit.race.site import SiteInfo

    info = SiteInfo(*fields)
    if number >= len(site_registry.sites) or site_registry.sites[number] != info:
        info = info._replace(partners=())     # their numbers mean other places here
        number = site_registry.add([info])
    return Site(info, number)
