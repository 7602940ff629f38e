"""A report for people: both sides complete, the repair last.

Our own renderer, since it also runs inside pytest and needs nothing but the report.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import IO, TYPE_CHECKING

from gilscope.toolkit.escaping import visible, visible_all, without_commands
from gilscope.toolkit.race.report.sentences import lost_records
from gilscope.toolkit.race.report.settings import relative
from gilscope.toolkit.race.site import Severity
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gilscope.toolkit.race.report.model import Access, Frame, Race, RaceReport

    Paint = Callable[[str, str], str]

TITLES = {Severity.RACE: "DATA RACE", Severity.VIOLATION: "ATOMICITY VIOLATION", Severity.NOTE: "NOTE"}
COLOURS = {Severity.RACE: "1;31", Severity.VIOLATION: "1;33", Severity.NOTE: "1;36", "repair": "32", "dim": "2",
           "bold": "1"}
WIDEST = 46      # of a place; the source line stands behind it


def wants_colour(stream: IO[str]) -> bool:
    """Return True if the stream is a terminal and NO_COLOR is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def render(report: RaceReport, *, color: bool = False, notes: bool = False) -> str:
    """Return the report as text without a newline at the end; notes are left out unless asked for."""
    report = visible_all(report, shown)
    paint = _painted if color else _plain
    races = [*report.races, *(report.notes if notes else ())]
    blocks = ["\n".join(_race(race, report.root, paint)) for race in races]
    if shared := list(_shared(report)):
        blocks.append("\n".join(shared))
    if remarks := list(_remarks(report)):
        blocks.append("\n".join(remarks))
    blocks.append(_summary(report, notes=notes, paint=paint))
    return without_commands("\n\n".join(blocks))


def shown(text: str) -> str:
    """Return a name from the program on one line."""
    return visible(text, whole="--json has all of them")


def render_race(race: Race, root: str, *, color: bool = False) -> str:
    """Return one race as text."""
    race, root = visible_all((race, root), shown)
    return without_commands("\n".join(_race(race, root, _painted if color else _plain)))


def _plain(text: str, _: str) -> str:
    return text


def _painted(text: str, what: str) -> str:
    return f"\x1b[{COLOURS[what]}m{text}\x1b[0m"


def _race(race: Race, root: str, paint: Paint) -> Iterator[str]:
    confirmed = f" ({race.confirmation})" if race.confirmation else ""
    yield f"{paint(TITLES[race.severity], race.severity)} on {paint(race.variable, 'bold')}: {race.kind}{confirmed}"
    width = max(len(side.verb) for side in (race.first, race.second))
    # The access that came second is the one that was caught; it stands first, as in other checkers.
    for side in (race.second, race.first):
        yield from _access(side, width, root, paint)
    yield f"  {race.pattern}"
    if race.severity != Severity.NOTE:
        yield f"  {race.missing}"
        yield f"  {paint('Repair:', 'repair')} {race.repair}"
    if race.count > 1:
        yield paint(f"  Seen {race.count} times in this run; the first is shown.", "dim")


def _access(side: Access, width: int, root: str, paint: Paint) -> Iterator[str]:
    held = ", ".join(lock.name for lock in side.locks) or "nothing"
    yield f"  {side.verb:<{width}}  {paint(side.thread, 'bold')}, holding {held}"
    frames = [(frame, at(frame, root)) for frame in (side.place, *_callers(side))]
    started = [(frame, at(frame, root)) for frame in side.started]
    column = min(WIDEST, max(len(place) for _, place in [*frames, *started]))
    if (read := _read_before(side)) is not None:
        yield _frame(read, at(read, root), "read at ", column, paint)
    for index, (frame, place) in enumerate(frames):
        yield _frame(frame, place, "" if index == 0 else "<- ", column, paint)
    for index, (frame, place) in enumerate(started):
        yield _frame(frame, place, "started at " if index == 0 else "<- ", column, paint)


def _read_before(side: Access) -> Frame | None:
    """Return the read that the write depends on, where it stands in another line."""
    spot = side.partner
    if spot is None or side.verb == "read" or (spot.path, spot.line) == (side.place.path, side.place.line):
        return None
    return replace(side.place, path=spot.path, line=spot.line, source=spot.source)


def _frame(frame: Frame, place: str, lead: str, column: int, paint: Paint) -> str:
    line = f"      {lead:>11}{place:<{column}}"
    return f"{line}  {paint(frame.source, 'dim')}" if frame.source else line.rstrip()


def at(frame: Frame, root: str) -> str:
    """Return a frame's place as readers have it: `bank.py:14 in Account.deposit`."""
    return f"{_known_as(relative(frame.path, root))}:{frame.line} in {frame.function}"


def _known_as(path: str) -> str:
    """Return the name by which a module of the standard library or an installed package is known."""
    _, found, rest = path.rpartition("/site-packages/")
    if found:
        return rest
    _, found, rest = path.partition("/lib/python3.")
    return rest.partition("/")[2] if found else path


def _callers(side: Access) -> tuple[Frame, ...]:
    """Return the callers without the frames in which every thread begins."""
    stack = side.stack
    while stack and stack[-1].path.endswith("threading.py") and stack[-1].function.startswith("Thread."):
        stack = stack[:-1]
    return stack


def _shared(report: RaceReport) -> Iterator[str]:
    if report.shared:
        yield "Shared by threads (ordered or not). Each process and subinterpreter would have its own copy"
    for each in report.shared:
        yield (f"  {each.base}: {each.verb} at {at(each.write, report.root)}, "
               f"{each.other_verb} at {at(each.other, report.root)}"
               + "; a memo: each would make the same" * each.alike)


def _remarks(report: RaceReport) -> Iterator[str]:
    for path, reason in report.unrewritten:
        yield f"not watched: {relative(path, report.root)}: {reason}"
    yield from map(lost_records, report.lost)
    yield from report.unexplained_suppressions
    yield from report.unused_suppressions


def _summary(report: RaceReport, *, notes: bool, paint: Paint) -> str:
    races = sum(race.severity == Severity.RACE for race in report.races)
    violations = len(report.races) - races
    counts = [counted(races, "data race")]
    if violations:
        counts.append(counted(violations, Severity.VIOLATION))
    if report.notes:
        counts.append(counted(len(report.notes), Severity.NOTE) + ("" if notes else " (--notes shows them)"))
    if report.suppressed:
        counts.append(f"{len(report.suppressed)} suppressed")
    result = ", ".join(counts if report.races else ["no race in what this run did", *counts[1:]])
    return f"{paint('gilscope race:', 'bold')} {result}{_circumstances(report)}"


def _circumstances(report: RaceReport) -> str:
    parts: Sequence[str] = [text for text in (
        report.target, report.build and f"on {report.build}", report.core and f"{report.core} core",
        f"{report.processes} processes" if report.processes > 1 else "",
        f"{report.watched} accesses" if report.watched else "") if text]
    return f" [{', '.join(parts)}]" if parts else ""
