"""A migration as a list of steps, each with its state: done, open, not known or not needed.  Pure.

Names stay the same from one evaluation to the next, so that what moved can be told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.decision import Step
from gilscope.toolkit.evaluate.packages.judge.status import Status
from gilscope.toolkit.evaluate.sections import Missing
from gilscope.toolkit.evaluate.verdict import own_extensions
from gilscope.toolkit.evaluate.verdict.blockers import package_blockers
from gilscope.toolkit.evaluate.verdict.costs_and_gains import cost_doubt, may_tell_speed, times
from gilscope.toolkit.units import counted, few

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.decision import State
    from gilscope.toolkit.evaluate.evaluation import BuildEvaluation, Evaluation

DEPENDENCIES = "dependencies are ready"
EXTENSIONS = "own extension modules are declared"
TESTS = "tests pass on the free-threaded build"
IN_THREADS = "tests pass with several threads at once"
RACES = "no race, or each is judged"
COST_AND_GAIN = "cost and gain are known"
CI = "CI runs the tests on the free-threaded build"
CLASSIFIER = "the metadata says so"
MOST_NAMED = 4


def plan(found: Evaluation, build: BuildEvaluation) -> tuple[Step, ...]:
    """Return the steps of moving to one build."""
    return (_dependencies(found, build), _extensions(found, build), _tests(build), _in_threads(found), _races(found),
            _cost_and_gain(found, build), _ci(found), _classifier(found))


def _step(name: str, state: State, says: str) -> Step:
    return Step(name=name, state=state, says=says)


def _dependencies(found: Evaluation, build: BuildEvaluation) -> Step:
    if not found.project.told:
        return _step(DEPENDENCIES, "not known", "no file says what the project needs")
    if isinstance(build.readiness, Missing):
        return _step(DEPENDENCIES, "not known", build.readiness.reason)
    blocking = [finding.name if finding else text for finding, text in package_blockers(build.readiness)]
    if blocking:
        return _step(DEPENDENCIES, "open", f"in the way: {few(blocking, MOST_NAMED)}")
    unknown = [each.name for each in build.readiness.findings if each.verdict.status is Status.UNKNOWN]
    if unknown:
        return _step(DEPENDENCIES, "not known", f"could not be judged: {', '.join(unknown[:MOST_NAMED])}")
    count = len(build.readiness.findings) + build.readiness.others
    lost = [each.name for each in build.readiness.findings if each.verdict.status is Status.LOST]
    less = f"; without their C code: {', '.join(lost[:MOST_NAMED])}" if lost else ""
    return _step(DEPENDENCIES, "done", f"{counted(count, 'package')} on {build.build.label}{less}" if count
                 else "it has none")


def _extensions(found: Evaluation, build: BuildEvaluation) -> Step:
    if not found.extensions.any:
        return _step(EXTENSIONS, "not needed", "it has none")
    if build.own is None:
        return _step(EXTENSIONS, "not known", "they were not built")
    if blocking := list(own_extensions.blockers(build.own)):
        return _step(EXTENSIONS, "open", "; ".join(blocking))
    if unknown := list(own_extensions.unknowns(build.own)):
        return _step(EXTENSIONS, "not known", "; ".join(unknown))
    if doubts := list(own_extensions.doubts(found.extensions)):
        return _step(EXTENSIONS, "open", "; ".join(doubts))
    lost = "; ".join(own_extensions.costs(build.own))
    files = counted(own_extensions.files(build.own), "file")
    return _step(EXTENSIONS, "open", lost) if lost else _step(EXTENSIONS, "done", f"{files} on {build.build.label}")


def _tests(build: BuildEvaluation) -> Step:
    tests = build.tests
    if isinstance(tests, Missing):
        return _step(TESTS, "not known", tests.reason)
    left = f"; left out: {', '.join(each.file for each in tests.left_out)}" if tests.left_out else ""
    if tests.gil_end:
        return _step(TESTS, "open", f"the GIL was on at their end{left}")
    if tests.broken or tests.ending != "0" or tests.left_out:
        said = f"{tests.broken} of {tests.broken + (tests.passed or 0)} fail" if tests.broken else (
            f"they end with {tests.ending}" if tests.ending != "0" else f"{tests.passed} pass")
        return _step(TESTS, "open", said + left)
    return _step(TESTS, "done", "they pass" if tests.passed is None else f"{counted(tests.passed, 'test')} passed, "
                 "the GIL off at their end")


def _races(found: Evaluation) -> Step:
    if isinstance(found.races, Missing):
        return _step(RACES, "not known", found.races.reason)
    if not found.races.found and not found.races.together:
        return _step(RACES, "not known", "no code of the project's own was seen running in two threads")
    if not found.races.found and found.races.unwatched:
        place = found.races.unwatched[0]
        return _step(RACES, "open", f"{place.what} ({place.file}:{place.line}) is not watched; look at it, and judge "
                     "it in a comment (# race: ok WHY)")
    if not found.races.found:
        return _step(RACES, "done", "none was found; what did not run is not judged")
    first = found.races.found[0]
    more = f" and {len(found.races.found) - 1} more" if len(found.races.found) > 1 else ""
    return _step(RACES, "open", f"{first.variable} at {first.where}{more}; mend it, or judge it in a comment "
                 "(# race: ok WHY)")


def _in_threads(found: Evaluation) -> Step:
    """Return how the tests do when each is run in several threads at once."""
    looks = [] if isinstance(found.races, Missing) else [look for look in found.races.looks
                                                         if look.of == "tests at once"]
    if not looks:
        reasons = () if isinstance(found.races, Missing) else found.races.lacking
        why = next((reason for of, reason in reasons if of == "tests at once"), "--threads 4 runs them so")
        return _step(IN_THREADS, "not known", why)
    failing = [name for look in looks for name in look.failing]
    alone = sum(len(look.alone) for look in looks)
    left = f"; {counted(alone, 'test')} ran alone" if alone else ""
    if failing:
        return _step(IN_THREADS, "open", f"failing: {few(failing, MOST_NAMED)}{left}")
    return _step(IN_THREADS, "done", f"in {looks[0].workers} threads{left}")


def _cost_and_gain(found: Evaluation, build: BuildEvaluation) -> Step:
    told = may_tell_speed(found.machine)
    lacking = list(_unmeasured(build, told=told))
    if lacking:
        return _step(COST_AND_GAIN, "not known", "; ".join(lacking))
    assert not isinstance(build.cost, Missing)
    seen = times(build.cost, told=told)
    return _step(COST_AND_GAIN, "done", f"one thread takes {seen.value:.2f} [{seen.lo:.2f}, {seen.hi:.2f}] times the "
                 f"CPU time of {build.cost.against}; the gain was measured")


def _unmeasured(build: BuildEvaluation, *, told: bool) -> Iterator[str]:
    if doubt := cost_doubt(build.cost, told=told):
        yield doubt
    if isinstance(build.gain, Missing):
        yield f"gain: {build.gain.reason}"
    elif isinstance(build.gain.measured, Missing):
        yield f"gain: {build.gain.measured.reason}"
    elif not told:
        yield "gain: the machine was too busy or too small"


def _ci(found: Evaluation) -> Step:
    if found.upkeep.ci:
        return _step(CI, "done", found.upkeep.ci)
    return _step(CI, "open", "gilscope evaluate --ci github writes a job")


def _classifier(found: Evaluation) -> Step:
    """Return whether the classifier is there; it says too much while something is in the way."""
    if found.upkeep.classifier:
        return _step(CLASSIFIER, "done", found.upkeep.classifier)
    if not found.upkeep.published:
        return _step(CLASSIFIER, "not needed", "the project has no metadata that is published")
    return _step(CLASSIFIER, "open", "add the classifier 'Programming Language :: Python :: Free Threading :: "
                 "2 - Beta' once the steps above are done")
