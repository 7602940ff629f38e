"""Comparisons of several hosts as one, with the word for it.

What a host has said of itself goes in: its ratio, its 95 % interval, which reckons with its own noise, and its noise
floor.  The rules for words are those of one host: an interval without 1, and a ratio beyond the floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, inf, log, log1p, sqrt
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.distributions import NORMAL
from gilscope.toolkit.stats.hosts.random_effects import FEWEST, RandomEffects, random_effects
from gilscope.toolkit.stats.ratios import MOST_LOG
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.words import Comparison, left_open

if TYPE_CHECKING:
    from collections.abc import Sequence

USUAL = NORMAL.inv_cdf((1 + CONFIDENCE) / 2)   # standard errors in half of a normal 95 % interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """How many times faster something is over hosts."""

    effects: RandomEffects
    comparison: Comparison   # the mean over hosts, its interval and what words go by

    @property
    def between(self) -> float:
        """Return by how much hosts differ: the standard deviation of their own ratios, a share; 0: none is shown."""
        return expm1(self.effects.between)

    @property
    def next_host(self) -> tuple[float, float]:
        """Return the ratios between which one more such host measures its own, with 95 %; 0, infinity: not known."""
        return _ends(self.effects.center, self.effects.half_next())


def pool(comparisons: Sequence[Comparison], confidence: float = CONFIDENCE) -> Pooled | None:
    """Return what hosts say together, None where fewer than two of them have an interval.

    The error of a host is its 95 % interval as that of a normal one, so that what few rounds leave open is in it.  The
    floor is that of the mean: floors of different hosts are errors of their own, and even out as those do.

    Args:
        comparisons: Of the same two cells, one for each host.
        confidence: Of the interval that the word goes by; in a table `ratios.simultaneous`.
    """
    known = [each for each in comparisons if each.floor is not None and each.lo > 0 and each.hi < inf]
    if len(known) < FEWEST:
        return None
    found = random_effects(
        [log(each.ratio) for each in known], [log(each.hi / each.lo) / 2 / USUAL for each in known])
    floor = expm1(sqrt(sum((weight * log1p(each.floor or 0.0)) ** 2
                           for weight, each in zip(found.weights, known, strict=True))))
    ratio = exp(found.center)
    lo, hi = _ends(found.center, found.half())
    return Pooled(effects=found, comparison=Comparison(
        ratio=ratio, lo=lo, hi=hi, confidence=CONFIDENCE, floor=floor, rounds=sum(each.rounds for each in known),
        words=left_open(ratio, _ends(found.center, found.half(confidence)), floor), sure=lo > 0,
    ))


def _ends(center: float, half: float) -> tuple[float, float]:
    return (exp(center - half), exp(center + half)) if half < MOST_LOG else (0.0, inf)
