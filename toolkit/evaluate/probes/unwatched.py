"""Facts about code that several threads of the project run and that the race checker does not watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import FREE_THREADING, Codes, Effect, Fact, Kind, PlanStep
from gilscope.toolkit.evaluate.sections import known
from gilscope.toolkit.units import few

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.evaluation import Evaluation

MOST_LINES = 3
CODES = Codes({
    "code.not-watched": Kind(Effect.UNKNOWN, state="open"),
    "code.to-look-at": Kind(Effect.NOTE),
})
fact = CODES.fact


def facts(found: Evaluation) -> Iterator[Fact]:
    """Yield the code that nothing watched."""
    races = known(found.races)
    if races is None or not races.unwatched:
        return
    places = few([f"{each.what} ({each.place})" for each in races.unwatched])
    yield fact("code.not-watched", FREE_THREADING,
               f"several threads run what the race checker does not watch: {places}; look at it, and say why it "
               "may be (# race: ok WHY)", subject="code", places=tuple(each.place for each in races.unwatched),
               step=PlanStep.RACES if races.together else None)
    first = races.unwatched[:MOST_LINES]
    seen = ", ".join(f"{each.place} ({each.what})" for each in first)
    for each in first:
        yield fact("code.to-look-at", FREE_THREADING, each.what, subject=str(each.place), places=(each.place,),
                   action=f"{seen}: several threads run it, and nothing watched it; guard it, or say why it may be "
                          "(# race: ok WHY)")
