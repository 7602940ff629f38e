"""The smallest set of suspects that gains most, found by experiments that are made up here."""

import random

import pytest

from gilscope.toolkit.scale.search import SearchLimitError, smallest_set


class Experiment:
    """Gains by the objects in `needed`, each of which is a bottleneck of its own: all or little."""

    def __init__(self, *needed, noise=0.0):
        self.needed = set(needed)
        self.noise = noise
        self.tests = 0
        self.random = random.Random(3)

    def __call__(self, numbers):
        self.tests += 1
        missing = self.needed - set(numbers)
        return (1.0 if not missing else 0.3 / len(missing)) + self.random.uniform(-self.noise, self.noise)


def alone(*numbers):
    return [[number] for number in numbers]


@pytest.mark.parametrize(("needed", "places"), [
    ([5], [0]), ([9], [1]), ([1], [5]), ([5, 9], [0, 1]), ([5, 1], [0, 5]), ([4, 2, 1], [2, 4, 5]), ([3, 1], [3, 5])])
def test_needed_objects_are_found_wherever_they_rank(needed, places):
    assert smallest_set(alone(5, 9, 4, 3, 2, 1), Experiment(*needed)) == places


def test_first_suspect_takes_few_experiments():
    experiment = Experiment(0)
    assert smallest_set(alone(*range(1000)), experiment) == [0]
    assert experiment.tests <= 4


def test_group_counts_as_one():
    experiment = Experiment(1, 2, 3)
    assert smallest_set([[7], [1, 2, 3], [4]], experiment) == [1]


def test_none_if_all_together_gain_too_little():
    assert smallest_set(alone(1, 2, 3), Experiment(99)) is None
    assert smallest_set([], Experiment()) is None


def test_no_small_set_is_said():
    with pytest.raises(SearchLimitError):
        smallest_set(alone(*range(20)), Experiment(*range(12)))


def test_noise_does_not_name_what_is_not_needed():
    for seed in range(30):
        experiment = Experiment(3, 8, noise=0.2)
        experiment.random.seed(seed)
        assert smallest_set(alone(*range(12)), experiment) == [3, 8]


def test_group_that_an_erring_experiment_added_is_dropped_again():
    class ErringOnce(Experiment):
        def __call__(self, numbers):
            gained = super().__call__(numbers)
            return 0.0 if self.tests == 2 else gained     # the first look at the first suspect alone

    assert smallest_set(alone(1, 2), ErringOnce(1)) == [0]
