"""How far one process is from another of the same cell: known from all cells of the run, not from each alone.

Six rounds tell little of one cell's spread, but 84 cells of six rounds tell much.  So the spread of a pair is its own
one moderated by that of all pairs of its group (empirical Bayes), and the shape of the errors, which have heavy tails
since some processes are slow for their whole life, is that of all residuals of the group, drawn from again and again
(bootstrap-t).  `tests/benchmarks/coverage.py` shows how often the intervals hold the truth.

Assumptions: processes of different cells and rounds err independently once what a round has in common is taken out;
errors of a group have one shape, and sizes that scatter about one size.

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
from gilscope.toolkit.stats.estimators import HUBER, settle
from gilscope.toolkit.stats.log_times import RoundLogs, residuals
from gilscope.toolkit.stats.sample import CONFIDENCE

DRAWS = 4000           # of the bootstrap: its 95 % point is then off by 1 to 2 %, its 99.5 % point by 5 %
FAR = 0.995            # the second point at which the drawn tail is compared with Student's
CLIPPED = 3.0          # standard deviations: where residuals are cut off to see how the sizes of arms scatter
QUARTILE = 1.1503      # of the absolute values of a normal variable, in its standard deviations: three in four
LEAST_SHARE = 1e-5     # of a group's median variance: what an arm's is taken for at least (clocks tick)
TAME = 15              # residuals, normal ones, that are supposed beside those that were seen
ALONE = 3              # arms that a group needs to tell how their sizes scatter: two have the same residuals


class _Errors(tuple[float, ...]):  # noqa: SLOT001  what is as long as it likes has no slots
    """Sorted errors whose hash is made once: they are looked up with every comparison, and are thousands."""

    _hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = super().__hash__()
        return self._hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The errors of one group of arms: one workload by one clock, as a rule."""

    spread: float                  # standard deviation of one process's log level; infinite: not known
    prior: float                   # degrees of freedom that the group's spread counts for beside a pair's own
    residuals: tuple[float, ...]   # of all arms and rounds, sorted
    widening: float = 1.0          # of every interval: 1 unless the A/A arms disagree, see `floor.check_twins`
    draws: int = DRAWS             # 0: Student's t as it stands; right on the whole for clear cases, and at once
    seed: int = 0

    @property
    def cutoff(self) -> float:
        """Return how far a round's log ratio may pull its pair's estimate."""
        return HUBER * scale_of_differences(self.residuals)

    @property
    def pull(self) -> Pull:
        """Return what the errors are to an estimate in which none of them pulls by more than the cut-off."""
        return _pull(self.residuals, self.cutoff)

    def freedom(self, rounds: int) -> float:
        """Return the degrees of freedom of a pair's moderated spread."""
        return self.prior + max(rounds - 1, 0)

    def moderated(self, differences: Sequence[float], center: float) -> float:
        """Return the standard error of the mean of a pair's `differences`, its spread moderated by the group's.

        By what pulls the estimate, see `Pull`: with plain squares, slow processes that hardly move an estimate would
        widen its interval all the same.
        """
        return self.pull.error(differences, center, self.prior)

    def pooled(self, rounds: int) -> float:
        """Return the standard error that a pair over `rounds` has by the group's spread alone."""
        return self.pull.spread * sqrt(2 / rounds)

    def reach(self, confidence: float, rounds: int) -> float:
        """Return how many standard errors the interval of a pair over `rounds` reaches to either side.

        Student's t, times what the drawn errors' 95 % point differs from it by; in the far tail, which draws cannot
        show, the larger of that and the same at 99.5 %.
        """
        freedom = self.freedom(rounds)
        factor = 1.0
        if self.draws and self.residuals and freedom > 0 and self.spread > 0:
            near, far = _factors(self.residuals, self.prior, self.cutoff, rounds, self.draws, self.seed)
            factor = near if confidence <= CONFIDENCE else max(near, far)
        return self.widening * factor * t_quantile(confidence, freedom)

    def floor(self, rounds: int, confidence: float = CONFIDENCE) -> float:
        """Return what the same cell, measured twice over `rounds`, may differ by: a share, 0.013 is 1.3 %."""
        half = self.reach(confidence, rounds) * self.pooled(rounds)
        return exp(half) - 1 if half < log(1e6) else inf


def pool_noise[Group: Hashable, Arm: Hashable](
    groups: Mapping[Group, RoundLogs[Arm]], *, draws: int = DRAWS, seed: int = 0,
) -> dict[Group, Noise]:
    """Return the noise of each group: its spread and shape from its own residuals, the prior's freedom from all.

    Args:
        groups: Arms that share rounds, so that what a round has in common can be taken out.
        draws: Of the bootstrap, 0 for none.
        seed: Of the draws; the same seed gives the same intervals.

    Returns:
        One for each group.  One that has too few numbers (a single round, a single arm) has an infinite spread.
    """
    found = {group: residuals(logs) for group, logs in groups.items()}
    scatter = _scatter([_log_variances(each) for each in found.values()])
    return {group: _noise(each, scatter, draws, seed) for group, each in found.items()}


def _noise[Arm: Hashable](found: Mapping[Arm, Mapping[int, float]], scatter: float, draws: int, seed: int) -> Noise:
    pooled = sorted(value for rounds in found.values() for value in rounds.values())
    if not pooled:
        return Noise(spread=inf, prior=0.0, residuals=(), draws=draws, seed=seed)
    # The group's spread cannot be surer than the residuals of the other arms make it: those of a pair count as its own.
    rounds = {r for each in found.values() for r in each}
    others = max(len(pooled) - len(found) - len(rounds) + 1, 0) * max(1 - 1 / max(len(found) - 1, 1), 0.0)
    return Noise(
        spread=sqrt(fmean(value * value for value in pooled)), prior=min(scatter, others), residuals=_Errors(pooled),
        draws=draws, seed=seed,
    )


def _log_variances[Arm: Hashable](found: Mapping[Arm, Mapping[int, float]]) -> list[tuple[float, float]]:
    """Return of each arm the log of its variance, unbiased, and the variance that sampling alone gives it."""
    if len(found) < ALONE:
        return []
    count = sum(map(len, found.values()))
    rounds = {r for each in found.values() for r in each}
    share = (count - len(found) - len(rounds) + 1) / count
    # A slow process is the errors' shape, not its arm's size: unclipped, it would leave nothing to be borrowed.
    pooled = sorted(value for rounds in found.values() for value in rounds.values())
    most = CLIPPED / sqrt(2) * scale_of_differences(tuple(pooled))
    variances = {arm: fmean(min(abs(value), most) ** 2 for value in each.values()) for arm, each in found.items()}
    least = LEAST_SHARE * median(variances.values())
    if least <= 0:
        return []
    return [
        (log(max(variances[arm], least)) - digamma(free / 2) + log(free / 2), trigamma(free / 2))
        for arm, each in found.items() for free in (len(each) * share,)
    ]


def _scatter(groups: Sequence[Sequence[tuple[float, float]]]) -> float:
    """Return the prior's degrees of freedom: few when arms of a group differ in size, infinite when they are alike.

    Source: Smyth (2004), section 6.2, with a mean of its own for each group.
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
    """Return the standard deviation of the difference of two errors, from the nearest three quarters of all of them.

    Three quarters and not half: where processes come in two levels, half of the differences may be nearly nothing.
    `values` are sorted; how many pairs are within a distance is counted without listing them.
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
class Pull:
    """What errors are to Huber's estimate: none pulls by more than the cut-off, and those beyond it do not steady it.

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
def _pull(values: tuple[float, ...], cutoff: float) -> Pull:
    """Return it from the differences of all pairs of errors, which are sorted."""
    pairs = len(values) * (len(values) - 1) // 2
    if not pairs:
        return Pull(cutoff, 1.0, 0.0)
    sums, squares = [0.0, *accumulate(values)], [0.0, *accumulate(value * value for value in values)]
    total, inside = 0.0, 0
    for i, value in enumerate(values):
        end = bisect_right(values, value + cutoff, i + 1)
        near = end - i - 1
        inside += near
        total += squares[end] - squares[i + 1] - 2 * value * (sums[end] - sums[i + 1]) + near * value * value
        total += (len(values) - end) * cutoff * cutoff
    share = max(inside / pairs, 0.5)   # never less but by rounding, as the cut-off is beyond three quarters
    return Pull(cutoff, share, sqrt(max(total, 0.0) / pairs / 2) / share)


@lru_cache(maxsize=256)
def _factors(
    pooled: tuple[float, ...], prior: float, cutoff: float, rounds: int, draws: int, seed: int,
) -> tuple[float, float]:
    """Return what the moderated t of drawn pairs has as 95 % and 99.5 % points, each over Student's.

    From the 95 % point on a twentieth of all pairs decides, and an error is never below the prior's share of it: most
    pairs need none.
    """
    near_at, far_at = (int(level * draws) for level in (CONFIDENCE, FAR))
    drawn = batched(_places(len(pooled), rounds, draws, seed)(pooled), rounds)
    pull = _pull(pooled, cutoff)
    farthest = [0.0] * (draws - near_at)   # a heap
    least = pull.error_of([0.0] * rounds, rounds, prior)
    for first, second in zip(drawn, drawn, strict=True):
        pair = sorted(map(sub, first, second))
        center, begin, end = settle(pair, cutoff)
        if abs(center) > farthest[0] * least:
            error = pull.error_of([value - center for value in pair[begin:end]], rounds, prior)
            heappushpop(farthest, abs(center) / error if error else 0.0)
    freedom = prior + rounds - 1
    near = farthest[0] / t_quantile(CONFIDENCE, freedom)
    far = sorted(farthest)[far_at - near_at] / t_quantile(FAR, freedom)
    return _shrunk(near, len(pooled)), _shrunk(far, len(pooled))


@lru_cache(maxsize=16)
def _places(count: int, rounds: int, draws: int, seed: int) -> Callable[[Sequence[float]], tuple[float, ...]]:
    """Return what draws pairs from so many errors: groups of one size, and both clocks of one group, share it."""
    return itemgetter(*random.Random(f"{seed} {rounds}").choices(tuple(range(count)), k=2 * rounds * draws))


def _shrunk(factor: float, count: int) -> float:
    """Return a factor below 1 nearer to 1: few residuals, whose arms and rounds were fitted away, look too tame."""
    return factor if factor > 1 else pow(factor, count / (count + TAME))
