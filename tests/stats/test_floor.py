import random

import pytest

from gilscope.toolkit.stats.floor import TwinCheck, check_twins, checked_noise, noise_floor
from gilscope.toolkit.stats.noise import Noise
from gilscope.toolkit.stats.paired import compare_paired
from gilscope.toolkit.stats.ratios import Ratio
from tests.stats.matrix import group
from tests.stats.synthetic import pairs

ROUNDS = range(6)


def arm(*seconds):
    return dict(enumerate(seconds))


def test_floor_is_the_median_error_and_the_farther_end():
    # ratios 1/1.0, 1/1.0, 1/0.98, 1/0.98, 1/0.96, 1/0.95: median 1/0.98, farther end 1/0.95
    floor = noise_floor([(dict.fromkeys(ROUNDS, 1.0), arm(1.0, 1.0, 0.98, 0.98, 0.96, 0.95))])
    assert floor.error == pytest.approx(1 / 0.98 - 1)
    assert floor.bound == pytest.approx(1 / 0.95 - 1)
    assert floor.rounds == 6


def test_bound_counts_alike_in_both_directions():
    # ratio 0.9 in every round: 1 / 0.9 - 1 = 11.1 %
    floor = noise_floor([(dict.fromkeys(ROUNDS, 0.9), dict.fromkeys(ROUNDS, 1.0))])
    assert floor.bound == pytest.approx(1 / 0.9 - 1)


def test_worst_arm_counts():
    calm = (dict.fromkeys(ROUNDS, 1.0), dict.fromkeys(ROUNDS, 1.0))
    wild = (dict.fromkeys(ROUNDS, 1.0), dict.fromkeys(ROUNDS, 1.1))
    assert noise_floor([calm, wild, calm]) == noise_floor([wild])


def test_few_rounds_are_noted():
    assert "needs 6 rounds" in noise_floor([(arm(1.0, 1.0), arm(1.0, 1.0))]).notes[0].text


def test_no_arm_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        noise_floor([])


@pytest.mark.parametrize("kind", ["gauss", "bursts", "bimodal"])
def test_floor_of_one_arm_silences_another(kind):
    alarms = 0
    arms = list(pairs(11, kind, 20, 1.0, 400))
    for first, second in zip(arms[::2], arms[1::2], strict=True):
        alarms += compare_paired(*second, floor=noise_floor([first]).bound).verdict() != "same"
    assert alarms <= 4   # of 200: 5 % by the interval alone, most of them below the floor


def known(center, error, spread=0.01):
    noise = Noise(spread=spread, prior=1e9, residuals=(-spread, 0.0, spread), draws=0)
    return Ratio(center=center, error=error, rounds=6, noise=noise)


def test_twins_that_differ_as_they_may_widen_nothing():
    # squares 0.25 + 1 + 2.25 = 3.5 over three arms: chi-square above 3.5 with 3 degrees of freedom is 0.321
    check = check_twins([known(0.005, 0.01), known(-0.01, 0.01), known(0.015, 0.01)])
    assert (check.arms, check.widening) == (3, 1.0)
    assert check.chance == pytest.approx(0.3208, abs=1e-3)


def test_twins_that_differ_by_more_widen_everything_by_as_much():
    check = check_twins([known(0.03, 0.01), known(-0.03, 0.01)])
    assert check.chance == pytest.approx(0.000123, rel=0.01)   # exp(-18 / 2)
    assert check.widening == pytest.approx(3.0, rel=1e-4)


def test_an_unexpected_difference_without_any_error_is_no_crash():
    assert check_twins([known(0.03, 0.0)]).widening > 5
    assert check_twins([known(0.0, 0.0)]).widening == 1.0


def test_no_twins_check_nothing():
    assert check_twins([]) == TwinCheck(arms=0, chance=1.0, widening=1.0)


def test_noise_of_a_run_is_checked_by_its_twins():
    draw = random.Random(3)
    groups = {g: group(draw, "normal", 6, [0.0] * 12) for g in range(2)}
    calm, check = checked_noise(groups, {0: [(0, 1)], 1: [(0, 1)]}, draws=0)
    assert check.widening == calm[0].widening == 1.0
    wrong = {g: group(draw, "normal", 6, [0.0, 0.3, *[0.0] * 10]) for g in range(2)}   # the twin is not one
    wide, check = checked_noise(wrong, {0: [(0, 1)], 1: [(0, 1)]}, draws=0)
    assert check.widening > 5
    assert wide[0].floor(6) > 5 * calm[0].floor(6)


@pytest.mark.parametrize("kind", ["normal", "slow"])
def test_right_noise_is_seldom_widened(kind):
    draw = random.Random(4)
    widened = 0
    for k in range(30):
        groups = {g: group(draw, kind, 6, [0.0] * 8) for g in range(2)}
        _, check = checked_noise(groups, {g: [(0, 1), (2, 3)] for g in groups}, draws=400, seed=k)
        widened += check.widening > 1
    assert widened <= 5   # of 30, 5 % of which would be 1.5
