"""Where a confirming run pauses, what it looks for there, and where it answers: made from a race of the first run.

A race becomes plain lists, since it travels to the child in its spec.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gilscope.toolkit.race.report.model import Access, Race, Spot

    Place = tuple[str, int, int, str]                 # path, line, column, op
    # Race.ident, one of the questions, the raced item's key as it is written, places with their roles
    Plan = tuple[str, str, str, list[tuple[Place, int]]]

READS, WRITES = 1, 2          # begins a span; ends one, or falls into another thread's
FIRST, SECOND = 4, 8          # the race's two places
ITERATES = 16                 # the structure must rest from here to the iteration's end

ANSWERS = "answers"    # in the spool of the run: a race's ident and how often it is confirmed by now, line by line

# The questions.  Was a write overwritten unseen?  Did another thread act between the check and the act?  Were both
# there at once?  Did the structure change during the iteration?
LOST, PASSED, MET, CHANGED = "lost", "passed", "met", "changed"
SPANS = {"lost update": LOST, "check-then-act": PASSED}


def plan(race: Race) -> Plan:
    """Return what to do for one race."""
    iterates = [side for side in (race.first, race.second) if side.verb == "iterate"]
    places: dict[Place, int] = {}
    for role, side in ((FIRST, race.first), (SECOND, race.second)):
        _add(places, side.pause, role)
        if side in iterates:
            _add(places, side.pause, ITERATES)
        elif race.kind in SPANS or side.augmented:
            _add_span(places, side, race.kind)
        elif side.verb != "read":
            _add(places, side.pause, WRITES)
    spans = any(roles & READS for roles in places.values())
    question = CHANGED if iterates else SPANS.get(race.kind, MET) if spans else MET
    return race.ident, question, _key(race.variable), list(places.items())


def _key(variable: str) -> str:
    """Return "['the']" of "counts['the']", "" where the variable is no item."""
    return variable[variable.index("["):] if variable.endswith("]") else ""


def _add_span(places: dict[Place, int], side: Access, kind: str) -> None:
    if side.augmented and kind != "check-then-act":   # there, what counts is the check before it
        _add(places, side.pause, READS | WRITES)
    elif side.verb == "read":
        _add(places, side.pause, READS)
        if side.partner:
            _add(places, side.partner, WRITES)
    else:
        _add(places, side.pause, WRITES)
        if side.partner:
            _add(places, side.partner, READS)


def _add(places: dict[Place, int], spot: Spot, role: int) -> None:
    place = (spot.path, spot.line, spot.column, spot.op)
    places[place] = places.get(place, 0) | role


def in_words(question: str, times: int) -> str:
    """Return what a run that answered the question with yes has shown."""
    if question == LOST:
        return f"confirmed: {times} update{'s' if times != 1 else ''} lost"
    if question == CHANGED:
        return "confirmed: the structure changed during iteration"
    return "confirmed: both threads were there at once"
