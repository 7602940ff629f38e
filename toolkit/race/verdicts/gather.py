"""Merge the records of all processes of a run into one report.

This runs in the process that makes the report, not in the checked program.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.race import spool
from gilscope.toolkit.race.report import sentences
from gilscope.toolkit.race.report.locksets import Locksets, OwnedVariable
from gilscope.toolkit.race.report.model import (
    Access,
    CheckGap,
    Frame,
    HeldLock,
    Race,
    RaceReport,
    Spot,
)
from gilscope.toolkit.race.report.settings import UNREVIEWED
from gilscope.toolkit.race.terms import GRAVE, GapReason, RaceKind, Severity
from gilscope.toolkit.race.verdicts.records import (
    FinishRecord,
    GapRecord,
    ProcessRecord,
    RaceRecord,
    as_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.race.report.settings import Suppression
    from gilscope.toolkit.race.verdicts.records import FrameRecord, FunctionPlace, RaceKey, SideRecord, SpotRecord


NO_PROCESS = ProcessRecord(pid=0, core="", root="")   # no process has written a header


@dataclass(slots=True)
class _Gathered:
    """The records of all processes, by the key that merges them."""

    head: ProcessRecord = NO_PROCESS
    records: dict[RaceKey, tuple[str, RaceRecord]] = field(default_factory=dict)   # each with its process
    counts: dict[RaceKey, int] = field(default_factory=dict)
    noted: dict[tuple[str, int], str] = field(default_factory=dict)
    used: set[tuple[str, int]] = field(default_factory=set)
    unrewritten: dict[str, str] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    gaps: dict[tuple[str, GapReason], int] = field(default_factory=dict)       # counts by process and reason
    processes: int = 0


@dataclass(frozen=True, slots=True)
class _Variable:
    """What the conflicts on a variable say together."""

    locks: Locksets     # at the places of its conflicts
    updated: bool       # one of them is a lost update


def load(folder: str, suppressions: Sequence[Suppression] = (), section: str | None = None) -> RaceReport:
    """Return the report of a run from its spool folder.

    Args:
        folder: The spool folder of the run.
        suppressions: Those in pyproject.toml.
        section: The one to report, such as a phase of a test, or None for all; a race is reported once in either case.
    """
    gathered = _gather(spool.read(folder), section)
    variables = _variables(gathered)
    races = sorted((_race(key, gathered, variables) for key in gathered.records), key=_place_order)
    races = _without_shadows(races)
    shown, hidden, used = _suppress(races, suppressions, gathered.head.root)
    comments = [(path, line, why) for (path, line), why in sorted(gathered.noted.items())]
    return RaceReport(
        target=gathered.head.target, build=gathered.head.build, core=gathered.head.core, root=gathered.head.root,
        races=tuple(race for race in shown if race.severity in GRAVE),
        notes=tuple(race for race in shown if race.severity is Severity.NOTE),
        suppressed=tuple(hidden),
        unused_suppressions=sentences.unused(
            [(path, line) for path, line, _ in comments if (path, line) not in gathered.used],
            [each.describe() for each in suppressions if each not in used]),
        unexplained_suppressions=sentences.unexplained(
            [(path, line) for path, line, why in comments if not why],
            list(dict.fromkeys(race.base for race in hidden if race.reason == UNREVIEWED))),
        unrewritten=tuple(sorted(gathered.unrewritten.items())), lost=tuple(sorted(gathered.lost)),
        gaps=tuple(CheckGap(process=process, reason=reason, count=count)
                   for (process, reason), count in sorted(gathered.gaps.items())),
        processes=gathered.processes,
    )


def _gather(lines: Iterable[tuple[str, object]], section: str | None) -> _Gathered:
    gathered = _Gathered()
    for process, value in lines:
        if (record := as_record(value)) is None:
            gathered.lost.add(process)
            continue
        match record:
            case ProcessRecord():
                gathered.head = gathered.head if gathered.processes else record
                gathered.processes += 1
            case RaceRecord():
                if section is None or record.section == section:
                    _add_race(gathered, process, record)
            case GapRecord():
                gap = process, record.reason
                gathered.gaps[gap] = gathered.gaps.get(gap, 0) + record.count
            case FinishRecord():
                _add_end(gathered, record)
    return gathered


def _add_race(gathered: _Gathered, process: str, record: RaceRecord) -> None:
    known = gathered.records.get(record.key)
    if known is None or record.severity.rank < known[1].severity.rank:
        gathered.records[record.key] = process, record


def _add_end(gathered: _Gathered, record: FinishRecord) -> None:
    for key, times in record.counts:
        gathered.counts[key] = gathered.counts.get(key, 0) + times
    gathered.noted |= {(path, line): why for path, line, why in record.noted}
    gathered.used |= set(record.used)
    gathered.unrewritten |= dict(record.unrewritten)


def _race(key: RaceKey, gathered: _Gathered, variables: Mapping[str, _Variable]) -> Race:
    process, record = gathered.records[key]
    first, second = _access(record.first), _access(record.second)
    variable = variables.get(record.base, _Variable(Locksets([]), updated=False))
    lock = sentences.missing_lock(variable.locks, first, second, process, unordered=record.sort == "order")
    remedy = None if variable.updated else record.remedy    # an atomic step for the check repairs no lost update
    return Race(
        ident=ident(*record.key), variable=record.variable, base=record.base, name=record.name,
        item_key=record.item_key, kind=record.kind,
        severity=Severity.RACE if record.severity is Severity.SUPPRESSED else record.severity, rule=record.rule,
        first=first, second=second, count=max(1, gathered.counts.get(key, 1)),
        pattern=(sentences.pattern(record.kind, record.part, record.item_key, first, second) if record.rule is None
                 else sentences.RULES[record.rule]),
        missing=lock.sentence,
        repair=sentences.repair(record.kind, record.part, first, second, lock, remedy), remedy=remedy,
        reason=_reason(record),
    )


def _variables(gathered: _Gathered) -> dict[str, _Variable]:
    """Return, by its base, what all conflicts on a variable say that are no notes."""
    grave: dict[str, list[tuple[str, RaceRecord]]] = {}
    for process, record in gathered.records.values():
        if record.severity is not Severity.NOTE:
            grave.setdefault(record.base, []).append((process, record))
    return {base: _Variable(
        locks=Locksets((OwnedVariable(process, record.owner, record.variable), _access(side))
                       for process, record in records for side in (record.first, record.second)),
        updated=any(record.kind == RaceKind.LOST_UPDATE for _, record in records),
    ) for base, records in grave.items()}


def _reason(record: RaceRecord) -> str | None:
    if record.severity is not Severity.SUPPRESSED:
        return None
    return next((why for _, _, why in record.reasons if why), "no reason given")


def ident(places: Iterable[FunctionPlace], base: str, kind: str) -> str:
    """Return the identity of a race, which is equal in all runs of the same source."""
    words = [base, kind]
    for path, line, function in places:
        words += [path, str(line), function]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


def _access(record: SideRecord) -> Access:
    place = _frame(record.place)
    return Access(
        thread=record.thread, verb=record.verb, place=place, stack=tuple(map(_frame, record.stack)),
        started=tuple(map(_frame, record.started)), text=record.text,
        locks=tuple(HeldLock(uid=lock.uid, name=lock.name, taken=_frame((*lock.at[0], "")) if lock.at else None)
                    for lock in record.locks),
        pause=Spot(path=place.path, line=place.line, column=record.column, op=record.op, source=place.source),
        partner=_spot(record.partner), lines=record.lines, operator=record.operator,
    )


def _frame(record: FrameRecord) -> Frame:
    path, line, function, source = record
    return Frame(path=path, line=line, function=function, source=source)


def _spot(record: SpotRecord | None) -> Spot | None:
    if record is None:
        return None
    path, line, column, op, source = record
    return Spot(path=path, line=line, column=column, op=op, source=source)


def _place_order(race: Race) -> tuple[Any, ...]:
    sides = [(side.place.path, side.place.line, side.pause.column) for side in (race.first, race.second)]
    return race.severity.rank, tuple(RaceKind).index(race.kind), sorted(sides), race.base


def _without_shadows(races: list[Race]) -> list[Race]:
    """Return the races without notes whose places and variable have a race in the same run."""
    def places_and_variable(race: Race) -> tuple[Any, ...]:
        places = frozenset((side.place.path, side.place.line) for side in (race.first, race.second))
        return race.base, places

    grave = {places_and_variable(race) for race in races if race.severity in GRAVE}
    return [race for race in races if race.severity in GRAVE or places_and_variable(race) not in grave]


def _suppress(races: Iterable[Race], suppressions: Sequence[Suppression],
              root: str) -> tuple[list[Race], list[Race], set[Suppression]]:
    shown, hidden, used = [], [], set()
    for race in races:
        match = next((each for each in suppressions if each.covers(race, root)), None)
        if match is not None:
            used.add(match)
        if race.reason is None and match is None:
            shown.append(race)
        elif match is not None and race.reason is None:
            hidden.append(replace(race, reason=match.why))
        else:
            hidden.append(race)
    return shown, hidden, used
