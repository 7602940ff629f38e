"""What the head of a corpus program says about it, and whether a report agrees.

A racy program names each race that must be reported:

    # EXPECT: lost update | Counter.value | 16, 16
    # EXPECT: check-then-act or lost update | *pool['db1'] | 21, 22, 23 | atomicity

Kind (or kinds), variable and lines, `file.py:7` for another file than the program.  In the variable `*` stands for
anything, and more may follow it.  Lines are those of the statements that take part: a report has to lie within them.
The same mistake has more pairs of places than its first (the reads after a lazy initialisation, say), so further
reports of the same variable within the same lines are in order, of whatever kind.  A race-free program says
`# EXPECT: clean`, and `# EXPECT-NOTE: why | variable | lines` for what has to be a note.  Programs from elsewhere may
say `# EXPECT: race` or `# EXPECT: atomicity` alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KINDS = frozenset({
    "lost update", "check-then-act", "torn multi-step write", "iteration during change", "unsynchronised read/write",
})
VIOLATION = "atomicity violation"
HEAD = re.compile(r"# EXPECT(?P<note>-NOTE)?: (?P<text>.+)")


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Expectation:
    """One race that has to be reported, or one note; no kinds and no lines: any."""

    kinds: frozenset[str]
    variable: str
    lines: frozenset[Place]
    atomicity: bool = False

    def is_about(self, found: Found) -> bool:
        """Tell whether `found` is on this variable and within these lines."""
        pattern = re.escape(self.variable).replace(r"\*", ".*")
        within = not self.lines or found.places <= self.lines
        return within and re.match(pattern, found.variable) is not None

    def is_met_by(self, found: Found) -> bool:
        """Tell whether `found` is what has to be reported."""
        kind = not self.kinds or found.kind in self.kinds
        return kind and self.is_about(found) and (not self.lines or found.atomicity == self.atomicity)


@dataclass(frozen=True, slots=True)
class Head:
    """All that a program's head says."""

    races: tuple[Expectation, ...]
    notes: tuple[Expectation, ...]

    @property
    def clean(self) -> bool:
        """Return True if no race may be reported."""
        return not self.races


@dataclass(frozen=True, slots=True)
class Found:
    """One report, as far as the corpus asks."""

    kind: str
    variable: str
    places: frozenset[Place]
    atomicity: bool
    complete: bool           # the variable is named, and there are two stacks

    def __str__(self) -> str:
        where = ", ".join(sorted(f"{place.file}:{place.line}" for place in self.places))
        return f"{self.kind} on {self.variable} at {where}" + (" (atomicity)" if self.atomicity else "")


def read_head(program: Path) -> Head | None:
    """Return what the first comments of `program` say, None where they say nothing.

    Raises:
        ValueError: A head that cannot be read.
    """
    races, notes, seen = [], [], False
    for line in program.read_text().splitlines():
        match = HEAD.fullmatch(line)
        if match is None:
            break
        seen = True
        if match["text"] != "clean":
            (notes if match["note"] else races).append(_expectation(program.name, match["text"], bool(match["note"])))
    return Head(tuple(races), tuple(notes)) if seen else None


def _expectation(file: str, text: str, note: bool) -> Expectation:  # noqa: FBT001  private, and named where it is called
    if text in {"race", "atomicity"}:
        return Expectation(frozenset(), "*", frozenset(), text == "atomicity")
    kinds, variable, lines, *rest = text.split(" | ")
    expected = frozenset(kinds.split(" or ")) if not note else frozenset()
    if not expected <= KINDS or rest not in ([], ["atomicity"]):
        raise ValueError(f"{file}: cannot read {text!r}")
    places = frozenset(_place(file, each.strip()) for each in lines.split(","))
    return Expectation(expected, variable, places, bool(rest))


def _place(file: str, text: str) -> Place:
    other, colon, line = text.rpartition(":")
    return Place(other if colon else file, int(line))


def found_races(document: dict[str, Any]) -> tuple[list[Found], list[Found]]:
    """Return the races and the notes of a report in JSON."""
    return [*map(_found, document["races"])], [*map(_found, document["notes"])]


def _found(race: dict[str, Any]) -> Found:
    sides = [race["first"], race["second"]]
    places = frozenset(Place(side["place"]["path"].rpartition("/")[2], side["place"]["line"]) for side in sides)
    complete = bool(race["variable"]) and all(map(_has_stack, sides))
    return Found(race["kind"], race["variable"], places, race["severity"] == VIOLATION, complete)


def _has_stack(side: dict[str, Any]) -> bool:
    """Tell whether an access says how it came about; a module's top and a thread's function have no callers."""
    return bool(side["stack"] or side["started"] or side["place"]["function"] == "<module>")


def disagreements(head: Head, races: list[Found], notes: list[Found]) -> Iterator[str]:
    """Yield a sentence for everything in which a report and a head differ."""
    for expected in head.races:
        if not any(map(expected.is_met_by, races)):
            kinds = " or ".join(sorted(expected.kinds)) or "a race"
            yield f"missed: {kinds} on {expected.variable}{_hint(expected, races, notes)}"
    for expected in head.notes:
        if not any(map(expected.is_about, notes)):
            yield f"no note on {expected.variable}"
    for found in races:
        if not any(expected.is_about(found) for expected in head.races):
            yield f"unexpected: {found}"


def _hint(expected: Expectation, races: list[Found], notes: list[Found]) -> str:
    """Return what there is instead."""
    instead = [f"{found}" for found in races] + [f"note: {found}" for found in notes]
    return f" (instead: {'; '.join(instead)})" if instead else ""
