"""The steps of a migration: the state of each, the file that keeps them, and what moved between two of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.evaluate.decision import Upkeep
from gilscope.toolkit.evaluate.facts import PlanStep
from gilscope.toolkit.evaluate.packages.evidence import Status
from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnBuild, OwnExtensions, UnbuiltModule
from gilscope.toolkit.evaluate.request import EvaluationRequest
from gilscope.toolkit.evaluate.sections import LeftOut, Missing, RaceFact, RaceLook, Unwatched
from gilscope.toolkit.evaluate.verdict import judged as answered
from gilscope.toolkit.evaluate.views import plan_file
from tests.evaluate.made_up import (
    CLEAN,
    NOT_DONE,
    PROJECT,
    QUIET,
    concluded,
    finding,
    found,
    gain,
    lxml,
    ratio,
    report,
    suite,
)

NO_CC = Missing(reason="no cc")
CI = PlanStep.CI.value
CLASSIFIER = PlanStep.CLASSIFIER.value
COST_AND_GAIN = PlanStep.COST_AND_GAIN.value
DEPENDENCIES = PlanStep.DEPENDENCIES.value
EXTENSIONS = PlanStep.EXTENSIONS.value
IN_THREADS = PlanStep.IN_THREADS.value
RACES = PlanStep.RACES.value
TESTS = PlanStep.TESTS.value

RACE = RaceFact(kind="lost update", variable="total", file="shop/counter.py", line=17, confirmed=False)
KEPT_UP = Upkeep(ci=".github/workflows/ci.yml", classifier="Programming Language :: Python :: Free Threading",
                 published=True)
IN_FOUR = RaceLook(of="tests at once", build="3.14t", threads=True, together=True, workers=4, alone=("x: why",))
AT_ONCE = replace(CLEAN, looks=(IN_FOUR,))
BUSY = replace(QUIET, doubts=("busy",))


WRITING = EvaluationRequest(path=Path(), ci_file=".github/workflows/new.yml")


def states(*, upkeep=KEPT_UP, machine=QUIET, races=CLEAN, request=None, **changes):
    given = concluded(found(**changes), machine=machine, races=races, **({"request": request} if request else {}))
    return {each.name: (each.state, each.says) for each in answered(replace(given, upkeep=upkeep)).plan}


def test_all_done():
    seen = states(races=AT_ONCE)
    assert seen.pop(EXTENSIONS) == ("not needed", "it has none")
    assert {state for state, _ in seen.values()} == {"done"}


@pytest.mark.parametrize(("own", "state", "says"), [
    (None, "not known", "they were not built"), (OwnBuild(build="3.14t", failure=NO_CC), "not known", "no cc"),
    (OwnBuild(build="3.14t", failure=NO_CC, elsewhere="3.14"), "open", "can on 3.14: no cc"),
    (OwnBuild(build="3.14t", report=report(lxml())), "open", "lxml.etree turns the GIL on"),
    (OwnBuild(build="3.14t", report=report(finding())), "done", "0 files on 3.14t"),
    (OwnBuild(build="3.14t", report=report(finding()),
              unbuilt=(UnbuiltModule(name="a._c", why="no", elsewhere="3.14"),)),
     "open", "a._c is not built here, and is on 3.14: no"),
])
def test_own_extension_modules(own, state, says):
    project = concluded(found(own=own), extensions=OwnExtensions(unsure=("?",)))
    seen = {each.name: each for each in project.plan}
    assert seen[EXTENSIONS].state == state
    assert says in seen[EXTENSIONS].says


@pytest.mark.parametrize(("step", "state", "says", "given"), [
    (DEPENDENCIES, "open", "lxml 6.1 turns the GIL on", {"readiness": report(finding(Status.GIL))}),
    (DEPENDENCIES, "not known", "lxml 6.1 could not be judged", {"readiness": report(finding(Status.UNKNOWN))}),
    (DEPENDENCIES, "not known", "not asked for", {"readiness": NOT_DONE}),
    (DEPENDENCIES, "done", "without their C code: lxml", {"readiness": report(finding(Status.LOST))}),
    (DEPENDENCIES, "done", "it has none", {"readiness": replace(report(), others=0)}),
    (TESTS, "not known", "not asked for", {"tests": NOT_DONE}),
    (TESTS, "open", "2 of 414 fail", {"tests": suite(failed=2, ending="1")}),
    (TESTS, "open", "the GIL was on at their end", {"tests": suite(gil_end=True)}),
    (TESTS, "open", "they end with crash: SIGSEGV", {"tests": suite(ending="crash: SIGSEGV")}),
    (TESTS, "open", "412 pass; left out: tests/a.py", {"tests": suite(left_out=(LeftOut(file="tests/a.py", why=""),))}),
    (TESTS, "done", "1 test passed", {"tests": suite(passed=1)}),
    (TESTS, "done", "they pass", {"tests": suite(passed=None)}),
    (RACES, "not known", "not asked for", {"races": NOT_DONE}),
    (RACES, "open", "data race on total (lost update, shop/counter.py:17)",
     {"races": replace(CLEAN, found=(RACE, RACE))}),
    (RACES, "open", "shop/counter.py:17), not confirmed by a second run: guard it, or say why it may be",
     {"races": replace(CLEAN, found=(RACE,))}),
    (RACES, "open", "does not watch: what exec runs (app.py:3); look at it",
     {"races": replace(CLEAN, unwatched=(Unwatched(file="app.py", line=3, what="what exec runs"),))}),
    (RACES, "not known", "seen running in two threads", {"races": replace(CLEAN, looks=())}),
    (IN_THREADS, "not known", "--threads 4 runs them so", {"races": CLEAN}),
    (IN_THREADS, "not known", "--threads 4 runs them so", {"races": NOT_DONE}),
    (IN_THREADS, "not known", "it takes pytest",
     {"races": replace(CLEAN, lacking=(("tests at once", Missing(reason="it takes pytest")),))}),
    (IN_THREADS, "done", "in 4 threads; 1 test ran alone", {"races": AT_ONCE}),
    (IN_THREADS, "open", "failing: a, b, c, d and 1 more; 1 test ran alone",
     {"races": replace(CLEAN, looks=(replace(IN_FOUR, failing=tuple("abcde")),))}),
    (COST_AND_GAIN, "not known", "what it costs one thread was not measured", {"cost": NOT_DONE}),
    (COST_AND_GAIN, "not known", "gain: not asked for", {"gain": NOT_DONE}),
    (COST_AND_GAIN, "not known", "gain: short", {"gain": gain(Missing(reason="short"))}),
    (COST_AND_GAIN, "not known", "gain: the machine was too busy", {"machine": BUSY}),
    (COST_AND_GAIN, "done", "one thread takes 1.05", {"gain": gain({2: ratio(1.5)})}),
    (CI, "done", ".github/workflows/new.yml", {"upkeep": replace(KEPT_UP, ci=""), "request": WRITING}),
    (CI, "open", "--ci github", {"upkeep": replace(KEPT_UP, ci="")}),
    (CLASSIFIER, "open", "add the classifier", {"upkeep": replace(KEPT_UP, classifier="")}),
    (CLASSIFIER, "not needed", "no metadata", {"upkeep": replace(KEPT_UP, classifier="", published=False)}),
])
def test_state_of_a_step(step, state, says, given):
    seen = states(**given)[step]
    assert seen[0] == state
    assert says in seen[1]


def test_dependencies_that_no_file_tells_are_not_known():
    silent = replace(concluded(found()), project=replace(
        PROJECT, requirements=(), requirements_known=False))
    assert (answered(silent).plan[0].state, answered(silent).plan[0].says) == (
        "not known", "no file says what the project needs")


def given(**changes):
    return concluded(found(**changes))


def test_plan_is_read_back():
    text = plan_file.markdown(given(), plan_file.Earlier(), "2026-11-22")
    earlier = plan_file.read(text)
    assert earlier.date == "2026-11-22"
    assert earlier.states == {each.key: each.state for each in given().plan}
    assert f"- [x] **{TESTS}** (done): 412 tests passed" in text
    assert "- [ ] **CI runs the tests" in text
    assert f"- [x] **{EXTENSIONS}** (not needed)" in text
    assert "What moved" not in text


def test_plan_is_read_back_although_people_reworded_it():
    text = plan_file.markdown(given(), plan_file.Earlier(), "2026-11-22")
    reworded = text.replace(TESTS, "the tests are green").replace("(done)", "(ja)").replace("saw it on", "sah es am")
    assert plan_file.read(reworded) == plan_file.read(text)


def test_plan_without_its_comment_is_none():
    text = plan_file.markdown(given(), plan_file.Earlier(), "2026-11-22")
    assert plan_file.read(text[:text.index("<!--")]) == plan_file.Earlier()


@pytest.mark.parametrize("states", ['{"tests": "soon"}', "3", "{"])
def test_damaged_comment_is_an_error(states):
    with pytest.raises(ValueError, match=r"states|delimiter|Expecting"):
        plan_file.read(f'<!-- gilscope plan {{"date": "", "states": {states}}} -->\n')


def test_what_moved_since_the_last_time():
    before = plan_file.read(plan_file.markdown(given(tests=suite(failed=2, ending="1")), plan_file.Earlier(),
                                               "2026-11-20"))
    assert plan_file.moved(given(), before) == [f"{TESTS}: open -> done"]
    assert list(plan_file.since(given(), before)) == [f"since 2026-11-20: {TESTS}: open -> done"]
    assert f"## What moved\n\n- since 2026-11-20: {TESTS}: open -\\> done" in plan_file.markdown(
        given(), before, "2026-11-22")


def test_nothing_moved_is_said_and_a_first_plan_says_nothing():
    same = plan_file.read(plan_file.markdown(given(), plan_file.Earlier(), "2026-11-20"))
    assert list(plan_file.since(given(), same)) == ["since 2026-11-20: nothing has moved"]
    assert list(plan_file.since(given(), plan_file.read("# a file of somebody else's\n"))) == []


def test_step_that_is_new_has_not_moved():
    before = plan_file.Earlier(date="2026-11-20", states={PlanStep.TESTS.key: "done"})
    assert plan_file.moved(given(), before) == []
