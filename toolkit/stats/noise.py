"""The noise between processes of the same cell, estimated from all cells of the run together.

Six rounds hardly determine the spread of one cell, but those of 84 cells do.  So a pair's own spread is moderated by
that of all pairs of its group (empirical Bayes).  The errors have heavy tails, since some processes are slow for their
whole life; their distribution is that of all residuals of the group, which the bootstrap-t resamples.
`tests/benchmarks/coverage.py` and `hostile_noise.py` measure the coverage of the intervals.

Three things are tested over the whole run, and change the noise of a pair (`Noise.between`) where they are there:

- arms that err unlike the others (`arm_scales`): a pair with one has its own spread alone
- rounds that disturb one class of arms (`class_rounds`): pairs across classes have that component in addition, and are
  wider if such a disturbance lasts for several rounds
- errors that depend on those of the round before (`serial_correlation`): every interval is wider by it

Assumptions: after that, and after the common effect of a round is removed, processes of different cells and rounds have
independent errors; the errors of a group have the same distribution up to scale, and the scales of its arms scatter
about one.

Sources: Smyth (2004), "Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray
Experiments" (the moderated t); Hall (1988), "Theoretical Comparison of Bootstrap Confidence Intervals" (bootstrap-t).
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import heappushpop
from itertools import accumulate, batched, chain
from math import exp, inf, log, pow, sqrt, sumprod  # noqa: A004 - the built-in one may return a complex number
from operator import itemgetter, sub
from statistics import fmean, median

from gilscope.toolkit.stats.arm_scales import ALONE, scatter_of_scales, unlike_arms
from gilscope.toolkit.stats.class_rounds import NO_CLASS_ROUNDS, ClassRounds, class_rounds
from gilscope.toolkit.stats.distributions import t_quantile
from gilscope.toolkit.stats.estimators import FAR_OUT, HUBER, NORMAL_MAD, huber_fit, scale_of_differences
from gilscope.toolkit.stats.log_times import LevelFit, RoundLogs, fit, residuals
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.serial_correlation import INDEPENDENT, SerialCorrelation, inflation, serial_correlation

DRAWS = 4000           # of the bootstrap: the error of its 95 % quantile is then 1 to 2 %, of its 99.5 % quantile 5 %
FAR = 0.995            # the second quantile at which the drawn tail is compared with Student's
TAME = 15              # normal residuals that are assumed in addition to the observed ones
RARE = 0.1             # share of far values of a pair up to which they do not count in full
FEW = 0.8              # values that the median absolute deviation of a few costs (Croux & Rousseeuw 1992)
CLOCK = 1e-9           # smaller errors than that, as shares, are of no clock: the values do not show their noise

type _Draw = Callable[[Sequence[float]], tuple[float, ...]]


class _Errors(tuple[float, ...]):  # noqa: SLOT001 - a tuple of any length cannot have slots
    """Sorted errors that cache their hash: there are thousands, and each comparison looks them up."""

    _hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = super().__hash__()
        return self._hash


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlikeArm:
    """The errors of an arm that errs unlike the others of its group."""

    spread: float   # standard deviation of one process's log time
    scale: float    # the same without the influence of outliers, at least the group's


@dataclass(frozen=True, slots=True, kw_only=True)
class PairNoise:
    """The noise of a pair that differs from the usual noise of its group."""

    cutoff: float           # of Huber's estimate over rounds
    spread: float           # of one process, as far as it pulls the estimate
    prior: float            # degrees of freedom
    class_rounds: ClassRounds = NO_CLASS_ROUNDS   # the component that it has in addition
    moderated: bool = True  # False: the pair's own spread alone determines its error


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The error distribution of a group of arms, usually one workload by one clock."""

    spread: float                  # standard deviation of one process's log time; infinite: unknown
    prior: float                   # degrees of freedom of the group's spread, as prior of a pair's own
    residuals: tuple[float, ...]   # of all arms that err alike, and all rounds; sorted
    widening: float = 1.0          # factor on every interval, see `noise_floor.check_aa_pairs`
    draws: int = DRAWS             # 0: plain Student's t, fast and adequate for clear cases
    seed: int = 0
    unlike: Mapping[Hashable, UnlikeArm] = field(default_factory=dict)
    classes: Mapping[Hashable, Hashable] = field(default_factory=dict)   # of the arms, see `class_rounds`
    class_rounds: ClassRounds = NO_CLASS_ROUNDS
    correlation: SerialCorrelation = INDEPENDENT
    pair: PairNoise | None = None  # of the pair that this is the noise of; None: of any usual pair

    def between(self, baseline: Hashable, sample: Hashable) -> Noise:
        """Return the noise of the ratio of two arms of the group."""
        if baseline in self.unlike or sample in self.unlike:
            usual = UnlikeArm(spread=self.spread, scale=scale_of_differences(self.residuals) / sqrt(2))
            sides = [self.unlike.get(arm, usual) for arm in (baseline, sample)]
            return replace(self, pair=PairNoise(
                cutoff=HUBER * sqrt(sum(side.scale**2 for side in sides)),
                spread=sqrt(fmean(side.spread**2 for side in sides)), prior=0.0, moderated=False))
        extra = self.class_rounds
        if not extra.share or self.classes.get(baseline) == self.classes.get(sample):
            return self
        times, pull = sqrt(1 + extra.share), self.pull
        uncertain = (1 / self.prior if self.prior else inf) + extra.mean_square**2 / extra.freedom
        return replace(self, pair=PairNoise(
            cutoff=self.cutoff * times, spread=pull.spread * times, prior=(1 + extra.share) ** 2 / uncertain,
            class_rounds=extra))

    @property
    def cutoff(self) -> float:
        """Return the cut-off of Huber's estimate over rounds: beyond it, a log ratio pulls no harder."""
        return HUBER * scale_of_differences(self.residuals) if self.pair is None else self.pair.cutoff

    @property
    def pull(self) -> HuberError:
        """Return the standard errors of Huber's estimate for these errors."""
        usual = _pull(self.residuals, HUBER * scale_of_differences(self.residuals))
        return usual if self.pair is None else replace(usual, cutoff=self.pair.cutoff, spread=self.pair.spread)

    def freedom(self, rounds: int) -> float:
        """Return the degrees of freedom of a pair's moderated spread."""
        return (self.prior if self.pair is None else self.pair.prior) + max(rounds - 1, 0)

    def moderated(self, differences: Sequence[float], center: float) -> float:
        """Return the standard error of the mean of a pair's `differences`, its spread moderated by the group's.

        The error counts only what pulls the estimate, see `HuberError`: with plain squares, slow processes that hardly
        move the estimate would still widen its interval.  For an arm unlike the others plain squares count, as
        nothing else says how its errors are distributed.
        """
        if self.spread == inf:
            return inf
        if self.pair is not None and not self.pair.moderated:
            return _own_error([value - center for value in differences], self.pair.cutoff * FAR_OUT / HUBER)
        return self.pull.error(differences, center, self.prior if self.pair is None else self.pair.prior)

    def pooled(self, rounds: int) -> float:
        """Return the standard error of a pair over `rounds` by the group's spread alone."""
        return self.pull.spread * sqrt(2 / rounds) if self.spread < inf else inf

    def reach(self, confidence: float, rounds: int) -> float:
        """Return the half-width of the confidence interval of a pair over `rounds`, in standard errors.

        It is Student's t times the ratio of the bootstrap's 95 % quantile to Student's; in the far tail, which the
        draws do not reach, times the larger of that ratio and the one at 99.5 %.
        """
        freedom = self.freedom(rounds)
        factor = 1.0
        shaped = self.pair is None or self.pair.moderated
        if shaped and self.draws and self.residuals and freedom > 0 and self.spread > 0:
            cutoff = HUBER * scale_of_differences(self.residuals)
            near, far = _factors(self.residuals, self.prior, cutoff, rounds, self.draws, self.seed)
            factor = near if confidence <= CONFIDENCE else max(near, far)
        return self.widening * self._inflation(rounds) * factor * t_quantile(confidence, freedom)

    def _inflation(self, rounds: int) -> float:
        """Return the factor on intervals because successive rounds are alike, in errors or in what disturbs a class."""
        errors = inflation(self.correlation.applied, rounds)
        if self.pair is None or not (share := self.pair.class_rounds.share):
            return errors
        lasting = max(inflation(self.pair.class_rounds.correlation.applied, rounds), errors)
        return sqrt((errors**2 + share * lasting**2) / (1 + share))

    def floor(self, rounds: int, confidence: float = CONFIDENCE) -> float:
        """Return the noise floor of a cell with `rounds` rounds, as a share: 0.013 is 1.3 %."""
        half = self.reach(confidence, rounds) * self.pooled(rounds)
        return exp(half) - 1 if half < log(1e6) else inf


def pool_noise[Group: Hashable, Arm: Hashable](
    groups: Mapping[Group, RoundLogs[Arm]], *, classes: Mapping[Arm, Hashable] | None = None,
    treatments: Mapping[Arm, Hashable] | None = None, draws: int = DRAWS, seed: int = 0,
) -> dict[Group, Noise]:
    """Return the noise of each group: spread and residuals from the group, the prior's degrees of freedom from all.

    Args:
        groups: Arms that share rounds, so that the common effect of each round can be removed.
        classes: The class of every arm, where rounds may disturb one class alone, such as arms with several workers.
        treatments: What arms of different groups have in common, see `arm_scales.unlike_arms`.
        draws: The number of bootstrap draws, 0 for none.
        seed: The seed of the draws; the same seed yields the same intervals.

    Returns:
        The noise by group.  A group with too few numbers (a single round or arm), or with numbers that do not vary, has
        an infinite spread.
    """
    fits = {group: found for group, logs in groups.items() if (found := fit(logs)) is not None}
    components = class_rounds(fits, groups, classes) if classes else {}
    by_group = {group: _residuals(fits.get(group), logs, classes or {}, components.get(group, NO_CLASS_ROUNDS))
                for group, logs in groups.items()}
    unlike = unlike_arms(by_group, treatments)
    alike = {group: _without(each, unlike[group]) for group, each in by_group.items()}
    prior = scatter_of_scales([*alike.values()])
    noises = {group: _noise(each, prior, draws, seed) for group, each in alike.items()}
    correlation = serial_correlation(
        ({r: value / noises[group].spread for r, value in rounds.items()}
         for group, each in alike.items() if 0 < noises[group].spread < inf for rounds in each.values()), FAR_OUT)
    return {
        group: replace(
            noise, correlation=correlation, classes=dict((classes or {}).items()),
            class_rounds=components.get(group, NO_CLASS_ROUNDS),
            unlike={arm: _unlike(rounds, noise) for arm, rounds in by_group[group].items() if arm not in alike[group]})
        for group, noise in noises.items()
    }


def _residuals[Arm: Hashable](
    level_fit: LevelFit[Arm] | None, logs: RoundLogs[Arm], classes: Mapping[Arm, Hashable], component: ClassRounds,
) -> Mapping[Arm, Mapping[int, float]]:
    """Return the residuals of a group; within classes if rounds disturb one class alone."""
    if level_fit is None:
        return {}
    if not component.share:
        return level_fit.residuals
    within: dict[Arm, Mapping[int, float]] = {}
    for name in dict.fromkeys(classes[arm] for arm in logs.levels):
        within |= residuals(RoundLogs(levels={
            arm: rounds for arm, rounds in logs.levels.items() if classes[arm] == name}))
    return within or level_fit.residuals


def _without[Arm: Hashable](
    by_arm: Mapping[Arm, Mapping[int, float]], unlike: frozenset[Arm],
) -> Mapping[Arm, Mapping[int, float]]:
    """Return the residuals without those of unlike arms, unless too few would remain."""
    alike = {arm: rounds for arm, rounds in by_arm.items() if arm not in unlike}
    return alike if len(alike) >= ALONE else by_arm


def _unlike(residuals_: Mapping[int, float], noise: Noise) -> UnlikeArm:
    values, usual = [*residuals_.values()], scale_of_differences(noise.residuals) / sqrt(2)
    middle = median(values)
    scale = median(abs(value - middle) for value in values) / NORMAL_MAD * len(values) / max(len(values) - FEW, 1)
    return UnlikeArm(
        spread=max(sqrt(fmean(value * value for value in values)), noise.spread), scale=max(scale, usual))


def _own_error(away: Sequence[float], far: float) -> float:
    """Return the standard error of a mean by its own values alone, as distances from it.

    If at most a tenth of them are `far`, these count as that far only (a winsorised variance; Tukey & McLaughlin 1963).
    If more are, which of the two kinds is the usual one is not certain.
    """
    count = len(away)
    if sum(abs(value) > far for value in away) <= RARE * count:
        away = [max(-far, min(value, far)) for value in away]
    return sqrt(sumprod(away, away) / (count - 1) / count) if count > 1 else inf


def _noise[Arm: Hashable](by_arm: Mapping[Arm, Mapping[int, float]], scatter: float, draws: int, seed: int) -> Noise:
    pooled = sorted(value for rounds in by_arm.values() for value in rounds.values())
    if max(map(abs, pooled), default=0.0) < CLOCK:
        return Noise(spread=inf, prior=0.0, residuals=(), draws=draws, seed=seed)
    # The prior has at most the degrees of freedom of the other arms: a pair's own residuals count separately.
    rounds = {r for each in by_arm.values() for r in each}
    others = max(len(pooled) - len(by_arm) - len(rounds) + 1, 0) * max(1 - 1 / max(len(by_arm) - 1, 1), 0.0)
    return Noise(
        spread=sqrt(fmean(value * value for value in pooled)), prior=min(scatter, others), residuals=_Errors(pooled),
        draws=draws, seed=seed,
    )


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
    first, second = _places(len(pooled), rounds, draws, seed)
    pull = _pull(pooled, cutoff)
    farthest = [0.0] * (draws - near_at)   # a heap
    least = pull.error_of([0.0] * rounds, rounds, prior)
    for pair in map(sorted, batched(map(sub, first(pooled), second(pooled)), rounds)):
        center, begin, end = huber_fit(pair, cutoff)
        if abs(center) > farthest[0] * least:
            error = pull.error_of([value - center for value in pair[begin:end]], rounds, prior)
            heappushpop(farthest, abs(center) / error if error else 0.0)
    freedom = prior + rounds - 1
    near = farthest[0] / t_quantile(CONFIDENCE, freedom)
    far = sorted(farthest)[far_at - near_at] / t_quantile(FAR, freedom)
    return _shrunk(near, len(pooled)), _shrunk(far, len(pooled))


@lru_cache(maxsize=16)
def _places(count: int, rounds: int, draws: int, seed: int) -> tuple[_Draw, _Draw]:
    """Return functions that draw from `count` errors those of each first arm and of each second one.

    Groups of one size and both clocks share them.
    """
    arms = [*batched(random.Random(f"{seed} {rounds}").choices(tuple(range(count)), k=2 * rounds * draws), rounds)]
    return itemgetter(*chain(*arms[::2])), itemgetter(*chain(*arms[1::2]))


def _shrunk(factor: float, count: int) -> float:
    """Shrink a factor below 1 towards 1: few residuals, after the fit of arms and rounds, have too light tails."""
    return factor if factor > 1 else pow(factor, count / (count + TAME))
