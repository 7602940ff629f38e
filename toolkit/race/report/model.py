"""The nouns of a report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Severity = Literal["race", "atomicity violation", "note"]
ORDER = {"race": 0, "atomicity violation": 1, "suppressed": 2, "note": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One line of a stack."""

    path: str
    line: int
    function: str          # qualified name
    source: str = ""       # the line without its indentation; "" when it was not at hand


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A lock that a thread held."""

    uid: int               # tells locks of one name apart, within one process
    name: str
    taken: Frame | None    # where it was first acquired


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where to pause a thread: a place to the column."""

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
    locks: tuple[Held, ...]        # innermost first
    text: str                      # the accessed expression
    pause: Spot
    partner: Spot | None           # the read of the write or the write of the read, where there is one
    augmented: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """Two accesses that nothing orders, or a span that another write falls into."""

    ident: str                     # the same in every run of the same source
    variable: str
    base: str                      # the variable without key and instance
    kind: str
    severity: Severity
    rule: str | None               # why it is a note
    first: Access
    second: Access
    count: int                     # conflicts at these places, at least 1
    pattern: str                   # sentences
    missing: str
    repair: str
    confirmation: str | None = None
    section: str | None = None
    reason: str | None = None      # of the suppression, where it is suppressed


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A variable that one thread writes and another uses, whatever orders them: each process would have its own.

    With `alike` the write is that of a memo: what each would make for itself is equal.
    """

    base: str                      # the variable without key and instance
    write: Frame
    verb: str
    other: Frame                   # where another thread uses it
    other_verb: str
    alike: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceReport:
    """What one run found."""

    target: str
    build: str
    core: str
    root: str                                        # paths below it are shown relative to it
    races: tuple[Race, ...] = ()
    notes: tuple[Race, ...] = ()
    suppressed: tuple[Race, ...] = ()
    unused_suppressions: tuple[str, ...] = ()        # sentences
    unexplained_suppressions: tuple[str, ...] = ()   # sentences
    unrewritten: tuple[tuple[str, str], ...] = ()    # path, reason
    processes: int = 0
    watched: int | None = None                       # accesses, where the core counts them
    shared: tuple[Shared, ...] = ()                  # when it was asked for

    def with_confirmations(self, found: Mapping[str, str]) -> RaceReport:
        """Return the report with the confirmations by `Race.ident`."""
        races = tuple(replace(race, confirmation=found.get(race.ident, race.confirmation)) for race in self.races)
        return replace(self, races=races)
