"""The verdict, the answer, the plan and the next steps of an evaluation: views over its facts.

No rule here parses a text, or reads a section.  The verdict on a target follows from the most severe effect among its
facts (`WORDS`): blockers first, then unknowns, then the gain, then costs.  READY requires evidence for every part: a
probe without an answer yields a fact with an unknown effect.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.decision import Answer, Blocker, Decision, Effort, Step
from gilscope.toolkit.evaluate.evaluation import Conclusion, Verdict
from gilscope.toolkit.evaluate.facts import (
    Effect,
    Fact,
    PlanStep,
    about,
    processes_on,
    subinterpreters_on,
)
from gilscope.toolkit.evaluate.probes import SECTIONS
from gilscope.toolkit.evaluate.readings import as_fast_as, budget_for_cost
from gilscope.toolkit.evaluate.request import BUDGET, WAIT_QUIET
from gilscope.toolkit.evaluate.sections import UNASKED, Cause, Missing, Remedy, in_order, known
from gilscope.toolkit.own_files import is_test
from gilscope.toolkit.stats.verdict import SpeedVerdict
from gilscope.toolkit.units import counted, few

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.evaluate.decision import Gained, State
    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.facts import Confidence
    from gilscope.toolkit.evaluate.section import Section

# For each effect, most severe first: the resulting verdict, and the effects whose texts explain it.
WORDS: dict[Effect, tuple[Verdict, tuple[Effect, ...]]] = {
    Effect.BLOCKS: (Verdict.BLOCKED, (Effect.BLOCKS,)),
    Effect.UNKNOWN: (Verdict.INCONCLUSIVE, (Effect.UNKNOWN,)),
    Effect.NO_GAIN: (Verdict.NOT_WORTH_IT, (Effect.NO_GAIN,)),
    Effect.SHARES_STATE: (Verdict.INCONCLUSIVE, (Effect.SHARES_STATE, Effect.GAIN_UNKNOWN, Effect.GAINS)),
    Effect.UNPRICED: (Verdict.INCONCLUSIVE, (Effect.UNPRICED, Effect.COSTS, Effect.GAINS)),
    Effect.GAIN_UNKNOWN: (Verdict.INCONCLUSIVE, (Effect.GAIN_UNKNOWN, Effect.COSTS, Effect.SUPPORTS, Effect.CAUTION)),
    Effect.COSTS: (Verdict.WITH_COST, (Effect.COSTS, Effect.MAY_COST, Effect.GAINS, Effect.CAUTION)),
    Effect.MAY_COST: (Verdict.INCONCLUSIVE, (Effect.MAY_COST, Effect.GAINS)),
}
READY = (Verdict.READY, (Effect.SUPPORTS, Effect.GAINS, Effect.CAUTION))
# The state of a plan step by effect, unless the fact has its own.
STATES: dict[Effect, State] = {
    Effect.BLOCKS: "open", Effect.COSTS: "open", Effect.UNKNOWN: "not known", Effect.UNPRICED: "not known",
    Effect.MAY_COST: "not known", Effect.NOT_LOOKED_AT: "not known"}
WORST: tuple[State, ...] = ("open", "not known", "done", "not needed")
LEVELS: tuple[Confidence, ...] = ("low", "medium", "high")
# The answer is about the build whose decision comes first in this order.
ORDER = (Decision.MOVE, Decision.CAN, Decision.NO, Decision.NOT_YET, Decision.UNKNOWN)
WITHOUT_RACES = {"races.not-looked-at", "races.part-not-looked-at"}   # codes of facts
MOST_SAID = 4    # facts in the line of a step
COULD_NOT = 3    # the exit code if something could not be finished


def judged(found: Evaluation, sections: Sequence[Section] = SECTIONS) -> Evaluation:
    """Return an evaluation with its facts, conclusions, plan and answer."""
    facts = tuple(fact for section in sections for fact in section.find(found))
    found = replace(found, facts=facts)
    targets = (*found.labels, *(subinterpreters_on(each.label) for each in found.with_gil),
               *(processes_on(each.label) for each in found.with_processes))
    conclusions = tuple(conclude(facts, target, free_threaded=target in found.labels) for target in targets)
    found = replace(found, conclusions=conclusions)
    found = replace(found, next_steps=tuple(next_steps(found)), answer=answer(found))
    return replace(found, plan=plan(found, found.answer.target) if found.answer else ())


def conclude(facts: tuple[Fact, ...], target: str, *, free_threaded: bool = True) -> Conclusion:
    """Return the verdict on one target."""
    given = about(facts, target, free_threaded=free_threaded)
    effects = {fact.effect for fact in given}
    word, reasons = next((WORDS[effect] for effect in WORDS if effect in effects), READY)
    texts = dict.fromkeys(fact.full for effect in reasons for fact in given if fact.effect is effect)
    left_out = dict.fromkeys(": ".join(filter(None, fact.not_looked_at)) for fact in given if fact.not_looked_at)
    return Conclusion(target=target, word=word, reasons=tuple(texts), confidence=min(map(_confidence, given),
                      key=LEVELS.index, default="high"), unexercised=tuple(left_out))


def exit_code(found: Evaluation) -> int:
    """Return 1 if every free-threaded build has a blocker, 3 if nothing could be installed, else 0."""
    labels = {*found.labels}
    not_installed = {fact.target for fact in found.facts if fact.code == "packages.not-looked-at"
                     and fact.missing and fact.missing.cause is Cause.FAILED}
    if labels and labels <= not_installed:
        return COULD_NOT
    words = [each.word for each in found.conclusions if each.target in labels]
    return int(bool(words) and all(word is Verdict.BLOCKED for word in words))


def _confidence(fact: Fact) -> Confidence:
    """Return the highest confidence that this fact permits for a verdict."""
    return fact.confidence or ("medium" if fact.not_looked_at else "high")


def next_steps(found: Evaluation) -> Iterator[str]:
    """Yield each next step once, preceded by the labels of its builds, the most urgent first."""
    where: dict[str, list[str]] = {}
    for fact in found.facts:
        if fact.action:
            where.setdefault(fact.action, []).extend([fact.target] * (fact.target in found.labels and not fact.for_all))
    for action, targets in where.items():
        yield f"{', '.join(dict.fromkeys(targets))}: {action}" if targets else action
    ready = [each.target for each in found.conclusions if each.word in {Verdict.READY, Verdict.WITH_COST}]
    if ready:
        yield f"try {ready[0]} with your program's own load; gilscope gil shows where its threads wait"


def plan(found: Evaluation, target: str) -> tuple[Step, ...]:
    """Return the steps of moving to one build, each with its state."""
    given = about(found.facts, target)
    return tuple(_step(name, [fact for fact in given if fact.step is name]) for name in PlanStep)


def _step(name: PlanStep, facts: Sequence[Fact]) -> Step:
    states: list[State] = [fact.state or STATES.get(fact.effect, "done") for fact in facts]
    state: State = min(states, key=WORST.index, default="not known")
    texts = list(dict.fromkeys(_step_text(fact) for fact, each in zip(facts, states, strict=True) if each == state))
    says = few(texts, MOST_SAID, between="; ") or "no probe looked at it"
    return Step(key=name.key, name=name.value, state=state, says=says)


def _step_text(fact: Fact) -> str:
    return ": ".join(fact.not_looked_at) if fact.effect is Effect.NOT_LOOKED_AT and fact.not_looked_at else fact.full


def answer(found: Evaluation) -> Answer | None:
    """Return the answer for the build with the most definite decision, or None if there is no build."""
    if not found.builds:
        return None
    # Of builds with equally definite decisions, the newest.
    target = min(reversed(found.labels),
                 key=lambda label: (ORDER.index(decide(found, label)), _in_the_way(found, label)))
    decision, facts = decide(found, target), about(found.facts, target)
    blockers = tuple(_blockers(facts)) if _word(found, target) is Verdict.BLOCKED else ()
    gain = next((fact.gain for fact in facts if fact.gain is not None), UNASKED)
    cost = next((fact.cost for fact in facts if fact.cost is not None), UNASKED)
    return Answer(
        decision=decision, target=target, gain=gain, cost=cost, blockers=blockers,
        because=_because(found, decision, target, facts, blockers, gain), effort=_effort(found, facts),
        instead=tuple(_instead(found, decision)), more=_more(found, decision, facts, blockers),
        failing=next((fact.text for fact in facts if fact.code == "tests.failing"), ""))


def _word(found: Evaluation, target: str) -> Verdict:
    return next(each.word for each in found.conclusions if each.target == target)


def decide(found: Evaluation, target: str) -> Decision:
    """Return the decision about one build."""
    effects = {fact.effect for fact in about(found.facts, target)}
    match _word(found, target):
        case _ if Effect.NO_GAIN in effects:   # even with blockers: without a gain there is nothing to decide
            return Decision.NO
        case Verdict.BLOCKED:
            return Decision.NOT_YET
        case Verdict.READY | Verdict.WITH_COST:
            return Decision.MOVE if Effect.GAINS in effects else Decision.CAN
        case _:
            return Decision.UNKNOWN


def _in_the_way(found: Evaluation, target: str) -> tuple[bool, int]:
    """Return the sort key of builds with the same decision: examined ones first, then by the number of blockers."""
    facts = about(found.facts, target)
    return (any(fact.code == "packages.not-looked-at" for fact in facts),
            sum(fact.effect is Effect.BLOCKS and fact.step is PlanStep.DEPENDENCIES for fact in facts))


def _blockers(facts: Sequence[Fact]) -> Iterator[Blocker]:
    """Yield the blockers: packages first, which owners must fix unless a fixed version exists, then the project's."""
    blocking = [fact for fact in facts if fact.effect is Effect.BLOCKS and not fact.consequence]
    for fact in sorted(blocking, key=lambda fact: fact.step is not PlanStep.DEPENDENCIES):
        yield Blocker(what=fact.text, who=fact.owner, action=fact.action if fact.package else "",
                      package=fact.package, mend=fact.mend)


def _effort(found: Evaluation, facts: Sequence[Fact]) -> Effort:
    places = in_order(place for fact in facts for place in fact.places)
    beside = tuple(place for place in places if _is_beside(place.file, found.project.measuring))
    inside = tuple(place for place in places if place not in beside)
    blocking = [fact for fact in facts if fact.effect is Effect.BLOCKS]
    unread = dict.fromkeys(fact.unread for fact in facts if fact.unread)
    read = (any(fact.code == "extensions.read" for fact in facts)
            or not any(fact.unread and fact.code in WITHOUT_RACES for fact in facts))
    return Effort(
        files=tuple(dict.fromkeys(place.file for place in inside)), places=inside, beside=beside,
        packages=tuple(dict.fromkeys(fact.package for fact in blocking if fact.package)),
        read=read, unknown="; ".join(unread))


def _is_beside(file: str, measuring: str) -> bool:
    """Return True if a file belongs to the tests, or was written to measure the project."""
    return file == measuring or is_test(file)


def _because(
    found: Evaluation, decision: Decision, target: str, facts: Sequence[Fact], blockers: Sequence[Blocker],
    gain: Gained | Missing,
) -> str:
    word = _word(found, target)
    if decision is Decision.NOT_YET:
        return f"on {target} {_parties(blockers)}"
    if decision is Decision.NO:
        nothing = next(fact.text for fact in facts if fact.effect is Effect.NO_GAIN)
        return f"{target} brings nothing worth it: {nothing}"
    if decision is Decision.UNKNOWN:
        effect = next(effect for effect in WORDS if any(fact.effect is effect for fact in facts))
        first = next(fact for fact in facts if fact.effect is effect)
        # A separate line says why the cost is not known.
        return f"{target}: {first.text if effect is Effect.UNPRICED else first.full}"
    dear = ", at a price" if word is Verdict.WITH_COST else ""
    if decision is Decision.CAN:
        shown = "no gain was shown" if known(gain) else "whether it gains is not known"
        return f"nothing is in the way on {target}{dear}; {shown}"
    return f"nothing is in the way on {target}{dear}, and threads gain"


def _parties(blockers: Sequence[Blocker]) -> str:
    """Return the number of blockers, by who must act."""
    waiting = len({each.who for each in blockers if each.who is not None})
    newer = sum(each.who is None and bool(each.package) for each in blockers)
    own = [each for each in blockers if each.who is None and not each.package]
    ours = sum(not each.mend for each in own)
    parts = [_count(waiting, "package stands in the way, and no newer version helps",
                    "packages stand in the way, and no newer version helps"),
             _count(newer, "package has to be taken in a newer version",
                    "packages have to be taken in newer versions"),
             _count(ours, "thing of our own has to be mended", "things of our own have to be mended"),
             *dict.fromkeys(each.mend for each in own)]
    return "; ".join(filter(None, parts)) or "something stands in the way"


def _count(number: int, one: str, more: str) -> str:
    return counted(number, one, more) if number else ""


def _instead(found: Evaluation, decision: Decision) -> Iterator[str]:
    """Yield the models that speed the workload up on the build with the GIL, if moving does not."""
    if decision is Decision.MOVE:
        return
    ready = {each.target for each in found.conclusions if each.word in {Verdict.READY, Verdict.WITH_COST}}
    models = (*(processes_on(each.label) for each in found.with_processes),
              *(subinterpreters_on(each.label) for each in found.with_gil))
    for target in models:
        for fact in found.facts if target in ready else ():
            if fact.target == target and fact.value and fact.value.verdict() == SpeedVerdict.FASTER:
                yield f"{target}: {as_fast_as(fact.value, 'threads there')}"


def _more(found: Evaluation, decision: Decision, facts: Sequence[Fact], blockers: Sequence[Blocker]) -> str:
    """Return the most useful next command."""
    request = found.request
    if name := _explained(facts, blockers):
        return request.command("--explain", name)
    # Whether a quiet machine would tell more, the facts about cost and gain say.
    remedies = {fact.answered_by for fact in facts if fact.code != "machine.busy"}
    if Remedy.TIME in remedies:
        return replace(request, budget=BUDGET).command("--budget", budget_for_cost(found.seconds))
    if decision is Decision.UNKNOWN and Remedy.REPAIR in remedies:
        return replace(request, offline=False).command()   # a repaired version may have to be downloaded
    if Remedy.QUIET in remedies and decision is not Decision.NOT_YET:
        return replace(request, wait_quiet=WAIT_QUIET).command()
    if Remedy.WORKLOAD in remedies and decision in {Decision.CAN, Decision.UNKNOWN}:
        return request.command("--workload", "MODULE:FUNCTION")
    return request.command("--plan")


def _explained(facts: Sequence[Fact], blockers: Sequence[Blocker]) -> str:
    """Return the name to pass to --explain: a package in the way, or the project's own extension modules; or ""."""
    packages = [each.who for each in blockers if each.who is not None]
    return next(iter([*packages, *(fact.explain for fact in facts if fact.explain and fact.owner is None)]), "")
