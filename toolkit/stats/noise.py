"""The noise between processes of the same cell, estimated from all cells of the run together.

Six rounds hardly determine the spread of one cell, but those of 84 cells do.  So a pair's own spread is moderated by
that of all pairs of its group (empirical Bayes).  The errors have heavy tails, since some processes are slow for their
whole life; so the estimate is Huber's, and its error counts only what pulls it.  `tests/benchmarks/coverage.py` and
`hostile_noise.py` measure the coverage of the intervals.

Three things are tested over the whole run, and change the noise of a pair (`Noise.between`) where they are there:

- arms that err unlike the others (`arm_scales`): a pair with one has its own spread alone
- rounds that disturb one class of arms, or one build (`pair_kinds`): pairs across them have a larger spread
- errors that depend on those of the round before (`serial_correlation`): every interval is wider by it

Assumptions: after that, and after the common effect of a round is removed, processes of different cells and rounds have
independent errors; the errors of a group have the same distribution up to scale, and the scales of its arms scatter
about one.

Source: Smyth (2004), "Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray
Experiments" (the moderated t).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import expm1, inf, sqrt, sumprod
from statistics import fmean, median

from gilscope.toolkit.stats.arm_scales import ALONE, scatter_of_scales, unlike_arms
from gilscope.toolkit.stats.distributions import t_quantile
from gilscope.toolkit.stats.estimators import FAR_OUT, HUBER, NORMAL_MAD, scale_of_differences
from gilscope.toolkit.stats.log_times import ArmErrors, LevelFit, RoundLogs, fit
from gilscope.toolkit.stats.pair_kinds import ArmClass, KindSpread, PairKind, kind_of, kind_spreads
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.serial_correlation import INDEPENDENT, SerialCorrelation, inflation, serial_correlation
from gilscope.toolkit.stats.verdict import MIN_ROUNDS

RARE = 0.1             # share of far values of a pair up to which they do not count in full
MAD_COST = 0.8         # values that a median absolute deviation costs, if there are few (Croux & Rousseeuw 1992)
MOST_LOG = 300.0       # the largest half-width of an interval in logs whose ends a float can express
CLOCK = 1e-9           # smaller errors than that, as shares, are of no clock: the values do not show their noise

@dataclass(frozen=True, slots=True, kw_only=True)
class PairNoise:
    """The noise of the ratio of two arms."""

    spread: float            # standard deviation of one process's log time, as far as it pulls; infinite: unknown
    cutoff: float            # of Huber's estimate over rounds: beyond it, a log ratio pulls no harder
    prior: float             # degrees of freedom of the spread, as prior of the pair's own
    inside: float = 1.0      # share of pairs of errors that differ by less than the cut-off; 0.82 if they are normal
    moderated: bool = True   # False: the pair's own spread alone determines its error
    correlation: SerialCorrelation = INDEPENDENT
    widening: float = 1.0    # factor on the interval, see `noise_floor.check_aa_pairs`

    def freedom(self, rounds: int) -> float:
        """Return the degrees of freedom of the moderated spread."""
        return self.prior + max(rounds - 1, 0)

    def error(self, differences: Sequence[float], center: float) -> float:
        """Return the standard error of Huber's estimate `center` of the pair's `differences`; infinite: unknown.

        Its variance is that of what pulls, over the square of the share inside (Huber 1964, section 4): with plain
        squares, slow processes that hardly move the estimate would still widen its interval.  For an arm unlike the
        others plain squares count, as nothing else says how its errors are distributed.
        """
        away, rounds = [value - center for value in differences], len(differences)
        if self.spread == inf:
            return inf
        if not self.moderated:
            return _own_error(away, self.cutoff * FAR_OUT / HUBER)
        freedom = self.prior + rounds - 1
        if freedom <= 0:
            return inf
        squares = sum(min(abs(value), self.cutoff)**2 for value in away) / self.inside**2
        return sqrt(((self.prior * 2 * self.spread**2 if self.prior else 0.0) + squares) / freedom / rounds)

    def pooled(self, rounds: int) -> float:
        """Return the standard error over `rounds` by the group's spread alone."""
        return self.spread * sqrt(2 / rounds) if self.spread < inf else inf

    def reach(self, confidence: float, rounds: int) -> float:
        """Return the half-width of the confidence interval over `rounds`, in standard errors.

        It is Student's t, times the factors by which A/A arms and alike rounds widen it.
        """
        wider = self.widening * inflation(self.correlation.applied, rounds)
        return wider * t_quantile(confidence, self.freedom(rounds))

    def floor(self, rounds: int) -> float | None:
        """Return the noise floor of a cell with `rounds` rounds, as a share: 0.013 is 1.3 %.

        None if these are too few, or if the noise is unknown: then there is no verdict.
        """
        half = self.reach(CONFIDENCE, rounds) * self.pooled(rounds)
        return expm1(half) if rounds >= MIN_ROUNDS and half < MOST_LOG else None


UNKNOWN = PairNoise(spread=inf, cutoff=0.0, prior=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSpread:
    """The errors of one arm."""

    spread: float   # standard deviation of one process's log time
    scale: float    # the same without the influence of outliers


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The noise of a group of arms, usually one workload by one clock."""

    usual: PairNoise               # of two arms that have the same class of workers
    arm: ArmSpread                 # of an arm that errs like the others; an infinite spread: unknown
    unlike: Mapping[Hashable, ArmSpread] = field(default_factory=dict)     # of the arms that err unlike the others
    classes: Mapping[Hashable, ArmClass] = field(default_factory=dict)     # of the arms
    kinds: Mapping[PairKind, KindSpread] = field(default_factory=dict)     # of pairs of other kinds

    def between(self, baseline: Hashable, sample: Hashable) -> PairNoise:
        """Return the noise of the ratio of two arms of the group."""
        if baseline in self.unlike or sample in self.unlike:
            sides = [self.unlike.get(arm, self.arm) for arm in (baseline, sample)]
            return replace(
                self.usual, cutoff=HUBER * sqrt(sum(side.scale**2 for side in sides)),
                spread=sqrt(fmean(side.spread**2 for side in sides)), prior=0.0, moderated=False)
        kind = self.kinds.get(kind_of(self.classes.get(baseline), self.classes.get(sample)))
        if kind is None:
            return self.usual
        times = sqrt(kind.ratio)
        return replace(self.usual, cutoff=self.usual.cutoff * times, spread=self.usual.spread * times,
                       prior=kind.prior(self.usual.prior))

    def widened(self, factor: float) -> Noise:
        """Return the same with every interval so many times as wide."""
        return replace(self, usual=replace(self.usual, widening=factor))


def pool_noise[Group: Hashable, Arm: Hashable](
    groups: Mapping[Group, RoundLogs[Arm]], *, classes: Mapping[Arm, ArmClass] | None = None,
    treatments: Mapping[Arm, Hashable] | None = None, shared_rounds: bool = False,
) -> dict[Group, Noise]:
    """Return the noise of each group: spread and residuals from the group, the prior's degrees of freedom from all.

    Args:
        groups: Arms that share rounds, so that the common effect of each round can be removed.
        classes: The class of every arm, where rounds may disturb one class alone, such as arms with several workers.
        treatments: What arms of different groups have in common, see `arm_scales.unlike_arms`.
        shared_rounds: True if a round is one time for all groups, as a session is.

    Returns:
        The noise by group.  A group with too few numbers (a single round or arm), or with numbers that do not vary, has
        an infinite spread.
    """
    fits = {group: found for group, logs in groups.items() if (found := fit(logs)) is not None}
    by_group = {group: _errors(fits.get(group), logs, classes or {}) for group, logs in groups.items()}
    unlike = unlike_arms(by_group, treatments)
    alike = {group: _without(each, unlike[group]) for group, each in by_group.items()}
    left_out = {group: each.keys() - alike[group].keys() for group, each in by_group.items()}
    kinds = kind_spreads(fits, groups, classes, left_out, shared_rounds=shared_rounds) if classes else {}
    prior = scatter_of_scales([*alike.values()])
    noises = {group: _noise(each, prior) for group, each in alike.items()}
    correlation = serial_correlation(
        ({r: value / noises[group].arm.spread for r, value in errors.by_round.items()}
         for group, each in alike.items() if 0 < noises[group].arm.spread < inf for errors in each.values()), FAR_OUT)
    return {
        group: replace(
            noise, usual=replace(noise.usual, correlation=correlation), classes=dict((classes or {}).items()),
            kinds=kinds.get(group, {}),
            unlike={arm: _unlike(errors, noise) for arm, errors in by_group[group].items() if arm in left_out[group]})
        for group, noise in noises.items()
    }


def _errors[Arm: Hashable](
    level_fit: LevelFit[Arm] | None, logs: RoundLogs[Arm], classes: Mapping[Arm, ArmClass],
) -> dict[Arm, ArmErrors]:
    """Return the errors of a group within its classes of workers, which a round may disturb each by itself."""
    within: dict[Arm, ArmErrors] = {}
    for name in dict.fromkeys(each.workers for each in map(classes.get, logs.levels) if each):
        found = fit(RoundLogs(levels={
            arm: rounds for arm, rounds in logs.levels.items() if classes[arm].workers == name}))
        within |= found.errors if found else {}
    return within or (level_fit.errors if level_fit else {})


def _without[Arm: Hashable](by_arm: Mapping[Arm, ArmErrors], unlike: frozenset[Arm]) -> Mapping[Arm, ArmErrors]:
    """Return the errors without those of unlike arms, unless too few would remain."""
    alike = {arm: errors for arm, errors in by_arm.items() if arm not in unlike}
    return alike if len(alike) >= ALONE else by_arm


def _unlike(errors: ArmErrors, noise: Noise) -> ArmSpread:
    values = [*errors.by_round.values()]
    middle = median(values)
    scale = median(abs(value - middle) for value in values) / NORMAL_MAD * len(values) / max(len(values) - MAD_COST, 1)
    return ArmSpread(
        spread=max(sqrt(fmean(value * value for value in values)), noise.arm.spread),
        scale=max(scale, noise.arm.scale))


def _own_error(away: Sequence[float], far: float) -> float:
    """Return the standard error of a mean by its own values alone, as distances from it.

    If at most a tenth of them are `far`, these count as that far only (a winsorised variance; Tukey & McLaughlin 1963).
    If more are, which of the two kinds is the usual one is not certain.
    """
    count = len(away)
    if sum(abs(value) > far for value in away) <= RARE * count:
        away = [max(-far, min(value, far)) for value in away]
    return sqrt(sumprod(away, away) / (count - 1) / count) if count > 1 else inf


def _noise[Arm: Hashable](by_arm: Mapping[Arm, ArmErrors], scatter: float) -> Noise:
    pooled = sorted(value for errors in by_arm.values() for value in errors.by_round.values())
    if max(map(abs, pooled), default=0.0) < CLOCK:
        return Noise(usual=UNKNOWN, arm=ArmSpread(spread=inf, scale=inf))
    # The prior has at most the degrees of freedom of the other arms: a pair's own residuals count separately.
    others = sum(errors.freedom for errors in by_arm.values()) * max(1 - 1 / max(len(by_arm) - 1, 1), 0.0)
    differences = scale_of_differences(pooled)
    cutoff = HUBER * differences
    inside, spread = pull_of_differences(pooled, cutoff)
    return Noise(
        usual=PairNoise(spread=spread, cutoff=cutoff, inside=inside, prior=min(scatter, others)),
        arm=ArmSpread(spread=sqrt(fmean(value * value for value in pooled)), scale=differences / sqrt(2)))


def pull_of_differences(errors: Sequence[float], cutoff: float) -> tuple[float, float]:
    """Return the share of the differences of two errors within the cut-off, and the spread of one error that pulls.

    Args:
        errors: In ascending order.
        cutoff: Of differences: beyond it, one pulls no harder, and does not steady the estimate.
    """
    pairs = len(errors) * (len(errors) - 1) // 2
    if not pairs:
        return 1.0, 0.0
    sums, squares = [0.0, *accumulate(errors)], [0.0, *accumulate(value * value for value in errors)]
    total, inside = 0.0, 0
    for i, value in enumerate(errors):
        end = bisect_right(errors, value + cutoff, i + 1)
        near = end - i - 1
        inside += near
        total += squares[end] - squares[i + 1] - 2 * value * (sums[end] - sums[i + 1]) + near * value * value
        total += (len(errors) - end) * cutoff * cutoff
    share = inside / pairs   # at least three quarters, as the cut-off is beyond those
    return share, sqrt(max(total, 0.0) / pairs / 2) / share
