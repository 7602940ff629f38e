"""Latencies: percentiles, histograms with fixed buckets that travel as text, and the modes in them.

Measured processes and load generators import this, so it imports little.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil, exp, floor, log10, sqrt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LOWEST = 1e-6          # seconds; shorter values count in the first bucket
DECADES = 8            # up to 100 s; longer values count in the last bucket
PER_DECADE = 20        # a bucket is 12 % wide
BUCKETS = DECADES * PER_DECADE

# Conditions for two humps to be two modes.  The modes that the switch interval causes in an echo server are factors of
# 10 to 100 apart; one, two and three waits of the same interval are closer and count as one mode.
APART = 3.0            # the least ratio of their centres
VALLEY = 0.25          # the deepest place between them, as a share of the lower hump
LEAST_SHARE = 0.05     # of the values, of the lesser mode
LEAST_COUNT = 5        # values of the lesser mode: three slow requests are an accident
_SMOOTHING = 2.0       # buckets: standard deviation of the kernel


@dataclass(frozen=True, slots=True)
class Percentiles:
    """A distribution summarised in one line; seconds."""

    p50: float
    p90: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class Mode:
    """One hump of a distribution."""

    center: float   # seconds: its median
    share: float    # of all values, 0..1


def percentiles(values: Iterable[float]) -> Percentiles:
    """Return the 50th, 90th and 99th percentile and the largest of `values`.

    Each is one of the values: the smallest that so many percent do not exceed ("nearest rank").

    Raises:
        ValueError: `values` is empty.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("percentiles need at least one value")
    p50, p90, p99 = (ordered[max(1, ceil(share * len(ordered))) - 1] for share in (0.5, 0.9, 0.99))
    return Percentiles(p50, p90, p99, ordered[-1])


class LogHistogram:
    """A histogram with 160 buckets between 1 us and 100 s, 20 to a factor of ten.

    All histograms have the same buckets, so they can be added up over processes and rounds.
    """

    __slots__ = ("counts",)

    def __init__(self, values: Iterable[float] = ()) -> None:
        """Count `values`, in seconds."""
        self.counts = [0] * BUCKETS
        for value in values:
            self.add(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogHistogram) and self.counts == other.counts

    __hash__ = None  # type: ignore[assignment]  # it changes

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self.counts)

    def add(self, seconds: float, times: int = 1) -> None:
        """Count a value that occurred `times` times."""
        self.counts[bucket(seconds)] += times

    def merge(self, other: LogHistogram) -> None:
        """Add the values of `other`."""
        self.counts = [own + theirs for own, theirs in zip(self.counts, other.counts, strict=True)]

    def encode(self) -> str:
        """Return the counts as a short text: "34:5 35:12", bucket and count of those that are not empty."""
        return " ".join(f"{index}:{count}" for index, count in enumerate(self.counts) if count)

    @classmethod
    def decode(cls, text: str) -> LogHistogram:
        """Return the histogram that `encode` made `text` of.

        Raises:
            ValueError: `text` is not of that form.
        """
        decoded = cls()
        for part in text.split():
            index, _, count = part.partition(":")
            if not (index.isdecimal() and count.isdecimal() and int(index) < BUCKETS):
                raise ValueError(f"{part!r} is not a bucket of a histogram and its count")
            decoded.counts[int(index)] += int(count)
        return decoded


def bucket(seconds: float) -> int:
    """Return the index of the bucket that counts `seconds`; the outer ones include all values beyond."""
    if seconds <= LOWEST:
        return 0
    index = floor(log10(seconds / LOWEST) * PER_DECADE)
    return min(index, BUCKETS - 1)


def edge(index: int) -> float:
    """Return the lower edge of a bucket, in seconds; of `BUCKETS` the upper edge of the last."""
    return LOWEST * float(10 ** (index / PER_DECADE))


def center(index: int) -> float:
    """Return the middle of a bucket on the logarithmic scale, in seconds."""
    return sqrt(edge(index) * edge(index + 1))


def modes(histogram: LogHistogram, *, by_time: bool = False) -> list[Mode]:
    """Return the modes of a distribution, the fastest first: usually one, none for an empty histogram.

    Two humps of the smoothed histogram are two modes when their tops lie a factor of 3 apart, the lowest place
    between them is below a quarter of the lower one, and each holds 5 % of the whole and at least 5 values.
    A smaller hump is a tail and belongs to its neighbour.

    Args:
        histogram: The values.
        by_time: Weigh each value by its length, so that shares are of the time.  A closed loop sends a request when
            the last is answered, so fast ones are more frequent: in a second that is half fast (13 us) and half slow
            (5 ms), 99.7 % of the requests are fast.
    """
    if not histogram.count:
        return []
    weights = [count * (center(index) if by_time else 1.0) for index, count in enumerate(histogram.counts)]
    smooth = _smoothed(weights)
    stretches = _large_enough(histogram.counts, weights, _cuts(smooth, _tops(smooth)))
    return [_mode(weights, start, stop) for start, stop in stretches]


def _smoothed(counts: Sequence[float]) -> list[float]:
    """Return `counts`, smoothed so that chance makes no valleys."""
    reach = ceil(3 * _SMOOTHING)
    kernel = [exp(-0.5 * (offset / _SMOOTHING) ** 2) for offset in range(-reach, reach + 1)]
    padded = [0.0] * reach + list(counts) + [0.0] * reach
    return [sum(weight * padded[index + place] for place, weight in enumerate(kernel)) for index in range(len(counts))]


def _tops(smooth: Sequence[float]) -> list[int]:
    """Return the indices of humps that are separated far and deep enough."""
    peaks = [index for index, value in enumerate(smooth)
             if value > 0 and value >= max(smooth[max(0, index - 1)], smooth[min(len(smooth) - 1, index + 1)])]
    tops: list[int] = []
    for peak in peaks:
        if not tops or _apart(smooth, tops[-1], peak):
            tops.append(peak)
        elif smooth[peak] > smooth[tops[-1]]:
            tops[-1] = peak
    return tops


def _apart(smooth: Sequence[float], left: int, right: int) -> bool:
    valley = min(smooth[left : right + 1])
    return (edge(right) >= APART * edge(left) * (1 - 1e-9)
            and valley <= VALLEY * min(smooth[left], smooth[right]))


def _cuts(smooth: Sequence[float], tops: Sequence[int]) -> list[int]:
    """Return the first bucket of each hump and the end: cut at the lowest place between two tops."""
    inner = [min(range(left, right + 1), key=smooth.__getitem__) for left, right in pairwise(tops)]
    return [0, *inner, len(smooth)]


def _large_enough(
    counts: Sequence[int], weights: Sequence[float], cuts: Sequence[int],
) -> list[tuple[int, int]]:
    """Return the ranges of the modes; one that is too small joins the one before it, the first the next."""
    least = LEAST_SHARE * sum(weights)

    def enough(start: int, stop: int) -> bool:
        return sum(weights[start:stop]) >= least and sum(counts[start:stop]) >= LEAST_COUNT

    starts = [0]
    for cut, following in pairwise(cuts[1:]):
        if enough(starts[-1], cut) and enough(cut, following):
            starts.append(cut)
    return list(zip(starts, [*starts[1:], len(counts)], strict=True))


def _mode(weights: Sequence[float], start: int, stop: int) -> Mode:
    part = weights[start:stop]
    return Mode(center(start + _reached(part, sum(part) / 2)), sum(part) / sum(weights))


def _reached(weights: Sequence[float], target: float) -> int:
    """Return the first index at which the cumulated weights reach `target`; the last if rounding prevents it."""
    return next((index for index, total in enumerate(accumulate(weights)) if total >= target), len(weights) - 1)
