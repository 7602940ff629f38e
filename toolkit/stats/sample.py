"""The median of a sample and its confidence interval.  A sample has one number per measured process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb, isnan
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95  # the convention


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A sample's median with its confidence interval."""

    center: float             # in the unit of the values
    lo: float                 # the smallest value if there are too few for the requested confidence
    hi: float                 # the largest value in that case
    confidence: float         # achieved, 0..1; at least the requested one unless there are too few values
    count: int

    @property
    def spread(self) -> float:
        """Return the half-width of the interval as a share of the median: the "±1 %" of the tables."""
        return (self.hi - self.lo) / 2 / self.center if self.center else 0.0


def summarize(values: Sequence[float]) -> Summary:
    """Return the median and the narrowest 95 % confidence interval between two order statistics.

    The interval makes no assumption about the distribution: the true median lies between the k-th smallest
    and the k-th largest of n independent values with probability 1 - 2 P(Binomial(n, 1/2) < k).

    Args:
        values: One per measuring process, any order, at least one.

    Returns:
        The summary.  With too few values its interval is the range of the values.

    Raises:
        ValueError: `values` is empty, or one of them is not a number.

    Source: Hollander, Wolfe & Chicken (2014), "Nonparametric Statistical Methods", section 3.6.
    """
    if not values:
        raise ValueError("a summary needs at least one value")
    if any(map(isnan, values)):
        raise ValueError("a value is not a number (NaN)")
    ordered, rank = sorted(values), order_rank(len(values), CONFIDENCE)
    return Summary(
        center=median(ordered), lo=ordered[rank - 1], hi=ordered[-rank],
        confidence=order_confidence(len(ordered), rank), count=len(ordered),
    )


def order_confidence(count: int, rank: int) -> float:
    """Return the probability that the median lies between the `rank`-th smallest and largest of `count` values."""
    outside = 2 * sum(comb(count, i) for i in range(rank))
    return max(0.0, 1 - outside / float(2**count))


@cache
def order_rank(count: int, confidence: float) -> int:
    """Return the highest rank whose interval has `confidence`; 1 if none has."""
    rank = 1
    while rank < (count + 1) // 2 and order_confidence(count, rank + 1) >= confidence:
        rank += 1
    return rank


def needed(confidence: float) -> int:
    """Return the least number of values whose range is an interval of `confidence`: 6 for 0.95."""
    count = 1
    while order_confidence(count, 1) < confidence:
        count += 1
    return count
