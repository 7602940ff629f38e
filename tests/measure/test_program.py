"""A program's values in turn: what a process does between the scheduler's words."""

import sys

import pytest

from gilscope.toolkit.measure.child import program as trial_module
from gilscope.toolkit.measure.child.other_load import bearable_others
from gilscope.toolkit.measure.child.program import ProgramSpec, ProgramTrial, ProgramValue


class Turns:
    """Gives the orders, one after the other, each with the attempt that counts; keeps what it is told."""

    def __init__(self, *orders):
        self.orders = list(orders)
        self.told = []
        self.ours = (1,)

    def begin(self, **fields):
        self.told.append(fields)
        return len(self.orders)

    def next(self, **fields):
        self.told.append(fields)
        order = self.orders.pop(0)
        return order if isinstance(order, tuple) else (order, 0)


@pytest.fixture
def trial(tmp_path):
    def make(turns=None):
        return ProgramTrial(ProgramSpec(
            name="t", progress_timeout=60.0, folder=str(tmp_path), program="p", build="b", model="threads", workers=2,
            gil=None, parameters={}, host=sys.executable, scales={}), turns)

    return make


def taking(trial):
    """Return what takes a value, the n-th of n seconds."""
    count = iter(range(1, 99))

    def take():
        with trial.measuring():
            pass
        return ProgramValue(seconds=float(next(count)), wanted_cores=2)

    return take


def test_without_turns_there_is_one_value_at_once(trial):
    made = trial()
    assert [each.seconds for each in made.values(taking(made), 1.0, pytest.fail)] == [1.0]


def test_one_value_in_each_turn_each_after_a_warm_call(trial):
    turns, warm = Turns("take", "take", "end"), []
    made = trial(turns)
    assert [each.seconds for each in made.values(taking(made), 0.5, lambda: warm.append(1))] == [1.0, 2.0, 3.0]
    assert len(warm) == 3
    assert (turns.told[0]["seconds"], turns.told[0]["loops"]) == (0.5, 1)
    assert [each["bearable"] for each in turns.told[1:]] == [bearable_others(2, made.cores, made.allowed)] * 3
    assert all(each["others"] >= 0 for each in turns.told[1:])


def test_the_attempt_counts_that_the_scheduler_chooses_whatever_this_process_thinks_of_it(trial):
    made = trial(Turns("again", "again", ("take", 1), "again", ("end", 0)))
    assert [each.seconds for each in made.values(taking(made), 0.5)] == [2.0, 4.0]


def test_what_runs_between_turns_is_not_counted(trial, monkeypatch):
    opened = []
    usual = trial_module.LoadWindow
    monkeypatch.setattr(trial_module, "LoadWindow", lambda *words: opened.append(words) or usual(*words))
    made = trial(Turns("take", "end"))
    made.values(taking(made), 0.5)
    assert len(opened) == 2
    assert {ours for _, ours in opened} == {(1,)}
    assert set(made.evidence) >= {"others_cores", "steal", "load"}
