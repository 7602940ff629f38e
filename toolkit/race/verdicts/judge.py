"""Judge the conflicts that one process recorded: kind, severity and name of each.

The verdict on a conflict may depend on others: on the locks that all writes of the variable hold, and on what was
stored over a value that looked like a memo.  So all records are read first; which conflict came first does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.race.site import SiteInfo
from gilscope.toolkit.race.terms import AccessKind, Flag, RaceKind, Severity
from gilscope.toolkit.race.verdicts.advice import accesses, place_of, remedy_of, suppressing_sites
from gilscope.toolkit.race.verdicts.benign_patterns import older_than_both
from gilscope.toolkit.race.verdicts.classify import classify
from gilscope.toolkit.race.verdicts.conflict_context import ConflictContext, ConflictSide, SiteIndex
from gilscope.toolkit.race.verdicts.naming import held_lock, variable_name
from gilscope.toolkit.race.verdicts.source_context import SourceFiles

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.race.report.model import Access, HeldLock
    from gilscope.toolkit.race.terms import Remedy
    from gilscope.toolkit.race.verdicts.classify import Classification
    from gilscope.toolkit.race.verdicts.naming import VariableName
    from gilscope.toolkit.race.verdicts.records import (
        ConflictRecord,
        FileRecord,
        FunctionPlace,
        LockRecord,
        SideRecord,
    )

    Location = tuple[int, str, str]     # number of the object, part, key


class RaceKey(NamedTuple):
    """The identity of a race: conflicts with equal keys are one race."""

    places: tuple[FunctionPlace, FunctionPlace]
    base: str
    kind: RaceKind


@dataclass(frozen=True, eq=False, kw_only=True)
class Verdict:
    """A conflict, what it is called, and how severe it is."""

    process: CheckedProcess
    context: ConflictContext
    name: VariableName
    classification: Classification
    suppressing: list[SiteInfo]     # with a comment that suppresses it

    @property
    def severity(self) -> Severity:
        """The severity, SUPPRESSED by a comment."""
        return Severity.SUPPRESSED if self.suppressing else self.classification.severity

    @cached_property
    def key(self) -> RaceKey:
        """The race that this conflict belongs to."""
        first, second = self.context.first, self.context.second
        places = sorted((place_of(first, second, self.context), place_of(second, first, self.context)))
        return RaceKey((places[0], places[1]), self.name.base, self.classification.kind)

    @cached_property
    def accesses(self) -> tuple[Access, Access]:
        """The two sides for the report."""
        sides = self.context.record.first, self.context.record.second
        return accesses(self.context, [(side, tuple(map(self.process.lock, side.locks))) for side in sides])

    def remedy(self) -> Remedy | None:
        """Return the atomic step that can replace check and act."""
        return remedy_of(self.classification.kind, self.context)


class CheckedProcess:
    """The records of one process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parent = ""      # the file of the process that it was forked from
        self.conflicts: list[ConflictRecord] = []
        self._sites = SiteIndex()
        self.sources = SourceFiles()
        self._locksets: dict[Location, frozenset[int]] = {}
        self._changed: frozenset[int] = frozenset()
        self._locks: dict[int, HeldLock] = {}

    def add_file(self, record: FileRecord) -> None:
        """Add a checked file."""
        if record.source:
            self.sources.add(record.path, record.source.encode("latin-1", "replace"))
        for number, *fields in record.sites:
            self._sites.add(number, SiteInfo(record.path, *fields))

    def add_conflict(self, record: ConflictRecord) -> None:
        """Add a conflict."""
        self.conflicts.append(record)
        location, locks = _location(record), frozenset(record.lockset)
        self._locksets[location] = self._locksets.get(location, locks) & locks

    def verdicts(self, section: str | None) -> tuple[list[Verdict], bool]:
        """Return the verdicts on the conflicts of a section, or on all, and whether records of the process are damaged.

        A store over another value excludes that its site is a memo, and so may turn other conflicts' stores into races.
        """
        records = [record for record in self.conflicts if section is None or record.section == section]
        while True:
            known = self._changed
            found = [verdict for record in records if (verdict := self._verdict(record)) is not None]
            self._changed = known.union(*map(_changed_sites, found))
            if self._changed == known:
                return found, len(found) < len(records)

    def _verdict(self, record: ConflictRecord) -> Verdict | None:
        """Return the verdict on a conflict, None if its sites are not in the records."""
        try:
            context = self._context(record)
            return Verdict(process=self, context=context, name=variable_name(record, self._sites),
                           classification=classify(context), suppressing=suppressing_sites(context))
        except LookupError:
            return None

    def _context(self, record: ConflictRecord) -> ConflictContext:
        return ConflictContext(
            record, self._side(record.first), self._side(record.second), self._sites, self.sources,
            lockset=self._locksets[_location(record)], changed=self._changed)

    def _side(self, record: SideRecord) -> ConflictSide:
        site, kind = self._sites[record.site], record.kind
        # A test of a container, or the use of an item, is an iteration for the core: it conflicts with removals alone.
        if kind is AccessKind.ITERATE and site.flags & Flag.RELIES and site.op != "iterate":
            kind = AccessKind.READ
        missed = kind is AccessKind.MISS
        locks = frozenset(lock.uid for lock in record.locks)
        return ConflictSide(record.site, site, AccessKind.READ if missed else kind, locks, record.span, missed)

    def lock(self, record: LockRecord) -> HeldLock:
        """Return a lock with its name."""
        if record.uid not in self._locks:
            self._locks[record.uid] = held_lock(record, self.sources)
        return self._locks[record.uid]


def _location(record: ConflictRecord) -> Location:
    return record.owner.number, record.part, record.key


def _changed_sites(verdict: Verdict) -> Iterable[int]:
    """Return the sites of acts that stored a different value over the first one: they are no memo."""
    context, (kind, severity, _) = verdict.context, verdict.classification
    first, second = context.first, context.second
    acts = first.kind == second.kind == AccessKind.WRITE and second.site.flags & Flag.GUARD
    if not acts or kind is not RaceKind.CHECK_THEN_ACT or severity is Severity.NOTE:
        return ()
    unknown = not context.record.value or older_than_both(context)
    return () if unknown or context.record.same else (first.number, second.number)
