"""How the records of all processes of a run become one report.

This runs where the report is made, not in the checked program.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.race import spool
from gilscope.toolkit.race.report import sentences
from gilscope.toolkit.race.report.model import ORDER, Access, Frame, Held, Race, RaceReport, Severity, Shared, Spot
from gilscope.toolkit.race.report.records import as_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.race.report.settings import Suppression


@dataclass(slots=True)
class _Gathered:
    """What the lines of all processes say, before it is merged."""

    head: dict[str, Any] = field(default_factory=dict)
    records: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)
    counts: dict[tuple[Any, ...], int] = field(default_factory=dict)
    noted: dict[tuple[str, int], str] = field(default_factory=dict)
    used: set[tuple[str, int]] = field(default_factory=set)
    unrewritten: dict[str, str] = field(default_factory=dict)
    shared: dict[tuple[str, str, int], Shared] = field(default_factory=dict)   # by base and place of the write
    alike: dict[tuple[str, str, int], bool] = field(default_factory=dict)      # likewise, where that is known
    processes: int = 0
    watched: int | None = None


def load(folder: str, suppressions: Sequence[Suppression] = (), section: str | None = None) -> RaceReport:
    """Return the report of a run from its spool folder.

    Args:
        folder: Where the processes of the run wrote.
        suppressions: Those of pyproject.toml.
        section: The records of this section alone; None for all.
    """
    gathered = _gather(spool.read(folder), section)
    races = sorted((_race(key, gathered) for key in gathered.records), key=_place_order)
    races = _without_shadows(races)
    shown, hidden, used = _suppress(races, suppressions, gathered.head.get("root", ""))
    comments = [(path, line, why) for (path, line), why in sorted(gathered.noted.items())]
    return RaceReport(
        target=str(gathered.head.get("target", "")), build=str(gathered.head.get("build", "")),
        core=str(gathered.head.get("core", "")), root=str(gathered.head.get("root", "")),
        races=tuple(race for race in shown if race.severity != "note"),
        notes=tuple(race for race in shown if race.severity == "note"),
        suppressed=tuple(hidden),
        unused_suppressions=sentences.unused(
            [(path, line) for path, line, _ in comments if (path, line) not in gathered.used],
            [each.describe() for each in suppressions if each not in used]),
        unexplained_suppressions=sentences.unexplained(
            [(path, line) for path, line, why in comments if not why]),
        unrewritten=tuple(sorted(gathered.unrewritten.items())), processes=gathered.processes, watched=gathered.watched,
        shared=tuple(gathered.shared[key] for key in sorted(gathered.shared)),
    )


def _gather(lines: Iterable[tuple[str, object]], section: str | None) -> _Gathered:
    gathered = _Gathered()
    for process, value in lines:
        if (record := as_record(value)) is None:
            gathered.unrewritten[process] = spool.LOST
            continue
        match record["t"]:
            case "process":
                gathered.processes += 1
                gathered.head = gathered.head or record
            case "race" if section is None or record["section"] == section:
                _add_race(gathered, record)
            case "shared":
                _add_shared(gathered, record)
            case "finish":
                _add_end(gathered, record)
    return gathered


def _key(section: str | None, places: Sequence[Sequence[Any]], base: str, kind: str) -> tuple[Any, ...]:
    return section, tuple(map(tuple, places)), base, kind


def _add_race(gathered: _Gathered, record: dict[str, Any]) -> None:
    key = _key(record["section"], record["places"], record["base"], record["kind"])
    known = gathered.records.get(key)
    if known is None or ORDER[record["severity"]] < ORDER[known["severity"]]:
        gathered.records[key] = record


def _add_shared(gathered: _Gathered, record: dict[str, Any]) -> None:
    """Add a variable that threads share; what came out of one write differently once is not alike."""
    found = Shared(base=record["base"], write=_frame(record["write"]), verb=record["verb"],
                   other=_frame(record["other"]), other_verb=record["other_verb"])
    key = (found.base, found.write.path, found.write.line)
    known = gathered.shared.setdefault(key, found)
    if record["alike"] is not None:
        gathered.alike[key] = gathered.alike.get(key, True) and record["alike"]
        gathered.shared[key] = replace(known, alike=gathered.alike[key])


def _add_end(gathered: _Gathered, record: dict[str, Any]) -> None:
    for entry, times in record["counts"]:
        key = _key(*entry)
        gathered.counts[key] = gathered.counts.get(key, 0) + times
    gathered.noted |= {(path, line): why for path, line, why in record["noted"]}
    gathered.used |= {(path, line) for path, line in record["used"]}
    gathered.unrewritten |= dict(record["unrewritten"])
    if record["watched"] is not None:
        gathered.watched = (gathered.watched or 0) + record["watched"]


def _race(key: tuple[Any, ...], gathered: _Gathered) -> Race:
    record = gathered.records[key]
    first, second = _access(record["first"]), _access(record["second"])
    variable, kind, base = record["variable"], record["kind"], record["base"]
    holders = sentences.holders(
        each for each in gathered.records.values() if each["base"] == base and each["severity"] != "note")
    missing, lock = sentences.missing_lock(holders, first, second)
    severity: Severity = "race" if record["severity"] == "suppressed" else record["severity"]
    return Race(
        ident=_ident(record), variable=variable, base=base, kind=kind, severity=severity, rule=record["rule"],
        first=first, second=second, count=max(1, gathered.counts.get(key, 1)), section=record["section"],
        pattern=sentences.pattern(kind, record["sort"], record["part"], first, second, record["rule"]),
        missing=missing, repair=sentences.repair(kind, record["part"], first, second, lock),
        reason=_reason(record),
    )


def _reason(record: dict[str, Any]) -> str | None:
    if record["severity"] != "suppressed":
        return None
    return next((why for _, _, why in record["reasons"] if why), "no reason given")


def _ident(record: dict[str, Any]) -> str:
    words = [record["base"], record["kind"]]
    for path, line, function in record["places"]:
        words += [path, str(line), function]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


def _access(record: dict[str, Any]) -> Access:
    place = _frame(record["place"])
    return Access(
        thread=record["thread"], verb=record["verb"], place=place, stack=tuple(map(_frame, record["stack"])),
        started=tuple(map(_frame, record["started"])), text=record["text"],
        locks=tuple(Held(uid=lock["uid"], name=lock["name"], taken=_frame([*lock["at"][0], ""]) if lock["at"] else None)
                    for lock in record["locks"]),
        pause=Spot(path=place.path, line=place.line, column=record["column"], op=record["op"], source=place.source),
        partner=_spot(record["partner"]), augmented=record["augmented"],
    )


def _frame(values: Sequence[Any]) -> Frame:
    path, line, function, source = values
    return Frame(path=path, line=line, function=function, source=source)


def _spot(values: Sequence[Any] | None) -> Spot | None:
    if values is None:
        return None
    path, line, column, op, source = values
    return Spot(path=path, line=line, column=column, op=op, source=source)


def _place_order(race: Race) -> tuple[Any, ...]:
    sides = [(side.place.path, side.place.line, side.pause.column) for side in (race.first, race.second)]
    return race.section or "", ORDER[race.severity], sorted(sides), race.base, race.kind


def _without_shadows(races: list[Race]) -> list[Race]:
    """Leave out notes whose places and variable have a graver report of the same run."""
    def where(race: Race) -> tuple[Any, ...]:
        places = frozenset((side.place.path, side.place.line) for side in (race.first, race.second))
        return race.section, race.base, places

    grave = {where(race) for race in races if race.severity != "note"}
    return [race for race in races if race.severity != "note" or where(race) not in grave]


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
