"""Verdicts of comparisons, and the number of rounds that an open comparison needs."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.stats.distributions import NORMAL
from gilscope.toolkit.stats.ratios import rounds_until
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.verdict import MARGIN, SpeedVerdict, Unjudged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.report.table.contrast import Contrast
    from gilscope.toolkit.stats.verdict import Comparison

Missing = Literal["A has none", "B has none", "neither has any", "not comparable"]


def unjudged(comparison: Comparison, margin: float = MARGIN) -> Unjudged | None:
    """Return why a comparison has no verdict, None if it has one."""
    if comparison.verdict(margin) != SpeedVerdict.CANNOT_TELL:
        return None
    if not comparison.paired:
        return Unjudged.TWO_RUNS
    if not comparison.has_enough_rounds:
        return Unjudged.ROUNDS
    if not comparison.judgeable:
        return Unjudged.UNKNOWN_NOISE
    return Unjudged.NOISE


def gains_nothing(comparison: Comparison) -> bool:
    """Return True if every gain above the margin is excluded, whether or not there is a loss."""
    return comparison.judgeable and comparison.between[1] - 1 <= MARGIN


def rounds_to_tell(comparison: Comparison, margin: float = MARGIN) -> int | None:
    """Return the rounds that give a verdict with 80 % power, or None if more rounds alone cannot: see `stats`."""
    ends = (*comparison.between, comparison.lo, comparison.hi)
    if not comparison.paired or min(ends) <= 0:   # two runs, or too few rounds for an interval
        return None
    if comparison.run_sessions > 1:   # rounds of the same session do not tell how sessions differ
        return None
    widest, own = (max(abs(log(end / comparison.ratio)) for end in pair) for pair in (ends[:2], ends[2:]))
    error = own / NORMAL.inv_cdf((1 + CONFIDENCE) / 2)
    return rounds_until(log(comparison.ratio), widest, error, comparison.rounds, margin)


def missing(contrast: Contrast) -> Missing | None:
    """Return the side without a number, or None if the two are compared."""
    if contrast.comparison is not None:
        return None
    if contrast.baseline_time is None:
        return "neither has any" if contrast.sample_time is None else "A has none"
    return "B has none" if contrast.sample_time is None else "not comparable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The result of `--fail-on`: each contrast is in exactly one of the lists."""

    limit: float                      # a share: slower by more than this fails
    past: tuple[Contrast, ...]        # slower by more: no less is in the range that is not excluded
    within: tuple[Contrast, ...]      # not slower by more: no more is in it
    undecided: tuple[Contrast, ...]   # compared, but the limit is in it, or the sides are of two separate runs
    one_sided: tuple[Contrast, ...]   # only one side has a number
    empty: tuple[Contrast, ...]       # neither has one, or they are not comparable

    @property
    def judged(self) -> int:
        """Return the number of cells that are clearly on one side of the limit."""
        return len(self.past) + len(self.within)


def gate(contrasts: Sequence[Contrast], limit: float) -> Gate:
    """Sort the contrasts by the verdict on "slower by more than the share `limit`"."""
    sorted_: dict[str, list[Contrast]] = {name: [] for name in ("past", "within", "undecided", "one_sided", "empty")}
    for each in contrasts:
        sorted_[_place(each, limit)].append(each)
    return Gate(limit=limit, **{name: tuple(group) for name, group in sorted_.items()})


def _place(contrast: Contrast, limit: float) -> str:
    comparison = contrast.comparison
    if comparison is None:
        return "one_sided" if missing(contrast) in {"A has none", "B has none"} else "empty"
    if not comparison.judgeable:
        return "undecided"
    slowest, fastest = (end * (1 + limit) for end in comparison.between)
    if fastest < 1:
        return "past"
    return "within" if slowest >= 1 else "undecided"
