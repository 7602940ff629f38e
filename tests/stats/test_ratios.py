import random
from math import inf, log, log1p, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gilscope.toolkit.stats.distributions import t_quantile
from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.paired import conclude
from gilscope.toolkit.stats.ratios import (
    Ratio,
    compare,
    compare_pairs,
    rounds_until,
    simultaneous,
)
from tests.stats.matrix import known_noise


def ratio(center, half, *, rounds=8):
    """A ratio whose 95 % interval reaches `half` to either side, in logs."""
    return Ratio(center=center, error=half / 1.959964, rounds=rounds, noise=known_noise(0.0).usual)


def test_ratio_above_one_is_faster_than_the_baseline():
    logs = RoundLogs.of_seconds({"serial": dict.fromkeys(range(5), 3.0), "threads": dict.fromkeys(range(5), 1.5)})
    found = compare(logs, known_noise(), "serial", "threads")
    assert found.ratio == pytest.approx(2.0)
    assert found.rounds == 5


def test_interval_is_student_of_the_moderated_error():
    logs = RoundLogs(levels={"a": {0: 0.01, 1: 0.0, 2: -0.01}, "b": dict.fromkeys(range(3), 0.0)})
    few = known_noise(prior=2.0)
    found = compare(logs, few, "a", "b")
    assert found.half(0.9) == pytest.approx(t_quantile(0.9, 4) * few.usual.error([0.01, 0.0, -0.01], 0.0))
    lo, hi = found.interval(0.9)
    assert (log(lo), log(hi)) == pytest.approx((-found.half(0.9), found.half(0.9)))


def test_two_rounds_that_have_nothing_to_do_with_each_other_leave_everything_open():
    found = Ratio(center=3.0, error=5.0, rounds=2, noise=known_noise(5.0, prior=0.1).usual)
    assert 710 < found.half(simultaneous(500)) < inf   # e to that is more than a float holds
    assert found.interval(simultaneous(500)) == (0.0, inf)


def test_widening_widens():
    plain = Ratio(center=0.0, error=0.01, rounds=5, noise=known_noise().usual)
    wide = Ratio(center=0.0, error=0.01, rounds=5, noise=known_noise(widening=1.7).usual)
    assert wide.half() == pytest.approx(1.7 * plain.half())


def test_one_slow_process_widens_its_pair_a_little_and_hardly_moves_it():
    calm = {r: 0.001 * (r % 3) for r in range(6)}
    logs = RoundLogs(levels={"base": dict.fromkeys(range(6), 0.0), "calm": calm, "slow": calm | {5: 0.25}})
    found = compare_pairs(logs, known_noise(prior=10.0), [("base", "calm"), ("base", "slow")])
    assert abs(found["base", "slow"].center - found["base", "calm"].center) < 0.01
    assert found["base", "calm"].half() < found["base", "slow"].half() < 2 * found["base", "calm"].half()


def test_arms_without_a_common_round_are_refused_or_left_out():
    logs = RoundLogs(levels={"a": {0: 1.0}, "b": {1: 1.0}})
    with pytest.raises(ValueError, match="no round"):
        compare(logs, known_noise(), "a", "b")
    assert compare_pairs(logs, known_noise(), [("a", "b"), ("a", "a")]).keys() == {("a", "a")}


@given(count=st.integers(1, 300))
def test_simultaneous_intervals_hold_together(count):
    assert simultaneous(count) ** count == pytest.approx(0.95)


@pytest.mark.parametrize(("found", "word"), [
    (ratio(log(1.9), 0.03), "faster"),
    (ratio(log(0.8), 0.03), "slower"),
    (ratio(log(1.01), 0.005), "faster"),              # known to be small, and known to be there
    (ratio(log(1.01), 0.015), "same"),       # up to 1.0253
    (ratio(log(1.01), 0.025), "cannot tell"),         # up to 1.0356
    (ratio(log(1.4), 0.45), "cannot tell"),           # between 0.9 and 2.2
    (ratio(log(1.9), 0.03, rounds=2), "cannot tell"),  # two rounds agree by chance
    (ratio(0.0, inf), "cannot tell"),
])
def test_words(found, word):
    assert conclude(found, 0.95).verdict() == word


def test_a_table_of_words_needs_wider_intervals_than_one():
    found = ratio(0.05, 0.04)
    assert conclude(found, 0.95).verdict() == "faster"
    assert conclude(found, simultaneous(84)).verdict() == "cannot tell"


@pytest.mark.parametrize(("center", "half", "error", "rounds"), [
    # 8 rounds: half of the width, and 0.84 errors, have to come down to the ratio: 8 * (0.0684 / 0.05) ** 2 is 15.0
    (0.05, 0.06, 0.01, 15),
    # or to what is left of 3 % on both sides, so with 1.28 errors: 8 * (0.0728 / 0.0296) ** 2 is 48.5
    (0.0, 0.06, 0.01, 49),
    (0.0, 0.06, 0.0, 33),        # without an error the width alone decides: 8 * (0.06 / 0.0296) ** 2 is 33
    (0.5, 0.05, 0.02, 9),        # clear already: at least one round more than there are
    (0.015, 0.5, 0.2, None),     # more than a night
    (0.0, inf, 0.1, None),
])
def test_rounds_that_would_tell(center, half, error, rounds):
    assert rounds_until(center, half, error, 8) == rounds


@pytest.mark.parametrize("center", [0.0, 0.01, -0.02, 0.03, -0.05])
def test_rounds_that_would_tell_give_a_verdict_in_four_of_five_cases(center):
    half, error = 0.06, 0.025
    rounds, draw = rounds_until(center, half, error, 8), random.Random(1)

    def decided(count):
        """Return the share of runs of so many rounds that have a verdict."""
        shrunk = sqrt(8 / count)
        width, told = half * shrunk, 0
        for _ in range(4000):
            found = abs(draw.gauss(center, error * shrunk))
            told += found > width or found + width <= log1p(0.03)
        return told / 4000

    assert decided(rounds) >= 0.78           # 0.8, with a standard error of 0.006
    assert decided(0.9 * rounds) < 0.8


def test_floor_is_of_the_group_and_of_as_many_rounds():
    usual = known_noise(0.02 / 1.96).usual
    assert log1p(usual.floor(8)) == pytest.approx(0.01, rel=1e-4)   # 0.02 * root(2 / 8)
    assert usual.floor(2) is None
