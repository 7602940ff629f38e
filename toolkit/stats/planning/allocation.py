"""How many values a process should give before a fresh one is worth more."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import ceil, inf, sqrt
from statistics import fmean, median
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.estimators import hodges_lehmann

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST, MOST = 2, 20   # one value shows no spread within; after twenty a process tells no more of itself
MAD = 1.4826           # times the median absolute deviation: a normal variable's standard deviation


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreads:
    """What values of one cell differ by, as shares (standard deviations of logs)."""

    within: float     # one process: from one value to the next
    between: float    # from process to process: what each draws once, such as a hash seed


def spreads(processes: Sequence[Sequence[float]]) -> Spreads:
    """Return the spreads within and between processes.

    Both are robust (medians of absolute differences): one burst, one slow process would otherwise pass for all.

    Args:
        processes: Log seconds of the values of each process of a cell, less what the machine did at the time; at least
            one process with two values.  NaN-free.

    Raises:
        ValueError: No process has two values.
    """
    # Differences of two values know no centre, which few values would be too close to.
    apart = [abs(one - other) for values in processes for one, other in combinations(values, 2)]
    if not apart:
        raise ValueError("a spread within processes needs a process with two values")
    within = MAD * median(apart) / sqrt(2)
    levels = [hodges_lehmann(values) for values in processes]
    middle = median(levels)
    scale = sqrt(len(levels) / (len(levels) - 1)) if len(levels) > 1 else 0.0
    total = MAD * median(abs(level - middle) for level in levels) * scale
    # The levels scatter by what is drawn once and by what a mean of a few values is off by.
    share = within**2 / fmean(map(len, processes))
    return Spreads(within=within, between=sqrt(max(total**2 - share, 0.0)))


def values_per_process(
    found: Spreads, *, process_seconds: float, value_seconds: float, fewest: int = FEWEST, most: int = MOST,
) -> int:
    """Return how many values each process should give for the narrowest interval in a given time.

    The variance of a mean over p processes of n values is (between^2 + within^2 / n) / p, its cost p (c + n v); at the
    minimum n is the root of (c / v) (within^2 / between^2).

    Args:
        found: The spreads.
        process_seconds: What a process costs before its first value: start, imports, warm-up.
        value_seconds: What one more value costs.
        fewest: Not less.
        most: Not more; the answer where processes do not differ at all.

    Source: Kalibera & Jones (2013), "Rigorous Benchmarking in Reasonable Time", section 7 (repetition counts).
    """
    ratio = found.within / found.between if found.between else inf
    wanted = sqrt(process_seconds / value_seconds) * ratio if found.within else fewest
    return max(fewest, min(ceil(min(wanted, most)), most))
