"""Merge the records of all processes of a run into one report.

This runs in the process that makes the report, not in the checked program.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.race import spool
from gilscope.toolkit.race.report import sentences
from gilscope.toolkit.race.report.locksets import Locksets, OwnedVariable
from gilscope.toolkit.race.report.model import CheckGap, Race, RaceReport
from gilscope.toolkit.race.report.settings import UNREVIEWED
from gilscope.toolkit.race.terms import GRAVE, GapReason, RaceKind, Remedy, Severity
from gilscope.toolkit.race.verdicts.judge import CheckedProcess
from gilscope.toolkit.race.verdicts.records import (
    ConflictRecord,
    FileRecord,
    FinishRecord,
    GapRecord,
    ProcessRecord,
    as_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.race.report.settings import Suppression
    from gilscope.toolkit.race.verdicts.judge import RaceKey, Verdict
    from gilscope.toolkit.race.verdicts.records import FunctionPlace

NO_PROCESS = ProcessRecord(pid=0, core="", root="")   # no process has written a header


def load(folder: str, suppressions: Sequence[Suppression] = ()) -> RaceReport:
    """Return the report of a run from its spool folder; the suppressions are those in pyproject.toml."""
    return Gathering(folder).report(suppressions)


@dataclass(frozen=True, slots=True)
class _Variable:
    """What the conflicts on a variable say together."""

    locks: Locksets     # at the places of its conflicts
    updated: bool       # one of them is a lost update


class Gathering:
    """The records of all processes of a run, which may be reported more than once while they grow.

    Args:
        folder: The spool folder of the run.
    """

    def __init__(self, folder: str) -> None:
        self._reader = spool.Reader(folder)
        self._head = NO_PROCESS
        self._headers = 0
        self._processes: dict[str, CheckedProcess] = {}       # by their files
        self._counts: dict[tuple[str, int, int], int] = {}    # conflicts of each pair of sites of a process
        self._noted: dict[tuple[str, int], str] = {}
        self._unrewritten: dict[str, str] = {}
        self._lost: set[str] = set()
        self._gaps: dict[tuple[str, GapReason], int] = {}     # counts by process and reason

    def report(self, suppressions: Sequence[Suppression] = (), section: str | None = None) -> RaceReport:
        """Return the report of what has been recorded so far.

        Args:
            suppressions: Those in pyproject.toml.
            section: The one to report, such as a phase of a test, or None for all; a race is reported once in either
                case.
        """
        for file, value in self._reader.read():
            self._add(file, value)
        verdicts = list(self._verdicts(section))
        gravest = _by_race(verdicts)
        root = self._head.root
        variables, counts = _variables(gravest.values(), root), self._counts_by_race(verdicts)
        races = [_race(verdict, root, variables, counts.get(key, 1)) for key, verdict in gravest.items()]
        races = _without_shadows(sorted(races, key=_place_order))
        shown, hidden, used = _suppress(races, suppressions, root)
        suppressing = {(site.path, site.line) for verdict in verdicts for site in verdict.suppressing}
        return RaceReport(
            target=self._head.target, build=self._head.build, core=self._head.core, root=root,
            races=tuple(race for race in shown if race.severity in GRAVE),
            notes=tuple(race for race in shown if race.severity is Severity.NOTE),
            suppressed=tuple(hidden),
            unused_suppressions=sentences.unused(
                [(sentences.path_for_readers(path, root), line) for path, line in sorted(self._noted)
                 if (path, line) not in suppressing],
                [each.describe() for each in suppressions if each not in used]),
            unexplained_suppressions=sentences.unexplained(
                [(sentences.path_for_readers(path, root), line) for (path, line), why in sorted(self._noted.items())
                 if not why],
                list(dict.fromkeys(race.base for race in hidden if race.reason == UNREVIEWED))),
            unrewritten=tuple(sorted(self._unrewritten.items())), lost=tuple(sorted(self._lost)),
            gaps=tuple(CheckGap(process=process, reason=reason, count=count)
                       for (process, reason), count in sorted(self._gaps.items())),
            processes=self._headers,
        )

    def is_parsed(self) -> bool:
        """Return True if every source that a verdict depends on could be parsed."""
        return all(process.sources.is_parsed() for process in self._processes.values())

    def _add(self, file: str, value: object) -> None:
        """Add the record in a line of a process's file."""
        process = self._processes.setdefault(file, CheckedProcess(spool.process_of(file)))
        match as_record(value):
            case None:
                self._lost.add(process.name)
            case ProcessRecord() as head:
                process.parent = head.parent
                self._head = self._head if self._headers else head
                self._headers += 1
            case FileRecord() as checked:
                process.add_file(checked)
            case ConflictRecord() as conflict:
                process.add_conflict(conflict)
            case GapRecord() as gap:
                key = process.name, gap.reason
                self._gaps[key] = self._gaps.get(key, 0) + gap.count
            case FinishRecord() as end:
                for (first, second), times in end.counts:
                    pair = file, min(first, second), max(first, second)
                    self._counts[pair] = self._counts.get(pair, 0) + times
                self._noted |= {(path, line): why for path, line, why in end.noted}
                self._unrewritten |= dict(end.unrewritten)

    def _verdicts(self, section: str | None) -> Iterable[Verdict]:
        for process in self._processes.values():
            found, is_damaged = process.verdicts(section)
            if is_damaged:
                self._lost.add(process.name)
            yield from found

    def _counts_by_race(self, verdicts: Iterable[Verdict]) -> dict[RaceKey, int]:
        """Return the number of conflicts of each race: those of a pair of sites count for the first race there."""
        files = {id(process): file for file, process in self._processes.items()}
        pairs: dict[tuple[str, int, int], RaceKey] = {}
        for verdict in verdicts:
            numbers = sorted(side.number for side in (verdict.context.first, verdict.context.second))
            pairs.setdefault((files[id(verdict.process)], numbers[0], numbers[1]), verdict.key)
        counts: dict[RaceKey, int] = {}
        for (file, first, second), times in self._counts.items():
            # A forked child counts what its parent has recorded, too.
            lineage = (file, self._processes[file].parent)
            key = next((pairs[each, first, second] for each in lineage if (each, first, second) in pairs), None)
            if key is not None:
                counts[key] = counts.get(key, 0) + times
        return counts


def _by_race(verdicts: Iterable[Verdict]) -> dict[RaceKey, Verdict]:
    """Return the gravest verdict on each race, of several the first."""
    found: dict[RaceKey, Verdict] = {}
    for verdict in verdicts:
        known = found.get(verdict.key)
        if known is None or verdict.severity.rank < known.severity.rank:
            found[verdict.key] = verdict
    return found


def _race(verdict: Verdict, root: str, variables: Mapping[str, _Variable], count: int) -> Race:
    first, second = verdict.accesses
    here, there = (sentences.for_readers(side, root) for side in verdict.accesses)
    key, name, rule, part = verdict.key, verdict.name, verdict.classification.rule, verdict.context.record.part
    variable = variables.get(key.base, _Variable(Locksets([]), updated=False))
    lock = sentences.missing_lock(
        variable.locks, here, there, verdict.process.name, unordered=verdict.context.record.sort == "order")
    remedy = None if variable.updated else verdict.remedy()    # no step for the check repairs a lost update
    return Race(
        ident=ident(*key), variable=name.text, base=name.base, name=name.name, item_key=name.item_key, kind=key.kind,
        severity=verdict.classification.severity, rule=rule, first=first, second=second, count=max(1, count),
        pattern=(sentences.pattern(key.kind, part, name.item_key, here, there) if rule is None
                 else sentences.RULES[rule]),
        missing=lock.sentence,
        repair=_repair(verdict, root, lock, remedy), remedy=remedy, reason=_reason(verdict))


def _repair(verdict: Verdict, root: str, lock: sentences.LockAdvice, remedy: Remedy | None) -> str:
    calls = tuple(sentences.own_call(side, root) for side in verdict.accesses)
    here, there = (sentences.for_readers(side, root) for side in calls)
    if remedy is not Remedy.THREADSAFE and calls != verdict.accesses:
        return sentences.repair_of_calls((here, there), lock)
    return sentences.repair(verdict.key.kind, verdict.context.record.part, here, there, lock, remedy)


def _variables(verdicts: Iterable[Verdict], root: str) -> dict[str, _Variable]:
    """Return, by its base, what all conflicts on a variable say that are no notes."""
    grave: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.severity is not Severity.NOTE:
            grave.setdefault(verdict.name.base, []).append(verdict)
    return {base: _Variable(
        locks=Locksets((OwnedVariable(each.process.name, each.context.record.owner.number, each.name.text),
                        sentences.for_readers(side, root))
                       for each in found for side in each.accesses),
        updated=any(each.classification.kind is RaceKind.LOST_UPDATE for each in found),
    ) for base, found in grave.items()}


def _reason(verdict: Verdict) -> str | None:
    if verdict.severity is not Severity.SUPPRESSED:
        return None
    return next((site.note for site in verdict.suppressing if site.note), "no reason given")


def ident(places: Iterable[FunctionPlace], base: str, kind: str) -> str:
    """Return the identity of a race, which is equal in all runs of the same source."""
    words = [base, kind]
    for path, line, function in places:
        words += [path, str(line), function]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


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
