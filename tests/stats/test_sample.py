import random

import pytest

from gilscope.toolkit.stats.sample import needed, order_confidence, order_rank, summarize


@pytest.mark.parametrize(("confidence", "count"), [
    (0.95, 6),   # the tails at n=6 are 2 * 0.5**6 = 0.031, the first below 0.05
    (0.99, 8),   # 2 * 0.5**8 = 0.0078
])
def test_median_interval_needs_enough_values(confidence, count):
    assert needed(confidence) == count


def test_interval_of_twenty_values_is_the_sixth_to_the_fifteenth():
    # P(Binomial(20, 1/2) < 6) = 21700 / 2**20 = 0.0207, twice that below 0.05; with < 7 it is 0.0577
    summary = summarize([float(v) for v in random.Random(3).sample(range(1, 21), 20)])
    assert (summary.center, summary.lo, summary.hi) == (10.5, 6.0, 15.0)
    assert summary.confidence == pytest.approx(1 - 2 * 21700 / 2**20)


def test_spread_is_half_the_interval_over_the_centre():
    # six values: smallest to largest, (1.02 - 0.98) / 2 / 1.0
    assert summarize([0.98, 0.99, 1.0, 1.0, 1.01, 1.02]).spread == pytest.approx(0.02)


def test_too_few_values_get_their_extremes():
    summary = summarize([3.0, 1.0, 2.0])
    assert (summary.lo, summary.center, summary.hi) == (1.0, 2.0, 3.0)
    assert summary.confidence == 0.75   # 1 - 2 * 0.5**3


def test_one_value_is_known_with_no_confidence():
    summary = summarize([2.0])
    assert (summary.lo, summary.hi, summary.confidence) == (2.0, 2.0, 0.0)


def test_no_values_are_refused():
    with pytest.raises(ValueError, match="at least one"):
        summarize([])


@pytest.mark.parametrize("count", [6, 7, 12, 20, 51])
def test_rank_is_the_highest_that_keeps_the_confidence(count):
    rank = order_rank(count, 0.95)
    assert order_confidence(count, rank) >= 0.95 > order_confidence(count, rank + 1)


def test_interval_covers_the_median_of_a_skewed_distribution():
    draw, hits = random.Random(1), 0
    for _ in range(500):
        summary = summarize([draw.expovariate(1) for _ in range(15)])
        hits += summary.lo <= 0.693147 <= summary.hi   # ln 2
    assert 0.93 <= hits / 500 <= 0.995                 # nominal for n=15, rank 4: 0.965
