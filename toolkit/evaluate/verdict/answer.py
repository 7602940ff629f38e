"""Should we move?  One answer from all that was found: gain, price, what is in the way and who must act.  Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.decision import Answer, Blocker, Decision, Effort, Gained, Paid
from gilscope.toolkit.evaluate.evaluation import Word
from gilscope.toolkit.evaluate.packages.judge.status import Status
from gilscope.toolkit.evaluate.packages.wording import named
from gilscope.toolkit.evaluate.project.extensions.how_to_declare import place_of
from gilscope.toolkit.evaluate.project.measured import FEW
from gilscope.toolkit.evaluate.project.own_modules import is_test
from gilscope.toolkit.evaluate.project.suite.running import UNFINISHED
from gilscope.toolkit.evaluate.sections import NO_TIME, NOT_THE_SAME, WORKLOAD_FAILED, Forced, Missing, in_order
from gilscope.toolkit.evaluate.verdict import own_extensions
from gilscope.toolkit.evaluate.verdict.blockers import package_blockers
from gilscope.toolkit.evaluate.verdict.costs_and_gains import NO_COST, may_tell_speed, not_worth, times
from gilscope.toolkit.evaluate.verdict.next_steps import advice_on, enough, is_own, newer_version, worst_lines
from gilscope.toolkit.evaluate.verdict.plan import plan
from gilscope.toolkit.evaluate.verdict.unknowns import ways_left_out
from gilscope.toolkit.units import counted, few

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gilscope.toolkit.evaluate.decision import How
    from gilscope.toolkit.evaluate.evaluation import BuildEvaluation, Conclusion, Evaluation
    from gilscope.toolkit.evaluate.packages.doctor import Finding
    from gilscope.toolkit.evaluate.project.extensions.facts import OwnBuild
    from gilscope.toolkit.evaluate.sections import Cost, Gain, MachineFacts, Races
    from gilscope.toolkit.stats.words import Comparison

WE = "we"
# Of several builds the one that most can be said of: what can be done at once, then what nothing can help.
ORDER = (Decision.MOVE, Decision.CAN, Decision.NO, Decision.WAIT, Decision.UNKNOWN)
_BUDGET = re.compile(r" --budget \S+")   # in a command: that was too small
NOT_QUIET = "the machine was too busy or too small for a word on speed"


def answered(found: Evaluation) -> Evaluation:
    """Return an evaluation with its answer, and the steps to the build that the answer is about."""
    told = answer(found)
    build = next((each for each in found.builds if told and each.build.label == told.target), None)
    return replace(found, answer=told, plan=plan(found, build) if build else ())


def answer(found: Evaluation) -> Answer | None:
    """Return the answer for the build that most can be said of; None without any."""
    told = may_tell_speed(found.machine)
    words = {each.target: each for each in found.conclusions}
    able = [(build, words[build.build.label]) for build in found.builds]
    if not able:
        return None
    # The newest, where as much can be said of several.
    build, conclusion = min(reversed(able), key=lambda pair: (ORDER.index(decide(*pair, told=told)),
                                                              _in_the_way(pair[0])))
    decision = decide(build, conclusion, told=told)
    gain, blockers = gained(build, found.machine), tuple(_blockers(build, conclusion))
    effort = _effort(found, build, blockers)
    return Answer(
        decision=decision, target=build.build.label, gain=gain, cost=paid(build, told=told), blockers=blockers,
        because=_because(decision, build, conclusion, blockers, gain, told=told), effort=effort,
        instead=tuple(_instead(found, decision)), more=_more(found, decision, build, blockers),
        failing=_failing(build))


def decide(found: BuildEvaluation, conclusion: Conclusion, *, told: bool) -> Decision:
    """Return whether to move to one build."""
    nothing_to_gain = not isinstance(found.gain, Missing) and not_worth(found.gain, told=told)
    match conclusion.word:
        case Word.NOT_WORTH_IT:
            return Decision.NO
        case Word.BLOCKED:
            return Decision.NO if nothing_to_gain else Decision.WAIT
        case Word.READY | Word.WITH_COST:
            gains = told and not isinstance(found.gain, Missing) and _faster(found.gain.measured)
            return Decision.MOVE if gains else Decision.CAN
        case _:
            return Decision.UNKNOWN


def _faster(measured: Mapping[int, Comparison] | Missing) -> dict[int, Comparison]:
    known = {} if isinstance(measured, Missing) else measured
    return {threads: each for threads, each in known.items() if each.verdict() == "faster"}


def _in_the_way(found: BuildEvaluation) -> tuple[bool, int]:
    """Return what orders builds of one decision: those that were not looked at last, then by how much is in the way."""
    if isinstance(found.readiness, Missing):
        return True, 0
    return False, len(list(package_blockers(found.readiness)))


def gained(found: BuildEvaluation, machine: MachineFacts | Missing) -> Gained | Missing:
    """Return the best that is known of a build's gain: with the GIL forced off, measured, predicted, or a bound."""
    gain, forced = found.gain, found.forced
    if found.otherwise:
        return Missing(reason=NOT_THE_SAME)
    if isinstance(forced, Forced) and may_tell_speed(forced.machine) and (best := _best(forced.measured)):
        return _compared("forced off", *best, gain, forced.against)
    if isinstance(gain, Missing):
        return gain
    if not may_tell_speed(machine):
        # What keeps both from being told does so on a quiet machine, too.
        lasting = gain.measured if gain.measured == gain.predicted else None
        return lasting if isinstance(lasting, Missing) else Missing(reason=NOT_QUIET)
    if best := _best(gain.measured):
        return _compared("measured", *best, gain, gain.against)
    return _reckoned(gain)


def _reckoned(gain: Gain) -> Gained | Missing:
    """Return a gain that was not measured: predicted, or at most what the waits for the GIL allow."""
    seen = Gained(how="at most", ratio=1.0, lo=None, hi=None, threads=0, against=gain.against, today=gain.threads,
                  busiest=gain.busiest)
    if not isinstance(gain.predicted, Missing):
        told = gain.predicted
        return replace(seen, how="predicted", ratio=told.value, lo=told.lo, hi=told.hi)
    if gain.ceiling is not None:
        return replace(seen, ratio=gain.ceiling)
    return gain.measured if isinstance(gain.measured, Missing) else Missing(reason="too few rounds were measured")


def _best(measured: Mapping[int, Comparison] | Missing) -> tuple[int, Comparison] | None:
    """Return with how many threads it is fastest, of what anything may be said of."""
    known = {} if isinstance(measured, Missing) else measured
    told = {threads: each for threads, each in known.items() if each.verdict() != "unknown"}
    return max(told.items(), key=lambda item: item[1].ratio) if told else None


def _compared(how: How, threads: int, best: Comparison, gain: Gain | Missing, against: str) -> Gained:
    today, busiest = (None, None) if isinstance(gain, Missing) else (gain.threads, gain.busiest)
    return Gained(how=how, ratio=best.ratio, lo=best.lo, hi=best.hi,
                  threads=threads, against=against, today=today, busiest=busiest)


def paid(found: BuildEvaluation, *, told: bool) -> Paid | Missing:
    """Return what a build costs one thread, and a process."""
    cost, forced = found.cost, False
    if isinstance(cost, Missing) and isinstance(found.forced, Forced) and not isinstance(found.forced.cost, Missing):
        if not may_tell_speed(found.forced.machine):
            return cost
        cost, forced, told = found.forced.cost, True, True
    if isinstance(cost, Missing):
        return cost
    seen = times(cost, told=told)
    return Paid(times=seen.value, lo=seen.lo, hi=seen.hi, against=cost.against, by=cost.by, busy=not told,
                memory=cost.memory, forced=forced, of=_variant(cost) if found.own else "")


def _variant(cost: Cost) -> str:
    """Return which of the project's own extension modules the measured processes had loaded; "" where nobody knows."""
    if cost.compiled is None or cost.compiled_there is None:
        return ""
    here, there = (_named_modules(names) for names in (cost.compiled, cost.compiled_there))
    if here == there:
        return (f"with its compiled {few(here)}" if here
                else "of its Python code alone: it loaded none of its extension modules")
    return f"with {_compiled(here)} here and {_compiled(there)} on {cost.against}"


def _compiled(names: Sequence[str]) -> str:
    return f"its compiled {few(names)}" if names else "its Python code alone"


def _named_modules(names: Sequence[str]) -> list[str]:
    """Return extension modules as somebody named them, which mypyc's shared one is not."""
    return [name for name in names if not name.endswith("__mypyc")]


def _blockers(found: BuildEvaluation, conclusion: Conclusion) -> Iterator[Blocker]:
    """Yield what is in the way on a build: packages, whose owners act unless a version is there, and what is ours."""
    if conclusion.word is not Word.BLOCKED:
        return
    packages = [] if isinstance(found.readiness, Missing) else list(package_blockers(found.readiness))
    told = {text for _, text in packages}
    for finding, text in packages:
        if finding is None:
            yield Blocker(what=text, who=WE, action="")
        elif newer := newer_version(found, finding):
            yield Blocker(what=_short(found, finding), who=WE, action=f"take {finding.name} {newer}")
        else:
            yield Blocker(what=_short(found, finding), who=finding.name, action=advice_on(found, finding))
    turned_on = any(finding is not None and finding.verdict.status is Status.GIL for finding, _ in packages) or any(
        own_extensions.blockers(found.own))
    for given in conclusion.reasons:
        reason = given.partition(own_extensions.SEEN_BY)[0]   # evidence, which stands beneath
        if given in told or (turned_on and reason.startswith("the GIL was on at the end")):
            continue   # what a module does to the tests and to the workload is said of the module
        if finding := _losing(found, reason):
            yield Blocker(what=reason, who=finding.name, action=advice_on(found, finding))
        else:
            yield Blocker(what=reason, who=WE, action="")


def _failing(found: BuildEvaluation) -> str:
    """Return how many tests fail, whether they do with the GIL, and which; "": none does."""
    if isinstance(found.tests, Missing) or not (count := found.tests.broken):
        return ""
    there = () if isinstance(found.reference_tests, Missing) else found.reference_tests.failing
    same = bool(found.tests.failing) and set(found.tests.failing) <= set(there)
    with_gil = ", with the GIL as well" if same else ""
    named_ = f": {few(found.tests.failing)}" if found.tests.failing else ""
    return f"{counted(count, 'test')} {'fails' if count == 1 else 'fail'}{with_gil}{named_}"


def _losing(found: BuildEvaluation, reason: str) -> Finding | None:
    """Return the package of which a reason says that its C code is missed."""
    findings = () if isinstance(found.readiness, Missing) else found.readiness.findings
    return next((each for each in findings if each.verdict.status is Status.LOST
                 and reason.startswith(f"{named(each)} {Status.LOST.value}")), None)


def _short(found: BuildEvaluation, finding: Finding) -> str:
    status = finding.verdict.status
    says = {Status.NO_WHEEL: f"has no wheel for {found.build.label}", Status.NOT_FOUND: "was not found"}
    return f"{named(finding)} {says.get(status, status.value)}"


def _effort(found: Evaluation, build: BuildEvaluation, blockers: tuple[Blocker, ...]) -> Effort:
    races = () if isinstance(found.races, Missing) else found.races.found
    unwatched = () if isinstance(found.races, Missing) else found.races.unwatched
    # A violation is one thing to mend wherever its sides are; of a race each place takes the lock.
    places = [place for race in races for place in (f"{race.file}:{race.line}", *race.places * (not race.violation))
              if is_own(place)]
    places += [f"{each.file}:{each.line}" for each in unwatched]
    if any(own_extensions.blockers(build.own)):
        for source in found.extensions.sources:
            places += [place_of(found.extensions, source)] * (source.defines and not source.declared)
            places += [f"{source.file}:{remark.line}" for remark in source.remarks]
    places += [f"{file}:{line}" for file, line in worst_lines([build])]
    places += own_extensions.places(build.own, found.extensions)
    places += own_extensions.unlocked(found.extensions)
    unique = in_order(places)
    beside = tuple(place for place in unique if _is_beside(place.rpartition(":")[0], found.project.measuring))
    inside = tuple(place for place in unique if place not in beside)
    return Effort(
        files=tuple(dict.fromkeys(place.rpartition(":")[0] for place in inside)), places=inside, beside=beside,
        packages=tuple(dict.fromkeys(_named(each) for each in blockers if each.who != WE or each.action)),
        unknown=_not_looked_for(found.races) or next(ways_left_out(found.races), "").removeprefix("races: "))


def _is_beside(file: str, measuring: str) -> bool:
    """Return whether a file is one of the tests', or was written to measure the project."""
    return file == measuring or is_test(file)


def _not_looked_for(races: Races | Missing) -> str:
    """Return that nobody looked for races, and why; "" where anybody did."""
    if isinstance(races, Missing):
        return f"races were not looked for: {races.reason}"
    if races.looks or not races.lacking:
        return ""
    reason = races.lacking[0][1]
    return f"races were not looked for: {NO_TIME.reason if reason.startswith(NO_TIME.reason) else reason}"


def _named(blocker: Blocker) -> str:
    return blocker.who if blocker.who != WE else blocker.action.removeprefix("take ")


def _because(
    decision: Decision, build: BuildEvaluation, conclusion: Conclusion, blockers: tuple[Blocker, ...],
    gain: Gained | Missing, *, told: bool,
) -> str:
    label = build.build.label
    if decision is Decision.WAIT:
        return f"on {label} {_parties(blockers)}"
    if decision is Decision.NO:
        nothing = "" if isinstance(build.gain, Missing) else not_worth(build.gain, told=told)
        return f"{label} brings nothing worth it: {nothing or conclusion.reasons[0]}"
    if decision is Decision.UNKNOWN:
        reason = conclusion.reasons[0]
        return f"{label}: {NO_COST if reason.startswith(NO_COST) else reason}"   # why has a line of its own
    dear = ", at a price" if conclusion.word is Word.WITH_COST else ""
    if decision is Decision.CAN:
        shown = "whether it gains is not known" if isinstance(gain, Missing) else "no gain was shown"
        return f"nothing is in the way on {label}{dear}; {shown}"
    return f"nothing is in the way on {label}{dear}, and threads gain"


def _parties(blockers: tuple[Blocker, ...]) -> str:
    """Return how much is in the way, by who must act."""
    waiting = len({each.who for each in blockers if each.who != WE})
    newer = sum(each.who == WE and bool(each.action) for each in blockers)
    ours = sum(each.who == WE and not each.action for each in blockers)
    parts = [_count(waiting, "package stands in the way and has no version that does not",
                    "packages stand in the way and have no version that does not")]
    parts += [_count(newer, "package has to be taken in a newer version",
                     "packages have to be taken in newer versions")]
    parts += [_count(ours, "thing of our own has to be mended", "things of our own have to be mended")]
    told = [part for part in parts if part]
    return "; ".join(told) or "something stands in the way"


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}" if number else ""


def _instead(found: Evaluation, decision: Decision) -> Iterator[str]:
    """Yield which models with the GIL make the workload faster today, where moving does not."""
    if decision is Decision.MOVE or not may_tell_speed(found.machine):
        return
    ready = {each.target for each in found.conclusions if each.word in {Word.READY, Word.WITH_COST}}
    models = [*((f"processes on {each.build.label}", each.measured) for each in found.processes),
              *((f"subinterpreters on {each.build.label}", each.measured) for each in found.interpreters)]
    for target, measured in models:
        if target in ready and not isinstance(measured, Missing) and measured.verdict() == "faster":
            yield f"{target}: {measured.ratio:.2f}x [{measured.lo:.2f}, {measured.hi:.2f}] as fast as threads there"


def _more(found: Evaluation, decision: Decision, build: BuildEvaluation, blockers: tuple[Blocker, ...]) -> str:
    """Return the one command that tells most of what is not said."""
    packages = [each.who for each in blockers if each.who != WE]
    in_its_own = (any(own_extensions.blockers(build.own)) or own_extensions.unlocked(found.extensions)
                  # The end of what its build said is there, too.
                  or (any(own_extensions.unbuilt(build.own)) and not _for_want_of_time(build.own)))
    if packages or in_its_own:
        return f"{found.command} --explain {packages[0] if packages else 'extensions'}"
    if _short_of_time(found, build):
        return f"{_BUDGET.sub('', found.command)} --budget {enough(found.seconds)}"
    if decision is Decision.UNKNOWN and _to_mend(build):   # and then once more: what is mended may be had by a download
        return found.command.replace(" --offline", "")
    busy = not isinstance(found.machine, Missing) and found.machine.may_get_quiet
    if busy and decision is not Decision.WAIT and any(map(_quiet_helps, (build.cost, build.gain))):
        return f"{found.command} --wait-quiet"
    alone = isinstance(build.gain, Missing) and decision in {Decision.CAN, Decision.UNKNOWN}
    named_ = " --workload " in found.command
    return f"{found.command} --workload MODULE:FUNCTION" if alone and not named_ else f"{found.command} --plan"


def _short_of_time(found: Evaluation, build: BuildEvaluation) -> bool:
    """Return whether a larger budget would tell more."""
    sections = (build.readiness, build.tests, build.reference_tests, build.cost, build.gain, found.races)
    reasons = [each.reason for each in sections if isinstance(each, Missing)]
    reasons += [each.ending for each in (build.tests, build.reference_tests) if not isinstance(each, Missing)]
    reasons += [] if isinstance(found.races, Missing) else [reason for _, reason in found.races.lacking]
    reasons += [build.own.failure] if build.own else []
    return any(NO_TIME.reason in each or FEW.reason in each or each.startswith(UNFINISHED) for each in reasons)


def _for_want_of_time(own: OwnBuild | None) -> bool:
    return own is not None and NO_TIME.reason in own.failure


def _to_mend(build: BuildEvaluation) -> bool:
    """Return whether something could not be built, downloaded, imported or run, and has to be mended first."""
    if any(isinstance(each, Missing) and (each.failed or each.passing) for each in (build.readiness, build.tests)):
        return True
    if isinstance(build.cost, Missing) and build.cost.reason.startswith(WORKLOAD_FAILED):
        return True
    tests = build.tests
    return not isinstance(tests, Missing) and (not tests.passed or bool(tests.lacking and tests.broken))


def _quiet_helps(section: Cost | Gain | Missing) -> bool:
    """Return whether a section was measured, or could not be as the machine was busy."""
    return not isinstance(section, Missing) or "--wait-quiet" in section.reason
