from math import exp, sqrt
from statistics import NormalDist

import pytest

from gilscope.toolkit.stats.distributions import (
    chi_square_above,
    digamma,
    inverse_trigamma,
    t_outside,
    t_quantile,
    trigamma,
)


@pytest.mark.parametrize(("confidence", "freedom", "distance"), [
    # Abramowitz & Stegun (1964), table 26.10
    (0.95, 1, 12.706), (0.95, 3, 3.182), (0.99, 5, 4.032), (0.95, 30, 2.042), (0.999, 10, 4.587), (0.95, 1e9, 1.960),
])
def test_t_has_the_quantiles_of_the_tables(confidence, freedom, distance):
    assert t_quantile(confidence, freedom) == pytest.approx(distance, abs=5e-4)


@pytest.mark.parametrize("freedom", [0.7, 1, 2.5, 8, 100])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.9999])
def test_t_quantile_is_where_the_tail_begins(confidence, freedom):
    assert t_outside(t_quantile(confidence, freedom), freedom) == pytest.approx(1 - confidence, rel=1e-6)


def test_nothing_is_known_without_freedom():
    assert t_quantile(0.95, 0) == float("inf")


@pytest.mark.parametrize(("value", "freedom", "above"), [
    (3.8415, 1, 0.05), (5.9915, 2, 0.05), (15.5073, 8, 0.05), (21.666, 9, 0.01),   # the same, table 26.8
    (0.0, 3, 1.0), (2.0, 2, exp(-1)),
])
def test_chi_square_has_the_tails_of_the_tables(value, freedom, above):
    assert chi_square_above(value, freedom) == pytest.approx(above, abs=1e-5)


def test_one_square_is_that_of_a_normal_variable():
    assert chi_square_above(1.7, 1) == pytest.approx(2 * NormalDist().cdf(-sqrt(1.7)))


def test_digamma_and_trigamma_at_known_places():
    assert digamma(1) == pytest.approx(-0.5772156649)          # Euler's constant
    assert trigamma(1) == pytest.approx(1.6449340668)          # pi^2 / 6
    assert trigamma(0.5) == pytest.approx(4.9348022005)        # pi^2 / 2


@pytest.mark.parametrize("value", [1e-4, 0.1, 1.0, 30.0])
def test_inverse_trigamma_is_the_inverse(value):
    assert trigamma(inverse_trigamma(value)) == pytest.approx(value, rel=1e-6)
