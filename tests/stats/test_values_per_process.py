"""The best number of values per process: by known variances, and estimated from values with known variances."""

import random
from math import exp, nan, sqrt

import pytest

from gilscope.toolkit.stats.values_per_process import FEWEST, MOST, ProcessValues, VarianceParts, variance_parts


def parts(**changes):
    return VarianceParts(**{"within": 0.03**2, "between": 0.01**2, "values": 6, "start": 0.4, "value": 0.1} | changes)


@pytest.mark.parametrize(("changes", "best"), [
    ({}, 6),                                  # sqrt(0.4 / 0.1 * 9) = 6
    ({"between": 0.015**2}, 4),               # sqrt(4 * 4)
    ({"start": 1.6}, 12),                     # four times the start: twice the values
    ({"between": 0.0}, MOST),                 # nothing but values differ
    ({"within": 0.0}, FEWEST),                # nothing but processes differ
    ({"within": 0.0, "between": 0.0}, FEWEST),
    ({"start": 0.0}, FEWEST),
    ({"value": 0.0}, FEWEST),                 # no time was measured
    ({"within": 1.0}, MOST),
])
def test_best_number_of_values(changes, best):
    assert parts(**changes).best_values() == best


@pytest.mark.parametrize("changes", [{}, {"between": 0.02**2}, {"start": 1.0}, {"value": 0.02}])
def test_best_number_has_the_smallest_variance_after_the_same_time(changes):
    found = parts(**changes)
    assert found.best_values() == min(
        range(FEWEST, MOST + 1), key=lambda n: (found.between + found.within / n) * found.process_seconds(n))


def simulated(*, within, between, arms=8, rounds=80, values=6, seed=1, missing=0):
    draw = random.Random(seed)
    groups = {}
    for number in range(rounds):
        burst = [draw.gauss(0, 0.2) for _ in range(values)]       # of the machine: all arms have it
        for arm in range(arms):
            level = arm + number / 100 + draw.gauss(0, between)
            seconds = [exp(level + shared + draw.gauss(0, within)) for shared in burst]
            seconds[:missing] = [nan] * missing
            groups.setdefault(number, {})[arm] = ProcessValues(seconds=seconds, start=0.4, value=0.1)
    return groups


@pytest.mark.parametrize(("within", "between"), [(0.03, 0.01), (0.02, 0.02), (0.01, 0.05)])
def test_variances_of_simulated_processes_are_found(within, between):
    found = variance_parts([simulated(within=within, between=between)])
    assert sqrt(found.within) == pytest.approx(within, rel=0.1)     # the levels' estimator loses a few percent
    assert sqrt(found.between) == pytest.approx(between, rel=0.12)
    assert (found.values, found.start, found.value) == pytest.approx((6, 0.4, 0.1))


def test_groups_with_other_noise_count_by_their_processes():
    calm, wild = (simulated(within=within, between=0.0, rounds=40) for within in (0.01, 0.03))
    found = variance_parts([calm, wild])
    assert found.within == pytest.approx((0.01**2 + 0.03**2) / 2, rel=0.15)


@pytest.mark.parametrize("groups", [[], [{}], [simulated(within=0.01, between=0.01, rounds=1)],
                                    [simulated(within=0.01, between=0.01, arms=1)],
                                    [simulated(within=0.01, between=0.01, rounds=3, missing=5)]])
def test_too_few_processes_tell_nothing(groups):
    assert variance_parts(groups) is None
