"""Values to places along an axis."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, log
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# Marks of a logarithmic axis, the coarsest first; of each as many as fit.
_LADDERS: tuple[tuple[float, ...], ...] = (
    (0.001, 0.01, 0.1, 1, 10, 100, 1000), (0.01, 0.1, 1, 10, 100),
    (0.03125, 0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128),
    (0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5, 7, 10), (0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.6, 1.8, 2, 2.5),
    (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5),
    (0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4), (0.94, 0.96, 0.98, 1, 1.02, 1.04, 1.06))
MOST_MARKS = 6
LEAST_SPAN = 1.1   # ratio of the ends of a ratio axis: a narrower axis would magnify noise
STEP = 1.2         # ratio by which an axis may go on beyond its outermost mark
FARTHEST = 1000.0  # from 1: ratios beyond, and ends of intervals that know nothing, are drawn at the edge


@dataclass(frozen=True, slots=True)
class ChartScale:
    """An axis from `lo` to `hi`, drawn from `start` to `end`."""

    lo: float
    hi: float
    start: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        """Return the position of `value` to a hundredth; at the edge if it lies beyond."""
        form: Callable[[float], float] = log if self.log else float
        low, high = form(self.lo), form(self.hi)
        inside = min(max(value, self.lo), self.hi)
        return round(self.start + (form(inside) - low) / (high - low) * (self.end - self.start), 2)

    def marks(self, letter: float = 0.0) -> list[dict[str, Any]]:
        """Return places and words of the marks of a logarithmic axis.

        Args:
            letter: The width of a letter: the words, such as "1.5x", are that far apart.
        """
        return [{"at": self.place(each), "text": f"{each:g}"} for each in _log_marks(self, letter)]


def ratio_scale(values: Iterable[float], start: float, end: float) -> ChartScale:
    """Return a logarithmic axis for ratios, with 1 on it and some room."""
    known = [each for each in values if isfinite(each) and 1 / FARTHEST < each < FARTHEST]
    lo, hi = min([1.0, *known]), max([1.0, *known])
    if hi / lo < LEAST_SPAN:
        lo, hi = lo / LEAST_SPAN**0.5, hi * LEAST_SPAN**0.5
    room = (hi / lo) ** 0.06
    return ChartScale(lo / room, hi * room, start, end, log=True)


def _log_marks(scale: ChartScale, letter: float) -> Sequence[float]:
    """Return the finest marks of which there is room for all; those of a ladder that ends within the axis are not."""
    found: Sequence[float] = ()
    for ladder in _LADDERS:
        fitting = [each for each in ladder if scale.lo <= each <= scale.hi]
        if found and not (ladder[0] <= scale.lo * STEP and scale.hi <= ladder[-1] * STEP):
            continue   # its marks would crowd one end of the axis
        if len(found) < len(fitting) <= MOST_MARKS and _are_apart(fitting, scale, letter):
            found = fitting
    return found


def _are_apart(values: Sequence[float], scale: ChartScale, letter: float) -> bool:
    return all(abs(scale.place(after) - scale.place(before)) >= letter * (1 + len(f"{before:g}x{after:g}x") / 2)
               for before, after in pairwise(values))
