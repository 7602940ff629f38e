"""The trial of a user's function: what it finds, in words, before anything is measured."""

import sys
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
    fit_budget,
    group_problems,
    try_out,
    warn_of_length,
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


def cells_of(*runners, build="3.14"):
    return [Cell(workload="f", runner=name, workers=1 if name == "serial" else 2, build=build) for name in runners]


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


def refusal(budget, *runners, seconds=80.0, tasks=4, rounds=12, demand=1.0, spent=0.0, late=False):
    """Return the words of the refusal of a budget, or None."""
    trials = {"3.14": TrialOutcome(tasks=tasks, pass_seconds=seconds, demand=demand, ends_late=late)}
    settings = replace(SETTINGS, budget=budget, warmups=0, rounds=rounds)
    try:
        fit_budget(cells_of(*runners), settings, trials, "f", spent)
    except ToolkitError as error:
        return str(error)
    return None


@pytest.mark.parametrize(("budget", "runners", "options"), [
    # Three rounds of two passes: the checked one and one value.
    (959.0, ("serial", "threads"), {}),                      # 3 * 2 * (80 + 80)
    (719.0, ("serial", "subinterpreters"), {}),              # 3 * 2 * (80 + 40): two workers
    (719.0, ("serial", "threads"), {"demand": 0.1}),         # waiting overlaps in threads
    (959.0, ("serial", "subinterpreters"), {"tasks": 1}),    # one task keeps one worker busy
    (239.0, ("serial", "subinterpreters"), {"rounds": 1}),
    (819.0, ("serial", "subinterpreters"), {"spent": 100.0}),
    (749.0, ("serial", "subinterpreters"), {"late": True}),  # 10 s in each of 3 rounds, for all processes together
])
def test_budget_that_does_not_hold_is_refused_and_a_second_more_is_not(budget, runners, options):
    assert refusal(budget, *runners, **options)
    assert refusal(budget + 1, *runners, **options) is None


@pytest.mark.parametrize(("budget", "values"), [
    # In sixths of a second: 3 rounds of 2 passes of 6 + 3 take 54; of 4 passes 108, and a quarter more is left free.
    (54.0, 1), (134.0, 1), (136.0, 3), (None, 3),
])
def test_values_are_fewer_if_only_those_fit(budget, values):
    trials = {"3.14": TrialOutcome(tasks=4, pass_seconds=1.0, demand=1.0)}
    settings = replace(SETTINGS, budget=budget and budget / 6, warmups=0, rounds=12)
    fitting = fit_budget(cells_of("serial", "subinterpreters"), settings, trials, "f", 0.0)
    assert fitting.values == values


def test_refusal_says_what_would_fit():
    said = refusal(180.0, "serial", "threads")
    assert said.startswith("f does not fit into the budget of 3 min. 3 rounds of 2 cells take at least 16 min: one "
                           "serial pass over its 4 payloads takes about 80.0 s. To make it fit, use --budget 20m, ")
    # 180 / 960 of 80 s, which is less than a payload for each worker
    assert "payloads that together take at most 15.0 s" in said
    assert "--budget 20m" in said
    assert "at most 5 of these 40 payloads" in refusal(180.0, "serial", "threads", tasks=40, seconds=120.0)
    assert refusal(None, "serial", "threads") is None


def test_refusal_names_the_wait_for_threads():
    said = refusal(20.0, "serial", "threads", seconds=0.1, late=True)
    assert "30 s of that is the wait for threads that it leaves running." in said
    assert "f without threads that it leaves running" in said
    assert "payload" not in said.partition("To make it fit")[2]   # fewer of them would not help


def test_what_is_found_beside(tmp_path):
    printing = tried(tmp_path, "trying:prints")
    assert (printing.tasks, printing.problem) == (3, None)
    assert warnings({"3.14": printing}, "f", ["threads"]) == [
        "f prints: that goes to a file and is not shown, and its time is measured, too"]
    lock = tried(tmp_path, "trying:returns_a_lock")
    (warning,) = warnings({"3.14": lock}, "f", ["threads", "processes-fork"])
    assert "result cannot be pickled: lock (" in warning
    assert "so models that return it from another interpreter or process are skipped: processes-fork" in warning
    assert warnings({"3.14": lock}, "f", ["threads"]) == []


def test_one_long_call_is_enough(tmp_path):
    seen = tried(tmp_path, "waiting:sleep", payload="1.05", tasks=100)
    assert 105 <= seen.pass_seconds < 200   # one call of 1.05 s was made, and 100 are to come
    assert seen.demand < 0.5
    assert seen.printed == 0   # what its module prints when it is imported is not the call's


def test_repr_is_cut_in_its_middle():
    assert cut_repr(7) == "7"
    assert cut_repr("a" * 500) == f"'{'a' * 29} ... {'a' * 24}'"
    assert cut_repr(Loud()) == "a Loud whose repr raises RuntimeError"


BROKEN = TrialOutcome(problem=TrialProblem(kind="exception", reason="ValueError: x", text="f raises", awaits=False))
FINE = TrialOutcome(tasks=4, pass_seconds=1.0)


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


@pytest.mark.parametrize(("seconds", "budget", "warned"), [(1.0, None, False), (20.0, None, True), (20.0, 60.0, False)])
def test_long_run_is_announced_unless_a_budget_ends_it(seconds, budget, warned):
    told = []   # 2 cells, 10 rounds, 5 passes, of long ones 4: 100 or 80
    warn_of_length([cell("serial", "3.14"), cell("threads", "3.14")], replace(SETTINGS, budget=budget),
                   {"3.14": replace(FINE, pass_seconds=seconds)}, told.append)
    assert bool(told) == warned
    assert not told or "may take 27 min" in told[0]
