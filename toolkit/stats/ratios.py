"""The ratio of two arms: estimate, confidence intervals, and a verdict that controls the family-wise error of a table.

The estimate over rounds is Huber's with a cut-off from the whole group; its standard error is moderated by the group's,
see `noise`.  Printed intervals cover the truth of each cell with 95 %.  Verdicts are decided by simultaneous intervals,
which cover the truth of all m cells of a table at once with 95 %: each has the confidence 0.95^(1/m).

Source: Sidak (1967), "Rectangular Confidence Regions for the Means of Multivariate Normal Distributions": the product
is a bound for any correlation of the ratios, as from a shared baseline.  Using that correlation (Dunnett 1955) would
make the intervals of 20 cells with one baseline 4 % narrower, of 80 cells with eight baselines 1 %.

A step-down procedure (Holm 1979), in which clear cells leave more error for the others, is not compatible with the
verdict "same": equal cells would drop out, and those that look unequal by chance would be judged as if they
were few.  In a trial it produced a false verdict in two synthetic tables of five.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from math import ceil, exp, inf, isfinite, log1p, pow, sqrt  # noqa: A004 - the built-in one may return a complex number
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.distributions import NORMAL, SMALL
from gilscope.toolkit.stats.estimators import huber
from gilscope.toolkit.stats.noise import MOST_LOG
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.verdict import MARGIN, MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.stats.log_times import RoundLogs
    from gilscope.toolkit.stats.noise import Noise, PairNoise

POWER = 0.8          # of the suggested number of rounds to reach a verdict; the convention (Cohen 1988)
MOST_ROUNDS = 200    # about what a night allows; beyond it, a quieter machine is the better advice


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """The speed ratio of an arm to its baseline, with an interval at any confidence."""

    center: float      # log of the ratio; > 0: faster than the baseline
    error: float       # its moderated standard error
    rounds: int        # common to both arms
    noise: PairNoise

    @property
    def ratio(self) -> float:
        """Return the estimate: 2.0 is twice as fast."""
        return exp(self.center)

    @property
    def floor(self) -> float | None:
        """Return the noise floor for that number of rounds, as a share; None: it is unknown, and so is the verdict."""
        return self.noise.floor(self.rounds)

    def half(self, confidence: float = CONFIDENCE) -> float:
        """Return the half-width of the interval, in logs: 0.03 is about 3 %."""
        return self.noise.reach(confidence, self.rounds) * self.error if self.error > 0 else 0.0

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval that covers the truth with `confidence`; 0 and infinity if nothing is known."""
        half = self.half(confidence)
        return (exp(self.center - half), exp(self.center + half)) if half < MOST_LOG else (0.0, inf)

    def careful(self) -> Ratio:
        """Return the same with at least the standard error that the group's spread gives it."""
        return replace(self, error=max(self.error, self.noise.pooled(self.rounds)))


def compare[Arm: Hashable](logs: RoundLogs[Arm], noise: Noise, baseline: Arm, sample: Arm) -> Ratio:
    """Return the ratio of `sample` to `baseline` over their common rounds.

    Raises:
        ValueError: They share no round.
    """
    differences = [*logs.difference(baseline, sample).values()]
    if not differences:
        raise ValueError("the two arms share no round")
    own = noise.between(baseline, sample)
    center = huber(differences, own.cutoff)
    return Ratio(center=center, error=own.error(differences, center), rounds=len(differences), noise=own)


def simultaneous(count: int, confidence: float = CONFIDENCE) -> float:
    """Return the confidence that each of `count` intervals needs so that all hold at once with `confidence`."""
    return pow(confidence, 1 / max(count, 1))


def rounds_until(center: float, half: float, error: float, rounds: int, margin: float = MARGIN) -> int | None:
    """Return the number of rounds after which a log ratio has a verdict with a probability of `POWER`.

    Intervals and errors shrink with the root of the rounds; noise and ratio stay as they are.

    Args:
        center: The log ratio, taken for the true one.
        half: Half of the interval that decides its verdict after `rounds` rounds.
        error: Its standard error after them.
        rounds: The rounds so far.
        margin: The largest difference that counts as none, as a share.

    Returns:
        The total of rounds, more than `rounds`; None if it would exceed `MOST_ROUNDS` or nothing is known.
    """
    if not isfinite(half + error):
        return None
    least = max(rounds + 1, MIN_ROUNDS)
    for count in range(least, MOST_ROUNDS + 1):
        shrunk = sqrt(rounds / count)
        if verdict_probability(center, half * shrunk, error * shrunk, margin) >= POWER:
            return max(_two_digits(count), least)
    return None


def verdict_probability(center: float, half: float, error: float, margin: float = MARGIN) -> float:
    """Return the probability that an estimate around `center` has a verdict, be it a difference or its absence.

    It has one if its interval excludes 0, or lies within the margin on both sides.

    Args:
        center: The true log ratio.
        half: Half of the interval that decides, in logs.
        error: The standard error of the estimate.
        margin: The largest difference that counts as none, as a share.
    """
    def within(distance: float) -> float:
        """Return the probability that the estimate is at most so far from 0."""
        if distance < 0:
            return 0.0
        low, high = ((end - center) / max(error, SMALL) for end in (-distance, distance))
        return NORMAL.cdf(high) - NORMAL.cdf(low)

    return 1 - max(within(half) - within(log1p(margin) - half), 0.0)


def compare_pairs[Arm: Hashable](
    logs: RoundLogs[Arm], noise: Noise, pairs: Iterable[tuple[Arm, Arm]],
) -> dict[tuple[Arm, Arm], Ratio]:
    """Return the ratio of each (baseline, sample) of a group; pairs without a common round are left out."""
    return {
        (baseline, sample): compare(logs, noise, baseline, sample)
        for baseline, sample in pairs if logs.difference(baseline, sample)
    }


def _two_digits(number: float) -> int:
    """Return `number` rounded up to two digits, as it is an estimate: 7, 34, 120."""
    step = 1 if number < 100 else 10  # three digits
    return ceil(number / step) * step
