"""What the tests cost on two builds: made-up runs, and one real one."""

import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.evaluate.project.machine_calibration import Spin
from gilscope.toolkit.evaluate.project.suite import cost as suite_cost
from gilscope.toolkit.evaluate.project.suite.cost import LEAST_CPU, LEAST_ROUNDS, METER, MOST_ROUNDS, SuiteCosts
from gilscope.toolkit.evaluate.project.suite.running import run_bounded
from gilscope.toolkit.evaluate.project.where_to_run import RunSite
from gilscope.toolkit.evaluate.sections import Cause, Missing
from tests.evaluate.made_up import NOT_DONE, PROJECT, ended, suite

COUNTERPARTS = {"3.14t": "3.14"}
BENCHES = {label: RunSite(build=label, python=Path(f"/{label}/bin/python"), folders=()) for label in ("3.14t", "3.14")}


@pytest.fixture
def runs(monkeypatch):
    """Give a function that takes the rounds; its runs take what it is told."""
    def measure(*, cpu=None, endings=(), limit=1000.0, forced=None, hold_machine=nullcontext, **tests):
        asked = []
        cpu = cpu or {"3.14t": 3.0, "3.14": 2.0}
        ends = iter(endings)

        def run(command, folder, env, path, *, limit, quiet):
            label = Path(command[4]).parent.name
            asked.append(label)
            if forced is not None:   # the build that has a GIL refuses the variable
                assert (command[5:7] == ["env", "PYTHON_GIL=0"]) is (label == "3.14t")
                if label == "3.14t":
                    return ended(forced)
            first = 1 if label in asked[:-1] else 9   # nothing of the first run counts
            seconds = cpu[label] * (1 + len(asked) % 3 / 1e6)
            Path(command[4]).write_text(f"{seconds} {first * (1024 if label == '3.14' else 1280)}")
            return ended(next(ends, "0"))

        monkeypatch.setattr(suite_cost, "run_bounded", run)
        usual = {"3.14t": suite(seconds=10.0), "3.14": suite(build="3.14", seconds=10.0, gil_end=True)}
        costs = SuiteCosts(PROJECT, BENCHES, usual | tests, limit=limit, say=lambda _: None, forced=forced is not None,
                           hold_machine=hold_machine)
        costs.calibration._spin = lambda cores: Spin(cores=cores, effective=cores, ran=9, waited=1, lasted=10)
        costs.measure(COUNTERPARTS)
        return costs.cost("3.14t", "3.14"), asked, costs

    return measure


def test_cost_is_of_rounds_after_the_first(runs):
    cost, asked, costs = runs()
    assert (cost.by, cost.against, cost.cpu.ratio) == ("tests", "3.14", pytest.approx(2 / 3))
    assert (cost.memory.here / cost.memory.there, cost.memory.here - cost.memory.there) == (1.25, 2**18)
    assert cost.cpu.verdict() == "slower"
    assert len(asked) == 2 * (MOST_ROUNDS + 1)
    assert len(costs.calibration.spins) == MOST_ROUNDS


def test_turn_is_held_round_by_round(runs):
    held, taken = [], []

    @contextmanager
    def turn():
        held.append(True)
        taken.append(True)
        yield
        held.clear()

    def endings():
        while True:
            assert held
            yield "0"

    runs(endings=endings(), hold_machine=turn)
    assert (len(taken), held) == (MOST_ROUNDS + 1, [])


@pytest.mark.parametrize(("changes", "reason"), [
    ({"cpu": {"3.14t": 9.0, "3.14": LEAST_CPU / 2}}, "the tests take 0.5 s of CPU time, most of it to start"),
    ({"limit": 30.0 * LEAST_ROUNDS},
     "4 rounds of them, each up to 1.5 times as long, do not fit into the 90 s"),
    ({"3.14t": NOT_DONE}, "not asked for"),
    ({"3.14t": suite(gil_end=True)}, "the GIL was on at the end of the tests"),
    ({"3.14": suite(build="3.14", ending="1", failed=2)}, "not all tests pass on 3.14"),
    ({"3.14": suite(build="3.14", passed=0)}, "not all tests pass on 3.14"),
    ({"3.14": suite(build="3.14", ending="unfinished: not done within 9 s")}, "the tests were not done on 3.14"),
    ({"endings": ["0", "0", "1"]}, "every time (exit code 1)"),
])
def test_cost_that_cannot_be_told_has_a_reason(runs, changes, reason):
    cost, _, _ = runs(**changes)
    assert cost.reason.startswith("no workload was measured, and ")
    assert reason in cost.reason


def test_build_without_another_to_compare_it_with_has_run_its_tests(runs):
    _, _, costs = runs()
    assert costs.cost("3.15t", "").reason == (
        "no workload was measured, and there is no 3.15 to compare the tests with: --build 3.15=PATH adds one")


def test_crash_with_the_gil_forced_off_ends_the_rounds(runs):
    _, asked, costs = runs(forced="crash: SIGSEGV", **{"3.14t": suite(seconds=10.0, gil_end=True)})
    assert sorted(asked) == ["3.14", "3.14t"]
    assert costs.forced("3.14t", "3.14").failure == (
        "the tests do not pass on 3.14t with the GIL forced off (crash: SIGSEGV)")


def test_tests_that_fail_with_the_gil_are_not_run_with_it_forced_off(runs):
    there = suite(build="3.14", ending="1", failed=1)
    _, asked, costs = runs(forced="0", **{"3.14t": suite(gil_end=True), "3.14": there})
    assert asked == []
    assert costs.forced("3.14t", "3.14") == Missing(
        reason="not all tests pass on 3.14", cause=Cause.TESTS_NOT_TIMED)


def test_tests_that_are_left_out_are_not_run(runs):
    assert runs(limit=0.0)[1] == []
    assert len(runs(limit=30.0 * (LEAST_ROUNDS + 1))[1]) == 2 * (LEAST_ROUNDS + 1)   # as many as there is time for
    assert len(runs(cpu={"3.14t": 9.0, "3.14": LEAST_CPU / 20})[1]) == 2
    assert sorted(runs(endings=["1"])[1]) == ["3.14", "3.14t"]


@pytest.mark.parametrize(("code", "ending"), [("print(1)", "0"), ("raise SystemExit(3)", "3"),
                                              ("import os; os.abort()", "crash: SIGABRT")])
def test_meter_ends_as_what_it_measures(tmp_path, code, ending):
    told = tmp_path / "usage"
    command = [sys.executable, "-I", "-c", METER, str(told), sys.executable, "-c", code]
    assert run_bounded(command, tmp_path, {}, tmp_path / "output", limit=60.0, quiet=60.0) == ended(ending)
    cpu, resident = map(float, told.read_text().split())
    assert cpu > 0
    assert resident > 0


def files(*seconds):
    return {f"tests/test_{number}.py": each for number, each in enumerate(seconds)}


def both(by_file):
    usual = suite(seconds=10.0, by_file=by_file)
    return {"3.14t": usual, "3.14": replace(usual, build="3.14", gil_end=True)}


def test_suite_that_is_too_long_is_sampled(runs):
    cost, asked, costs = runs(limit=60.0, **both(files(*[1.0] * 9)))   # 9 of 10 s are tests, 1 s is the start
    assert len(asked) >= 2 * (LEAST_ROUNDS + 1)
    assert cost.sample.endswith(" of 9 files")
    assert [word for word in costs._tests if word.startswith("--ignore=tests/test_")]


def test_suite_of_one_file_or_of_another_runner_is_not_sampled(runs):
    assert "do not fit" in runs(limit=60.0, **both(files(9.0)))[0].reason
    assert runs(limit=60.0, **both(files(9.0)))[0].cause is Cause.TESTS_TOO_LONG


def test_suite_whose_every_file_is_too_long_is_not_sampled(runs):
    assert "do not fit into the 30 s" in runs(limit=30.0, **both(files(4.5, 4.5)))[0].reason


def test_suite_that_fits_is_run_whole(runs):
    cost, _, costs = runs(**both(files(*[1.0] * 9)))
    assert cost.sample == ""
    assert not any(word.startswith("--ignore") for word in costs._tests)
