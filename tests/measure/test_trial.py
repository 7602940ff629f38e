"""The trial of a user's function: what it finds, in words, before anything is measured."""

import sys
import time
from dataclasses import replace

import pytest

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.measure.abilities import Abilities
from gilscope.toolkit.measure.cells import PlannedSubject, Selection, expand
from gilscope.toolkit.measure.child.trial import cut_repr
from gilscope.toolkit.measure.preparation import child_environment, inspect_function, question_spec
from gilscope.toolkit.measure.settings import Settings
from gilscope.toolkit.measure.trial import (
    TrialOutcome,
    TrialProblem,
    allow_time,
    failed_cells,
    group_problems,
    try_out,
    warnings,
    with_trials,
)
from gilscope.toolkit.model import Cell, Phase, SkipKind
from tests.fakes import make_build
from tests.measure.children import LIMITS, USERCODE, target
from tests.measure.usercode.trying import Loud

SETTINGS = Settings(rounds=10, values=3, warmups=1, min_seconds=0.05, timeout=60.0)


def tried(folder, function, *, python=sys.executable, awaits=False, timeout=60.0, told=(), **names):
    names = names or {"payloads": "trying:numbers"}
    question = replace(question_spec(folder, user=target(function, **names), workload=function),
                       progress_timeout=timeout)
    return try_out(question, python, child_environment([USERCODE]), build="host", awaits=awaits,
                   say=(told if isinstance(told, list) else []).append)


@pytest.mark.builds("gil", "free")
def test_exception_names_the_payload_and_the_users_own_frames(python, tmp_path):
    problem = tried(tmp_path, "trying:second_fails", python=python).problem
    first, *frames, last = problem.text.splitlines()
    assert first == "trying:second_fails raises for payload 1 (of 3, counted from 0): 1"
    assert [frame.rpartition("/")[2].split("  ")[0].rstrip() for frame in frames] == [
        "trying.py:8 in second_fails", "trying.py:13 in parse"]   # none of ours, none of json's
    assert last.strip() == "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"
    assert (problem.kind, problem.awaits) == ("exception", False)


@pytest.mark.parametrize(("function", "names", "words"), [
    ("trying:exits", {}, "SystemExit: 0"),
    ("trying:plain", {"check": "trying:refuse", "payload": "1"},
     "trying:refuse refuses the results of trying:plain"),
    ("misbehaving:nothing_of_this_name", {}, "misbehaving has no 'nothing_of_this_name'"),
])
def test_problem_is_said(function, names, words, tmp_path):
    assert words in tried(tmp_path, function, **names).problem.text


def test_async_form_is_tried_where_a_model_awaits_it(tmp_path):
    names = {"payloads": "trying:numbers", "async_function": "trying:async_fails"}
    problem = tried(tmp_path, "trying:plain", awaits=True, **names).problem
    assert problem.awaits
    assert "trying:async_fails raises for payload 0" in problem.text
    assert tried(tmp_path, "trying:plain", **names).problem is None


def test_call_that_does_not_return_is_announced_and_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("gilscope.toolkit.measure.trial.PATIENCE", 0.05)
    for limit in LIMITS:
        told = []
        problem = tried(tmp_path, "trying:never_returns", timeout=limit, told=told).problem
        if "in never_returns" in problem.text:
            break
    assert "in never_returns" in problem.text
    assert told[0].startswith("host: waiting for call 1 of trying:never_returns")
    assert problem.kind == "hang"
    assert problem.reason == (
        f"call 1 of trying:never_returns did not return within {limit:g} s; --timeout allows it more")
    assert "toolkit/measure" not in problem.text


def test_thread_that_is_left_running_is_named(tmp_path):
    trial = tried(tmp_path, "trying:leaves_a_thread")
    assert (trial.threads, trial.ends_late, trial.problem) == (("'poller'",), False, None)
    assert warnings({"3.14": trial}, "f", ["threads"]) == [
        "f leaves a thread ('poller') running. Its CPU time is measured, too: end it before the call returns"]


def test_wait_for_a_thread_is_not_called_a_wait_for_a_call(tmp_path, monkeypatch):
    monkeypatch.setattr("gilscope.toolkit.measure.trial.PATIENCE", 0.2)
    monkeypatch.setattr("gilscope.toolkit.measure.trial.REPEAT", 0.2)
    for limit in LIMITS:
        monkeypatch.setattr("gilscope.toolkit.measure.measured_process.TEARDOWN_SECONDS", limit)
        told = []
        trial = tried(tmp_path, "trying:leaves_a_thread_that_waits", told=told)
        if told and "have returned" in told[-1]:
            break
    assert (trial.threads, trial.ends_late) == (("'poller'",), True)
    assert "have returned; waiting for the process to end, which waits for a thread ('poller')" in told[-1]
    assert not any("waiting for call 4" in line for line in told)   # of 3
    assert "no process of it ends by itself" in warnings({"3.14": trial}, "f", ["threads"])[0]


def planned(trials):
    """Return the plan after the trials, on a build that could run every model."""
    able = {label: Abilities(runners=dict.fromkeys(runner.name for runner in RUNNERS), modules={"f": None},
                             isolated={"f": None}) for label in trials}
    selection = Selection(workloads=(), user=None, models=("serial", "threads", "subinterpreters", "processes-fork"),
                          workers=(2,), phases=(Phase.STEADY,), size="small")
    subject = PlannedSubject("f", has_sync=True, has_async=False, requires=("f",))
    return expand(selection, [subject], [make_build(label) for label in trials], RUNNERS, with_trials(able, trials))


def test_cells_that_would_only_fail_at_the_result_are_skipped():
    plan = planned({"3.14": TrialOutcome(unpicklable="result cannot be pickled: lock"), "3.13": TrialOutcome()})
    assert [(skip.cell.build, skip.cell.runner) for skip in plan.skips] == [
        ("3.14", "subinterpreters"), ("3.14", "processes-fork")]
    assert {(skip.reason, skip.kind) for skip in plan.skips} == {
        ("result cannot be pickled: lock", SkipKind.WORK_CANNOT)}
    assert not failed_cells(plan.cells, {"3.14": TrialOutcome(unpicklable="result cannot be pickled: lock")})


def test_arm_that_is_measured_twice_is_none_of_the_skipped():
    (plan, other) = (planned({"3.14": TrialOutcome(unpicklable=reason)}) for reason in ("it cannot", None))
    assert [cell.runner for cell in plan.cells if cell.twin] == ["serial", "threads"]
    assert [cell.runner for cell in other.cells if cell.twin] == ["serial", "processes-fork"]


@pytest.mark.builds("gil", "free")
def test_module_that_is_imported_in_a_call_and_missing_is_no_failure(python, tmp_path):
    trial = tried(tmp_path, "trying:imports_nothing_there", python=python)
    plan = planned({"3.14": trial, "3.13": TrialOutcome()})
    assert {skip.cell.runner for skip in plan.skips if skip.cell.build == "3.14"} == {
        "serial", "threads", "subinterpreters", "processes-fork"}
    assert "No module named 'nothing_there' (" in plan.skips[0].reason
    assert {cell.build for cell in plan.cells} == {"3.13"}
    assert not failed_cells(plan.cells, {"3.14": trial})


def test_every_tried_result_is_pickled(tmp_path):
    assert tried(tmp_path, "trying:last_is_a_lock").unpicklable.startswith("result cannot be pickled: lock (")
    assert tried(tmp_path, "trying:plain").unpicklable is None


@pytest.mark.builds("gil", "free")
def test_payloads_that_raise_have_the_users_frames_alone(python, tmp_path):
    question = target("trying:plain", payloads="trying:bad_payloads")
    with pytest.raises(ToolkitError) as refused:
        inspect_function(question, python, child_environment([USERCODE]), tmp_path)
    first, frame, last = str(refused.value).splitlines()
    assert first == "cannot measure trying:plain: trying:bad_payloads, called without arguments, raises"
    assert frame.endswith("trying.py:63 in bad_payloads  return [len(3)]")
    assert last == "  TypeError: object of type 'int' has no len()"
    in_trial = tried(tmp_path, "trying:plain", python=python, payloads="trying:bad_payloads").problem
    assert in_trial.text.splitlines()[0] == "trying:bad_payloads, called without arguments, raises"


def test_what_is_found_beside(tmp_path):
    printing = tried(tmp_path, "trying:prints")
    assert printing.problem is None
    assert warnings({"3.14": printing}, "f", ["threads"]) == [
        "f prints: that goes to a file and is not shown, and its time is measured, too"]
    lock = tried(tmp_path, "trying:returns_a_lock")
    (warning,) = warnings({"3.14": lock}, "f", ["threads", "processes-fork"])
    assert "result cannot be pickled: lock (" in warning
    assert "so models that return it from another interpreter or process are skipped: processes-fork" in warning
    assert warnings({"3.14": lock}, "f", ["threads"]) == []


def test_one_long_call_is_enough(tmp_path):
    began = time.monotonic()
    seen = tried(tmp_path, "waiting:print_and_sleep", payload="1.05", tasks=100)
    assert 105 <= seen.pass_seconds <= 100 * (time.monotonic() - began)
    assert seen.demand < 0.5
    assert seen.printed == len(".\n")   # of one call; what its module prints when it is imported is not the call's


def test_repr_is_cut_in_its_middle():
    assert cut_repr(7) == "7"
    assert cut_repr("a" * 500) == f"'{'a' * 29} ... {'a' * 24}'"
    assert cut_repr(Loud()) == "a Loud whose repr raises RuntimeError"


BROKEN = TrialOutcome(problem=TrialProblem(kind="exception", reason="ValueError: x", text="f raises", awaits=False))
FINE = TrialOutcome(pass_seconds=1.0)


def cell(runner, build):
    return Cell(workload="f", runner=runner, workers=1, build=build)


def test_cells_of_the_build_where_it_fails_are_not_measured():
    cells = [cell(runner, build) for build in ("3.14", "3.14t") for runner in ("serial", "asyncio")]
    failed = failed_cells(cells, {"3.14": FINE, "3.14t": BROKEN})
    assert [failure.cell for failure in failed] == cells[2:]
    only_async = replace(BROKEN, problem=replace(BROKEN.problem, awaits=True))
    assert [failure.cell.runner for failure in failed_cells(cells, {"3.14t": only_async})] == ["asyncio"]


def test_same_problem_is_said_once():
    assert group_problems({"3.14": BROKEN, "3.14t": BROKEN, "3.15": FINE}) == ["on 3.14, 3.14t: f raises"]


@pytest.mark.parametrize(("seconds", "asked", "timeout", "words"), [
    (10.0, False, 60.0, ""),
    (50.0, False, 200.0, "one serial pass over all payloads takes about 50.0 s, so it may take up to 200 s"),
    (50.0, True, 60.0, ""),
    (90.0, True, 60.0, "more than --timeout allows (60.0 s): the cells will fail"),
])
def test_time_limit_follows_a_long_pass_unless_the_user_set_one(seconds, asked, timeout, words):
    told = []
    found = allow_time(SETTINGS, {"3.14": replace(FINE, pass_seconds=seconds)}, by_user=asked, say=told.append)
    assert found.timeout == timeout
    assert words in "".join(told)
    assert bool(words) == bool(told)
