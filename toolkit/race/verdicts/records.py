"""The records that a checked process writes about itself, one line of JSON each; see `gilscope.toolkit.race.spool`.

The program may have written anything into the file, so a line counts only if `from_plain` accepts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gilscope.toolkit.race.terms import AccessKind, GapReason  # noqa: TC001  from_plain reads the hints
from gilscope.toolkit.records import DamagedError, from_plain

FunctionPlace = tuple[str, int, str]         # path, line, function
GlobalName = tuple[str, str]                 # its name, and that of its module, "" if a reader knows it
# The number of a site, and the fields of `SiteInfo` without the path.
SiteRecord = tuple[
    int, int, int, int, int, str, str, str, str, int, tuple[int, ...], str | None, str, tuple[int, ...], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """The header of a process."""

    pid: int
    core: str
    root: str
    target: str = ""
    build: str = ""
    parent: str = ""     # the file of the process that it was forked from
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """A checked file, when it was first in a conflict."""

    path: str
    source: str                   # its bytes, as Latin-1
    sites: tuple[SiteRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRecord:
    """A lock that a thread held."""

    uid: int
    at: tuple[FunctionPlace, ...]   # where it was first acquired; at most one
    holder: GlobalName | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRecord:
    """One access of a conflict."""

    thread: int                           # its uid
    name: str                             # the thread's
    started: tuple[FunctionPlace, ...]    # where the thread was started, innermost first
    site: int                             # number
    kind: AccessKind
    stack: tuple[FunctionPlace, ...]      # the callers, innermost first
    locks: tuple[LockRecord, ...]         # innermost first
    span: int                             # number of the site that opened the span; -1: none


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRecord:
    """The object that the variable belongs to."""

    number: int                 # which no other object of the process has had
    form: Literal["instance", "class", "function", "module"]
    name: str                   # of the class or function; an instance's class; a module's path
    label: str                  # distinguishes the instance of an attribute
    bases: tuple[str, ...]      # of a container: its class and the classes that it is derived from
    strict: bool                # a dict that raises KeyError for a missing key
    local: str                  # its name in the accessing module's globals
    holder: GlobalName | None
    attribute: str              # of the object whose getter was called, such as "Pool.items"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictRecord:
    """A conflict, as the core reported it, and what was known only then."""

    section: str | None
    sort: Literal["order", "span"]
    part: Literal["attr", "item", "structure", "iterator", "cell"]     # of the owner
    owner: OwnerRecord
    key: str                    # the attribute or variable; the item, as the source has it
    first: SideRecord
    second: SideRecord          # the thread's that found the conflict; a store is not done yet
    value: int                  # ValueFact: about to be stored
    present: int                # ValueFact: in the variable now
    same: bool                  # both are the same value
    lockset: tuple[int, ...]    # locks that all writes of the variable held so far


@dataclass(frozen=True, slots=True, kw_only=True)
class GapRecord:
    """Accesses that went unchecked."""

    reason: GapReason
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishRecord:
    """The facts that are known only at a process's end."""

    counts: tuple[tuple[tuple[int, int], int], ...]     # conflicts of each pair of sites
    noted: tuple[FunctionPlace, ...]               # path, line and reason of the comments that suppress races
    unrewritten: tuple[tuple[str, str], ...]       # path of a module that ran unchecked, and why


ProcessRecords = ProcessRecord | FileRecord | ConflictRecord | GapRecord | FinishRecord
_KINDS: dict[object, type[ProcessRecords]] = {
    "process": ProcessRecord, "file": FileRecord, "conflict": ConflictRecord, "gap": GapRecord, "finish": FinishRecord}


def as_record(value: object) -> ProcessRecords | None:
    """Return the record in a parsed line, or None if it has none."""
    if not isinstance(value, dict) or not isinstance(value.get("t"), str) or value["t"] not in _KINDS:
        return None
    try:
        return from_plain(_KINDS[value["t"]], {name: each for name, each in value.items() if name != "t"})
    except DamagedError:
        return None
