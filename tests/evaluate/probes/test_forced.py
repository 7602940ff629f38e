"""The GIL forced off where something turned it on: real extension modules, and made-up numbers in words."""

from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

import pytest

from gilscope.toolkit.evaluate.evaluation import Verdict
from gilscope.toolkit.evaluate.probes.forced import RULE, described
from gilscope.toolkit.evaluate.project.cost_and_gain import CostAndGainMeasurer
from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.project.machine_calibration import Calibration, Spin
from gilscope.toolkit.evaluate.project.suite import cost as suite_cost
from gilscope.toolkit.evaluate.project.where_to_run import RunSite
from gilscope.toolkit.evaluate.project.workload import rounds as workload
from gilscope.toolkit.evaluate.project.workload.rounds import UserWorkload, WorkloadMeasurer
from gilscope.toolkit.evaluate.project.workload.speed import Speed
from gilscope.toolkit.evaluate.sections import (
    NO_TIME,
    BuildSpeed,
    Cost,
    Forced,
    Missing,
    WorkloadFailure,
    workload_failed,
)
from gilscope.toolkit.evaluate.views.explain_package import Beside, explain
from gilscope.toolkit.evaluate.views.screen import document
from gilscope.toolkit.report.terminal import render
from tests.evaluate.made_up import (
    CLEAN,
    NOT_DONE,
    PROJECT,
    QUIET,
    builds_of,
    changed,
    conclude,
    evaluation,
    found,
    lxml,
    next_steps,
    ratio,
    report,
    suite,
)
from tests.fakes import make_build

APP = """
import os, sys
import single_plain

def work():
    return sum(range(100))

def crash():
    if not sys._is_gil_enabled():
        os.abort()
"""
TESTS = """
import unittest
import app

class Test(unittest.TestCase):
    def test_it(self):
        app.work()
"""
SPIN = Spin(cores=2, effective=1.9, ran=39, waited=1, lasted=20)
FAILED = "crashed with SIGABRT"
BUSY = replace(QUIET, doubts=("something else is running",))


@pytest.fixture
def compare(pair, variants, tmp_path, monkeypatch):
    """Give a function that compares a project, whose extension module turns the GIL on, on both builds."""
    monkeypatch.setattr(workload, "PASS_SECONDS", 0.01)
    monkeypatch.setattr(workload, "MOST_ROUNDS", 3)
    monkeypatch.setattr(workload, "OTHER_MODELS", ())
    monkeypatch.setattr(workload, "usable_cores", lambda: 2)
    monkeypatch.setattr(Speed, "_watched", lambda *_: Missing(reason="not watched"))
    for name, value in (("LEAST_CPU", 0.0), ("LEAST_ROUNDS", 3), ("MOST_ROUNDS", 3)):
        monkeypatch.setattr(suite_cost, name, value)
    for module in (workload, suite_cost):
        monkeypatch.setattr(module, "Calibration", lambda: Calibration(lambda _: SPIN))
    (tmp_path / "app.py").write_text(APP)
    run_sites = {}
    for build in pair:
        folder = tmp_path / build.label
        folder.mkdir()
        (folder / "single_plain.so").write_bytes(variants(build).read_bytes())
        run_sites[build.label] = RunSite(build=build.label, python=Path(build.executable), folders=(folder, tmp_path))

    def go(name, *, left=1000.0):
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / "tests" / "test_app.py").write_text(TESTS)
        project = find_project(tmp_path, tests="python -m unittest discover -s tests")
        ends = {build.label: suite(build=build.label, seconds=1.0, gil_end=True) for build in pair}
        comparing = CostAndGainMeasurer(project, name, pair, {pair[0].label: pair[1].label}, left=lambda: left,
                                        say=lambda _: None)
        return comparing.compare(run_sites, ends).speed[pair[0].label]

    return go


@pytest.mark.newest
def test_workload_that_turns_the_gil_on_is_measured_with_it_forced_off(compare, pair):
    sections = compare("app:work")
    assert "single_plain turned it on" in sections.failure.detail
    forced = sections.forced
    assert (forced.against, forced.by, forced.failure) == (pair[1].label, "workload", "")
    assert forced.cost.cpu.rounds == 3
    assert isinstance(sections.cost, Missing)   # the verdict's own stay what they are


@pytest.mark.newest
def test_crash_with_the_gil_forced_off_is_a_result(compare):
    sections = compare("app:crash")
    assert "single_plain turned it on" in sections.failure.detail
    assert sections.forced.failure == FAILED
    assert sections.forced.cost == sections.forced.measured == workload_failed(FAILED)


@pytest.mark.newest
def test_tests_alone_are_run_with_the_gil_forced_off(compare):
    sections = compare(None)
    assert "the GIL was on at the end of the tests" in sections.cost.reason
    forced = sections.forced
    assert (forced.by, forced.failure, forced.measured.reason) == ("tests", "", "no --workload was given")
    assert forced.cost.cpu.rounds == 3
    assert described(replace(forced, cost=NOT_DONE)).startswith("the tests pass; cost not measured: not asked for")


@pytest.mark.newest
@pytest.mark.parametrize("name", [pytest.param("app:work", marks=pytest.mark.slow), None])
def test_without_time_left_it_says_so(compare, name):
    assert compare(name, left=0.001 if name else 0.0).forced == NO_TIME


def test_time_that_runs_out_meanwhile_ends_it(monkeypatch, tmp_path):
    monkeypatch.setattr(workload, "Calibration", lambda: Calibration(lambda _: SPIN))
    builds = {label: make_build(label) for label in ("3.14t", "3.14")}
    run_sites = {label: RunSite(build=label, python=tmp_path / "none", folders=()) for label in builds}
    left = chain([1.0], repeat(0.0))
    made = WorkloadMeasurer(PROJECT, UserWorkload(kind="script", name="load.py"), run_sites, builds,
                            left=lambda: next(left), say=lambda _: None, forced=True)
    made.measure()
    assert Speed(made, QUIET).forced("3.14t", "3.14") == NO_TIME


def test_nothing_is_forced_where_nothing_turned_the_gil_on():
    assert BuildSpeed.missing(NO_TIME).forced is None
    assert "forced off" not in render(document(evaluation()), width=200)


def forced(**changes):
    usual = Forced(against="3.14", by="workload", failure="", machine=QUIET, measured={2: ratio(1.8)},
                   cost=Cost(against="3.14", cpu=ratio(0.8), import_seconds=None))
    return replace(usual, **changes)


def blocked(value):
    return found(readiness=report(lxml()), cost=NOT_DONE, gain=NOT_DONE, contention=NOT_DONE, forced=value,
                 failure=WorkloadFailure(
                     kind="turns-gil-on", detail="the GIL was on at the end of the workload: lxml.etree turned it on"))


def test_gain_with_the_gil_forced_off_is_a_reason_and_a_step_and_changes_no_word():
    build = blocked(forced())
    verdict = conclude(build, QUIET, CLEAN)
    assert (verdict.word, verdict.confidence) == (Verdict.BLOCKED, "medium")
    faster = "with the GIL forced off, which is not safe, the workload is 1.80x [1.76, 1.84] as fast as on 3.14 with 2"
    assert any("lxml.etree turned it on; " + faster.replace("the GIL", "it", 1) in each for each in verdict.reasons)
    assert any(faster in step for step in next_steps(build))


def test_no_gain_to_be_had_is_said():
    little = blocked(forced(measured={0: ratio(1.01)}))
    (*_, step) = next_steps(little)
    assert step.endswith("the workload is 1.01x [0.99, 1.03] as fast as on 3.14")


@pytest.mark.parametrize("value", [
    NO_TIME, None, forced(machine=BUSY), forced(measured={2: ratio(1.75, rounds=2)}),
    forced(measured={2: ratio(1.22, width=0.3)}), forced(measured=NOT_DONE)])
def test_gain_that_is_not_known_is_no_reason(value):
    assert not [each for each in conclude(blocked(value), QUIET, CLEAN).reasons if "forced off" in each]
    assert not [each for each in next_steps(blocked(value)) if "forced off" in each]


def test_failure_with_the_gil_forced_off_is_a_step():
    (*_, step) = next_steps(blocked(forced(failure=FAILED, measured=NOT_DONE)))
    assert step == ("3.14t: it takes more than packages that declare that they can do without the GIL: with it forced "
                    "off, the workload fails: crashed with SIGABRT")


def test_failure_of_the_tests_says_once_that_the_gil_is_forced_off():
    failure = "the tests do not pass on 3.14t with the GIL forced off (exit code 1)"
    (*_, step) = next_steps(blocked(forced(by="tests", failure=failure, cost=NOT_DONE, measured=NOT_DONE)))
    assert step == f"3.14t: it takes more than packages that declare that they can do without the GIL: {failure}"


@pytest.mark.parametrize(("value", "words"), [
    (forced(), "one thread takes 1.25 [1.23, 1.28] times the CPU time of 3.14 (20 rounds); measured against 3.14 1.8"),
    (forced(failure=FAILED, measured=NOT_DONE), f"the workload fails, and does not with the GIL: {FAILED}; one thread"),
    (forced(machine=BUSY), f"speed was not judged: something else is running {RULE}"),
    (NO_TIME, "not measured: no time was left in the budget"),
    (forced(by="tests", failure="the tests do not pass", cost=NOT_DONE, measured=NOT_DONE), "the tests do not pass")])
def test_screen_says_what_was_measured_and_that_it_is_not_safe(value, words):
    given = evaluation()
    other = changed(given, builds=(blocked(value), *builds_of(given)[1:]))
    shown = " ".join(render(document(other), width=400).split())
    assert f"With the GIL forced off (PYTHON_GIL=0) 3.14t: {words}" in shown
    assert (RULE in shown) is isinstance(value, Forced)


def test_explain_of_what_turns_the_gil_on_has_it():
    text = render(explain([report(lxml())], "lxml", Beside(forced={"3.14t": described(forced())})), width=400)
    assert "1.80x" in text
    assert RULE in text
