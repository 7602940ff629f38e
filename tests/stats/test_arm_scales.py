import random
from statistics import fmean

import pytest

from gilscope.toolkit.stats.arm_scales import scatter_of_scales, unlike_arms
from gilscope.toolkit.stats.log_times import ArmErrors


def made(draw, scales, rounds=6):
    return {
        arm: ArmErrors(by_round={r: draw.gauss(0, 0.02 * scale) for r in range(rounds)}, freedom=rounds - 1)
        for arm, scale in enumerate(scales)}


def test_arm_with_much_larger_errors_is_unlike_the_others():
    draw = random.Random(1)
    groups = {group: made(draw, [1.0] * 11 + [8.0] * (group == 0)) for group in range(4)}
    found = unlike_arms(groups)
    assert 11 in found[0]
    assert sum(map(len, found.values())) <= 2   # a tenth of those found may be like the others


def test_arms_that_err_alike_are_seldom_called_unlike():
    draw = random.Random(2)
    found = [unlike_arms({group: made(draw, [1.0] * 18, 4) for group in range(4)}) for _ in range(30)]
    assert fmean(sum(map(len, each.values())) for each in found) < 2   # of 72


def test_arms_whose_scales_all_scatter_are_not_unlike():
    draw = random.Random(3)
    found = [
        unlike_arms({group: made(draw, [2 ** draw.gauss(0, 1) for _ in range(18)]) for group in range(4)})
        for _ in range(10)
    ]
    assert fmean(sum(map(len, each.values())) for each in found) < 8   # of 72; chi-square alone would call 30


def test_treatment_that_errs_unlike_in_every_group_is_found_with_few_rounds():
    draw = random.Random(4)
    alone = together = 0
    for _ in range(20):
        groups = {group: made(draw, [4.0] + [1.0] * 17, 4) for group in range(4)}
        alone += sum(0 in arms for arms in unlike_arms(groups).values())
        together += sum(0 in arms for arms in unlike_arms(groups, {arm: arm for arm in range(18)}).values())
    assert alone < 72   # of 80
    assert together >= 76


@pytest.mark.parametrize("groups", [{}, {"g": {}}, {"g": made(random.Random(1), [0.0] * 2, 2)}])
def test_too_little_says_nothing(groups):
    assert not any(unlike_arms(groups).values())


def test_scatter_is_infinite_for_equal_scales_and_small_for_unequal_ones():
    draw = random.Random(5)
    assert scatter_of_scales([made(draw, [1.0] * 40)]) > 25
    assert scatter_of_scales([made(draw, [4 ** draw.gauss(0, 1) for _ in range(40)])]) < 4
