"""Retakes are fair: arms that are compared are judged by one rule, taken again together, and keep the same attempt."""

import dataclasses

import pytest

from gilscope.toolkit.measure.disturbance import (
    ArmLoad,
    attempt_load,
    disturbed_groups,
    has_clean_cell,
    with_baselines_starved,
)
from gilscope.toolkit.measure.measured_process import ProcessAnswer
from gilscope.toolkit.measure.rounds import ArmResult, Round
from gilscope.toolkit.measure.settings import Settings
from gilscope.toolkit.model import Cell
from tests.measure.bursts import PARALLEL, SERIAL, BurstyMachine, SimulatedProcess, Work, simulate, speedup

TRUE = Work().speedup


@pytest.mark.parametrize(("share", "length"), [(0.2, 0.0), (0.3, 0.0), (0.2, 0.05), (0.3, 0.05)])
def test_bursts_raise_no_speedup(share, length, tmp_path):
    found, rounds = speedup(simulate(BurstyMachine(share, length), tmp_path, rounds=16))
    assert rounds >= 4
    assert found == pytest.approx(TRUE, rel=0.008)


def test_simulation_shows_what_retakes_of_parallel_arms_alone_print(tmp_path):
    found, _ = speedup(simulate(BurstyMachine(0.4, 0.0), tmp_path, rule="alone", rounds=16))
    assert found > 2.0   # on two cores


def test_quiet_machine_has_no_retakes(tmp_path):
    machine = BurstyMachine(0.0, 1.0)
    run = simulate(machine, tmp_path, rounds=3)
    assert {(each.retakes, len(each.wall)) for one in run.measurements for each in one.observations} == {(0, 6)}
    assert machine.now == pytest.approx(sum(sum(each.wall) for one in run.measurements for each in one.observations))


def test_all_arms_keep_the_same_attempt_at_each_pass(tmp_path, monkeypatch):
    kept = {}
    usual = SimulatedProcess.next

    def hear(self, **load):
        order, attempt = usual(self, **load)
        if order != "again":
            kept.setdefault(id(self), (self, []))[1].append(attempt)   # the process, so that its id is not used again
        return order, attempt

    monkeypatch.setattr(SimulatedProcess, "next", hear)
    simulate(BurstyMachine(0.2, 0.5), tmp_path, rounds=8)
    attempts = [each for _, each in kept.values()]
    arms = 1 + len(PARALLEL)
    groups = [attempts[start:start + arms] for start in range(0, len(attempts), arms)]
    assert all(each == group[0] for group in groups for each in group)
    assert {attempt for group in groups for attempt in group[0]} >= {0, 1}


def test_one_limit_judges_all_arms():
    quiet, busy = (ArmLoad(others=others, bearable=None) for others in (0.2, 0.4))
    assert attempt_load([quiet, busy]).disturbed == 0    # nothing starves either
    assert attempt_load([quiet, busy, ArmLoad(others=0.0, bearable=0.3)]).disturbed == 1
    assert attempt_load([quiet, ArmLoad(others=0.0, bearable=0.3), ArmLoad(others=0.0, bearable=0.1)]).disturbed == 1
    assert attempt_load([]).disturbed == 0


def test_attempt_with_fewer_disturbed_arms_is_better_then_that_with_less_load():
    sensitive = ArmLoad(others=0.0, bearable=0.3)
    one, other = (attempt_load([sensitive, ArmLoad(others=others, bearable=None)]) for others in (0.4, 0.9))
    assert one < other
    assert attempt_load([ArmLoad(others=1.9, bearable=None), sensitive]) < attempt_load(
        [ArmLoad(others=0.31, bearable=None), ArmLoad(others=0.31, bearable=0.3)])


def test_groups_are_what_is_compared():
    other = Cell(workload="other", runner="serial", workers=1, build="3.14t")
    loads = {SERIAL: ArmLoad(others=0.4, bearable=None), PARALLEL[0]: ArmLoad(others=0.0, bearable=0.3),
             other: ArmLoad(others=1.0, bearable=None)}
    assert disturbed_groups(loads) == [[SERIAL, PARALLEL[0]]]


def result(cell, others, bearable=None, *, starved=False):
    fields = {"starved": starved, "bearable": bearable, "wanted": cell.workers, "evidence": {"others_cores": others}}
    return ArmResult(cell=cell, start=None, answer=ProcessAnswer(kind="measured", reason="", fields=fields, output=""))


@pytest.mark.parametrize(("baseline", "starved"), [(0.2, False), (0.4, True), (None, False)])
def test_pair_is_left_out_if_its_baseline_was_disturbed(baseline, starved):
    results = [result(SERIAL, baseline), result(PARALLEL[0], 0.0, 0.3)]
    found = with_baselines_starved(results, lambda cell: cell.runner == "serial")
    assert [each.answer.fields["starved"] for each in found] == [False, starved]


@pytest.mark.parametrize("starved", [True, False])
def test_pair_is_left_out_if_its_baseline_was_starved(starved):
    one = Cell(workload="work", runner="threads", workers=1, build=SERIAL.build)
    results = [result(SERIAL, 1.2, 1.15, starved=starved), result(one, 0.0, 1.15), result(PARALLEL[0], 0.0)]
    found = with_baselines_starved(results, lambda cell: cell.runner == "serial")
    assert [each.answer.fields["starved"] for each in found] == [starved] * 3


def test_baseline_of_another_build_leaves_no_pair_out():
    elsewhere = Cell(workload="work", runner="serial", workers=1, build="3.14")
    found = with_baselines_starved([result(elsewhere, 1.0), result(SERIAL, 0.0), result(PARALLEL[0], 0.0, 0.3)],
                                   lambda cell: cell.runner == "serial")
    assert not any(each.answer.fields["starved"] for each in found)


def test_other_arms_leave_no_pair_out():
    twin = dataclasses.replace(SERIAL, twin=True)
    found = with_baselines_starved(
        [result(SERIAL, 0.0), result(PARALLEL[0], 0.0, 0.3), result(twin, 1.0), result(PARALLEL[1], 1.0, 1.5)],
        lambda cell: cell.runner == "serial")
    assert not any(each.answer.fields["starved"] for each in found)


def test_retake_has_an_order_of_its_own():
    settings = Settings(rounds=1, values=1, warmups=0, min_seconds=0.0, timeout=60.0, seed=7)
    rounds = [Round(index=0, settings=settings, baseline="serial", start=None, keep_loops=None, reporter=None,
                    seconds_left=None, attempt=attempt) for attempt in (0, 1, 1)]
    first, again, repeated = (each.random("start").random() for each in rounds)
    assert first != again == repeated


ONE, SEVERAL = False, True   # cores that a cell needs


@pytest.mark.parametrize(("cells", "clean"), [
    ([(ONE, False), (SEVERAL, True), (SEVERAL, True)], False),
    ([(ONE, False), (SEVERAL, True), (SEVERAL, False)], True),
    ([(ONE, True), (ONE, True)], False),
    ([(ONE, True), (ONE, False)], True),
    ([], True),                # all failed: nothing is known
])
def test_round_is_without_a_clean_cell_if_each_that_needs_several_cores_lacked_them(cells, clean):
    assert has_clean_cell(cells) is clean
