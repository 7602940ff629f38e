"""A report for people: the result, all variables if there are several, then the races of each, the repair last.

Frames of libraries are folded, and a long report leaves races and frames out; with `stacks`, nothing is.
Our own renderer, since it also runs inside pytest and needs nothing but the report.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import dropwhile, groupby
from typing import IO, TYPE_CHECKING

from gilscope.toolkit.escaping import visible, visible_all, without_commands
from gilscope.toolkit.own_files import library_of
from gilscope.toolkit.race.report.sentences import limits, path_for_readers, repair_of_all
from gilscope.toolkit.race.report.settings import relative
from gilscope.toolkit.race.terms import GRAVE, Severity
from gilscope.toolkit.units import counted, few, inflect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gilscope.toolkit.race.program.checked_files import CheckedFiles
    from gilscope.toolkit.race.report.model import Access, Frame, Race, RaceReport

    Paint = Callable[[str, str], str]

TITLES = {Severity.RACE: "DATA RACE", Severity.VIOLATION: "ATOMICITY VIOLATION", Severity.NOTE: "NOTE"}
COLOURS = {Severity.RACE: "1;31", Severity.VIOLATION: "1;33", Severity.NOTE: "1;36",
           "repair": "32", "dim": "2", "bold": "1"}
WIDEST = 46      # of a place; the source line stands behind it
WIDEST_LINE = 110    # of an access in a line
MOST_LINES = 60  # of a report: what does not fit is in the list of variables alone
MOST_OF_FINDING = 20   # lines on the races of a variable
MOST_CALLERS = 2       # lines on the callers of an access


def wants_colour(stream: IO[str]) -> bool:
    """Return True if the stream is a terminal and NO_COLOR is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def render(
    report: RaceReport, *, color: bool = False, notes: bool = False, stacks: bool = False,
    checked: CheckedFiles | None = None,
) -> str:
    """Return the report as text without a newline at the end.

    Args:
        report: The report.
        color: True to colour it.
        notes: True to show notes.
        stacks: True to show each race on its own, with every frame.
        checked: The files that were checked, named in the first line.
    """
    report = visible_all(report, shown)
    paint = _painted if color else _plain
    races = [*report.races, *(report.notes if notes else ())]
    blocks = [_summary(report, checked, notes=notes, paint=paint)]
    remarks = list(_remarks(report))
    if stacks:
        blocks += ["\n".join(_race(race, report.root, paint, stacks=True)) for race in races]
    else:
        blocks += _blocks(by_variable(races), report.root, paint, MOST_LINES - len(remarks))
    if remarks:
        blocks.append("\n".join(remarks))
    return without_commands("\n\n".join(blocks))


def shown(text: str) -> str:
    """Return a name from the program on one line."""
    return visible(text, whole="--json has all of them")


def render_race(race: Race, root: str, *, color: bool = False) -> str:
    """Return one race as text."""
    race, root = visible_all((race, root), shown)
    return without_commands("\n".join(_race(race, root, _painted if color else _plain)))


def render_finding(group: Sequence[Race], root: str) -> str:
    """Return the races of one variable as text of at most 20 lines, without a hint at other forms."""
    group, root = visible_all((tuple(group), root), shown)
    return without_commands("\n".join(_variable(group, root, _plain, hint="")))


def summary_of(group: Sequence[Race], root: str, tests: str) -> str:
    """Return the races of one variable in five lines; `tests` says where they happened."""
    group, root, tests = visible_all((tuple(group), root, tests), shown)
    first, *others = group
    more = f"; {counted(len(others), 'more pair')} of accesses: {lines_of(others, root)}" if others else ""
    sides = (first.second, first.first)
    width = max(len(side.verb) for side in sides)
    lines = [_title(first, first.base + first.item_key, _plain), f"{tests}{more}",
             *(_in_a_line(side, root, width) for side in sides), f"Repair: {repair_of_all(group, root)}"]
    return without_commands("\n    ".join(lines))


def message_of(race: Race, root: str) -> str:
    """Return a race in three lines: what it is, the two accesses, what goes wrong."""
    race, root = visible_all((race, root), shown)
    sides = ", ".join(f"{side.verb} at {spot(side.place, root)} ({side.thread})" for side in (race.second, race.first))
    title = _title(race, race.base + race.item_key, _plain)
    return without_commands(f"{title}\n    {sides}\n    {race.pattern}")


def _in_a_line(side: Access, root: str, width: int) -> str:
    """Return an access with its thread, and as many callers as fit."""
    line = f"{side.verb:<{width}}  {at(side.place, root)} ({side.thread})"
    path = side.place.path
    for frame in _own(side.stack, root):
        caller = f" <- {spot(frame, root)}" if frame.path != path else f" <- :{frame.line}"
        if len(line) + len(caller) > WIDEST_LINE:
            break
        line += caller
        path = frame.path
    return line


def _plain(text: str, _: str) -> str:
    return text


def _painted(text: str, what: str) -> str:
    return f"\x1b[{COLOURS[what]}m{text}\x1b[0m"


def by_variable(races: Sequence[Race]) -> list[list[Race]]:
    """Return the races of each variable, its notes apart, in the order in which each comes first."""
    found: dict[tuple[str, str], list[Race]] = {}
    for race in races:
        apart = "" if race.severity in GRAVE else race.severity
        found.setdefault((race.base, apart), []).append(race)
    return list(found.values())


def _blocks(groups: Sequence[Sequence[Race]], root: str, paint: Paint, room: int) -> list[str]:
    """Return the list of variables if there are several, then a block for each one that fits."""
    described = [list(_variable(group, root, paint)) for group in groups]
    listed = list(_list(groups, root, paint)) if len(groups) > 1 else []
    room -= len(listed) + 5     # the result, the line on what does not fit, blank lines
    shown_blocks: list[str] = []
    for lines in described:
        if not shown_blocks or len(lines) < room:
            shown_blocks.append("\n".join(lines))
            room -= len(lines) + 1
    if left := len(described) - len(shown_blocks):
        listed.append(f"  {counted(left, 'variable')} with races {inflect(left, 'is', 'are')} in this list alone: "
                      "--stacks shows every race with all frames.")
    return [*(["\n".join(listed)] if listed else []), *shown_blocks]


def _variable(group: Sequence[Race], root: str, paint: Paint, hint: str = " (--stacks shows them)") -> list[str]:
    """Return at most 20 lines on the races of a variable: the first with its stacks, the others in a line each."""
    first, *others = group
    lines = list(_race(first, root, paint, repair=repair_of_all(group, root)))
    if not others:
        return lines
    rows = []
    for race in others:
        sides = dict.fromkeys(f"{side.verb} at {at(side.place, root)}" for side in (race.second, race.first))
        other = f" on {race.variable}" if race.variable != first.variable else ""
        rows.append(f"    {race.kind}{other}: {', '.join(sides)}" + f", seen {race.count} times" * (race.count > 1))
    room = MOST_OF_FINDING - len(lines) - 1
    if len(rows) > room:
        rows[room - 1:] = [f"    and {len(rows) - room + 1} more{hint}"]
    return [*lines, "  More races on it:", *rows]


def _list(groups: Sequence[Sequence[Race]], root: str, paint: Paint) -> Iterator[str]:
    """Yield a line for each variable with a race: its name, the lines, the repair."""
    rows = [(_name_of(group), lines_of(group, root), repair_of_all(group, root))
            for group in groups if group[0].severity in GRAVE]
    yield paint("Repairs", "bold")
    for variable, lines, repair in rows:
        yield f"  {paint(variable, 'bold')}  {lines}"
        yield f"      {repair}"


def _name_of(group: Sequence[Race]) -> str:
    """Return the name of the variable, without key and instance if the races are on several."""
    return group[0].variable if len({race.variable for race in group}) == 1 else group[0].base


def lines_of(group: Sequence[Race], root: str) -> str:
    """Return the lines of some races: "shop.py:16, 17, 18, stats.py:3"."""
    places: dict[str, set[int]] = {}
    for race in group:
        for side in (race.first, race.second):
            spots = [side.place, *([read] if (read := _read_before(side)) is not None else [])]
            for frame in spots:
                places.setdefault(path_for_readers(frame.path, root), set()).add(frame.line)
    return ", ".join(f"{path}:{', '.join(map(str, sorted(lines)))}" for path, lines in sorted(places.items()))


def _race(race: Race, root: str, paint: Paint, *, stacks: bool = False, repair: str = "") -> Iterator[str]:
    yield _title(race, race.variable, paint)
    width = max(len(side.verb) for side in (race.first, race.second))
    # The access that came second is the one that was caught; it stands first, as in other checkers.
    second, first = race.second, race.first
    if second.thread == first.thread:
        first = replace(first, thread=f"{first.thread} (another thread of this name)")
    if not stacks and _way(second) == _way(first):   # one description is enough
        yield _who(second, width, paint)
        yield _who(first, width, paint)
        yield from _where(first, root, paint, stacks=stacks)
    else:
        for side in (second, first):
            yield _who(side, width, paint)
            yield from _where(side, root, paint, stacks=stacks)
    yield f"  {race.pattern}"
    if race.severity != Severity.NOTE:
        yield f"  {race.missing}"
        yield f"  {paint('Repair:', 'repair')} {repair or race.repair}"


def _title(race: Race, variable: str, paint: Paint) -> str:
    remarks = [race.confirmation, f"seen {race.count} times" if race.count > 1 else None]
    said = f" ({'; '.join(filter(None, remarks))})" if any(remarks) else ""
    return f"{paint(TITLES[race.severity], race.severity)} on {paint(variable, 'bold')}: {race.kind}{said}"


def _way(side: Access) -> object:
    return side.place, side.stack, side.started, side.partner


def _who(side: Access, width: int, paint: Paint) -> str:
    held = ", ".join(lock.name for lock in side.locks) or "nothing"
    return f"  {side.verb:<{width}}  {paint(side.thread, 'bold')}, holding {held}"


def _where(side: Access, root: str, paint: Paint, *, stacks: bool) -> Iterator[str]:
    callers = _folded(_callers(side.stack) if stacks else _own(side.stack, root), root, fold=not stacks)
    if not stacks and len(callers) > MOST_CALLERS:
        callers[MOST_CALLERS - 1:] = [(None, f"{len(callers) - MOST_CALLERS + 1} more")]
    frames = [(side.place, at(side.place, root)), *callers]
    started = _folded(_callers(side.started) if stacks else _start(side, root), root, fold=False)
    column = min(WIDEST, max(len(place) for _, place in [*frames, *started]))
    if (read := _read_before(side)) is not None:
        yield _frame(read, at(read, root), "read at ", column, paint)
    for index, (frame, place) in enumerate(frames):
        yield _frame(frame, place, "" if index == 0 else "<- ", column, paint)
    for index, (frame, place) in enumerate(started):
        yield _frame(frame, place, "started at " if index == 0 else "<- ", column, paint)


def _own(stack: tuple[Frame, ...], root: str) -> tuple[Frame, ...]:
    """Return a stack without the libraries below the program's outermost frame; all of it if there is none."""
    own = [number for number, frame in enumerate(stack) if not library_of(frame.path, root)]
    return stack[:own[-1] + 1] if own else _callers(stack)


def _start(side: Access, root: str) -> tuple[Frame, ...]:
    """Return the frame that started the thread, if possible one of the user's; () for the main thread."""
    begun = _callers(side.started)
    return (*dropwhile(lambda frame: library_of(frame.path, root), begun), *begun)[:1]


def _folded(frames: Iterable[Frame], root: str, *, fold: bool) -> list[tuple[Frame | None, str]]:
    """Return frames with their places; several of libraries in a row become one line without a frame."""
    found: list[tuple[Frame | None, str]] = []
    for of_library, run in groupby(frames, key=lambda frame: bool(library_of(frame.path, root))):
        row = list(run)
        if fold and of_library and len(row) > 1:
            names = [*dict.fromkeys(library_of(each.path, root) for each in row)]
            found.append((None, f"{len(row)} frames of {few(names)}"))
        else:
            found += [(each, at(each, root)) for each in row]
    return found


def _read_before(side: Access) -> Frame | None:
    """Return the read that the write depends on, where it stands in another line."""
    spot = side.partner
    if spot is None or side.verb == "read" or (spot.path, spot.line) == (side.place.path, side.place.line):
        return None
    return replace(side.place, path=spot.path, line=spot.line, source=spot.source)


def _frame(frame: Frame | None, place: str, lead: str, column: int, paint: Paint) -> str:
    line = f"      {lead:>11}{place:<{column}}"
    return f"{line}  {paint(frame.source, 'dim')}" if frame is not None and frame.source else line.rstrip()


def at(frame: Frame, root: str) -> str:
    """Return a frame's place as readers have it: `bank.py:14 in Account.deposit`."""
    return f"{spot(frame, root)} in {frame.function}"


def spot(frame: Frame, root: str) -> str:
    """Return a frame's file and line: `bank.py:14`."""
    return f"{path_for_readers(frame.path, root)}:{frame.line}"


def _callers(stack: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Return frames without those in which every thread begins."""
    while stack and stack[-1].path.endswith("threading.py") and stack[-1].function.startswith("Thread."):
        stack = stack[:-1]
    return stack


def _remarks(report: RaceReport) -> Iterator[str]:
    for path, reason in report.unrewritten:
        yield f"not watched: {relative(path, report.root)}: {reason}"
    yield from limits(report)
    yield from report.unexplained_suppressions
    yield from report.unused_suppressions


def _summary(report: RaceReport, checked: CheckedFiles | None, *, notes: bool, paint: Paint) -> str:
    races = sum(race.severity == Severity.RACE for race in report.races)
    violations = len(report.races) - races
    counts = [counted(races, "data race")] if races or not violations else []
    if violations:
        counts.append(counted(violations, Severity.VIOLATION))
    variables = len({race.base for race in report.races})
    if variables < len(report.races):     # the blocks are by variable
        counts[-1] += f" on {counted(variables, 'variable')}"
    if report.notes:
        counts.append(counted(len(report.notes), Severity.NOTE) + ("" if notes else " (--notes shows them)"))
    if report.suppressed:
        counts.append(f"{len(report.suppressed)} suppressed")
    none = "no race in what this run did" if report.is_complete else "an incomplete check"
    result = ", ".join(counts if report.races else [none, *counts[1:]])
    if checked is not None:
        result = shown(checked.words(result, found=bool(report.races)))
    return f"{paint('gilscope race:', 'bold')} {result}{_circumstances(report)}"


def _circumstances(report: RaceReport) -> str:
    parts: Sequence[str] = [text for text in (
        report.target, report.build and f"on {report.build}",
        f"{report.processes} processes" if report.processes > 1 else "") if text]
    return f" [{', '.join(parts)}]" if parts else ""
