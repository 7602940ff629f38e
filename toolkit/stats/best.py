"""The set of arms that contains the fastest with 95 % confidence, by subset selection.

An arm leaves the set if some other arm is significantly faster.  The truly fastest arm stays with probability 95 %,
since only its own k - 1 one-sided comparisons with the other arms could remove it.

Sources: Gupta (1965), "On Some Multiple Decision (Selection and Ranking) Rules" (the set); Hsu (1984), "Constrained
Simultaneous Confidence Intervals for Multiple Comparisons with the Best"; Hsu (1996), "Multiple Comparisons", section
4.2.  The one-sided bounds are Slepian's (1962): independence is the worst case.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import inf
from typing import TYPE_CHECKING, Protocol

from gilscope.toolkit.stats.ratios import compare, simultaneous
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.verdict import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gilscope.toolkit.stats.log_times import RoundLogs
    from gilscope.toolkit.stats.noise import Noise
    from gilscope.toolkit.stats.ratios import Ratio


class LogRatio(Protocol):
    """A ratio in logs with a confidence interval."""

    @property
    def center(self) -> float:
        """The log of the ratio; > 0: the sample is faster."""

    def half(self, confidence: float) -> float:
        """Return the half-width of the interval, in logs."""


def best[Arm: Hashable](
    logs: RoundLogs[Arm], noise: Noise, arms: Sequence[Arm], confidence: float = CONFIDENCE,
) -> tuple[Arm, ...]:
    """Return the arms that no other arm is significantly faster than, the one with the highest estimate first.

    Args:
        logs: The logs of the arms' group.
        noise: The noise of the same group.
        arms: Candidates, at least one.  Two that share fewer than 3 rounds do not differ significantly.
        confidence: The probability that the truly fastest arm is in the set.

    Raises:
        ValueError: `arms` is empty.
    """
    def compared(baseline: Arm, sample: Arm) -> Ratio | None:
        few = len(logs.difference(baseline, sample)) < MIN_ROUNDS
        return None if few else compare(logs, noise, baseline, sample)

    return best_of(arms, compared, confidence)


def best_of[Arm: Hashable](
    arms: Sequence[Arm], compared: Callable[[Arm, Arm], LogRatio | None], confidence: float = CONFIDENCE,
) -> tuple[Arm, ...]:
    """Return the same for arms that `compared` compares: its arguments are a baseline and a sample.

    Raises:
        ValueError: `arms` is empty.
    """
    if not arms:
        raise ValueError("the best of no arms")
    one_sided = simultaneous(len(arms) - 1, confidence)
    two_sided = max(2 * one_sided - 1, 0.0)   # its upper end is exceeded with the one-sided probability
    gains = {one: [_seen(compared(other, one), two_sided) for other in arms if other != one] for one in arms}
    upper = {one: min((center + half for center, half in seen), default=inf) for one, seen in gains.items()}
    # If pairs have different rounds, each arm may be slower than another, in a circle.
    members = [one for one in arms if upper[one] >= 0] or [max(arms, key=upper.__getitem__)]
    leader = max(members, key=lambda one: min((center for center, _ in gains[one]), default=0.0))
    return (leader, *(one for one in members if one != leader))


def _seen(ratio: LogRatio | None, confidence: float) -> tuple[float, float]:
    """Return the log ratio, and the half-width of its interval."""
    return (0.0, inf) if ratio is None else (ratio.center, ratio.half(confidence))
