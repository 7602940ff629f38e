"""Errors of an arm that depend on those of the round before: a first-order autoregression, AR(1).

If a disturbance outlasts a round, the rounds of an arm agree better with each other than with the truth: their spread
is too small, and their mean is less certain than the spread says.  The lag-1 correlation is pooled over all arms of a
run, as one arm of four rounds knows nothing about it.  Residuals are centred by arm, which makes independent errors
look negatively correlated, by 1 / rounds; the expectation under AR(1) is exact for centred residuals, and inverted.

Assumption: all arms of the run have the same correlation, and it falls geometrically with the distance of rounds.

Sources: Bartlett (1946), "On the Theoretical Specification and Sampling Properties of Autocorrelated Time-Series";
Marriott & Pope (1954), "Bias in the Estimation of Autocorrelations" (the bias by centring); Bancroft (1964), "Analysis
and Inference for Incompletely Specified Models Involving the Use of Preliminary Test(s) of Significance" (why the
correlation is left out only if p exceeds 25 %: at 5 %, few rounds would miss most correlations that matter).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.distributions import t_outside

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

INDEPENDENT_FROM = 0.25      # p-value, from which on rounds count as independent
MOST_CORRELATION = 0.9       # the largest that is distinguished; beyond it, rounds are one
FEWEST_ARMS = 8              # for a test
FEWEST_ROUNDS = 3            # of an arm: two rounds, centred, always have the correlation -1/2


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialCorrelation:
    """The correlation of an arm's errors from one round to the next."""

    estimate: float = 0.0
    chance: float = 1.0    # one-sided p-value: the probability of one this large if rounds are independent

    @property
    def applied(self) -> float:
        """Return the correlation that intervals account for: 0 unless p < 25 %."""
        return self.estimate if self.chance < INDEPENDENT_FROM else 0.0


INDEPENDENT = SerialCorrelation()


def serial_correlation(arms: Iterable[Mapping[int, float]], most: float) -> SerialCorrelation:
    """Return the correlation of successive rounds, pooled over arms.

    Args:
        arms: Residuals by round, of arms of similar scale.
        most: The largest residual that counts; larger ones are clipped, as one slow process is no correlation.
    """
    sums: list[tuple[float, float]] = []
    lengths: Counter[int] = Counter()
    for residuals in arms:
        rounds = _longest_stretch(residuals)
        if len(rounds) < FEWEST_ROUNDS:
            continue
        values = [max(-most, min(residuals[r], most)) for r in rounds]
        sums.append(_centred_sums(values))
        lengths[len(values)] += 1
    total = sum(square for _, square in sums)
    if len(sums) < FEWEST_ARMS or not total:
        return INDEPENDENT
    seen = sum(product for product, _ in sums) / total
    error = sqrt(sum((product - seen * square) ** 2 for product, square in sums)) / total
    score = (seen - _expected(0.0, lengths)) / error if error else 0.0
    chance = t_outside(score, len(sums) - 1) / 2
    return SerialCorrelation(
        estimate=_inverted(seen, lengths), chance=chance if score > 0 else 1 - chance)


@cache
def inflation(correlation: float, rounds: int) -> float:
    """Return the factor by which the standard error of a mean over `rounds` exceeds what their spread says."""
    if not correlation or rounds < 2:  # one round has no spread
        return 1.0
    times = _times(correlation, rounds)
    return sqrt(times * (rounds - 1) / (rounds - times))


def _longest_stretch(rounds: Iterable[int]) -> list[int]:
    """Return the longest run of successive rounds, the first of equals: an arm that is clear early misses rounds."""
    longest: list[int] = []
    stretch: list[int] = []
    for number in sorted(rounds):
        stretch = [*stretch, number] if stretch and number == stretch[-1] + 1 else [number]
        longest = max(longest, stretch, key=len)
    return longest


def _centred_sums(values: Sequence[float]) -> tuple[float, float]:
    """Return the sums of successive products and of squares of the centred values."""
    middle = sum(values) / len(values)
    centred = [value - middle for value in values]
    return sum(a * b for a, b in pairwise(centred)), sum(value * value for value in centred)


def _times(correlation: float, rounds: int) -> float:
    """Return the variance of the mean of an AR(1) series, over that of as many independent values."""
    return 1 + 2 * sum((1 - k / rounds) * correlation**k for k in range(1, rounds))


def _inverted(seen: float, lengths: Counter[int]) -> float:
    """Return the correlation at which centred residuals are expected to show `seen`; 0 to `MOST_CORRELATION`."""
    low, high = 0.0, MOST_CORRELATION
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if _expected(middle, lengths) < seen else (low, middle)
    return low


def _expected(correlation: float, lengths: Counter[int]) -> float:
    """Return the expected lag-1 correlation of centred arms with these numbers of rounds."""
    parts = [(count, *_moments(correlation, rounds)) for rounds, count in lengths.items()]
    return sum(count * product for count, product, _ in parts) / sum(count * square for count, _, square in parts)


@cache
def _moments(correlation: float, rounds: int) -> tuple[float, float]:
    """Return the expected sums of successive products and of squares of a centred series of variance 1."""
    mean = _times(correlation, rounds) / rounds
    with_mean = [sum(correlation ** abs(i - j) for j in range(rounds)) / rounds for i in range(rounds)]
    products = sum(correlation - a - b + mean for a, b in pairwise(with_mean))
    return products, rounds * (1 - mean)
