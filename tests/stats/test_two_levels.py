import random

import pytest

from gilscope.toolkit.stats.two_levels import TwoLevels, two_levels


def test_two_states_of_a_machine_are_two_levels():
    found = two_levels([[0.113, 0.125, 0.174, 0.173, 0.113], [0.173, 0.125, 0.173, 0.113, 0.174],
                        [0.113, 0.173, 0.125, 0.173]])
    assert found == TwoLevels(low=0.113, high=0.173, at_low=7, at_high=7)


@pytest.mark.parametrize("processes", [
    [], [[1.0] * 12] * 2, [[0.0, 1.0, 1.0, 1.0, 2.0, 2.0] * 3],
    [[1.0, 2.0, 1.0, 2.0]],                                    # too few
    [[1.0] * 10, [2.0] + [1.0] * 9],                           # an outlier
    [[1.0, 1.1, 1.001, 1.101] * 4],                            # too near
    [[1.0 + 0.1 * k] for k in range(12)],                      # a slope
])
def test_other_values_have_not(processes):
    assert two_levels(processes) is None


def test_processes_that_stay_at_a_level_count_once_however_many_values_they_took():
    processes = [[1.0, 1.2, 1.0, 1.2, 1.0, 1.2], [1.0] * 6, [1.7, 1.5, 1.7, 1.5, 1.7, 1.5], [1.7] * 6]
    assert two_levels(processes) is None
    assert two_levels([[value] for values in processes for value in values]) is not None


@pytest.mark.parametrize(("within", "between"), [(0.02, 0.0), (0.3, 0.0), (0.02, 0.15), (0.03, 0.2)])
@pytest.mark.parametrize("count", [4, 6, 12])
def test_one_level_with_noise_is_seldom_two(within, between, count):
    draw = random.Random(within)
    found = 0
    for _ in range(200):
        levels = [draw.gauss(0, between) for _ in range(count)]
        found += two_levels([[2.718 ** draw.gauss(level, within) for _ in range(6)] for level in levels]) is not None
    assert found <= 12
