"""Facts about code that several threads of the project run and that the race checker does not watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import FREE_THREADING, Effect, Fact, PlanStep
from gilscope.toolkit.evaluate.sections import known
from gilscope.toolkit.units import few

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.evaluation import Evaluation

MOST_LINES = 3


def facts(found: Evaluation) -> Iterator[Fact]:
    """Yield the code that nothing watched."""
    races = known(found.races)
    if races is None or not races.unwatched:
        return
    places = few([f"{each.what} ({each.place})" for each in races.unwatched])
    yield Fact(code="code.not-watched", target=FREE_THREADING, effect=Effect.UNKNOWN, subject="code",
               text=f"several threads run what the race checker does not watch: {places}; look at it, and say why it "
                    "may be (# race: ok WHY)",
               places=tuple(each.place for each in races.unwatched),
               step=PlanStep.RACES if races.together else None, state="open")
    first = races.unwatched[:MOST_LINES]
    seen = ", ".join(f"{each.place} ({each.what})" for each in first)
    for each in first:
        yield Fact(code="code.to-look-at", target=FREE_THREADING, effect=Effect.NOTE, subject=str(each.place),
                   text=each.what, places=(each.place,),
                   action=f"{seen}: several threads run it, and nothing watched it; guard it, or say why it may be "
                          "(# race: ok WHY)")
