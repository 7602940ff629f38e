"""A sample's centre and how well it is known.  One number per measuring process goes in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.model import Note

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95  # the convention


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A sample's median with its confidence interval."""

    center: float             # in the unit of the values
    lo: float                 # the smallest value when there are too few for the confidence asked
    hi: float                 # the largest value, likewise
    confidence: float         # achieved, 0..1; what was asked or more, unless a note says otherwise
    count: int
    notes: tuple[Note, ...] = ()

    @property
    def spread(self) -> float:
        """Return half the interval's width as a share of the centre: the "±1 %" of the tables."""
        return (self.hi - self.lo) / 2 / self.center if self.center else 0.0


def summarize(values: Sequence[float], *, confidence: float = CONFIDENCE) -> Summary:
    """Return the median and the narrowest interval between two order statistics that holds it.

    The interval is free of any assumption on the distribution: the true median lies between the k-th smallest
    and the k-th largest of n independent values with probability 1 - 2 P(Binomial(n, 1/2) < k).

    Args:
        values: One per measuring process, any order, at least one.
        confidence: The least probability the interval must have.

    Returns:
        The summary.  With too few values its interval is smallest to largest, and a note says so.

    Raises:
        ValueError: `values` is empty.

    Source: Hollander, Wolfe & Chicken (2014), "Nonparametric Statistical Methods", section 3.6.
    """
    if not values:
        raise ValueError("a summary needs at least one value")
    ordered, rank = sorted(values), order_rank(len(values), confidence)
    return Summary(
        center=median(ordered), lo=ordered[rank - 1], hi=ordered[-rank],
        confidence=order_confidence(len(ordered), rank), count=len(ordered),
        notes=few_notes(len(ordered), confidence, "processes"),
    )


def order_confidence(count: int, rank: int) -> float:
    """Return how probably the median lies between the `rank`-th smallest and largest of `count` values."""
    outside = 2 * sum(comb(count, i) for i in range(rank))
    return max(0.0, 1 - outside / float(2**count))


@cache
def order_rank(count: int, confidence: float) -> int:
    """Return the highest rank whose interval reaches `confidence`; 1 when none does."""
    rank = 1
    while rank < (count + 1) // 2 and order_confidence(count, rank + 1) >= confidence:
        rank += 1
    return rank


def needed(confidence: float) -> int:
    """Return the fewest values whose smallest-to-largest interval reaches `confidence`: 6 for 0.95."""
    count = 1
    while order_confidence(count, 1) < confidence:
        count += 1
    return count


def few_notes(count: int, confidence: float, unit: str) -> tuple[Note, ...]:
    """Return the note that `count` `unit` are too few for an interval of `confidence`, if they are."""
    least = needed(confidence)
    if count >= least:
        return ()
    achieved = order_confidence(count, 1)
    return (Note(text=f"a {confidence * 100:g} % interval needs {least} {unit}, there are {count}: "
                      f"it is smallest to largest ({achieved * 100:.0f} %)"),)
