"""The formula against what was measured, its interval, and when it is refused."""

from dataclasses import replace

import pytest

from toolkit.evaluate.evaluation import Interval, MachineFacts, Missing
from toolkit.evaluate.predict import EFFECTIVE_ERROR, ceiling, predict
from toolkit.stats.paired import Comparison

QUIET = MachineFacts(cores=2, effective=2.0, run_queue=0.02, governor=None, libc="glibc 2.36", doubts=())


def cost(factor, *, width=0.0):
    """Return the comparison of one thread that takes `factor` times the CPU time without the GIL."""
    return Comparison(ratio=1 / factor, lo=(1 - width) / factor, hi=(1 + width) / factor, confidence=0.95, floor=0.01,
                      rounds=10)


def predicted(**changes):
    usual = {"wall": 1.0, "cpu": 1.0, "cost": cost(1.0), "inflation": [1.0], "threads": 2, "machine": QUIET}
    return predict(**usual | changes)


@pytest.mark.parametrize(("changes", "speedup"), [
    ({}, 2.0),                                              # all of the CPU time, shared out between two cores
    ({"cost": cost(1.25)}, 1.6),
    ({"inflation": [2.0]}, 1.0),
    ({"cost": cost(2.0), "inflation": [4.0]}, 0.25),        # slower with more threads
    ({"threads": 8}, 2.0),                                  # no more than there are cores
    ({"threads": 2, "machine": replace(QUIET, effective=7.5)}, 2.0),
    ({"wall": 3.0}, 6.0),                                   # what it waited for beside the CPU is gone, too
])
def test_formula(changes, speedup):
    assert predicted(**changes).value == pytest.approx(speedup)


@pytest.mark.parametrize(("short", "inflation", "error"), [
    # Two threads on 3.14t: by how much the time predicted without inflation fell short of the measured one, the
    # inflation measured beside it, and what was left of the error with it.
    (0.54, 2.1, 0.04), (0.69, 2.9, 0.11), (0.78, 4.9, 0.08),
])
def test_inflation_makes_the_measured_time_come_out(short, inflation, error):
    measured = 0.5 / (1 - short)            # seconds; without inflation, 0.5 are predicted
    found = predicted(inflation=[inflation])
    assert 1 / found.value == pytest.approx(measured, rel=error)
    assert 1 / predicted().value == pytest.approx(measured * (1 - short))


def test_interval_holds_all_doubts():
    found = predicted(cost=cost(1.0, width=0.1), inflation=[1.2, 1.0, 1.1])
    assert found == Interval(
        value=pytest.approx(2 / 1.1), lo=pytest.approx(2 * (1 - EFFECTIVE_ERROR) * 0.9 / 1.2),
        hi=pytest.approx(2 * 1.1))   # two threads need no more than two cores


@pytest.mark.parametrize(("changes", "reason"), [
    ({"machine": Missing(reason="not calibrated")}, "not calibrated"),
    ({"machine": replace(QUIET, doubts=("busy", "small"))}, "busy"),
    ({"machine": replace(QUIET, effective=None)}, "it takes two threads"),
    ({"inflation": []}, "it takes two threads"), ({"threads": 1}, "it takes two threads"),
])
def test_refused_with_a_reason(changes, reason):
    assert predicted(**changes).reason.startswith(reason)


@pytest.mark.parametrize(("share", "effective", "most"), [
    (0.0, 2.0, 1.0), (0.5, None, 2.0), (0.5, 1.5, 1.5), (0.75, 8.0, 4.0), (1.0, 8.0, 8.0)])
def test_ceiling(share, effective, most):
    assert ceiling(share, effective) == pytest.approx(most)
