"""What hosts that differ say together: a random-effects meta-analysis of one log ratio for each host.

Model: what a host measured lies normally about its own truth, with the host's standard error; the hosts' truths lie
normally about a mean, with the between-host variance.  Hosts are the units: cells of one host share what it is, so that
nothing is borrowed from other cells here, and three hosts stay three however many cells they have.

The between-host variance is Paule & Mandel's: the one by which the hosts scatter as much as they should.  It needs no
normality, no starting value and no choice of weights, and is among the least biased for few and for unequal studies,
where DerSimonian & Laird's is too small (Veroniki et al. 2016; Langan et al. 2019).

Weights suppose that hosts differ by at least as much as they err on average.  With a variance that few hosts estimate
as nothing, one that knows its ratio eight times better than the others would stand for all of them: of such fleets the
interval held the truth 77 % of the time.  The bound makes it 94 % at least, and costs little where hosts do differ.

The interval is Hartung & Knapp's, by Student's t with one degree of freedom less than hosts.  Where hosts agree by
chance better than their errors let them, it would be narrower than if they were known not to differ.  So it is never
narrower than what their errors alone come to (the hybrid of Wiksten et al. 2016).  The older safeguard, a factor of at
least 1 (Knapp & Hartung 2003; Roever et al. 2015), holds the truth 99.9 % of the time where three hosts do not differ.
`python -m tests.benchmarks.hosts` prints all of these.

Sources: Paule & Mandel (1982), "Consensus Values and Weighting Factors"; DerSimonian & Kacker (2007), "Random-Effects
Model for Meta-Analysis of Clinical Trials: An Update" (the iteration); Hartung & Knapp (2001), "A Refined Method for
the Meta-Analysis of Controlled Clinical Trials with Binary Outcome"; Roever, Knapp & Friede (2015), "Hartung-Knapp-
Sidik-Jonkman Approach and its Modification for Random-Effects Meta-Analysis with Few Studies"; Wiksten, Ruecker &
Schwarzer (2016), "Hartung-Knapp Method Is Not Always Conservative Compared with Fixed-Effect Meta-Analysis".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.distributions import NORMAL, t_quantile
from gilscope.toolkit.stats.sample import CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST = 2        # hosts that have something in common
LEAST = 1e-7      # of an error of a log ratio: clocks tick
STEPS = 200       # of the iteration, which takes 3 to 30: from far below it doubles
CLOSE = 1e-10     # of the variance: what a step may still move


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomEffects:
    """The mean over hosts, in logs."""

    center: float
    error: float      # its standard error by how hosts scatter about it
    least: float      # its standard error if hosts did not differ: by their own errors alone
    between: float    # standard deviation of the hosts' truths; 0: their own errors explain how they differ
    measured: float   # standard deviation of what hosts measured
    typical: float    # standard error of one host: the root of the mean square
    hosts: int        # two or more
    weights: tuple[float, ...]   # of the hosts, in their order; 1 together

    def half(self, confidence: float = CONFIDENCE) -> float:
        """Return half of the interval's width, in logs: the mean over all hosts like these lies within."""
        return self._reach(self.error, self.least, confidence)

    def half_next(self, confidence: float = CONFIDENCE) -> float:
        """Return half of the prediction interval's width, in logs: what one more such host measures lies within.

        What it measures, and not its truth: how far truths differ is hardly known from few hosts, and an interval for
        them holds 70 to 90 % where hosts differ by no more than they err (Partlett & Riley 2017).
        """
        return self._reach(self.measured, self.typical, confidence) * sqrt(1 + 1 / self.hosts)

    def _reach(self, seen: float, known: float, confidence: float) -> float:
        return max(t_quantile(confidence, self.hosts - 1) * seen, NORMAL.inv_cdf((1 + confidence) / 2) * known)


def random_effects(effects: Sequence[float], errors: Sequence[float]) -> RandomEffects:
    """Return what hosts say together.

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
    """Return the between-host variance by which hosts scatter as much as they should; 0 where they scatter less.

    Newton's steps from 0 come up to the root from below, as the scatter falls and is convex in the variance.

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
