"""The verdict on a ratio, decided by what its confidence interval does not exclude."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

from gilscope.toolkit.model import Note  # noqa: TC001 - `from_plain` reads the hints
from gilscope.toolkit.stats.sessions import FEWEST

MIN_ROUNDS = 3       # one or two rounds agree by chance too often for any verdict
MARGIN = 0.03        # smaller differences are not worth changing code


class SpeedVerdict(StrEnum):
    """The verdict on a ratio at a margin; reports and JSON show its value."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"                  # every difference above the margin is excluded
    CANNOT_TELL = "cannot tell"    # it is not


class Unjudged(StrEnum):
    """Why a comparison has no verdict."""

    TWO_RUNS = "two runs"            # not measured together
    ROUNDS = "rounds"                # too few of them, or of sessions in their place
    NOISE = "noise"                  # neither a difference nor its absence is significant
    UNKNOWN_NOISE = "unknown noise"  # too few processes, or values that do not vary


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The speed ratio of a sample to its baseline."""

    ratio: float              # > 1: faster than the baseline
    lo: float
    hi: float
    floor: float | None       # 0.013: two equal cells differ by up to 1.3 %; None: unknown, so there is no verdict
    rounds: int
    paired: bool = True       # False: of two runs, between which the machine may have changed: it has no verdict
    sessions: int = 1         # of which it is; from `sessions.FEWEST` on, the intervals cover how sessions differ
    run_sessions: int = 1     # of the run: more than `sessions` if some lack one of the two sides
    # The wider interval that decides the verdict, so that all of a table hold together; None: `lo` and `hi`.
    verdict_interval: tuple[float, float] | None = None
    notes: tuple[Note, ...] = ()

    @property
    def between(self) -> tuple[float, float]:
        """Return the range of ratios that is not excluded: "cannot tell: between 0.9x and 2.2x"."""
        return self.verdict_interval or (self.lo, self.hi)

    @property
    def printed(self) -> tuple[float, float]:
        """Return the interval to print: the one that decides if nothing is significant, so that it never denies that.

        It is then at least as wide as the 95 % interval of this ratio alone, and has 1 in it.  If the noise is unknown,
        nothing is excluded.  A ratio of two runs has its 95 % interval.
        """
        if not self.paired:
            return self.lo, self.hi
        if not self.judgeable:
            return 0.0, inf
        return (self.lo, self.hi) if self.differs else self.between

    def inverted(self) -> Comparison:
        """Return the inverse comparison: the time of the sample relative to the baseline."""
        lo, hi = self.between
        return replace(
            self, ratio=1 / self.ratio, lo=_inverse(self.hi), hi=_inverse(self.lo),
            verdict_interval=(_inverse(hi), _inverse(lo)))

    @property
    def has_enough_rounds(self) -> bool:
        """Return True if there are enough rounds for a verdict, or sessions where these take their place."""
        return (self.sessions if self.run_sessions >= FEWEST else self.rounds) >= MIN_ROUNDS

    @property
    def judgeable(self) -> bool:
        """Return True if there are enough rounds for a verdict, and their noise is known."""
        return self.floor is not None

    @property
    def differs(self) -> bool:
        """Return True if the verdict is faster or slower: the difference from 1 is significant."""
        return self.verdict() in {SpeedVerdict.FASTER, SpeedVerdict.SLOWER}

    def verdict(self, margin: float = MARGIN) -> SpeedVerdict:
        """Return the verdict at a margin, a share such as 0.03, see `verdict_for`."""
        return verdict_for(self.between, margin) if self.judgeable else SpeedVerdict.CANNOT_TELL


def _inverse(end: float) -> float:
    return 1 / end if end > 0 else inf


def verdict_for(interval: tuple[float, float], margin: float = MARGIN) -> SpeedVerdict:
    """Return the verdict on a ratio by the interval that decides it.

    "Faster" and "slower" exclude 1; "same" means that all differences beyond `margin` are excluded, "cannot tell" that
    they are not.
    """
    lo, hi = interval
    if not lo <= 1 <= hi:
        return SpeedVerdict.FASTER if lo > 1 else SpeedVerdict.SLOWER
    return SpeedVerdict.SAME if beyond(interval) <= margin else SpeedVerdict.CANNOT_TELL


def beyond(interval: tuple[float, float]) -> float:
    """Return the largest difference, as a share, that an interval of a ratio does not exclude."""
    lo, hi = interval
    return max(hi - 1, 1 / lo - 1) if lo > 0 else inf
