"""Pool the comparisons of several hosts: a random-effects meta-analysis of one log ratio per host.

The input of each host is its ratio, its 95 % confidence interval, which covers its own noise, and its noise floor.  The
rules for verdicts are those of one host: an interval without 1, and a ratio beyond the floor.

Model: a host's measurement is normal about its own truth, with the host's standard error; the hosts' truths are normal
about a mean, with the between-host variance.  Hosts are the units: cells of a host share its properties, so nothing is
borrowed from other cells, and three hosts count as three however many cells they have.

The between-host variance is Paule & Mandel's: the one by which the hosts scatter as much as they should.  It needs no
normality, no starting value and no choice of weights, and is among the least biased for few and for unequal studies,
where DerSimonian & Laird's is too small (Veroniki et al. 2016; Langan et al. 2019).

Weights assume that the between-host variance is at least the mean squared error.  With few hosts that variance is often
estimated as zero, and a host that is eight times as precise as the others would decide alone: the interval of such
fleets covered the truth 77 % of the time.  The bound raises coverage to at least 94 %, and costs little otherwise.

The interval is Hartung & Knapp's, by Student's t with one degree of freedom less than hosts.  If hosts agree by chance
better than their errors suggest, it would be narrower than if they were known to be equal, so it is never narrower than
their errors alone require (the hybrid of Wiksten et al. 2016).  The older safeguard, a factor of at least 1 (Knapp &
Hartung 2003; Roever et al. 2015), covers the truth 99.9 % of the time if three hosts do not differ.
`python -m tests.benchmarks.hosts` prints all of these.

Sources: Paule & Mandel (1982), "Consensus Values and Weighting Factors"; DerSimonian & Kacker (2007), "Random-Effects
Model for Meta-Analysis of Clinical Trials: An Update" (the iteration); Hartung & Knapp (2001), "A Refined Method for
the Meta-Analysis of Controlled Clinical Trials with Binary Outcome"; Roever, Knapp & Friede (2015), "Hartung-Knapp-
Sidik-Jonkman Approach and its Modification for Random-Effects Meta-Analysis with Few Studies"; Wiksten, Ruecker &
Schwarzer (2016), "Hartung-Knapp Method Is Not Always Conservative Compared with Fixed-Effect Meta-Analysis".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, inf, log, log1p, sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.distributions import NORMAL, t_quantile
from gilscope.toolkit.stats.ratios import MOST_LOG
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.verdict import Comparison, not_excluded

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST = 2        # hosts that can be pooled
LEAST = 1e-7      # smallest error of a log ratio: clocks have a resolution
STEPS = 200       # of the iteration, at most; it takes 3 to 30
CLOSE = 1e-10     # of the variance: the iteration ends with a smaller step
USUAL = NORMAL.inv_cdf((1 + CONFIDENCE) / 2)   # standard errors in half of a normal 95 % interval


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomEffects:
    """The mean over hosts, in logs."""

    center: float
    error: float      # its standard error, from the scatter of the hosts about it
    least: float      # its standard error if hosts did not differ, from their own errors alone
    between: float    # standard deviation of the hosts' truths; 0: their own errors explain the differences
    measured: float   # standard deviation of the hosts' measurements
    typical: float    # standard error of one host: the root mean square
    hosts: int        # two or more
    weights: tuple[float, ...]   # of the hosts, in order; they add up to 1

    def half(self, confidence: float = CONFIDENCE) -> float:
        """Return the half-width, in logs, of the confidence interval for the mean over all such hosts."""
        return self._reach(self.error, self.least, confidence)

    def half_next(self, confidence: float = CONFIDENCE) -> float:
        """Return the half-width, in logs, of the prediction interval for the measurement of a further host.

        It is about the measurement, not the truth: few hosts hardly determine the spread of truths, and an interval for
        them covers 70 to 90 % if hosts differ by no more than their errors (Partlett & Riley 2017).
        """
        return self._reach(self.measured, self.typical, confidence) * sqrt(1 + 1 / self.hosts)

    def _reach(self, seen: float, known: float, confidence: float) -> float:
        return max(t_quantile(confidence, self.hosts - 1) * seen, NORMAL.inv_cdf((1 + confidence) / 2) * known)


def random_effects(effects: Sequence[float], errors: Sequence[float]) -> RandomEffects:
    """Pool log ratios by the random-effects model.

    Args:
        effects: The log ratio of each host, two or more.
        errors: Their standard errors, in the same order.

    Raises:
        ValueError: There are fewer than two hosts.
    """
    if len(effects) < FEWEST:
        raise ValueError("several hosts are two or more")
    squares = [max(error, LEAST) ** 2 for error in errors]
    between, typical = paule_mandel(effects, squares), fmean(squares)
    weights = [1 / (square + max(between, typical)) for square in squares]
    center, total = _mean(effects, weights), sum(weights)
    return RandomEffects(
        center=center, error=sqrt(_scatter(effects, weights, center) / (len(effects) - 1) / total),
        least=sqrt(sum(weight**2 * square for weight, square in zip(weights, squares, strict=True))) / total,
        between=sqrt(between), measured=stdev(effects), typical=sqrt(typical), hosts=len(effects),
        weights=tuple(weight / total for weight in weights),
    )


def paule_mandel(effects: Sequence[float], squares: Sequence[float]) -> float:
    """Return the between-host variance at which the weighted scatter equals its expectation; 0 if it is smaller.

    Newton's steps from 0 approach the root from below, as the scatter falls and is convex in the variance.

    Args:
        effects: One for each host.
        squares: Their squared standard errors, above 0.
    """
    variance = 0.0
    for _ in range(STEPS):
        weights = [1 / (square + variance) for square in squares]
        center = _mean(effects, weights)
        above = _scatter(effects, weights, center) - (len(effects) - 1)
        if above <= 0:
            break
        slope = sum(weight**2 * (effect - center) ** 2 for weight, effect in zip(weights, effects, strict=True))
        step = above / slope
        variance += step
        if step <= CLOSE * variance:
            break
    return variance


def _mean(effects: Sequence[float], weights: Sequence[float]) -> float:
    return sum(weight * effect for weight, effect in zip(weights, effects, strict=True)) / sum(weights)


def _scatter(effects: Sequence[float], weights: Sequence[float], center: float) -> float:
    return sum(weight * (effect - center) ** 2 for weight, effect in zip(weights, effects, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledRatio:
    """A ratio pooled over hosts."""

    effects: RandomEffects
    comparison: Comparison   # the mean over hosts, with its interval and verdict

    @property
    def between(self) -> float:
        """Return the standard deviation between the hosts' own ratios, as a share; 0: no more than their errors."""
        return expm1(self.effects.between)

    @property
    def next_host(self) -> tuple[float, float]:
        """Return the 95 % prediction interval for the ratio on a further host; 0 and infinity: unknown."""
        return _ends(self.effects.center, self.effects.half_next())


def pool(comparisons: Sequence[Comparison], confidence: float = CONFIDENCE) -> PooledRatio | None:
    """Pool the comparisons of hosts; None if fewer than two of them have an interval.

    A host's standard error is derived from its 95 % interval as if that were normal, so it covers the uncertainty of
    few rounds.  The noise floor is that of the mean: floors of different hosts are independent errors and average out.

    Args:
        comparisons: Comparisons of the same two cells, one per host.
        confidence: The confidence of the interval that decides the verdict; in a table `ratios.simultaneous`.
    """
    known = [each for each in comparisons if each.floor is not None and each.lo > 0 and each.hi < inf]
    if len(known) < FEWEST:
        return None
    effects = random_effects(
        [log(each.ratio) for each in known], [log(each.hi / each.lo) / 2 / USUAL for each in known])
    floor = expm1(sqrt(sum((weight * log1p(each.floor or 0.0)) ** 2
                           for weight, each in zip(effects.weights, known, strict=True))))
    ratio = exp(effects.center)
    lo, hi = _ends(effects.center, effects.half())
    return PooledRatio(effects=effects, comparison=Comparison(
        ratio=ratio, lo=lo, hi=hi, confidence=CONFIDENCE, floor=floor, rounds=sum(each.rounds for each in known),
        verdict_interval=not_excluded(ratio, _ends(effects.center, effects.half(confidence)), floor),
    ))


def _ends(center: float, half: float) -> tuple[float, float]:
    return (exp(center - half), exp(center + half)) if half < MOST_LOG else (0.0, inf)
