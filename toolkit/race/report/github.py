"""A report as workflow commands, which GitHub shows beside the lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.escaping import in_command, in_command_property, visible_all
from gilscope.toolkit.race.report.sentences import limits
from gilscope.toolkit.race.report.settings import relative
from gilscope.toolkit.race.report.text import at, shown
from gilscope.toolkit.race.terms import Severity

if TYPE_CHECKING:
    from gilscope.toolkit.race.report.model import Access, Race, RaceReport

LEVELS = {Severity.RACE: "error", Severity.VIOLATION: "error", Severity.DOUBT: "warning", Severity.NOTE: "notice"}


def render(report: RaceReport, *, notes: bool = False) -> str:
    """Return one command per line, without a newline at the end; "" when there is nothing to show."""
    report = visible_all(report, shown)
    races = [*report.races, *report.doubts, *(report.notes if notes else ())]
    lines = [_command(race, report.root) for race in races]
    lines += [f"::warning title=gilscope race::{in_command(text)}"
              for text in (*limits(report), *report.unexplained_suppressions,
                           *report.unused_suppressions)]
    return "\n".join(lines)


def _command(race: Race, root: str) -> str:
    place = race.second.place
    properties = {"file": relative(place.path, root), "line": str(place.line),
                  "title": f"{race.kind} on {race.variable}"}
    written = ",".join(f"{name}={in_command_property(value)}" for name, value in properties.items())
    parts = [*(_side(side, root) for side in (race.second, race.first)), race.pattern]
    if race.severity != Severity.NOTE:
        parts += [race.missing, f"Repair: {race.repair}"]
    if race.confirmation:
        parts.append(race.confirmation)
    return f"::{LEVELS[race.severity]} {written}::{in_command(chr(10).join(parts))}"


def _side(side: Access, root: str) -> str:
    held = ", ".join(lock.name for lock in side.locks) or "nothing"
    way = " <- ".join(at(frame, root) for frame in (side.place, *side.stack))
    return f"{side.verb} by {side.thread}, holding {held}: {way}"
