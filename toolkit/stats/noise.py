"""The noise between processes of the same cell, estimated from all cells of the run together.

Six rounds hardly determine the spread of one cell, but those of 84 cells do.  So a pair's own spread is moderated by
that of all pairs of its group (empirical Bayes).  The errors have heavy tails, since some processes are slow for their
whole life; their distribution is that of all residuals of the group, which the bootstrap-t resamples.
`tests/benchmarks/coverage.py` measures the coverage of the intervals.

Assumptions: after the common effect of a round is removed, processes of different cells and rounds have independent
errors; the errors of a group have the same distribution up to scale, and the scales of its arms scatter about one.

Sources: Smyth (2004), "Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray
Experiments" (the moderated t); Hall (1988), "Theoretical Comparison of Bootstrap Confidence Intervals" (bootstrap-t).
"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappushpop
from itertools import accumulate, batched
from math import exp, inf, log, pow, sqrt, sumprod  # noqa: A004 - the built-in one may return a complex number
from operator import itemgetter, sub
from statistics import fmean, median

from gilscope.toolkit.stats.distributions import digamma, inverse_trigamma, t_quantile, trigamma
from gilscope.toolkit.stats.estimators import HUBER, huber_fit
from gilscope.toolkit.stats.log_times import RoundLogs, residuals
from gilscope.toolkit.stats.sample import CONFIDENCE

DRAWS = 4000           # of the bootstrap: the error of its 95 % quantile is then 1 to 2 %, of its 99.5 % quantile 5 %
FAR = 0.995            # the second quantile at which the drawn tail is compared with Student's
CLIPPED = 3.0          # standard deviations: outliers beyond are clipped to estimate the scatter of the arms' scales
QUARTILE = 1.1503      # upper quartile of a normal variable's absolute value, in standard deviations
LEAST_SHARE = 1e-5     # of a group's median variance: the least for an arm, as clocks have a resolution
TAME = 15              # normal residuals that are assumed in addition to the observed ones
ALONE = 3              # arms needed to estimate the scatter of scales: two have the same residuals


class _Errors(tuple[float, ...]):  # noqa: SLOT001 - a tuple of any length cannot have slots
    """Sorted errors that cache their hash: there are thousands, and each comparison looks them up."""

    _hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = super().__hash__()
        return self._hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The error distribution of a group of arms, usually one workload by one clock."""

    spread: float                  # standard deviation of one process's log time; infinite: unknown
    prior: float                   # degrees of freedom of the group's spread, as prior of a pair's own
    residuals: tuple[float, ...]   # of all arms and rounds, sorted
    widening: float = 1.0          # factor on every interval, see `noise_floor.check_aa_pairs`
    draws: int = DRAWS             # 0: plain Student's t, fast and adequate for clear cases
    seed: int = 0

    @property
    def cutoff(self) -> float:
        """Return the cut-off of Huber's estimate over rounds: beyond it, a log ratio pulls no harder."""
        return HUBER * scale_of_differences(self.residuals)

    @property
    def pull(self) -> HuberError:
        """Return the standard errors of Huber's estimate for these errors."""
        return _pull(self.residuals, self.cutoff)

    def freedom(self, rounds: int) -> float:
        """Return the degrees of freedom of a pair's moderated spread."""
        return self.prior + max(rounds - 1, 0)

    def moderated(self, differences: Sequence[float], center: float) -> float:
        """Return the standard error of the mean of a pair's `differences`, its spread moderated by the group's.

        The error counts only what pulls the estimate, see `HuberError`: with plain squares, slow processes that hardly
        move the estimate would still widen its interval.
        """
        return self.pull.error(differences, center, self.prior)

    def pooled(self, rounds: int) -> float:
        """Return the standard error of a pair over `rounds` by the group's spread alone."""
        return self.pull.spread * sqrt(2 / rounds)

    def reach(self, confidence: float, rounds: int) -> float:
        """Return the half-width of the confidence interval of a pair over `rounds`, in standard errors.

        It is Student's t times the ratio of the bootstrap's 95 % quantile to Student's; in the far tail, which the
        draws do not reach, times the larger of that ratio and the one at 99.5 %.
        """
        freedom = self.freedom(rounds)
        factor = 1.0
        if self.draws and self.residuals and freedom > 0 and self.spread > 0:
            near, far = _factors(self.residuals, self.prior, self.cutoff, rounds, self.draws, self.seed)
            factor = near if confidence <= CONFIDENCE else max(near, far)
        return self.widening * factor * t_quantile(confidence, freedom)

    def floor(self, rounds: int, confidence: float = CONFIDENCE) -> float:
        """Return the noise floor of a cell with `rounds` rounds, as a share: 0.013 is 1.3 %."""
        half = self.reach(confidence, rounds) * self.pooled(rounds)
        return exp(half) - 1 if half < log(1e6) else inf


def pool_noise[Group: Hashable, Arm: Hashable](
    groups: Mapping[Group, RoundLogs[Arm]], *, draws: int = DRAWS, seed: int = 0,
) -> dict[Group, Noise]:
    """Return the noise of each group: spread and residuals from the group, the prior's degrees of freedom from all.

    Args:
        groups: Arms that share rounds, so that the common effect of each round can be removed.
        draws: The number of bootstrap draws, 0 for none.
        seed: The seed of the draws; the same seed yields the same intervals.

    Returns:
        The noise by group.  A group with too few numbers (a single round or arm) has an infinite spread.
    """
    by_group = {group: residuals(logs) for group, logs in groups.items()}
    scatter = _scatter([_log_variances(each) for each in by_group.values()])
    return {group: _noise(each, scatter, draws, seed) for group, each in by_group.items()}


def _noise[Arm: Hashable](by_arm: Mapping[Arm, Mapping[int, float]], scatter: float, draws: int, seed: int) -> Noise:
    pooled = sorted(value for rounds in by_arm.values() for value in rounds.values())
    if not pooled:
        return Noise(spread=inf, prior=0.0, residuals=(), draws=draws, seed=seed)
    # The prior has at most the degrees of freedom of the other arms: a pair's own residuals count separately.
    rounds = {r for each in by_arm.values() for r in each}
    others = max(len(pooled) - len(by_arm) - len(rounds) + 1, 0) * max(1 - 1 / max(len(by_arm) - 1, 1), 0.0)
    return Noise(
        spread=sqrt(fmean(value * value for value in pooled)), prior=min(scatter, others), residuals=_Errors(pooled),
        draws=draws, seed=seed,
    )


def _log_variances[Arm: Hashable](by_arm: Mapping[Arm, Mapping[int, float]]) -> list[tuple[float, float]]:
    """Return the unbiased log variance of each arm, and the variance of that by sampling alone."""
    if len(by_arm) < ALONE:
        return []
    count = sum(map(len, by_arm.values()))
    rounds = {r for each in by_arm.values() for r in each}
    share = (count - len(by_arm) - len(rounds) + 1) / count
    # An outlier belongs to the shape of the errors, not to the scale of its arm; unclipped, it would make the arms look
    # too different for pooling.
    pooled = sorted(value for rounds in by_arm.values() for value in rounds.values())
    most = CLIPPED / sqrt(2) * scale_of_differences(tuple(pooled))
    variances = {arm: fmean(min(abs(value), most) ** 2 for value in each.values()) for arm, each in by_arm.items()}
    least = LEAST_SHARE * median(variances.values())
    if least <= 0:
        return []
    return [
        (log(max(variances[arm], least)) - digamma(free / 2) + log(free / 2), trigamma(free / 2))
        for arm, each in by_arm.items() for free in (len(each) * share,)
    ]


def _scatter(groups: Sequence[Sequence[tuple[float, float]]]) -> float:
    """Return the prior's degrees of freedom: few if the arms of a group differ in scale, infinite if they do not.

    Source: Smyth (2004), section 6.2, with a separate mean for each group.
    """
    squares, free, sampling = 0.0, 0, 0.0
    for group in groups:
        if group:
            middle = fmean(value for value, _ in group)
            squares += sum((value - middle) ** 2 for value, _ in group)
            free += len(group) - 1
            sampling += fmean(expected for _, expected in group) * (len(group) - 1)
    if not free:
        return inf
    between = (squares - sampling) / free
    return 2 * inverse_trigamma(between) if between > trigamma(1e6) else inf


@lru_cache(maxsize=256)
def scale_of_differences(values: tuple[float, ...]) -> float:
    """Return the standard deviation of the difference of two errors, from the smallest three quarters of all pairs.

    Three quarters and not half: if processes have two levels, half of the differences may be nearly zero.  `values` are
    sorted; the pairs within a distance are counted without listing them.
    """
    pairs = len(values) * (len(values) - 1) // 2
    if not pairs:
        return 0.0
    low, high = 0.0, values[-1] - values[0]
    for _ in range(40):
        middle = (low + high) / 2
        near = sum(bisect_left(values, value + middle, i + 1) - i - 1 for i, value in enumerate(values))
        low, high = (middle, high) if near < 0.75 * pairs else (low, middle)
    return high / QUARTILE


@dataclass(frozen=True, slots=True)
class HuberError:
    """The standard error of Huber's estimate: errors beyond the cut-off pull no harder, and do not steady it.

    Source: Huber (1964), section 4: the estimate's variance is that of what pulls, over the square of the share inside.
    """

    cutoff: float   # of differences
    inside: float   # share of the differences of two errors that are within it: 0.82 of normal ones
    spread: float   # of one error, in its unit

    def error(self, differences: Sequence[float], center: float, prior: float) -> float:
        """Return the standard error of the estimate, moderated by `prior` degrees of freedom; infinite without any."""
        within = [value - center for value in differences if -self.cutoff <= value - center <= self.cutoff]
        return self.error_of(within, len(differences), prior)

    def error_of(self, within: Sequence[float], rounds: int, prior: float) -> float:
        """Return the same of what is `within` the cut-off, as distances from the estimate over so many rounds."""
        freedom = prior + rounds - 1
        if freedom <= 0:
            return inf
        squares = (sumprod(within, within) + (rounds - len(within)) * self.cutoff**2) / self.inside**2
        return sqrt(((prior * 2 * self.spread**2 if prior else 0.0) + squares) / freedom / rounds)


@lru_cache(maxsize=256)
def _pull(values: tuple[float, ...], cutoff: float) -> HuberError:
    """Compute it from the differences of all pairs of errors, which are sorted."""
    pairs = len(values) * (len(values) - 1) // 2
    if not pairs:
        return HuberError(cutoff, 1.0, 0.0)
    sums, squares = [0.0, *accumulate(values)], [0.0, *accumulate(value * value for value in values)]
    total, inside = 0.0, 0
    for i, value in enumerate(values):
        end = bisect_right(values, value + cutoff, i + 1)
        near = end - i - 1
        inside += near
        total += squares[end] - squares[i + 1] - 2 * value * (sums[end] - sums[i + 1]) + near * value * value
        total += (len(values) - end) * cutoff * cutoff
    share = max(inside / pairs, 0.5)   # never less but by rounding, as the cut-off is beyond three quarters
    return HuberError(cutoff, share, sqrt(max(total, 0.0) / pairs / 2) / share)


@lru_cache(maxsize=256)
def _factors(
    pooled: tuple[float, ...], prior: float, cutoff: float, rounds: int, draws: int, seed: int,
) -> tuple[float, float]:
    """Return the 95 % and 99.5 % quantiles of the moderated t of drawn pairs, each relative to Student's.

    Only the largest twentieth of all draws matters, and an error is never below the prior's share of it, so for most
    draws no error is computed.
    """
    near_at, far_at = (int(level * draws) for level in (CONFIDENCE, FAR))
    drawn = batched(_places(len(pooled), rounds, draws, seed)(pooled), rounds)
    pull = _pull(pooled, cutoff)
    farthest = [0.0] * (draws - near_at)   # a heap
    least = pull.error_of([0.0] * rounds, rounds, prior)
    for first, second in zip(drawn, drawn, strict=True):
        pair = sorted(map(sub, first, second))
        center, begin, end = huber_fit(pair, cutoff)
        if abs(center) > farthest[0] * least:
            error = pull.error_of([value - center for value in pair[begin:end]], rounds, prior)
            heappushpop(farthest, abs(center) / error if error else 0.0)
    freedom = prior + rounds - 1
    near = farthest[0] / t_quantile(CONFIDENCE, freedom)
    far = sorted(farthest)[far_at - near_at] / t_quantile(FAR, freedom)
    return _shrunk(near, len(pooled)), _shrunk(far, len(pooled))


@lru_cache(maxsize=16)
def _places(count: int, rounds: int, draws: int, seed: int) -> Callable[[Sequence[float]], tuple[float, ...]]:
    """Return a function that draws pairs from `count` errors; groups of one size and both clocks share it."""
    return itemgetter(*random.Random(f"{seed} {rounds}").choices(tuple(range(count)), k=2 * rounds * draws))


def _shrunk(factor: float, count: int) -> float:
    """Shrink a factor below 1 towards 1: few residuals, after the fit of arms and rounds, have too light tails."""
    return factor if factor > 1 else pow(factor, count / (count + TAME))
