"""The dataclasses of a race report, which are its JSON: race.json promises their fields, so rename none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gilscope.toolkit.race.terms import GapReason, RaceKind, Remedy, Severity  # noqa: TC001  read from the hints, as for the schema

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One line of a stack."""

    path: str
    line: int
    function: str          # qualified name
    source: str = ""       # the line without its indentation; "" if it could not be read


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLock:
    """A lock that a thread held."""

    uid: int               # distinguishes locks of one name within one process
    name: str
    taken: Frame | None    # where it was first acquired


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A line and column at which a confirming run pauses a thread."""

    path: str
    line: int
    column: int
    op: str
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One side of a race."""

    thread: str
    verb: str
    place: Frame
    stack: tuple[Frame, ...]       # the callers, innermost first
    started: tuple[Frame, ...]     # where the thread was started, innermost first; () for the main thread
    locks: tuple[HeldLock, ...]        # innermost first
    text: str                      # the accessed expression
    pause: Spot
    partner: Spot | None           # for a write, the read it depends on; for a read, the write that depends on it
    lines: tuple[int, int]         # from the first read or test to the last act that depends on it, in its function
    operator: str = ""             # of an augmented assignment, such as "+="


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationOutcome:
    """The outcome of trying to confirm one race, and the sentence that reports it."""

    confirmed: bool
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """Two accesses that are not ordered by happens-before, or a write between a read and its dependent write."""

    ident: str                     # equal in all runs of the same source
    variable: str
    base: str                      # the variable without key and instance
    name: str                      # as the source has it, such as "clicks" or "Account.balance"; "" if it has no name
    kind: RaceKind
    severity: Severity             # never SUPPRESSED: a suppressed race has a `reason`
    rule: str | None               # the rule that makes it a note
    first: Access
    second: Access
    count: int                     # conflicts at these places, at least 1
    remedy: Remedy | None          # the one atomic step that can replace check and act; None: only a lock helps
    pattern: str                   # sentences
    missing: str
    repair: str
    confirmation: str | None = None   # a sentence
    confirmed: bool | None = None     # a run showed harm; None: no run tried to
    reason: str | None = None      # why it is suppressed; None: it is not
    item_key: str = ""             # as the source has it, such as "['the']"; "" if the variable is no item


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckGap:
    """Accesses that went unchecked in a process, so that races may be missing."""

    process: str           # such as "process 4711"
    reason: GapReason
    count: int             # `GapReason` explains it


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceReport:
    """The result of one run."""

    target: str
    build: str
    core: str
    root: str                                        # paths below it are shown relative to it
    races: tuple[Race, ...] = ()
    notes: tuple[Race, ...] = ()
    suppressed: tuple[Race, ...] = ()
    unused_suppressions: tuple[str, ...] = ()        # sentences
    unexplained_suppressions: tuple[str, ...] = ()   # sentences
    unrewritten: tuple[tuple[str, str], ...] = ()    # modules that ran unchecked: path, reason
    lost: tuple[str, ...] = ()                       # processes whose records are incomplete, such as "process 4711"
    gaps: tuple[CheckGap, ...] = ()
    checked: tuple[str, ...] = ()                    # paths of the files that were checked
    processes: int = 0

    @property
    def is_complete(self) -> bool:
        """Return True if all that should have been checked was, so that a race of this run is in the report."""
        return not (self.lost or self.gaps)

    def with_confirmations(self, outcomes: Mapping[str, ConfirmationOutcome]) -> RaceReport:
        """Return the report with these outcomes, which are keyed by `Race.ident`."""
        races = tuple(
            replace(race, confirmation=outcome.sentence, confirmed=outcome.confirmed)
            if (outcome := outcomes.get(race.ident)) else race
            for race in self.races)
        return replace(self, races=races)
