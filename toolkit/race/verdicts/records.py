"""The records that a checked process writes about itself, one line of JSON each; see `gilscope.toolkit.race.spool`.

The program may have written anything into the file, so a line counts only if `from_plain` accepts it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gilscope.toolkit.race.report.sentences import RULES
from gilscope.toolkit.race.terms import GapReason, RaceKind, Remedy, Severity  # noqa: TC001  from_plain reads the hints
from gilscope.toolkit.records import DamagedError, from_plain

FunctionPlace = tuple[str, int, str]         # path, line, function
FrameRecord = tuple[str, int, str, str]      # path, line, function, the line's text
SpotRecord = tuple[str, int, int, str, str]  # path, line, column, op, the line's text
RaceKey = tuple[tuple[FunctionPlace, FunctionPlace], str, str]   # places, base, kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """The header of a process."""

    pid: int
    core: str
    root: str
    target: str = ""
    build: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRecord:
    """A lock that a thread held."""

    uid: int
    name: str
    at: tuple[FunctionPlace, ...]   # where it was first acquired; at most one


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRecord:
    """One side of a conflict; the fields are those of `model.Access`."""

    thread: str
    uid: int            # the thread's
    verb: str
    place: FrameRecord
    stack: tuple[FrameRecord, ...]
    started: tuple[FrameRecord, ...]
    locks: tuple[LockRecord, ...]
    text: str
    op: str
    operator: str       # of an augmented assignment, such as "+="; "" of any other access
    column: int
    lines: tuple[int, int]
    partner: SpotRecord | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceRecord:
    """A conflict, as the process classified it."""

    section: str | None
    variable: str
    base: str
    owner: int          # number of the object that the variable belongs to
    name: str
    item_key: str
    kind: RaceKind
    severity: Severity
    rule: str | None
    sort: str
    part: str
    remedy: Remedy | None
    places: tuple[FunctionPlace, FunctionPlace]
    first: SideRecord
    second: SideRecord
    reasons: tuple[FunctionPlace, ...]   # path, line and reason of the comments that suppress it

    def __post_init__(self) -> None:
        if self.rule is not None and self.rule not in RULES:
            raise ValueError(f"no rule {self.rule!r}")

    @property
    def key(self) -> RaceKey:
        """The race that this conflict belongs to."""
        return self.places, self.base, self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class GapRecord:
    """Accesses that went unchecked."""

    reason: GapReason
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishRecord:
    """The facts that are known only at a process's end."""

    counts: tuple[tuple[RaceKey, int], ...]        # conflicts by race
    noted: tuple[FunctionPlace, ...]               # path, line and reason of the comments that suppress races
    used: tuple[tuple[str, int], ...]              # path and line of those that have suppressed one
    unrewritten: tuple[tuple[str, str], ...]       # path of a module that ran unchecked, and why


ProcessRecords = ProcessRecord | RaceRecord | GapRecord | FinishRecord
_KINDS: dict[object, type[ProcessRecords]] = {
    "process": ProcessRecord, "race": RaceRecord, "gap": GapRecord, "finish": FinishRecord}


def as_record(value: object) -> ProcessRecords | None:
    """Return the record in a parsed line, or None if it has none."""
    if not isinstance(value, dict) or not isinstance(value.get("t"), str) or value["t"] not in _KINDS:
        return None
    try:
        return from_plain(_KINDS[value["t"]], {name: each for name, each in value.items() if name != "t"})
    except DamagedError:
        return None
