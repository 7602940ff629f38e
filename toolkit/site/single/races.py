"""A race report as a page has it: each race with the source of both accesses, marked, and what their threads held.

What is given is the document of `gilscope race --json`; what comes back is plain values for the template.
"""

from __future__ import annotations

import linecache
from collections import Counter
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.race.report.model import CheckGap
from gilscope.toolkit.race.report.sentences import gap, lost_records
from gilscope.toolkit.race.terms import GapReason, Severity
from gilscope.toolkit.units import inflect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Lines = Callable[[str], Sequence[str]]   # of a file by its path; none where it cannot be read

AROUND = 3          # lines of source above and below what is marked
NEAR = 12           # lines between two accesses that one excerpt shows
LONGEST = 300       # characters of a line that are shown


def lines_of(path: str) -> Sequence[str]:
    """Return the lines of a source file, as Python would show them in a traceback."""
    return linecache.getlines(path)


GROUPS = ("races", "notes", "suppressed")


def race_values(report: Mapping[str, Any], lines: Lines = lines_of) -> dict[str, Any]:
    """Return the page's values.

    Args:
        report: The document.
        lines: Returns the lines of a file.
    """
    groups = {name: [_race(each, lines) for each in report[name]] for name in GROUPS}
    gaps = [CheckGap(**{**each, "reason": GapReason(each["reason"])}) for each in report["gaps"]]
    limits = [*map(lost_records, report["lost"]), *map(gap, gaps)]
    found = _found(report["races"]) or ("Incomplete check for races" if limits else "No race")
    return {
        "title": f"{found} in {report['target']}", "circumstances": _circumstances(report), **groups,
        "complete": not limits,
        "remarks": [*report["unexplained_suppressions"], *report["unused_suppressions"],
                    *(f"not watched: {path}: {reason}" for path, reason in report["unrewritten"]),
                    *limits],
    }


def _found(races: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter("data race" if race["severity"] == Severity.RACE else "atomicity violation" for race in races)
    found = " and ".join(_counted(count, noun) for noun, count in counts.items())
    variables = len({race["base"] for race in races})
    return f"{found} on {_counted(variables, 'variable')}" if variables < len(races) else found


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {inflect(number, noun)}"


def _circumstances(report: Mapping[str, Any]) -> str:
    """Return the build and counts of the run, in words."""
    return ", ".join(text for text in (
        f"on {report['build']}" if report["build"] else "",
        f"{report['processes']:,} processes" if report["processes"] > 1 else "") if text)


def _race(race: Mapping[str, Any], lines: Lines) -> dict[str, Any]:
    # The access that came second is the one that was caught; it stands first, as in the terminal.
    sides = [_side(number, race[name]) for number, name in enumerate(("second", "first"), 1)]
    kept = ("ident", "variable", "kind", "severity", "count", "pattern", "missing", "repair", "confirmation", "reason")
    return {**{name: race.get(name) for name in kept}, "sides": sides, "excerpts": list(_excerpts(sides, lines))}


def _side(number: int, access: Mapping[str, Any]) -> dict[str, Any]:
    place, partner = access["place"], access.get("partner")
    elsewhere = partner and access["verb"] != "read" and (
        (partner["path"], partner["line"]) != (place["path"], place["line"]))
    return {
        "number": number, "verb": access["verb"], "thread": access["thread"], "place": place, "text": access["text"],
        "pause": access["pause"], "locks": access["locks"], "callers": _callers(access["stack"]),
        "started": access["started"], "read_at": partner if elsewhere else None,
    }


def _callers(stack: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the callers without the frames in which every thread begins."""
    kept = list(stack)
    while kept and kept[-1]["path"].endswith("threading.py") and kept[-1]["function"].startswith("Thread."):
        kept.pop()
    return kept


def _excerpts(sides: Sequence[Mapping[str, Any]], lines: Lines) -> Iterator[dict[str, Any]]:
    """Yield the pieces of source that hold what both sides did, near ones as one piece."""
    marks: dict[tuple[str, int], set[int]] = {}
    for side in sides:
        for spot in (side["place"], side["read_at"]):
            if spot:
                marks.setdefault((spot["path"], spot["line"]), set()).add(side["number"])
    groups: list[list[tuple[str, int]]] = []
    for place in sorted(marks):
        last = groups[-1][-1] if groups else ("", 0)
        if place[0] == last[0] and place[1] - last[1] <= NEAR:
            groups[-1].append(place)
        else:
            groups.append([place])
    for group in groups:
        path, first, last_line = group[0][0], group[0][1], group[-1][1]
        source = lines(path)
        if not all(_is_of(source, _reported(sides, path, line), line) for _, line in group):
            # It is not at hand, or another text by now: what the report has.
            shown = {line: _reported(sides, path, line) for _, line in group}
        else:
            begin = max(1, first - AROUND)
            shown = dict(enumerate(_dedented(source[begin - 1:last_line + AROUND]), begin))
        yield {"path": path, "lines": [
            {"number": number, "sides": sorted(marks.get((path, number), ())),
             "parts": _parts(text, [side for side in sides if (side["pause"]["path"], side["pause"]["line"])
                                    == (path, number)])}
            for number, text in shown.items()]}


def _is_of(source: Sequence[str], reported: str, line: int) -> bool:
    """Return True if `reported` is the text of that line of a file."""
    return line <= len(source) and (not reported or source[line - 1].strip() == reported.strip())


def _reported(sides: Sequence[Mapping[str, Any]], path: str, line: int) -> str:
    for side in sides:
        for spot in (side["place"], side["read_at"]):
            if spot and (spot["path"], spot["line"]) == (path, line) and spot.get("source"):
                return str(spot["source"])
    return ""


def _dedented(lines: Sequence[str]) -> list[str]:
    texts = [line.rstrip("\r\n").expandtabs(4) for line in lines]
    indent = min((len(text) - len(text.lstrip()) for text in texts if text.strip()), default=0)
    return [text[indent:][:LONGEST] for text in texts]


def _parts(text: str, sides: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a line in parts, what was accessed apart from the rest."""
    for side in sides:
        before, found, after = text.partition(side["text"])
        if found and found != text:
            return [{"text": before, "marked": False}, {"text": found, "marked": True},
                    {"text": after, "marked": False}]
    return [{"text": text, "marked": False}]
