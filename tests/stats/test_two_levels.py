import random

import pytest

from gilscope.toolkit.stats.two_levels import TwoLevels, two_levels


def test_two_states_of_a_machine_are_two_levels():
    found = two_levels([0.149, 0.125, 0.113, 0.174, 0.173, 0.173])
    assert found == TwoLevels(low=pytest.approx(0.119), high=0.173, at_low=2, at_high=4)


def test_levels_are_medians_of_their_values():
    assert two_levels([1.0, 1.01, 0.99, 1.0, 1.5, 1.51, 1.5]) == TwoLevels(low=1.0, high=1.5, at_low=4, at_high=3)


@pytest.mark.parametrize("values", [
    [], [1.0] * 12, [0.0, 1.0, 1.0, 1.0, 2.0, 2.0],
    [1.0, 1.0, 2.0, 2.0],                     # too few
    [1.0] * 10 + [2.0],                       # an outlier
    [1.0, 1.001, 1.0, 1.1, 1.101, 1.1],       # too near
    [1.0 + 0.1 * k for k in range(12)],       # a slope
])
def test_other_values_have_not(values):
    assert two_levels(values) is None


@pytest.mark.parametrize("spread", [0.02, 0.3])
def test_one_level_with_noise_is_seldom_two(spread):
    draw = random.Random(spread)
    found = [two_levels([2.718 ** draw.gauss(0, spread) for _ in range(24)]) for _ in range(200)]
    assert sum(each is not None for each in found) <= 4
