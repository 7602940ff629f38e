"""The set of arms that contains the fastest with 95 % confidence, by subset selection.

An arm leaves the set if some other arm is significantly faster.  The truly fastest arm stays with probability 95 %,
since only its own k - 1 one-sided comparisons with the other arms could remove it.

Two builds are compared by the fastest arm of each, whichever these are (`FastestRatio`): to choose the arms with the
highest estimates and to compare these two would treat the choice as known.

Sources: Gupta (1965), "On Some Multiple Decision (Selection and Ranking) Rules" (the set); Hsu (1984), "Constrained
Simultaneous Confidence Intervals for Multiple Comparisons with the Best"; Hsu (1996), "Multiple Comparisons", section
4.2.  The one-sided bounds are Slepian's (1962): independence is the worst case.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from math import exp, inf
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.ratios import simultaneous
from gilscope.toolkit.stats.sample import CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.stats.ratios import Ratio


def best_of[Arm: Hashable](
    arms: Sequence[Arm], compared: Callable[[Arm, Arm], Ratio | None], confidence: float = CONFIDENCE,
) -> tuple[Arm, ...]:
    """Return the arms that no other arm is significantly faster than, the one with the highest estimate first.

    Args:
        arms: Candidates, at least one.
        compared: Compares a baseline and a sample; None: unknown, so neither is faster.
        confidence: The probability that the truly fastest arm is in the set.

    Raises:
        ValueError: `arms` is empty.
    """
    if not arms:
        raise ValueError("the best of no arms")
    one_sided = simultaneous(len(arms) - 1, confidence)
    two_sided = max(2 * one_sided - 1, 0.0)   # its upper end is exceeded with the one-sided probability
    gains = {one: [_not_excluded(compared(other, one), two_sided) for other in arms if other != one]
             for one in arms}
    upper = {one: min((center + half for center, half in seen), default=inf) for one, seen in gains.items()}
    # If pairs have different rounds, each arm may be slower than another, in a circle.
    members = [one for one in arms if upper[one] >= 0] or [max(arms, key=upper.__getitem__)]
    leader = max(members, key=lambda one: min((center for center, _ in gains[one]), default=0.0))
    return (leader, *(one for one in members if one != leader))


@dataclass(frozen=True, slots=True, kw_only=True)
class FastestRatio[Arm: Hashable]:
    """The ratio of the fastest of some samples to the fastest of some baselines, whichever arms these are.

    If the set of each side contains its truly fastest arm, the ratio of these two is the one asked for, and the union
    of the intervals of all pairs contains it as often as the interval of that pair does.  So the error is at most that
    of one pair plus that of both sets, and no arm is chosen by the values that it is then judged by.
    """

    baselines: Sequence[Arm]   # the set of each side, the one with the highest estimate first
    samples: Sequence[Arm]
    ratios: Mapping[tuple[Arm, Arm], Ratio | None]   # of each baseline and sample; None: unknown

    @property
    def leaders(self) -> tuple[Arm, Arm]:
        """Return the baseline and the sample with the highest estimates."""
        return self.baselines[0], self.samples[0]

    @property
    def leading(self) -> Ratio | None:
        """Return the ratio of these two, None if it is unknown."""
        return self.ratios[self.leaders]

    @property
    def ratio(self) -> float:
        """Return the estimate: 2.0 is twice as fast."""
        return 1.0 if self.leading is None else exp(self.leading.center)

    @property
    def rounds(self) -> int:
        """Return the number of rounds that the leaders share."""
        return 0 if self.leading is None else self.leading.rounds

    @property
    def floor(self) -> float | None:
        """Return the noise floor of the leaders, as a share; None: that of some pair is unknown."""
        return None if None in self.ratios.values() or self.leading is None else self.leading.floor

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval that covers the truth with `confidence`, if the sets have the confidence `set_share`."""
        each = set_share(confidence)
        found = [(0.0, inf) if ratio is None else ratio.interval(each) for ratio in self.ratios.values()]
        return min(lo for lo, _ in found), max(hi for _, hi in found)

    def careful(self) -> FastestRatio[Arm]:
        """Return the same with at least the standard errors that the group's spread gives the pairs."""
        return replace(self, ratios={pair: ratio and ratio.careful() for pair, ratio in self.ratios.items()})


def fastest_ratio[Arm: Hashable](
    baselines: Sequence[Arm], samples: Sequence[Arm], compared: Callable[[Arm, Arm], Ratio | None],
    confidence: float = CONFIDENCE,
) -> FastestRatio[Arm]:
    """Return the ratio of the fastest of `samples` to the fastest of `baselines`.

    Args:
        baselines: At least one.
        samples: At least one.
        compared: Compares a baseline and a sample, on either side or across; None: unknown.
        confidence: With which both sets and the ratio's interval hold together.
    """
    first, second = (best_of(arms, compared, set_share(confidence)) for arms in (baselines, samples))
    return FastestRatio(baselines=first, samples=second, ratios={
        (one, other): compared(one, other) for one in first for other in second})


def set_share(confidence: float) -> float:
    """Return the confidence that two sets and the ratio between them need so that all three hold with `confidence`."""
    return 1 - (1 - confidence) / 3


def _not_excluded(ratio: Ratio | None, confidence: float) -> tuple[float, float]:
    """Return the log ratio, and the half-width of its interval; of an unknown one infinite."""
    return (0.0, inf) if ratio is None else (ratio.center, ratio.half(confidence))
