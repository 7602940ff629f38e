import random
from math import exp, log, nan
from statistics import fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gilscope.toolkit.stats.estimators import hodges_lehmann
from gilscope.toolkit.stats.log_times import RoundLogs, fit, process_levels
from tests.stats.matrix import of_passes, passes

SECONDS = st.floats(0.01, 10)


def test_difference_is_positive_where_the_sample_is_faster_and_needs_both():
    logs = RoundLogs.of_seconds({"serial": {0: 2.0, 1: 4.0, 2: 1.0}, "threads": {0: 1.0, 1: 1.0, 5: 1.0}})
    assert logs.difference("serial", "threads") == pytest.approx({0: log(2), 1: log(4)})
    assert logs.difference("serial", "asyncio") == {}


@given(values=st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=8))
def test_two_arms_in_turn_differ_by_the_estimate_of_their_differences_pass_by_pass(values):
    levels = process_levels({"a": [a for a, _ in values], "b": [b for _, b in values]})
    assert levels["a"] - levels["b"] == pytest.approx(hodges_lehmann([log(a / b) for a, b in values]), abs=1e-9)


def test_what_the_machine_did_in_one_pass_is_not_the_processes():
    # The neighbour made pass 1 of all arms three times as slow; b missed it.
    quick, slow = [0.1, 0.3, 0.1, 0.1], [0.2, 0.6, 0.2, 0.2]
    levels = process_levels({"a": quick, "b": [0.2, nan, 0.2, 0.2], "c": slow, "d": [*quick[:3]]})
    assert levels["b"] - levels["a"] == pytest.approx(log(2), abs=1e-6)
    assert levels["c"] - levels["d"] == pytest.approx(log(2), abs=1e-6)


def test_levels_stay_log_seconds():
    levels = process_levels({"a": [0.1] * 4, "b": [0.4] * 4})
    assert exp(levels["a"]) == pytest.approx(0.1)
    assert exp(levels["b"]) == pytest.approx(0.4)


def test_arm_without_any_value_has_no_level():
    assert process_levels({"a": [0.1, 0.1], "b": [nan, nan], "c": []}).keys() == {"a"}


def test_pairing_by_passes_takes_the_neighbours_out():
    rounds = passes(random.Random(3), 40, [0.0, 0.0], count=8)
    paired = of_passes(rounds).difference(0, 1)
    apart = RoundLogs.of_seconds({arm: {r: median(both[arm]) for r, both in rounds.items()} for arm in (0, 1)})
    shuffled = random.Random(4)
    for both in rounds.values():   # the same values, no longer taken in turn
        shuffled.shuffle(both[0])
    unpaired = of_passes(rounds).difference(0, 1)
    assert spread(paired) < 0.8 * spread(unpaired)
    assert spread(paired) < spread(apart.difference(0, 1))


def spread(differences):
    return fmean(value**2 for value in differences.values()) ** 0.5


def test_residuals_have_the_size_of_the_errors():
    # Of 4 arms and 4 rounds 9 of 16 degrees of freedom are left: unscaled, residuals were a quarter too small.
    draw = random.Random(1)
    errors = []
    for _ in range(100):
        levels = {arm: {r: draw.gauss(0, 0.02) + arm + r * r for r in range(4)} for arm in range(4)}
        errors += [value for rounds in fit(RoundLogs(levels=levels)).residuals.values() for value in rounds.values()]
    assert fmean(value**2 for value in errors) ** 0.5 == pytest.approx(0.02, rel=0.1)


@pytest.mark.parametrize("levels", [
    {}, {"a": {0: 1.0, 1: 2.0}}, {"a": {0: 1.0}, "b": {0: 2.0}}, {"a": {0: 1.0, 1: 1.0}, "b": {2: 1.0, 3: 1.0}},
])
def test_nothing_is_left_of_too_few_numbers(levels):
    assert fit(RoundLogs(levels=levels)) is None


def test_missing_rounds_change_no_other_arms_residuals_much():
    draw = random.Random(2)
    levels = {arm: {r: draw.gauss(0, 0.02) + r for r in range(8)} for arm in range(12)}
    whole = fit(RoundLogs(levels=levels)).residuals
    less = fit(RoundLogs(levels=levels | {11: {r: levels[11][r] for r in (0, 5, 7)}})).residuals
    assert less[11].keys() == {0, 5, 7}
    assert max(abs(whole[arm][r] - less[arm][r]) for arm in range(11) for r in range(8)) < 0.02


def test_arms_that_were_not_alive_together_are_paired_by_one_that_was_alive_all_the_time():
    # The second half is 50 % slower for everybody: two arms against five, so that no majority tells.
    early, late = ["b", "c"], ["d", "e", "f", "g", "h"]
    values = {"base": [1.0] * 4 + [1.5] * 4}
    values |= {arm: [2.0] * 4 for arm in early} | {arm: [nan] * 4 + [3.0] * 4 for arm in late}
    levels = process_levels(values)
    assert [levels[arm] - levels["base"] for arm in early + late] == pytest.approx([log(2)] * 7, abs=1e-6)


def test_rounds_that_most_arms_left_early_leave_no_residual():
    # The machine drifts, most arms stop after four rounds: nothing but drift, so nothing is left.
    machine = [0.0, 0.1, 0.2, 0.3, 0.7, 0.8, 0.9, 1.0]
    levels = {arm: dict(enumerate(machine[:8 if arm < 3 else 4])) for arm in range(20)}
    found = fit(RoundLogs(levels=levels)).residuals
    assert max(abs(value) for rounds in found.values() for value in rounds.values()) < 1e-9


def test_what_an_arm_did_alone_counts_only_where_there_is_nothing_else():
    # b went on after a had ended, while the machine was twice as slow.
    levels = process_levels({"a": [0.1, 0.1], "b": [0.2, 0.2, 0.4, 0.4, 0.4]})
    assert levels["b"] - levels["a"] == pytest.approx(log(2))
    assert exp(process_levels({"b": [0.2, 0.2, 0.4]})["b"]) == pytest.approx(hodges_lehmann_of_logs([0.2, 0.2, 0.4]))


def hodges_lehmann_of_logs(values):
    return exp(hodges_lehmann([log(value) for value in values]))
