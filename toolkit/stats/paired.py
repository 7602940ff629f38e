"""How many times faster one arm is than another, round by round, and what may be said about it."""

from __future__ import annotations

import random
from math import comb, sqrt
from statistics import NormalDist, median
from typing import TYPE_CHECKING

from gilscope.toolkit.model import Note
from gilscope.toolkit.stats.sample import CONFIDENCE, few_notes, needed, order_confidence
from gilscope.toolkit.stats.words import Comparison

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

RESAMPLES = 2000  # Efron & Tibshirani (1993), section 12.5: at least 1000 for a percentile interval
DRIFT = Note(text="the two runs were made at different times: how the machine changed between them "
                  "is not in the intervals")
NO_FLOOR = Note(text="no A/A arm, so no noise floor: nothing can be called faster or slower")


def compare_paired(
    baseline: Mapping[int, float], sample: Mapping[int, float], *,
    floor: float | None = 0.0, confidence: float = CONFIDENCE,
) -> Comparison:
    """Compare two arms that were measured in the same rounds.

    A slow minute of the machine slows both arms of a round, so their ratio keeps what their means lose.  The
    interval is a bootstrap of the median over rounds, computed and not drawn: see `bootstrap_interval`.

    Args:
        baseline: Seconds by round.
        sample: Seconds by round.  Rounds that only one of the two has do not count.
        floor: Bound of the session's noise floor, None when it has none.
        confidence: Wanted probability of the interval.

    Returns:
        The comparison.  Below 6 rounds (for 95 %) its interval is smallest to largest ratio, with a note.

    Raises:
        ValueError: The two share no round.

    Source: Kalibera & Jones (2013), "Rigorous Benchmarking in Reasonable Time" (what to resample).
    """
    ratios = sorted(baseline[r] / sample[r] for r in baseline.keys() & sample.keys())
    if not ratios:
        raise ValueError("the two arms share no round")
    count = len(ratios)
    sure = count >= needed(confidence)
    lo, hi = bootstrap_interval(ratios, confidence) if sure else (ratios[0], ratios[-1])
    return Comparison(
        ratio=median(ratios), lo=lo, hi=hi, floor=floor, rounds=count, sure=sure,
        confidence=confidence if sure else order_confidence(count, 1),
        notes=few_notes(count, confidence, "rounds") + _floor_notes(floor),
    )


def compare_unpaired(
    baseline: Sequence[float], sample: Sequence[float], *,
    floor: float | None = 0.0, confidence: float = CONFIDENCE, seed: int = 0,
) -> Comparison:
    """Compare two arms that were measured at different times: the ratio of their medians.

    Args:
        baseline: Seconds, one per measuring process.
        sample: Seconds, one per measuring process; the sizes may differ.
        floor: Bound of the worse noise floor of the two sessions, None when either has none.
        confidence: Wanted probability of the interval, a percentile bootstrap of both sides.
        seed: Of the resampling; the same seed gives the same interval.

    Returns:
        The comparison, always with the note that the drift between the two is not in it.

    Raises:
        ValueError: One of the two is empty.
    """
    if not baseline or not sample:
        raise ValueError("both arms need at least one value")
    count = min(len(baseline), len(sample))
    sure = count >= needed(confidence)
    lo, hi = _resampled(baseline, sample, confidence, seed) if sure else _extremes(baseline, sample)
    return Comparison(
        ratio=median(baseline) / median(sample), lo=lo, hi=hi,
        confidence=confidence if sure else order_confidence(count, 1), floor=floor, rounds=count, sure=sure,
        notes=(DRIFT, *few_notes(count, confidence, "processes"), *_floor_notes(floor)),
    )


def bootstrap_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the expanded percentile interval of the bootstrapped median, without drawing a single resample.

    With an odd number of values the median of a resample is one of them, with an even number the mean of two;
    the probability of each is known in closed form.  So the interval has no Monte Carlo error, needs no seed.

    Args:
        values: Any order, at least one.
        confidence: Probability between the two ends, rounded up to the next value outwards.

    Source: Maritz & Jarrett (1978), JASA 73, 194-196; Efron (1982), "The Jackknife, the Bootstrap", ch. 10.
    """
    ordered = sorted(values)
    count = len(ordered)
    weighted = _odd_medians(ordered) if count % 2 else _even_medians(ordered)
    tail = _expanded_tail(count, confidence)
    return _quantile(sorted(weighted), tail), -_quantile(sorted((-value, p) for value, p in weighted), tail)


def _expanded_tail(count: int, confidence: float) -> float:
    """Return the tail to cut from the bootstrap distribution so that few values give the coverage asked for.

    The plain percentile interval of 7 values covers 87 %, not 95 %: resamples vary less than samples do, and
    nothing accounts for the unknown scale.  This is what Student's t does for the mean.

    Source: Hesterberg (2015), "What Teachers Should Know About the Bootstrap" (expanded percentile interval);
    Abramowitz & Stegun (1964), 26.7.5 (t from the normal quantile; within 0.003 from 5 degrees of freedom).
    """
    if count == 1:
        return 0.0
    normal, free = NormalDist(), count - 1
    z = normal.inv_cdf((1 + confidence) / 2)
    t = (
        z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * free**3)
    )
    return normal.cdf(-t * sqrt(count / free))


def _odd_medians(ordered: Sequence[float]) -> list[tuple[float, float]]:
    count = len(ordered)
    upto = [_at_least(count, i / count, count // 2 + 1) for i in range(count + 1)]
    return [(value, upto[i + 1] - upto[i]) for i, value in enumerate(ordered)]


def _even_medians(ordered: Sequence[float]) -> list[tuple[float, float]]:
    """Return each possible median of a resample of 2m values with its probability.

    The m-th smallest drawn is the i-th value and the next one the j-th > i exactly when m draws are at most
    i, one of them i, and the other m at least j, one of them j.
    """
    count, half = len(ordered), len(ordered) // 2
    powers = [(i / count) ** half for i in range(count + 1)]
    pieces = [powers[i + 1] - powers[i] for i in range(count)]  # m draws are at most i, one of them i
    upto = [_at_least(count, i / count, half) for i in range(count + 1)]
    ways, weighted = comb(count, half), []
    for i, low in enumerate(ordered):
        apart = [
            ((low + ordered[j]) / 2, ways * pieces[i] * pieces[count - 1 - j]) for j in range(i + 1, count)
        ]
        weighted += apart
        weighted.append((low, upto[i + 1] - upto[i] - sum(p for _, p in apart)))
    return weighted


def _at_least(count: int, chance: float, successes: int) -> float:
    """Return P(Binomial(count, chance) >= successes)."""
    return sum(comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(successes, count + 1))


def _quantile(weighted: Iterable[tuple[float, float]], tail: float) -> float:
    """Return the largest value that at most `tail` of the probability lies below."""
    below, found = 0.0, None
    for value, probability in weighted:
        if found is not None and below > tail:
            break
        found, below = value, below + probability
    if found is None:
        raise AssertionError("a distribution without values")
    return found


def _resampled(
    baseline: Sequence[float], sample: Sequence[float], confidence: float, seed: int,
) -> tuple[float, float]:
    draw = random.Random(seed)
    ratios = sorted(
        median(draw.choices(baseline, k=len(baseline))) / median(draw.choices(sample, k=len(sample)))
        for _ in range(RESAMPLES)
    )
    cut = int(_expanded_tail(min(len(baseline), len(sample)), confidence) * RESAMPLES)
    return ratios[cut], ratios[-cut - 1]


def _extremes(baseline: Sequence[float], sample: Sequence[float]) -> tuple[float, float]:
    return min(baseline) / max(sample), max(baseline) / min(sample)


def _floor_notes(floor: float | None) -> tuple[Note, ...]:
    return (NO_FLOOR,) if floor is None else ()
