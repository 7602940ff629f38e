"""Sessions in the place of rounds: what the intervals cover."""

from math import log
from statistics import fmean

import pytest

from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.sessions import levels_of_sessions
from tests.benchmarks.sessions import Tally, table


def test_level_of_a_session_is_free_of_its_rounds():
    # Round 1 was slow for all; "b" was not measured in it.
    first = RoundLogs(levels={"a": {0: 1.0, 1: 3.0, 2: 1.0}, "b": {0: 2.0, 2: 2.0}, "c": {0: 0.0, 1: 2.0, 2: 0.0}})
    second = RoundLogs(levels={"a": {3: 5.0, 4: 5.0}, "b": {}, "c": {3: 4.0, 4: 4.0}})
    found = levels_of_sessions({1: first, 2: second})
    assert found.difference("b", "a")[1] == pytest.approx(1.0)   # log times: "a" is faster by 1
    assert found.difference("a", "c") == {1: pytest.approx(1.0), 2: pytest.approx(1.0)}
    assert found.levels["b"].keys() == {1}


def test_arm_with_one_round_is_free_of_that_rounds_effect():
    # Rounds 1 to 3 were slow for all; "b", as fast as the others, was measured in the first only.
    usual = {0: 0.0, 1: 0.3, 2: 0.3, 3: 0.3}
    sessions = {s: RoundLogs(levels={"a": {4 * s + r: v for r, v in usual.items()}, "b": {4 * s: 0.0},
                                     "c": {4 * s + r: v for r, v in usual.items()}}) for s in range(3)}
    found = levels_of_sessions(sessions)
    assert found.difference("a", "b") == pytest.approx(dict.fromkeys(range(3), 0.0))


def test_single_arm_has_the_mean_of_its_rounds():
    found = levels_of_sessions({1: RoundLogs(levels={"a": {0: 1.0, 1: 3.0}})})
    assert found.levels == {"a": {1: 2.0}}


def coverage(kind, sessions, tables):
    tally = Tally()
    for seed in range(tables):
        table(kind, sessions, seed, tally)
    return tally


@pytest.mark.slow
def test_three_sessions_cover_another_one():
    together = coverage("joint 2 %", 3, 60)
    assert fmean(together.covered) >= 0.93
    assert fmean(together.false_tables) <= 0.08   # 5 %, and a standard error
    assert fmean(together.words[log(1.35)]) >= 0.95
    alone = coverage("joint 2 %", 1, 30)   # one session by itself does not
    assert fmean(alone.covered) < 0.75


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nothing", "own 1 %"])
def test_three_sessions_cover_the_truth_without_a_joint_shift(kind):
    found = coverage(kind, 3, 40)
    assert fmean(found.covered) >= 0.93
    assert fmean(found.false_tables) <= 0.05
