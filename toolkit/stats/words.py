"""The word for a ratio: what its interval and the noise floor let anybody say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, log, log1p
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from gilscope.toolkit.model import Note

Verdict = Literal["faster", "slower", "same", "unknown"]
Word = Literal["faster", "slower", "no difference", "cannot tell"]

MIN_ROUNDS = 3       # one or two rounds agree by chance too often for any word
MARGIN = 0.03        # nobody moves code for less


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How many times faster a sample is than its baseline.

    The verdict needs two things: an interval that excludes 1, and a ratio beyond the noise floor.  Where the
    rounds are too few for the confidence asked, the whole interval must be beyond the floor, as excluding 1
    means little there.
    """

    ratio: float              # > 1: faster than the baseline
    lo: float
    hi: float
    confidence: float         # achieved, 0..1
    floor: float | None       # 0.013: differences up to 1.3 % are noise; None: not known
    rounds: int
    sure: bool = True         # the confidence asked for was reached
    words: tuple[float, float] | None = None   # the interval that words go by, as those of all cells of a table hold at
                                               # once; None: `lo` and `hi`
    notes: tuple[Note, ...] = ()

    @property
    def between(self) -> tuple[float, float]:
        """Return the ratios that are not excluded: "cannot tell: between 0.9x and 2.2x"."""
        return self.words or (self.lo, self.hi)

    def inverted(self) -> Comparison:
        """Return how many times the time of the baseline the sample takes, in the same shape."""
        lo, hi = self.between
        return replace(
            self, ratio=1 / self.ratio, lo=_inverse(self.hi), hi=_inverse(self.lo), words=(_inverse(hi), _inverse(lo)))

    def verdict(self) -> Verdict:
        """Return what may be said; "same" means that no difference was shown, "unknown" that none can be."""
        if self.floor is None or self.rounds < MIN_ROUNDS:
            return "unknown"
        lo, hi = self.between
        # Where rounds are too few the whole interval must be beyond the floor: its end that is nearer to 1.
        claim = self.ratio if self.sure or lo <= 1 <= hi else min(lo, hi, key=lambda end: abs(log(end)))
        word = word_for(claim, (lo, hi), self.floor)
        return word if word in {"faster", "slower"} else "same"


def _inverse(end: float) -> float:
    return 1 / end if end > 0 else inf


def word_for(ratio: float, interval: tuple[float, float], floor: float, margin: float = MARGIN) -> Word:
    """Return the word for a ratio whose interval and noise floor are known."""
    lo, hi = interval
    if not lo <= 1 <= hi and abs(log(ratio)) > log1p(floor):
        return "faster" if lo > 1 else "slower"
    return "no difference" if beyond(interval) <= margin else "cannot tell"


def left_open(ratio: float, interval: tuple[float, float], floor: float) -> tuple[float, float]:
    """Return the ratios that a word leaves open: those of the interval, and what the floor allows for."""
    lo, hi = interval
    return min(lo, ratio / (1 + floor)), max(hi, ratio * (1 + floor))


def beyond(interval: tuple[float, float]) -> float:
    """Return the largest difference, as a share, that an interval of a ratio does not exclude."""
    lo, hi = interval
    return max(hi - 1, 1 / lo - 1) if lo > 0 else inf
