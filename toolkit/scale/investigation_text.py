"""What an investigation found, in sentences: doubts, causes, objects, repairs, and how it was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.own_files import known_as
from gilscope.toolkit.scale.judgement import (
    COUNTS_GAIN,
    HARDLY_LOCKED,
    SCALES,
    Doubt,
    Obstacle,
    ScalingVerdict,
    counts_explain,
)
from gilscope.toolkit.scale.repair_trials import RepairOutcome
from gilscope.toolkit.scale.repairs import DOUBTS, LOCKS, PATTERN, UNCOPIED, RepairCode, advice
from gilscope.toolkit.units import counted, format_seconds, inflect, list_text, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.scale.blamed_object import BlamedObject
    from gilscope.toolkit.scale.investigation import ScalingInvestigation
    from gilscope.toolkit.scale.judgement import ScalingEvidence, Span
    from gilscope.toolkit.scale.repair_trials import RepairTrial

NOISE = 1.1        # times what is possible: from there on, a word on it
BUSY = 0.2         # share of the threads' time without a core that is worth a word
LEGEND = (1,)      # the table's only footnote
COPY = "a copy by copy.deepcopy in each thread"
NOT_TRIED = {
    RepairOutcome.ELSEWHERE: "an object belongs to no global and no argument that could be replaced",
    RepairOutcome.UNCOPIED: "it cannot be made",
    RepairOutcome.LOCK_ALONE: "only the lock would be copied, and not what it protects",
    RepairOutcome.STILL_USED: "the original was still used: such a copy keeps some objects as they are, and a method "
                              "or a closure keeps what it has",
    RepairOutcome.RESULTS: "results change",
    RepairOutcome.FEW_CLEAN: "the machine was too busy to measure it",
    RepairOutcome.NO_TIME: "the investigation had taken too long already: calls are long, or the machine is busy",
}
FROM_CODE = UNCOPIED - {"range", PATTERN}      # types of constants
# Doubts about the verdict, not about what is in the way.
OPEN_WITH_CAUSE: dict[Doubt | None, str] = {
    Doubt.DISAGREE: ", as measurements seconds apart differ", Doubt.NEAR: ", as it reaches about 0.8 of the ceiling"}
UNKNOWN = "unsure"     # what is in the way, in every table, sentence and summary
MOSTLY = 0.75      # share of the loss; a set that explains less gets a word


def span_text(span: Span | None) -> str:
    """Return a ratio with its interval, or "-"."""
    if span is None:
        return "-"
    return f"{span.ratio:.2f}" + ("" if span.hi == float("inf") else f" [{span.lo:.2f}, {span.hi:.2f}]")


def blamed_text(found: ScalingInvestigation) -> str:
    """Return the obstacle with its objects, or why it is not known."""
    if found.judgement.obstacle is Obstacle.UNKNOWN:
        return UNKNOWN
    seen = f"; seen locked: {list_text(one.name for one in found.also)}" if found.also else ""
    return f"{obstacle_text(found)}{seen}"


def investigation_sentences(found: ScalingInvestigation) -> Iterator[str]:
    """Yield sentences on a function: doubts, causes, objects, repairs, and how it was measured."""
    judgement, evidence = found.judgement, found.evidence
    if not found.loaded.bytecode and any(one.held is None and one.kind != "constant" and one.type in FROM_CODE
                                         for one in found.objects):
        yield ("PYTHONDONTWRITEBYTECODE is set: unset it and measure again. Without a .pyc, references to numbers, "
               "texts and tuples that the code itself makes are counted.")
    if judgement.doubt is not None:
        # The verdict may be clear where its cause is not, and the cause where the objects are not.
        open_ = ("Unsure" if judgement.verdict is ScalingVerdict.UNSURE else
                 "Cause unsure" if judgement.obstacle is Obstacle.UNKNOWN else "Objects unsure")
        yield f"{open_}: {DOUBTS[judgement.doubt]}."
        if judgement.verdict is ScalingVerdict.UNSURE and _lacks_objects(found):
            yield f"In the way of what it loses: {obstacle_text(found)}."
        if judgement.doubt is Doubt.REFUSED and found.loaded.refused:
            yield f"Why: {found.loaded.refused}."
    if judgement.obstacle is Obstacle.HARDWARE and evidence.ceiling is not None:
        yield (f"The ceiling itself is low: {found.threads} processes, which share nothing, reach "
               f"{evidence.ceiling.ratio:.2f} times the throughput of one thread on this machine now.")
    if judgement.obstacle is Obstacle.NOT_YOUR_OBJECTS:
        most = percent(counts_explain(evidence)[1])
        held = max((each.held for each in evidence.locks if not each.named), default=0.0)
        other = f"; one that it cannot reach was, in {percent(held)}" if held >= HARDLY_LOCKED else ""
        yield (f"With every reachable object immortal, it is {span_text(evidence.immortal)} times as fast: reference "
               f"counts explain at most {most} of the loss. No lock that the program can reach was seen held in "
               f"{percent(HARDLY_LOCKED)} of samples or more{other}. The rest is probably in the interpreter or in C "
               "code, such as stop-the-world pauses, the lock on types, or the allocator: which, it does not tell.")
    if judgement.obstacle is Obstacle.COLLECTOR and evidence.no_collector is not None:
        yield f"Without the garbage collector it is {evidence.no_collector.ratio:.2f} times as fast."
    if evidence.disturbed is not None and judgement.obstacle is Obstacle.LOCK:
        reached = span_text(evidence.disturbed)
        yield ("Threads that wait for a lock give their cores to other programs, so too few of their calls were "
               f"undisturbed. By all calls, they reach {reached} of the ceiling, or less: while a thread lacks a core, "
               "the others meet it less often.")
    if evidence.later:
        yield (f"{inflect(len(evidence.later), 'A later measurement', 'Later measurements')}, seconds apart: "
               f"{list_text(span_text(each.of_ceiling) for each in evidence.later)} of the ceiling.")
    yield from _noise(found)
    yield from _blamed(found)
    yield from _repairs(found)
    yield from _measured(found)


def first_repairs(found: ScalingInvestigation) -> Iterator[str]:
    """Yield each repair with the lines of the objects that it is for; why the cause is open, if no repair fits."""
    places = {one.name: _places_text(one) for one in found.repairable}
    fitting = advice(found.judgement.obstacle, found.repairable)
    for each in fitting:
        objects = list_text(f"{name}{places[name]}" for name in each.objects)
        yield f"{objects}: {each.text}" if objects else each.text
    if not fitting and found.judgement.doubt is not None:
        yield f"Unsure: {DOUBTS[found.judgement.doubt]}."


def _repairs(found: ScalingInvestigation) -> Iterator[str]:
    """Yield the repairs that fit, with what they reached where they could be tried."""
    fitting = advice(found.judgement.obstacle, found.repairable)
    for each in fitting:
        subject = f"{list_text(each.objects)}: " if len(fitting) > 1 and each.objects else ""
        yield f"{subject}{each.text}"
    if trial := found.trial:
        if trial.outcome is RepairOutcome.MEASURED and trial.of_ceiling is not None:
            yield from _gain(trial, trial.of_ceiling, found)
            yield from _beyond(found, trial)
        else:
            detail = f" ({trial.detail})" if trial.detail else ""
            yield f"Not tried with {COPY}: {NOT_TRIED[trial.outcome]}{detail}."
    elif found.objects and fitting and {each.code for each in fitting} != {RepairCode.BYTECODE}:
        yield "Not tried: that takes a change of the code."


def _gain(trial: RepairTrial, reached: Span, found: ScalingInvestigation) -> Iterator[str]:
    """Yield the gain of a trial that was measured, and whether the CPUs were farther apart than before."""
    of = "" if found.objects else f" of {list_text(trial.copied)}"
    share = found.evidence.of_ceiling
    table = "" if share is None else f" (in those of the table, {share.ratio:.2f})"
    gain = "" if trial.times is None else f"threads were {trial.times:.2f} times as fast as without: "
    without = "" if not trial.without else f", and {trial.without:.2f} without one in the same rounds{table}"
    yield f"Tried: with {COPY}{of}, {gain}they reached {span_text(reached)} of the ceiling{without}."
    if trial.far:
        yield ("In the rounds of this trial, the CPUs were farther apart than in those of the table, so that sharing "
               "cost more: compare within the trial alone.")


def _beyond(found: ScalingInvestigation, trial: RepairTrial) -> Iterator[str]:
    """Yield that a trial below the ceiling shows no gain, or leaves something open."""
    if found.judgement.obstacle is Obstacle.COUNTS and trial.without and not trial.gained:
        yield ("So this trial does not show what the repair gains, although counts of what is named are in the way: "
               "measure your program with the change.")
    elif trial.of_ceiling and trial.of_ceiling.ratio < SCALES:
        yield "The rest of the loss is not explained: make the change, and measure again."


def _blamed(found: ScalingInvestigation) -> Iterator[str]:
    for one in found.objects:
        yield f"{found.judgement.obstacle.value}: {object_text(one)}{_places_text(one)}"
    if found.explained is not None and found.without is not None:
        these = "these were" if len(found.objects) > 1 else "this was"
        rest = "" if found.explained >= MOSTLY else " The rest of the loss is not explained."
        share = "all" if found.explained >= 1 else f"about {percent(found.explained)}"
        yield (f"When {these} immortal, so that nobody counted references, it reached {found.without:.2f} of the "
               f"ceiling: without counting, {share} of the loss disappears.{rest}")
        if all(one.kind == "constant" for one in found.objects):
            yield "Constants that come from a .pyc are immortal, so that is what a .pyc gains."
    if found.judgement.obstacle is Obstacle.LOCK and found.objects:
        yield from _beside_lock(found)
    for one in found.also:
        seen = "Also seen" if found.objects else "Seen, but not proven to be in the way"
        yield f"{seen}: {object_text(one)}{_places_text(one)}"


def _beside_lock(found: ScalingInvestigation) -> Iterator[str]:
    """Yield that the lock's share of the loss is unknown, and whether reference counts cost something, too."""
    if not (found.trial and found.trial.gained):
        yield "How much of the loss is the lock's is not known: measure again once threads hold it less, or not at all."
    if _counts_cost(found.evidence):
        yield ("Reference counts cost something, too: with every object immortal, it is "
               f"{span_text(found.evidence.immortal)} times as fast.")


def _noise(found: ScalingInvestigation) -> Iterator[str]:
    """Yield that values which cannot be are noise, if there are any."""
    evidence = found.evidence
    over = evidence.ceiling is not None and evidence.ceiling.ratio > NOISE * found.threads
    if over or (evidence.of_ceiling is not None and evidence.of_ceiling.ratio > NOISE):
        yield (f"A ceiling above {found.threads}x, or a share of it above 1, is noise: the cores of a shared machine "
               "are faster at one moment than at another.")


def _places_text(one: BlamedObject) -> str:
    return f", used at {list_text(f'{known_as(each.file)}:{each.line}' for each in one.places)}" if one.places else ""


def object_text(one: BlamedObject) -> str:
    """Return an object as a reader knows it, with its type."""
    if one.held is not None:
        held = "held" if one.type in LOCKS else "whose lock was held"
        return f"{one.name} ({one.type}), {held} in {percent(one.held)} of samples"
    if one.count > 1:
        return f"{one.name} and {counted(one.count - 1, 'object')} that belong to it"
    return f"{one.name} ({one.type})"


def _measured(found: ScalingInvestigation) -> Iterator[str]:
    loaded = found.loaded
    if loaded.payloads:
        them = "it" if loaded.payloads == 1 else "them"
        shared = "each thread has its own" if loaded.dealt else f"all threads share {them}"
        counts = found.judgement.obstacle is Obstacle.COUNTS
        blamed = loaded.dealt and counts and any(one.argument for one in found.objects)
        made = (" One thread made them all, and counts of objects that are neighbours in memory share cache lines: "
                "this is not so if each thread makes its own." if blamed else "")
        yield f"{counted(loaded.payloads, 'payload')}: {shared}.{made}"
    busy = (f" The machine was busy: its threads waited {percent(found.queued_share)} of their time for a core."
            if found.queued_share >= BUSY else "")
    aside = ("" if not found.set_aside else f" {counted(found.set_aside, 'measurement')} "
             f"{inflect(found.set_aside, 'does', 'do')} not count: threads ran as hyperthreads of one core, where the "
             "host of a virtual machine can put them, and that hides contention.")
    yield (f"{counted(found.measurements, 'measurement')} in {format_seconds(found.seconds)}, a call takes "
           f"{format_seconds(loaded.seconds_per_call)}.{aside}{busy}")
    if (handoff := found.handoff) and not busy:
        yield (f"A cache line takes {handoff.median:.0f} ns between the CPUs of the threads ({handoff.lo:.0f} to "
               f"{handoff.hi:.0f} in most measurements).")
    yield from _distance(found)


def _distance(found: ScalingInvestigation) -> Iterator[str]:
    """Yield the effect that the distance of the CPUs has on the answer."""
    evidence = found.evidence
    if evidence.far:
        yield ("Too few rounds were on near CPUs alone, so those on far ones count, too: the host of a virtual machine "
               "moves its CPUs. On near ones, sharing costs less.")
    elif far := found.far:
        reached = f"; there, threads reached {span_text(far.of_ceiling)} of the ceiling" if far.of_ceiling else ""
        yield (f"{counted(far.count, 'measurement')} {inflect(far.count, 'does', 'do')} not count: the CPUs were "
               f"farther apart ({far.handoff:.0f} ns), as the host of a virtual machine moves them{reached}.")
    elif found.judgement.verdict is ScalingVerdict.SCALES and _counts_cost(evidence):
        yield (f"With every object immortal, it is {span_text(evidence.immortal)} times as fast: threads share counted "
               "objects, and that costs more on CPUs that are farther apart.")


def _counts_cost(evidence: ScalingEvidence) -> bool:
    """Return True if threads surely lose something, and gain a part of it without reference counts."""
    return (evidence.of_ceiling is not None and evidence.of_ceiling.hi < 1 and evidence.immortal is not None
            and evidence.immortal.lo > 1 and counts_explain(evidence)[0] >= COUNTS_GAIN)


def investigation_in_short(label: str, found: ScalingInvestigation) -> str:
    """Return a sentence on a function on one build."""
    verdict = found.judgement.verdict
    if verdict is ScalingVerdict.UNSURE and found.judgement.obstacle is not Obstacle.UNKNOWN:
        why = OPEN_WITH_CAUSE.get(found.judgement.doubt, "")
        return (f"{label}: {verdict.value}{why}; in the way of what it loses: {obstacle_text(found)}"
                f"{_gain_in_short(found)}.")
    if found.judgement.obstacle is Obstacle.HARDWARE and found.evidence.ceiling is not None:
        return (f"{label}: {verdict.value}, as far as the hardware lets it: {found.threads} processes reach "
                f"{found.evidence.ceiling.ratio:.2f} times the throughput of one thread.")
    if verdict is ScalingVerdict.SCALES and (far := _loss_on_far_cpus(found)) is not None:
        return (f"{label}: {verdict.value}, but reached {far.ratio:.2f} of the ceiling while the CPUs were "
                "farther apart.")
    if verdict is ScalingVerdict.UNSURE or found.judgement.obstacle is Obstacle.NONE:
        return f"{label}: {verdict.value}."
    return f"{label}: {verdict.value}; in the way: {obstacle_text(found)}{_gain_in_short(found)}."


def _loss_on_far_cpus(found: ScalingInvestigation) -> Span | None:
    """Return the share of the ceiling on far CPUs if it is surely less than what scales."""
    far = found.far.of_ceiling if found.far else None
    return far if far is not None and far.hi < SCALES else None


def _gain_in_short(found: ScalingInvestigation) -> str:
    """Return the gain of the trial, in words; "" if it did not gain."""
    trial = found.trial
    if not (trial and trial.gained and trial.times and trial.of_ceiling):
        return ""
    of = "" if found.objects else f" of {list_text(trial.copied)}"
    where = ", on CPUs farther apart" if trial.far else ""
    return (f"; with a copy{of} in each thread, {trial.times:.2f} times as fast ({trial.of_ceiling.ratio:.2f} of the "
            f"ceiling{where})")


def _lacks_objects(found: ScalingInvestigation) -> bool:
    return found.judgement.obstacle is Obstacle.COUNTS and not found.objects


def _obstacle(found: ScalingInvestigation) -> str:
    obstacle = found.judgement.obstacle
    return UNKNOWN if obstacle is Obstacle.UNKNOWN else obstacle.value


def obstacle_text(found: ScalingInvestigation) -> str:
    """Return the obstacle, with the names of the objects if they are known."""
    names = (f" of {', '.join(one.name for one in found.objects)}" if found.objects else
             " of unknown objects" if _lacks_objects(found) else "")
    return f"{_obstacle(found)}{names}"
