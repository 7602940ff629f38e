"""How long trials go on: by a made-up clock and made-up other programs; the system's counters are read once."""

import os
import sys

import pytest

from gilscope.toolkit.hammer.trial_budget import TrialBudget, core_seconds


class Machine:
    """A clock, and the CPU time that other programs have used on two cores."""

    def __init__(self):
        self.now = 100.0
        self.others = 5000.0

    def runs(self, seconds, others):
        """Let time pass in which other programs use so many cores."""
        self.now += seconds
        self.others += seconds * others

    def budget(self, seconds, limit):
        return TrialBudget(seconds, limit, clock=lambda: self.now, used=lambda: (self.others, 2))


@pytest.mark.parametrize(("others", "seconds"), [(0.0, 10.0), (1.0, 20.0), (1.5, 40.0)])
def test_time_that_other_programs_have_the_cores_does_not_count(others, seconds):
    machine = Machine()
    budget = machine.budget(10.0, 50.0)
    machine.runs(seconds - 1, others)
    assert not budget.is_spent()
    machine.runs(1.001, others)
    assert (budget.is_spent(), budget.missing()) == (True, 0.0)


def test_limit_is_of_the_clock_and_what_is_missing_then_is_known():
    machine = Machine()
    budget = machine.budget(10.0, 20.0)
    machine.runs(19.0, 1.6)
    assert (budget.is_spent(), budget.missing()) == (False, 0.0)
    machine.runs(1.0, 1.6)
    assert (budget.is_spent(), budget.missing()) == (True, pytest.approx(10.0 - 20.0 * 0.2))


def test_no_time_is_gained_where_others_seem_to_give_some_back():
    machine = Machine()
    budget = machine.budget(10.0, 20.0)
    machine.runs(4.0, -0.5)      # a counter of ticks may lag behind
    assert budget.spent() == 4.0


@pytest.mark.skipif(sys.platform != "linux", reason="others are known by procfs")
def test_cores_are_those_of_this_process():
    used, cores = core_seconds()
    assert cores == len(os.sched_getaffinity(0))
    assert 0 < used <= core_seconds()[0] + 1.0     # its own time is not among them, and is counted in finer ticks
