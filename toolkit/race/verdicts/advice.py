"""Describe the two accesses of a conflict for the report, and find the atomic step that can replace check and act."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.race.report.model import Access, Frame, Spot
from gilscope.toolkit.race.site import LOOP_CALLBACKS
from gilscope.toolkit.race.terms import WRITES, AccessKind, Flag, RaceKind, Remedy
from gilscope.toolkit.race.verdicts.conflict_context import REMOVALS, follows_act, tests_and_uses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.race.report.model import HeldLock
    from gilscope.toolkit.race.site import SiteInfo
    from gilscope.toolkit.race.verdicts.conflict_context import ConflictContext, ConflictSide
    from gilscope.toolkit.race.verdicts.records import FunctionPlace, OwnerRecord, SideRecord
    from gilscope.toolkit.race.verdicts.source_context import SourceFiles

VERBS = {
    AccessKind.READ: "read", AccessKind.WRITE: "write", AccessKind.ATOMIC: "write", AccessKind.SIZE: "read",
    AccessKind.ITERATE: "iterate", AccessKind.GROW: "insert", AccessKind.SHRINK: "remove",
    AccessKind.RESHAPE: "rewrite",
}
# What an act raises if its check was outdated, by the class of the container and the method.
ERRORS_OF_ACTS = {
    **dict.fromkeys([("list", "pop"), ("deque", "pop"), ("deque", "popleft")], Remedy.INDEX_ERROR),
    **dict.fromkeys([("list", "remove"), ("deque", "remove")], Remedy.VALUE_ERROR),
    **dict.fromkeys([("set", "pop"), ("set", "remove"), ("dict", "popitem")], Remedy.KEY_ERROR),
    **dict.fromkeys([("Queue", "get"), ("Queue", "get_nowait")], Remedy.EMPTY),
    **dict.fromkeys([("Queue", "put"), ("Queue", "put_nowait")], Remedy.FULL),
}


def place_of(side: ConflictSide, other: ConflictSide, conflict: ConflictContext) -> FunctionPlace:
    """Return the place that a side is counted at: for a read with a dependent or preceding write, that write's."""
    site = side.site
    if side.kind == AccessKind.READ and (writers := conflict.sites.writers(side.number)):
        site = conflict.sites[writers[0]]
    elif side.kind == AccessKind.READ and follows_act(side.number, other.number, conflict.sites):
        site = other.site
    return site.path, site.line, site.function


def suppressing_sites(conflict: ConflictContext) -> list[SiteInfo]:
    """Return the sites of the conflict with a `# race: ok` comment on their line."""
    sides = conflict.first, conflict.second
    sites = [*(side.site for side in sides), *(conflict.sites[side.span] for side in sides if side.span >= 0)]
    for side in sides:
        if side.kind == AccessKind.READ:
            sites += [conflict.sites[number] for number in conflict.sites.writers(side.number)]
    return [site for site in sites if site.note is not None]


def accesses(conflict: ConflictContext, records: Iterable[tuple[SideRecord, tuple[HeldLock, ...]]],
             ) -> tuple[Access, Access]:
    """Return both accesses; `records` has what is recorded of each, and its locks."""
    sides = conflict.first, conflict.second
    first, second = (_access(side, other, conflict, *record)
                     for side, other, record in zip(sides, sides[::-1], records, strict=True))
    return first, second


def _access(side: ConflictSide, other: ConflictSide, conflict: ConflictContext, record: SideRecord,
            locks: tuple[HeldLock, ...]) -> Access:
    site, sources = side.site, conflict.sources
    return Access(
        thread=record.name, verb=verb(side), place=_frame((site.path, site.line, site.function), sources),
        stack=tuple(_frame(place, sources) for place in record.stack),
        started=tuple(_frame(place, sources) for place in record.started), locks=locks, text=site.text,
        pause=_spot(site, sources), partner=_partner(side, other, conflict), lines=_lines(side, other, conflict),
        operator=site.operator)


def verb(side: ConflictSide) -> str:
    """Return the verb that a report uses for the access."""
    if side.site.flags & Flag.DELETE and side.kind in WRITES:
        return "delete"
    if side.kind in WRITES - {AccessKind.WRITE} and side.site.op == "method":
        return str(side.site.key)
    return VERBS[side.kind]


def _partner(side: ConflictSide, other: ConflictSide, conflict: ConflictContext) -> Spot | None:
    """Return the place of the other half of the span: the read of a write, the write or use of a read."""
    numbers = side.site.partners[:1]
    if side.span >= 0 and side.span != side.number:
        numbers = (side.span,)
    elif side.kind == AccessKind.READ:
        dependent = [*conflict.sites.writers(side.number), *_tests_and_uses(side, other, conflict)]
        numbers = tuple(number for number in dependent if number != side.number)[:1]
    return next((_spot(conflict.sites[number], conflict.sources) for number in numbers), None)


def _tests_and_uses(side: ConflictSide, other: ConflictSide, conflict: ConflictContext) -> tuple[int, ...]:
    if side.kind != AccessKind.READ:
        return ()
    return tests_and_uses(side.number, other, conflict.sites, conflict.sources)


def _lines(side: ConflictSide, other: ConflictSide, conflict: ConflictContext) -> tuple[int, int]:
    """Return the lines from the first read or test of the side's function to the last act that depends on it."""
    index = conflict.sites
    acts = _acts(side, other, conflict)
    numbers = acts | {partner for number in acts for partner in index[number].partners} | {side.span} - {-1}
    numbers |= set(_tests_and_uses(side, other, conflict))
    # A read that follows the act sees what one lock over test and act leaves behind.
    if side.kind != AccessKind.READ or not follows_act(side.number, other.number, index):
        numbers.add(side.number)
    sites = [site for number in numbers if (site := index[number]).path == side.site.path
             and site.function == side.site.function]
    sites += _last_uses(side, conflict)
    # What the test guards beside the act may use what the act stored, which has to be complete by then.
    blocks = [conflict.sources.block_end(test, act) for act in sites for test in sites
              if act.flags & Flag.GUARD and test is not act]
    return min(site.line for site in sites), max([site.line for site in sites] + blocks)


def _last_uses(side: ConflictSide, conflict: ConflictContext) -> list[SiteInfo]:
    """Return the uses before a store of a constant, which may end the object's life: `self.sock.close()`."""
    site = side.site
    if side.kind is not AccessKind.WRITE or not site.flags & Flag.CONSTANT or site.flags & Flag.GUARD:
        return []
    return [before for before in conflict.sites.neighbours(side.number) if before.text == site.text
            and before.op.endswith("_read") and before.line < site.line and conflict.sources.is_called(before)]


def _acts(side: ConflictSide, other: ConflictSide, conflict: ConflictContext) -> set[int]:
    """Return the numbers of the writes that the side is part of."""
    if side.kind != AccessKind.READ:
        return {side.number}
    if follows_act(side.number, other.number, conflict.sites):
        return {other.number}
    return set(conflict.sites.writers(side.number))


def remedy_of(kind: RaceKind, conflict: ConflictContext) -> Remedy | None:
    """Return the atomic step that can replace each check and its act, None if there is none or they differ."""
    first, second, owner = conflict.first, conflict.second, conflict.record.owner
    if first.site.text == LOOP_CALLBACKS:
        return Remedy.THREADSAFE
    if kind is RaceKind.UNSYNCHRONISED:
        pair = conflict.read_and_write()
        if pair is not None and conflict.sources.loads_parts(pair[0].site):
            return Remedy.LOCAL
        early = pair is not None and conflict.sources.announces_before(pair[1].site, pair[0].site)
        return Remedy.ORDER if early else None
    if kind is not RaceKind.CHECK_THEN_ACT:
        return None
    for side, other in ((first, second), (second, first)):
        if _tests_and_uses(side, other, conflict):
            return None if _last_uses(other, conflict) else _remedy_of_use(owner, other)
    acts = [conflict.sites[number] for number in _acts(first, second, conflict) | _acts(second, first, conflict)]
    found = {_remedy_of_act(act, owner, conflict.sources) for act in acts if act.flags & Flag.GUARD}
    return found.pop() if len(found) == 1 else None


def _remedy_of_use(owner: OwnerRecord, removal: ConflictSide) -> Remedy:
    """Return what can replace the test and the use of an item that another thread removes, or of a variable."""
    if removal.kind not in REMOVALS and not removal.site.flags & Flag.DELETE:
        return Remedy.LOCAL
    if "dict" in owner.bases:
        return Remedy.GET
    return Remedy.INDEX_ERROR if removal.kind in REMOVALS else Remedy.LOCAL


def _remedy_of_act(act: SiteInfo, owner: OwnerRecord, sources: SourceFiles) -> Remedy | None:
    """Return the atomic step that can replace an act on a container and its check, or None."""
    if "dict" in owner.bases:
        if act.flags & Flag.DELETE or (act.op, act.key) == ("method", "pop"):
            return Remedy.POP
        if act.op == "item_write" and sources.stores_default(act) and sources.asks_for_key(act):
            return Remedy.SETDEFAULT
    return next((ERRORS_OF_ACTS[base, act.key] for base in owner.bases
                 if act.op == "method" and (base, act.key) in ERRORS_OF_ACTS), None)


def _spot(site: SiteInfo, sources: SourceFiles) -> Spot:
    return Spot(path=site.path, line=site.line, column=site.column, op=site.op,
                source=sources.line(site.path, site.line))


def _frame(place: FunctionPlace, sources: SourceFiles) -> Frame:
    path, line, function = place
    return Frame(path=path, line=line, function=function, source=sources.line(path, line))
