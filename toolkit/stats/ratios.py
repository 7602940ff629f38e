"""How many times faster one arm is than another, with intervals that borrow from all cells, and the word for it.

The estimate over rounds is Huber's with a cut-off from the whole group; its error is moderated by the group's, see
`noise`.  Printed intervals hold each cell's truth with 95 %.  Words go by simultaneous ones, which hold the truth of
all m cells of a table at once with 95 %: each at 0.95^(1/m).

Source: Sidak (1967), "Rectangular Confidence Regions for the Means of Multivariate Normal Distributions": whatever the
correlation of the ratios, as from a shared baseline, the product is a bound.  Reckoning with that correlation (Dunnett
1955) would make the intervals of 20 cells with one baseline 4 % narrower, of 80 with eight baselines 1 %.

Stepping down (Holm 1979), where clear cells leave more for the others, does not go with words that say "no difference":
equal cells that are told so leave, and those that look unequal are then judged as if they were few.  Tried, it gave a
false word in two synthetic tables of five.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import ceil, exp, inf, log1p, pow  # noqa: A004 - the built-in one may return a complex number
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.estimators import huber
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.words import MARGIN, MIN_ROUNDS, left_open, word_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gilscope.toolkit.stats.log_times import RoundLogs
    from gilscope.toolkit.stats.noise import Noise
    from gilscope.toolkit.stats.words import Word

MOST_LOG = 300.0     # of half an interval; what is beyond is no number
POWER = 0.8          # how probably the rounds that are named would tell; the convention (Cohen 1988)
MOST_ROUNDS = 200    # about what a night measures; beyond, a quieter machine is the better advice


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """How many times faster an arm is than its baseline: an estimate that gives an interval at any confidence."""

    center: float      # log of the ratio; > 0: faster than the baseline
    error: float       # its moderated standard error
    rounds: int        # that both arms have
    noise: Noise       # of their group
    twins_off: float = 0.0   # what A/A arms like these were off by at most, a share: the floor is not below it

    @property
    def ratio(self) -> float:
        """Return the estimate: 2.0 is twice as fast."""
        return exp(self.center)

    @property
    def floor(self) -> float:
        """Return what the same cell, measured twice over as many rounds, may differ by, as a share."""
        return max(self.noise.floor(self.rounds), self.twins_off)

    def half(self, confidence: float = CONFIDENCE) -> float:
        """Return half of the interval's width, in logs: 0.03 is about 3 %."""
        return self.noise.reach(confidence, self.rounds) * self.error if self.error > 0 else 0.0

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the ratios between which the truth lies with `confidence`; 0 and infinity where nothing is known."""
        half = self.half(confidence)
        return (exp(self.center - half), exp(self.center + half)) if half < MOST_LOG else (0.0, inf)

    def between(self, confidence: float) -> tuple[float, float]:
        """Return the ratios that a word leaves open."""
        return left_open(self.ratio, self.interval(confidence), self.floor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What may be said of a ratio."""

    word: Word
    lo: float          # what is left open: "cannot tell: between `lo` and `hi`"
    hi: float
    confidence: float  # of that interval by itself


def compare[Arm: Hashable](logs: RoundLogs[Arm], noise: Noise, baseline: Arm, sample: Arm) -> Ratio:
    """Return how many times faster `sample` is than `baseline`, over the rounds that both have.

    Raises:
        ValueError: They share no round.
    """
    differences = [*logs.difference(baseline, sample).values()]
    if not differences:
        raise ValueError("the two arms share no round")
    center = huber(differences, noise.cutoff)
    return Ratio(
        center=center, error=noise.moderated(differences, center), rounds=len(differences), noise=noise,
    )


def simultaneous(count: int, confidence: float = CONFIDENCE) -> float:
    """Return the confidence that each of `count` intervals needs so that all hold at once with `confidence`."""
    return pow(confidence, 1 / max(count, 1))


def judge(ratio: Ratio, confidence: float, margin: float = MARGIN) -> Verdict:
    """Return what may be said.

    Faster and slower need two things: an interval without 1, and a ratio beyond the floor.  "No difference" says that
    all differences beyond `margin` are excluded, which "cannot tell" does not.

    Args:
        ratio: The cell.
        confidence: Of its interval; in a table, see `verdicts`.
        margin: A share, such as 0.03.
    """
    lo, hi = ratio.between(confidence)
    word: Word = "cannot tell"
    if ratio.rounds >= MIN_ROUNDS:
        word = word_for(ratio.ratio, (lo, hi), ratio.floor, margin)
    return Verdict(word=word, lo=lo, hi=hi, confidence=confidence)


def verdicts[Pair: Hashable](
    ratios: Mapping[Pair, Ratio], confidence: float = CONFIDENCE, margin: float = MARGIN,
) -> dict[Pair, Verdict]:
    """Return what may be said of each ratio of a table, so that no word of the table is false with `confidence`.

    Args:
        ratios: All that get a word beside one another; more of them need wider intervals.
        confidence: Of the table; a last look after others has `looks.at_last`.
        margin: What "no difference" means, a share.
    """
    each = simultaneous(len(ratios), confidence)
    return {pair: judge(ratio, each, margin) for pair, ratio in ratios.items()}


def rounds_until(center: float, half: float, rounds: int, margin: float = MARGIN) -> int | None:
    """Return how many rounds make a log ratio, known to `half` after `rounds`, clear of 1 or of the margin.

    Intervals and floors shrink with the root of the rounds.  They have to shrink until either 1 or all that is beyond
    `margin` is outside, whichever comes first.

    Returns:
        Rounds in all, more than there are; None where more than `MOST_ROUNDS` would be needed or nothing is known.
    """
    seen = abs(center)
    room = max(seen, log1p(margin) - seen)
    needed = rounds * (half / room) ** 2
    return max(_two_digits(needed), rounds + 1, MIN_ROUNDS) if needed <= MOST_ROUNDS else None


def compare_pairs[Arm: Hashable](
    logs: RoundLogs[Arm], noise: Noise, pairs: Iterable[tuple[Arm, Arm]],
) -> dict[tuple[Arm, Arm], Ratio]:
    """Return the ratio of each (baseline, sample) of one group; pairs without a common round are left out."""
    return {
        (baseline, sample): compare(logs, noise, baseline, sample)
        for baseline, sample in pairs if logs.difference(baseline, sample)
    }


def _two_digits(number: float) -> int:
    """Return `number` rounded up to what an estimate deserves: 7, 34, 120."""
    step = 1 if number < 100 else 10   # noqa: PLR2004 - three digits
    return ceil(number / step) * step
