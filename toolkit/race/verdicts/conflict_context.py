"""A conflict with its circumstances, and the *role* that each side plays towards the variable.

  update   the write's value comes from an earlier read of the variable (`x += 1`, `n = x; ...; x = n + 1`)
  check    an earlier read of the variable decides whether the write happens (`if x is None: x = ...`)
  part     one of several stores that belong together (a swap, a tuple target, neighbouring stores that are no flags)
  plain    none of these

A read plays the role of the write that it is a partner of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.race.terms import AccessKind, Flag

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gilscope.toolkit.race.site import SiteInfo
    from gilscope.toolkit.race.verdicts.records import ConflictRecord
    from gilscope.toolkit.race.verdicts.source_context import SourceFiles

REMOVALS = frozenset({AccessKind.ATOMIC, AccessKind.SHRINK})     # the core reports no other atomic step against a read
ROLES = ("update", "check", "part")     # in this order where a read has several


class ConflictSide(NamedTuple):
    """One access of a conflict."""

    number: int                  # of its site
    site: SiteInfo
    kind: AccessKind
    locks: frozenset[int]
    span: int                    # site number of the read that opened the span, -1 if there is no span
    missed: bool                 # a read that found no such key


class ConflictContext(NamedTuple):
    """A conflict, with what its process recorded besides."""

    record: ConflictRecord
    first: ConflictSide
    second: ConflictSide
    sites: SiteIndex
    sources: SourceFiles
    lockset: frozenset[int]      # candidate lockset: locks held by all writes of the variable
    changed: frozenset[int]      # sites of writes that have stored a different value over the first

    def read_and_other(self) -> tuple[ConflictSide, ConflictSide] | None:
        """Return the load and the other side of a conflict with a load, None if there is no load."""
        if self.first.kind == AccessKind.READ:
            return self.first, self.second
        return (self.second, self.first) if self.second.kind == AccessKind.READ else None

    def read_and_write(self) -> tuple[ConflictSide, ConflictSide] | None:
        """Return the load and the plain store of a conflict between such two, else None."""
        pair = self.read_and_other()
        return pair if pair is not None and pair[1].kind == AccessKind.WRITE else None


class SiteIndex:
    """The sites of a process by number, the writes that depend on each read, and the reads that rely on each test."""

    def __init__(self) -> None:
        self._sites: dict[int, SiteInfo] = {}
        self._writers: dict[int, list[int]] = {}
        self._uses: dict[int, list[int]] = {}

    def add(self, number: int, site: SiteInfo) -> None:
        """Add a site; those that it refers to may follow."""
        self._sites[number] = site
        for partner in site.partners:
            self._writers.setdefault(partner, []).append(number)
        for test in site.tests:
            self._uses.setdefault(test, []).append(number)

    def __getitem__(self, number: int) -> SiteInfo:
        return self._sites[number]

    def all(self) -> Collection[SiteInfo]:
        """Return all sites."""
        return self._sites.values()

    def writers(self, read: int) -> list[int]:
        """Return the numbers of the writes that may depend on the read."""
        return self._writers.get(read, [])

    def uses(self, test: int) -> list[int]:
        """Return the numbers of the later reads of the location that rely on what the test found."""
        return self._uses.get(test, [])

    def neighbours(self, number: int) -> Iterator[SiteInfo]:
        """Yield the sites of the same function, in the order of the source."""
        site = self._sites[number]
        start = number
        while self._near(self._sites.get(start - 1), site):
            start -= 1
        while (other := self._sites.get(start)) is not None and self._near(other, site):
            if other.function == site.function:
                yield other
            start += 1

    @staticmethod
    def _near(other: SiteInfo | None, site: SiteInfo) -> bool:
        if other is None:
            return False
        # The sites of nested functions stand between those of the function.
        within: bool = other.function == site.function or other.function.startswith(site.function + ".<locals>.")
        return within and other.path == site.path


def write_role(number: int, conflict: ConflictContext) -> str:
    """Return "update", "check", "part" or "plain" for a write."""
    site = conflict.sites[number]
    if site.flags & Flag.AUGMENTED:
        return "update"
    if site.flags & Flag.VALUE:
        return "part" if site.flags & Flag.MULTI and swaps(site, conflict.sources) else "update"
    if site.flags & Flag.GUARD:
        return "check"
    return "part" if belongs_together(number, conflict.sites) else "plain"


def belongs_together(number: int, sites: SiteIndex) -> bool:
    """Return True if the write is one of several: of one statement, or next to other stores that are no flags."""
    site = sites[number]
    if not site.flags & Flag.MULTI:
        return False
    beside = [other for other in sites.neighbours(number) if other.flags & Flag.MULTI and other.text != site.text]
    return any(other.line == site.line or not (other.flags | site.flags) & Flag.CONSTANT for other in beside)


def swaps(site: SiteInfo, sources: SourceFiles) -> bool:
    """Return True if the write is part of a tuple assignment and its own value does not mention its target."""
    part = sources.part_stored(site)
    return part is not None and site.text.replace(" ", "") not in part.replace(" ", "")


def read_in_parts(read: ConflictSide, write: ConflictSide, sites: SiteIndex) -> bool:
    """Return True if both sides access another attribute of the object, too: one stores a pair, the other loads it."""
    stored = {site.key for site in sites.neighbours(write.number) if _beside(site, write.site) and _stores(site)}
    return any(site.key in stored for site in sites.neighbours(read.number)
               if _beside(site, read.site) or (site.line == read.site.line and _owner(site) == _owner(read.site)))


def _beside(site: SiteInfo, other: SiteInfo) -> bool:
    return bool(abs(site.line - other.line) == 1 and site.key != other.key and _owner(site) == _owner(other))


def _owner(site: SiteInfo) -> str:
    """Return the source of the object whose attribute a site accesses: "self" of `self.value`."""
    owner: str = site.text.rpartition(".")[0]
    return owner


def _stores(site: SiteInfo) -> bool:
    return site.op in {"attr_write", "attr_update", "attr_store", "attr_proxy"} and not site.flags & (
        Flag.CONSTANT | Flag.INIT)


def follows_act(read: int, write: int, sites: SiteIndex) -> bool:
    """Return True if the read follows a guarded write of the same variable: `return self._rows` at the end."""
    act, after = sites[write], sites[read]
    return bool(act.flags & Flag.GUARD) and act.text == after.text and after.line > act.line and (
        act.function == after.function and act.path == after.path)


def read_role(read: ConflictSide, write: ConflictSide, conflict: ConflictContext) -> str:
    """Return the role of the write that depends on the read, "plain" if none does."""
    if read.site.flags & Flag.AUGMENTED:
        return "update"
    roles = [role_in(read, number, write, conflict) for number in conflict.sites.writers(read.number)]
    if tests_and_uses(read.number, write, conflict.sites, conflict.sources):
        roles.append("check")
    return next((role for role in ROLES if role in roles), "plain")


def tests_and_uses(read: int, write: ConflictSide, sites: SiteIndex, sources: SourceFiles) -> tuple[int, ...]:
    """Return the numbers of the test and the uses that a read is part of, () if the write does not outdate the test.

    It does if it removes an item, or stores a constant, such as None, on which the use may fail.  True and False are
    flags: a use of one finds either.
    """
    if not _outdates(write, sources):
        return ()
    tests = sites[read].tests
    uses = [number for test in (read, *tests) for number in sites.uses(test) if not sources.tolerant(sites[number])]
    return (*(tests or (read,)), *uses) if uses else ()


def _outdates(write: ConflictSide, sources: SourceFiles) -> bool:
    flags = write.site.flags
    if write.kind in REMOVALS:
        return True
    return write.kind == AccessKind.WRITE and bool(flags & Flag.DELETE or (
        flags & Flag.CONSTANT and not isinstance(sources.literal(write.site), bool)))


def role_in(read: ConflictSide, number: int, write: ConflictSide, conflict: ConflictContext) -> str:
    """Return the role of the read towards the write at site `number` that depends on it."""
    depends = conflict.sites[number]
    role = write_role(number, conflict)
    if role == "update" and depends.flags & Flag.GUARD and read.site.flags & (Flag.TEST | Flag.POLL):
        role = "check"
    if role == "check" and read.site.flags & Flag.POLL and _harmless_poll(read, number, write, conflict):
        return "plain"
    return role


def _harmless_poll(read: ConflictSide, number: int, write: ConflictSide, conflict: ConflictContext) -> bool:
    """Return True if the write of a polling loop cannot undo the other thread's write.

    `while not found: ...; found = True` stores what ends the other loops.  After the loop the store is a claim that
    only another thread's claim breaks: `while ready: pass; ready = True` against another thread's reset is a hand-over.
    """
    depends = conflict.sites[number]
    if not depends.flags & Flag.CONSTANT or not write.site.flags & Flag.CONSTANT:
        return False
    return conflict.sources.in_loop_of(read.site, depends) or number != write.number
