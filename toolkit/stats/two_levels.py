"""Times at two levels, as on a machine that is in one of two states: a core alone, and one shared with a neighbour.

A median of such times is the time of neither state.  The values are split in two so that they vary as little as
possible around their own level (k-means with k = 2, exact in one dimension); the two levels count if that leaves little
of the variance.  Of normal values the best split leaves 36 % of it, of uniform ones 25 %.

Values of one process are alike, so a few processes that differ look like two levels, however many values they have.  So
what counts are runs of successive values of a process at one level, be they of many processes or of a few that change
between levels: the fewer runs, the less of the variance may be left.

Source: Hartigan (1975), "Clustering Algorithms", chapter 4 (the ratio of sums of squares as a test for two clusters).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, chain, groupby
from math import ceil, log
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_RUNS = 6        # of values at one level
LEFT_PER_RUN = 0.0145   # of the variance: times (n - 2), what 3 % of samples of n = 6 to 12 normal values stay below
LEAST_SHARE = 0.2     # of the values at a level: fewer are outliers
LEAST_RATIO = 1.2     # of the levels: smaller differences belong to the noise that intervals include
MOST_LEFT = 0.15      # of the variance, within levels: 24 normal values leave more in 99 %


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLevels:
    """Two levels of a sample, each the median of its values."""

    low: float
    high: float
    at_low: int    # number of values
    at_high: int


def two_levels(processes: Sequence[Sequence[float]]) -> TwoLevels | None:
    """Return the two levels of values, None if they are not at two levels, or too few runs of values show them.

    Args:
        processes: The values of each process in the order in which they were taken, all above 0.
    """
    ordered = sorted(chain.from_iterable(processes))
    count = len(ordered)
    if count < LEAST_RUNS or ordered[0] <= 0:
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
    runs = sum(len([*groupby(values, ordered[place].__le__)]) for values in processes)
    most_left = min(MOST_LEFT, LEFT_PER_RUN * (runs - 2))
    if runs < LEAST_RUNS or not total or 1 - between / total > most_left or high < LEAST_RATIO * low:
        return None
    return TwoLevels(low=low, high=high, at_low=place, at_high=count - place)
