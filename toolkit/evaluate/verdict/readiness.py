"""From what was found to the words READY, READY-WITH-COST, BLOCKED, NOT WORTH IT and INCONCLUSIVE.  Pure.

For builds without a GIL here, for subinterpreters and processes in `models`.

The order of the checks: what blocks comes first, then what is not known, then what it costs, then what it gains.
Nothing is READY without positive evidence for every part; what is unknown is never ready, and so is what it costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.evaluation import Conclusion, Word
from gilscope.toolkit.evaluate.project.extensions.facts import NO_EXTENSIONS
from gilscope.toolkit.evaluate.sections import NOT_THE_SAME, Missing
from gilscope.toolkit.evaluate.verdict import own_extensions
from gilscope.toolkit.evaluate.verdict.blockers import build_blockers, lost_blockers, race_blockers, race_cautions
from gilscope.toolkit.evaluate.verdict.costs_and_gains import (
    WHO,
    cost_doubt,
    costs,
    gains,
    may_tell_speed,
    not_worth,
    times,
    wide_cost,
)
from gilscope.toolkit.evaluate.verdict.unknowns import race_doubts, shared_in_c, unexercised_parts, unknowns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.evaluation import BuildEvaluation, Confidence
    from gilscope.toolkit.evaluate.project.extensions.facts import OwnExtensions
    from gilscope.toolkit.evaluate.sections import MachineFacts, Races


def conclude(
    found: BuildEvaluation, machine: MachineFacts | Missing, races: Races | Missing,
    extensions: OwnExtensions = NO_EXTENSIONS,
) -> Conclusion:
    """Return what it comes to on one build without a GIL; `extensions` are the project's own."""
    unexercised = (*unexercised_parts(found, machine, races), *shared_in_c(extensions))
    confidence = _confidence(found, races, unexercised)

    def because(word: Word, *reasons: str) -> Conclusion:
        return Conclusion(target=found.build.label, word=word, reasons=reasons, confidence=confidence,
                          unexercised=unexercised)

    told = may_tell_speed(machine)
    if blockers := [*own_extensions.blockers(found.own), *build_blockers(found), *lost_blockers(found, told=told),
                    *race_blockers(races)]:
        return because(Word.BLOCKED, *blockers)
    other_work = [f"{found.otherwise}: {NOT_THE_SAME}"] if found.otherwise else []
    if unknown := [*own_extensions.unknowns(found.own), *own_extensions.doubts(extensions),
                   *unknowns(found, races), *other_work, *race_doubts(found, races)]:
        return because(Word.INCONCLUSIVE, *unknown)
    if isinstance(found.gain, Missing):
        gain: list[str] = []
    elif small := not_worth(found.gain, told=told):
        return because(Word.NOT_WORTH_IT, small)
    else:
        gain = list(gains(found.gain)) if told else []
    paid = [*own_extensions.costs(found.own), *costs(found, told=told)]
    doubt = [text for text in [cost_doubt(found.cost, told=told)] if text]
    if doubt and (isinstance(found.cost, Missing) or not paid):
        return because(Word.INCONCLUSIVE, *doubt, *paid, *gain)
    if paid:
        return because(Word.WITH_COST, *paid, *doubt, *gain, *race_cautions(races))
    return because(Word.READY, *_ready(found, told=told), *gain, *race_cautions(races))


def _ready(found: BuildEvaluation, *, told: bool) -> Iterator[str]:
    assert not isinstance(found.readiness, Missing)
    files = sum(len(finding.seen.extensions) for finding in found.readiness.findings) + own_extensions.files(found.own)
    who = "1 extension file does" if files == 1 else f"{files} extension files do"
    yield f"{who} without the GIL, as slots and imports say" if files else "no extension file is in the way"
    if not isinstance(found.tests, Missing):
        passed = {None: "the tests pass", 1: "1 test passes"}.get(
            found.tests.passed, f"{found.tests.passed} tests pass")
        yield f"{passed}, and the GIL is off at their end"
    assert not isinstance(found.cost, Missing)   # of which there is a doubt
    if not told:
        yield wide_cost(found.cost, times(found.cost, told=told))
    else:
        yield f"{WHO[found.cost.by]} {1 / found.cost.cpu.ratio:.2f} times the CPU time of {found.cost.against}"


def _confidence(found: BuildEvaluation, races: Races | Missing, unexercised: tuple[str, ...]) -> Confidence:
    """Return "high" when everything was looked at, "low" without a real install or a run of the project's code."""
    if isinstance(found.readiness, Missing) or isinstance(found.tests, Missing):
        return "low"
    return "medium" if unexercised or isinstance(races, Missing) else "high"
