"""Student's t and related distributions: the standard library has only the normal distribution."""

from __future__ import annotations

from functools import cache
from math import exp, inf, lgamma, log, log1p, sqrt
from statistics import NormalDist

NORMAL = NormalDist()
SMALL = 1e-300        # instead of 0 in a continued fraction
ASYMPTOTIC = 12.0     # from here on the series below are exact to double precision
NEARLY_NORMAL = 1e5   # degrees of freedom


def t_outside(distance: float, freedom: float) -> float:
    """Return the probability that |t| exceeds `distance`, for any positive `freedom`.

    Source: Abramowitz & Stegun (1964), 26.7.1 and 26.5.8.
    """
    if freedom > NEARLY_NORMAL:
        return 2 * NORMAL.cdf(-abs(distance))
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + distance * distance))


@cache
def t_quantile(confidence: float, freedom: float) -> float:
    """Return the bound that |t| does not exceed with probability `confidence`; infinite without degrees of freedom."""
    if not freedom > 0:   # also if it is not a number
        return inf
    low, high = 0.0, 1.0
    while t_outside(high, freedom) > 1 - confidence:
        high *= 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if t_outside(middle, freedom) > 1 - confidence else (low, middle)
    return high


def chi_square_above(value: float, freedom: int) -> float:
    """Return the probability that chi-square with `freedom` degrees exceeds `value`.

    Source: Abramowitz & Stegun (1964), 26.4.4 and 26.4.5: finite sums for whole degrees of freedom.
    """
    root = sqrt(value)
    if freedom % 2:
        term, total = root, 0.0
        for odd in range(1, freedom, 2):
            total += term
            term *= value / (odd + 2)
        return 2 * NORMAL.cdf(-root) + 2 * NORMAL.pdf(root) * total
    term, total = 1.0, 0.0
    for even in range(2, freedom + 1, 2):
        total += term
        term *= value / even
    return exp(-value / 2) * total


def f_above(value: float, first: float, second: float) -> float:
    """Return the probability that F with `first` and `second` degrees of freedom exceeds a positive `value`.

    Source: Abramowitz & Stegun (1964), 26.6.2.
    """
    return _incomplete_beta(second / 2, first / 2, second / (second + first * value))


@cache
def f_quantile(probability: float, first: float, second: float) -> float:
    """Return the value that F with `first` and `second` degrees of freedom exceeds with 1 - `probability`."""
    low, high = 1e-12, 1e12
    while high / low > 1 + 1e-6:
        middle = sqrt(low * high)
        low, high = (middle, high) if f_above(middle, first, second) > 1 - probability else (low, middle)
    return low


def digamma(x: float) -> float:
    """Return the derivative of log gamma at a positive `x`.  Source: Abramowitz & Stegun (1964), 6.3.18."""
    below = 0.0
    while x < ASYMPTOTIC:
        below, x = below + 1 / x, x + 1
    return log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6) - below


def trigamma(x: float) -> float:
    """Return the second derivative of log gamma at a positive `x`.  Source: Abramowitz & Stegun (1964), 6.4.12."""
    below = 0.0
    while x < ASYMPTOTIC:
        below, x = below + 1 / x**2, x + 1
    return below + 1 / x + 1 / (2 * x**2) + 1 / (6 * x**3) - 1 / (30 * x**5) + 1 / (42 * x**7)


def inverse_trigamma(value: float) -> float:
    """Return the argument at which trigamma has the positive `value`; it falls from infinity to 0."""
    low, high = 1e-8, 1e8
    while high / low > 1 + 1e-10:
        middle = sqrt(low * high)
        low, high = (middle, high) if trigamma(middle) > value else (low, middle)
    return sqrt(low * high)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz's method."""
    upper, lower = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = lower
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            lower = 1 / _not_zero(1 + step * lower)
            upper = _not_zero(1 + step / upper)
            value *= upper * lower
        if abs(upper * lower - 1) < 1e-15:  # double precision
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > SMALL else SMALL
