import random

import pytest

from gilscope.toolkit.stats.noise_floor import AACheck, check_aa_pairs, checked_noise
from gilscope.toolkit.stats.ratios import Ratio
from tests.stats.matrix import group, known_noise


def known(center, error, spread=0.01):
    return Ratio(center=center, error=error, rounds=6, noise=known_noise(spread).usual)


def test_twins_that_differ_as_they_may_widen_nothing():
    # squares 0.25 + 1 + 2.25 = 3.5 over three arms: chi-square above 3.5 with 3 degrees of freedom is 0.321
    check = check_aa_pairs([known(0.005, 0.01), known(-0.01, 0.01), known(0.015, 0.01)])
    assert (check.arms, check.widening) == (3, 1.0)
    assert check.chance == pytest.approx(0.3208, abs=1e-3)


def test_twins_that_differ_by_more_widen_everything_by_as_much():
    check = check_aa_pairs([known(0.03, 0.01), known(-0.03, 0.01)])
    assert check.chance == pytest.approx(0.000123, rel=0.01)   # exp(-18 / 2)
    assert check.widening == pytest.approx(3.0, rel=1e-4)


def test_an_unexpected_difference_without_any_error_is_no_crash():
    assert check_aa_pairs([known(0.03, 0.0)]).widening > 5
    assert check_aa_pairs([known(0.0, 0.0)]).widening == 1.0


def test_no_twins_check_nothing():
    assert check_aa_pairs([]) == AACheck(arms=0, chance=1.0, widening=1.0)


def test_noise_of_a_run_is_checked_by_its_twins():
    draw = random.Random(3)
    groups = {g: group(draw, "normal", 6, [0.0] * 12) for g in range(2)}
    calm, check = checked_noise(groups, {0: [(0, 1)], 1: [(0, 1)]})
    assert check.widening == calm[0].usual.widening == 1.0
    wrong = {g: group(draw, "normal", 6, [0.0, 0.3, *[0.0] * 10]) for g in range(2)}   # the twin is not one
    wide, check = checked_noise(wrong, {0: [(0, 1)], 1: [(0, 1)]})
    assert check.widening > 5
    assert wide[0].usual.floor(6) > 5 * calm[0].usual.floor(6)


@pytest.mark.parametrize("kind", ["normal", "slow"])
def test_right_noise_is_seldom_widened(kind):
    draw = random.Random(4)
    widened = 0
    for _ in range(30):
        groups = {g: group(draw, kind, 6, [0.0] * 8) for g in range(2)}
        _, check = checked_noise(groups, {g: [(0, 1), (2, 3)] for g in groups})
        widened += check.widening > 1
    assert widened <= 5   # of 30, 5 % of which would be 1.5
