"""Comparisons of several hosts as one: what goes in, and the word that comes out."""

from math import exp, inf, log, sqrt

import pytest

from gilscope.toolkit.stats.hosts import pool
from gilscope.toolkit.stats.verdict import Comparison


def seen(ratio, spread=0.02, floor=0.01, rounds=8):
    """Return what a host says of itself: its interval reaches `spread` to either side, in logs."""
    return Comparison(ratio=ratio, lo=ratio * exp(-spread), hi=ratio * exp(spread), confidence=0.95, floor=floor,
                      rounds=rounds)


def test_hosts_that_agree_are_surer_together():
    found = pool([seen(1.8)] * 4)
    assert found.comparison.ratio == pytest.approx(1.8)
    assert log(found.comparison.hi / found.comparison.ratio) == pytest.approx(0.02 / 2)   # root of 4 hosts
    assert found.comparison.floor == pytest.approx(0.005, rel=0.01)
    assert (found.between, found.comparison.rounds) == (0, 32)
    assert found.comparison.significance() == "faster"


def test_hosts_that_differ_are_less_sure_than_each_alone():
    found = pool([seen(1.2), seen(1.8), seen(1.5)])
    assert found.comparison.ratio == pytest.approx((1.2 * 1.8 * 1.5) ** (1 / 3), rel=0.001)
    assert found.between == pytest.approx(0.22, abs=0.01)
    assert found.comparison.hi / found.comparison.lo > 2
    lo, hi = found.next_host
    assert lo < found.comparison.lo < found.comparison.hi < hi


def test_words_need_the_wider_interval_of_a_table():
    hosts = [seen(1.5), seen(1.6), seen(1.55)]
    assert pool(hosts).comparison.significance() == "faster"
    assert pool(hosts, 0.99999).comparison.significance() == "not significant"   # nor is "same"


@pytest.mark.parametrize("other", [
    seen(1.6, floor=None), Comparison(ratio=1.6, lo=0.0, hi=inf, confidence=0.95, floor=0.01, rounds=1)])
def test_host_that_knows_nothing_of_its_noise_is_left_out(other):
    assert pool([seen(1.5), other]) is None
    assert pool([seen(1.5), seen(1.5), other]).effects.hosts == 2


def test_difference_below_the_floor_of_all_hosts_is_none():
    hosts = [seen(1.05, 0.02, floor=0.2)] * 3
    assert pool(hosts).comparison.floor == pytest.approx(exp(log(1.2) / sqrt(3)) - 1)
    assert pool(hosts).comparison.significance() == "not significant"
