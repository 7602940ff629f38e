"""Times at two levels, as on a machine that is in one of two states: a core alone, and one shared with a neighbour.

A median of such times is the time of neither state.  The values are split in two so that they vary as little as
possible around their own level (k-means with k = 2, exact in one dimension); the two levels count if that leaves little
of the variance.  Of normal values the best split leaves 36 % of it, of uniform ones 25 %.

Source: Hartigan (1975), "Clustering Algorithms", chapter 4 (the ratio of sums of squares as a test for two clusters).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from math import ceil, log
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_VALUES = 6
LEAST_SHARE = 0.2     # of the values at a level: fewer are outliers
LEAST_RATIO = 1.2     # of the levels: smaller differences belong to the noise that intervals include
MOST_LEFT = 0.15      # of the variance, within levels: 24 normal values exceed it in 99 %, uniform ones in 95 %


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLevels:
    """Two levels of a sample, each the median of its values."""

    low: float
    high: float
    at_low: int    # number of values
    at_high: int


def two_levels(values: Sequence[float]) -> TwoLevels | None:
    """Return the two levels of positive `values`, None if they are not at two levels."""
    ordered = sorted(values)
    count = len(ordered)
    if count < LEAST_VALUES or ordered[0] <= 0:
        return None
    logs = [log(value) for value in ordered]
    middle = sum(logs) / count
    logs = [value - middle for value in logs]
    total = sum(value * value for value in logs)
    least = ceil(LEAST_SHARE * count)
    sums = [0.0, *accumulate(logs)]
    # Logs are centred, so the sum of squares between two levels follows from the sum of the lower ones.
    between, place = max((sums[k] ** 2 * (1 / k + 1 / (count - k)), k) for k in range(least, count - least + 1))
    low, high = median(ordered[:place]), median(ordered[place:])
    if not total or 1 - between / total > MOST_LEFT or high < LEAST_RATIO * low:
        return None
    return TwoLevels(low=low, high=high, at_low=place, at_high=count - place)
