"""Which of some arms cannot be told from the fastest: a set, not a winner.

Multiple comparisons with the best.  An arm leaves the set when some other arm is shown to be faster.  The truly best
one stays with probability 95 %, as only its own comparisons with the others could put it out: k - 1 for k arms,
one-sided.

Sources: Hsu (1984), "Constrained Simultaneous Confidence Intervals for Multiple Comparisons with the Best"; Hsu (1996),
"Multiple Comparisons", section 4.2.  The one-sided bounds are Slepian's (1962): independence is the worst case.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import inf
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.ratios import compare, simultaneous
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.words import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.stats.log_times import RoundLogs
    from gilscope.toolkit.stats.noise import Noise


def best[Arm: Hashable](
    logs: RoundLogs[Arm], noise: Noise, arms: Sequence[Arm], confidence: float = CONFIDENCE,
) -> tuple[Arm, ...]:
    """Return the arms that are not told apart from the fastest, the one with the highest estimate first.

    Args:
        logs: Of the arms' group.
        noise: Of the same group.
        arms: Candidates, at least one; each two should share rounds.  Two that share fewer than 3 are not told apart.
        confidence: That the truly fastest is in the set.

    Raises:
        ValueError: `arms` is empty.
    """
    if not arms:
        raise ValueError("the best of no arms")
    one_sided = simultaneous(len(arms) - 1, confidence)
    two_sided = max(2 * one_sided - 1, 0.0)   # whose upper end alone is passed with the one-sided probability
    gains = {one: [_seen(logs, noise, other, one, two_sided) for other in arms if other != one] for one in arms}
    upper = {one: min((center + half for center, half in seen), default=inf) for one, seen in gains.items()}
    # Each may be slower than another, in a circle, where pairs have different rounds.
    members = [one for one in arms if upper[one] >= 0] or [max(arms, key=upper.__getitem__)]
    leader = max(members, key=lambda one: min((center for center, _ in gains[one]), default=0.0))
    return (leader, *(one for one in members if one != leader))


def _seen[Arm: Hashable](
    logs: RoundLogs[Arm], noise: Noise, baseline: Arm, sample: Arm, confidence: float,
) -> tuple[float, float]:
    """Return the log of how many times faster `sample` is, and half of its interval."""
    if len(logs.difference(baseline, sample)) < MIN_ROUNDS:
        return 0.0, inf
    ratio = compare(logs, noise, baseline, sample)
    return ratio.center, ratio.half(confidence)
