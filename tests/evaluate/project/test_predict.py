"""The formula against what was measured, its interval, and when it is refused."""

from dataclasses import replace

import pytest

from gilscope.toolkit.evaluate.project.workload.predict import FORMULA_ERROR, MeasuredRound, ceiling, predict
from gilscope.toolkit.evaluate.sections import MachineFacts, Missing

QUIET = MachineFacts(cores=2, effective=2.0, run_queue=0.02, governor=None, libc="glibc 2.36", doubts=())
ROUND = MeasuredRound(wall=1.0, cpu=1.0, cost=1.0, inflation=1.0, cores=2.0)


def predicted(*rounds, threads=2, machine=QUIET):
    return predict(rounds, threads, machine)


@pytest.mark.parametrize(("changes", "threads", "speedup"), [
    ({}, 2, 2.0),                                      # all of the CPU time, shared out between two cores
    ({"cost": 1.25}, 2, 1.6),
    ({"inflation": 2.0}, 2, 1.0),
    ({"cost": 2.0, "inflation": 4.0}, 2, 0.25),        # slower with more threads
    ({}, 8, 2.0),                                      # no more than there are cores
    ({"cores": 7.5}, 2, 2.0),                          # nor than there are threads
    ({"cores": 1.8}, 2, 1.8),                          # something else had the rest
    ({"wall": 1.2}, 2, 2.4),                           # handing the GIL over takes time, too
    ({"wall": 1.5, "idle": 1.0}, 2, 1.5),              # what they sleep they sleep at the same time with it
])
def test_formula(changes, threads, speedup):
    found = predicted(*[replace(ROUND, **changes)] * 3, threads=threads)
    assert found.value == pytest.approx(speedup)


@pytest.mark.parametrize(("short", "inflation", "error"), [
    # Two threads on 3.14t: by how much the time predicted without inflation fell short of the measured one, the
    # inflation measured beside it, and what was left of the error with it.
    (0.54, 2.1, 0.04), (0.69, 2.9, 0.11), (0.78, 4.9, 0.08),
])
def test_inflation_makes_the_measured_time_come_out(short, inflation, error):
    measured = 0.5 / (1 - short)            # seconds; without inflation, 0.5 are predicted
    found = predicted(*[replace(ROUND, inflation=inflation)] * 3)
    assert 1 / found.value == pytest.approx(measured, rel=error)
    assert 1 / predicted(*[ROUND] * 3).value == pytest.approx(measured * (1 - short))


def test_what_changes_together_in_a_round_widens_nothing():
    slow = replace(ROUND, wall=3.0, cpu=3.0)   # a slow minute of the machine
    found = predicted(ROUND, slow, ROUND, slow, ROUND, slow)
    assert (found.value, found.lo) == (pytest.approx(2.0), pytest.approx(2.0 / (1 + FORMULA_ERROR)))


def test_interval_holds_what_rounds_differ_by_and_the_formulas_own_error():
    found = predicted(*(replace(ROUND, inflation=inflation) for inflation in (1.0, 1.3, 1.1)))
    assert found.value == pytest.approx(2 / 1.1)
    assert found.lo < 2 / 1.3
    assert found.hi > 2 / 1.0


@pytest.mark.parametrize(("rounds", "threads", "machine", "reason"), [
    (3, 2, Missing(reason="not calibrated"), "not calibrated"),
    (3, 2, replace(QUIET, doubts=("busy", "small")), "busy"),
    (0, 2, QUIET, "threads got the cores that they needed in 0 rounds only"),
    (2, 2, QUIET, "threads got the cores that they needed in 2 rounds only"),
    (3, 1, QUIET, "it takes two threads"),
])
def test_refused_with_a_reason(rounds, threads, machine, reason):
    assert predicted(*[ROUND] * rounds, threads=threads, machine=machine).reason.startswith(reason)


@pytest.mark.parametrize(("share", "effective", "most"), [
    (0.0, 2.0, 1.0), (0.5, None, 2.0), (0.5, 1.5, 1.5), (0.75, 8.0, 4.0), (1.0, 8.0, 8.0)])
def test_ceiling(share, effective, most):
    assert ceiling(share, effective) == pytest.approx(most)
