"""What may be said of two cells set against one another, and what would be needed to say more."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log1p
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.stats.distributions import NORMAL
from gilscope.toolkit.stats.ratios import POWER, rounds_until
from gilscope.toolkit.stats.sample import CONFIDENCE, needed
from gilscope.toolkit.stats.words import MARGIN, beyond

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.report.table.contrast import Contrast
    from gilscope.toolkit.stats.words import Comparison

Judgement = Literal["faster", "slower", "same", "cannot tell"]
Missing = Literal["A has none", "B has none", "neither has any", "not comparable"]


def judge(comparison: Comparison, margin: float = MARGIN) -> Judgement:
    """Return what may be said: "same" only where every difference beyond `margin` is excluded.

    Excluded it is by the whole interval that words go by and by the noise floor: what the same cell measured twice may
    differ by, the two sides may differ by unseen.

    Args:
        comparison: The sample against its baseline.
        margin: A share, such as 0.03; differences up to it are called none.
    """
    verdict = comparison.verdict()
    if verdict in {"faster", "slower"}:
        return verdict
    if verdict == "unknown" or not comparison.sure:
        return "cannot tell"
    return "same" if max(beyond(comparison.between), comparison.floor or 0.0) <= margin else "cannot tell"


def gains_nothing(comparison: Comparison, margin: float = MARGIN) -> bool:
    """Return whether every gain beyond `margin` is excluded, whatever may be lost."""
    return judge(comparison, margin) in {"same", "slower"} or (
        judgeable(comparison) and max(comparison.between[1] - 1, comparison.floor or 0.0) <= margin)


def judgeable(comparison: Comparison) -> bool:
    """Return whether there are rounds and a noise floor enough for any word."""
    return comparison.verdict() != "unknown" and comparison.sure


def rounds_to_tell(comparison: Comparison, margin: float = MARGIN) -> int | None:
    """Return how many rounds would tell with a probability of 80 %, None where rounds alone would not: see `stats`."""
    if comparison.floor is None:
        return None
    ends = (*comparison.between, comparison.lo, comparison.hi)
    widest, own = (max(abs(log(end / comparison.ratio)) for end in pair) for pair in (ends[:2], ends[2:]))
    error = own / NORMAL.inv_cdf((1 + CONFIDENCE) / 2)
    half = max(widest + NORMAL.inv_cdf(POWER) * error, log1p(comparison.floor))
    rounds = rounds_until(log(comparison.ratio), half, comparison.rounds, margin)
    return rounds if rounds is None or comparison.sure else max(rounds, needed(CONFIDENCE))


def missing(contrast: Contrast) -> Missing | None:
    """Return which side has no number; None where the two are compared."""
    if contrast.comparison is not None:
        return None
    if contrast.baseline_time is None:
        return "neither has any" if contrast.sample_time is None else "A has none"
    return "B has none" if contrast.sample_time is None else "not comparable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What `--fail-on` comes to.  Every contrast is in exactly one of the lists."""

    limit: float                      # a share: slower by more than this fails
    past: tuple[Contrast, ...]        # slower by more, with the whole interval and beyond the noise floor
    within: tuple[Contrast, ...]      # not slower by more: excluded by the interval and by the floor
    untold: tuple[Contrast, ...]      # compared, but the limit is inside of what the noise allows
    one_sided: tuple[Contrast, ...]   # only one side has a number
    empty: tuple[Contrast, ...]       # neither has one, or they are not comparable

    @property
    def judged(self) -> int:
        """Return of how many cells it can be said on which side of the limit they are."""
        return len(self.past) + len(self.within)


def gate(contrasts: Sequence[Contrast], limit: float) -> Gate:
    """Sort the contrasts by what can be said of "slower by more than the share `limit`"."""
    sorted_: dict[str, list[Contrast]] = {name: [] for name in ("past", "within", "untold", "one_sided", "empty")}
    for each in contrasts:
        sorted_[_place(each, limit)].append(each)
    return Gate(limit=limit, **{name: tuple(found) for name, found in sorted_.items()})


def _place(contrast: Contrast, limit: float) -> str:
    seen = contrast.comparison
    if seen is None:
        return "one_sided" if missing(contrast) in {"A has none", "B has none"} else "empty"
    verdict = seen.verdict()
    lo, hi = seen.between
    if verdict == "slower" and 1 / hi - 1 > limit:
        return "past"
    if verdict == "unknown":
        return "untold"
    certain = verdict == "faster" or max(1 / lo - 1, seen.floor or 0.0) <= limit
    return "within" if certain else "untold"
