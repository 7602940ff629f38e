"""Processes that are far from the others of their arm, farther than the tail of all errors of the run explains.

A process that is 30 % slow for its whole life hardly moves a robust estimate, so nobody would see it in a ratio.  In
the order of their times, the processes of an arm then have a gap.  The gap counts if the most distant of all processes
of the run would seldom be that far away: errors have heavy tails, so the tail is fitted to those of the run (Student's
t), without arms that err unlike the others, and the level is divided by the number of processes (Bonferroni).

Assumption: most arms have no such process.  Tails of a distribution are not known beyond what its sample shows, so few
processes are taken to have a heavy tail whatever they look like.

Sources: Barnett & Lewis (1994), "Outliers in Statistical Data" (gaps; the choice between slippage and a heavy tail);
Lange, Little & Taylor (1989), "Robust Statistical Modeling Using the t Distribution" (the fit of its tail).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import expm1, inf, lgamma, log, log1p
from statistics import fmean, median

from gilscope.toolkit.stats.arm_scales import HALF, unlike_arms
from gilscope.toolkit.stats.distributions import t_outside, t_quantile
from gilscope.toolkit.stats.log_times import LevelFit, RoundLogs, fit
from gilscope.toolkit.stats.verdict import MARGIN

LEVEL = 0.05           # chance of any flag in a run without such processes
FALSE_SHARE = 0.03     # of the arms that are left out of the tail's fit; more would cut the tail off
LEAST = 3              # processes of an arm: with two, either may be the far one
INNER = 0.98           # share of the errors whose values fit the tail; of the others only their number counts
EACH = 64              # processes for each degree of freedom that the tail may be found to have
LIGHTEST = 4.5         # degrees of freedom that it may have at any rate
FREEDOMS = (1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 10, 15, 30, 1e5)
FACTORS = (0.8, 0.87, 0.93, 1.0, 1.07, 1.15, 1.25)   # on the scale that fits the quantile
MOST = 2000            # errors that the fit uses


@dataclass(frozen=True, slots=True, kw_only=True)
class FarProcesses:
    """The processes of an arm on one side of a gap."""

    rounds: frozenset[int]   # theirs: the fewer processes, or the slower ones of two equal halves
    share: float             # by how much their time exceeds that of the others; negative: they are faster
    of: int                  # all processes of the arm


def far_processes[Group: Hashable, Arm: Hashable](
    groups: Mapping[Group, RoundLogs[Arm]], treatments: Mapping[Arm, Hashable] | None = None,
) -> dict[Group, dict[Arm, FarProcesses]]:
    """Return the arms of each group that have processes far from the others.

    Args:
        groups: The levels of all arms of the run; where rounds disturb one class alone, each class is a group.
        treatments: See `arm_scales.unlike_arms`.
    """
    fits = {group: fit(logs) for group, logs in groups.items()}
    centred = {group: _centred(groups[group], found) if found else {} for group, found in fits.items()}
    unlike = unlike_arms({group: found.residuals if found else {} for group, found in fits.items()},
                         treatments, FALSE_SHARE)
    scales = {
        group: _scale([value for arm, (_, rounds) in each.items() if arm not in unlike[group]
                       for value in rounds.values()])
        for group, each in centred.items()
    }
    errors = [abs(value) / scales[group] for group, each in centred.items() if scales[group]
              for arm, (_, rounds) in each.items() if arm not in unlike[group] for value in rounds.values()]
    count = sum(len(rounds) for each in centred.values() for _, rounds in each.values())
    limit = _limit(errors, count)
    found: dict[Group, dict[Arm, FarProcesses]] = {group: {} for group in groups}
    for group, each in centred.items():
        for arm, (levels, _) in each.items():
            far = _beyond_gap(levels, max(limit * scales[group], log1p(MARGIN)))
            if far is not None and scales[group]:
                found[group][arm] = far
    return found


def _centred[Arm: Hashable](
    logs: RoundLogs[Arm], level_fit: LevelFit[Arm],
) -> dict[Arm, tuple[dict[int, float], dict[int, float]]]:
    """Return the levels of each arm without the effect of the rounds, and their distances from their mean.

    A mean leaves normal errors normal, which robust centres of few rounds do not.  Scaled to the errors' variance.
    """
    centred = {}
    for arm in level_fit.residuals:
        levels = {r: value - level_fit.shared[r] for r, value in logs.levels[arm].items() if r in level_fit.shared}
        if len(levels) >= LEAST:
            middle, times = fmean(levels.values()), (len(levels) / (len(levels) - 1)) ** 0.5
            centred[arm] = levels, {r: (value - middle) * times for r, value in levels.items()}
    return centred


def _scale(errors: Sequence[float]) -> float:
    return median(map(abs, errors)) / HALF if errors else 0.0


def _beyond_gap(levels: Mapping[int, float], least: float) -> FarProcesses | None:
    """Return the processes on one side of the widest gap; None unless it is wider than `least`."""
    ordered = sorted(levels, key=levels.__getitem__)
    widest, place = max((levels[b] - levels[a], index) for index, (a, b) in enumerate(pairwise(ordered), 1))
    if widest <= least:
        return None
    fast, slow = ordered[:place], ordered[place:]
    far, rest = (slow, fast) if len(slow) <= len(fast) else (fast, slow)
    share = expm1(median(levels[r] for r in far) - median(levels[r] for r in rest))
    return FarProcesses(rounds=frozenset(far), share=share, of=len(ordered))


def _limit(errors: Sequence[float], count: int) -> float:
    """Return the distance, in scales, that one of `count` errors exceeds with the probability `LEVEL`."""
    if not errors:
        return inf
    freedom, scale = _fitted_tail(sorted(errors)[::-(-len(errors) // MOST)])
    return min(scale, 1.0) * t_quantile(1 - LEVEL / count, min(freedom, max(count / EACH, LIGHTEST)))


def _fitted_tail(ordered: Sequence[float]) -> tuple[float, float]:
    """Return the degrees of freedom and the scale of the t distribution that absolute errors fit best.

    The largest of them only count as larger than the others (a censored likelihood): an outlier must not make the tail
    by which it is judged.
    """
    edge = ordered[min(int(INNER * len(ordered)), len(ordered) - 1)]
    inner = [value for value in ordered if value <= edge]
    if not edge:
        return LIGHTEST, 1.0

    def likelihood(freedom: float, scale: float) -> float:
        outer = (len(ordered) - len(inner)) * log(max(t_outside(edge / scale, freedom), 1e-300))
        constant = lgamma((freedom + 1) / 2) - lgamma(freedom / 2) - log(freedom) / 2 - log(scale)
        return outer + len(inner) * constant - (freedom + 1) / 2 * sum(
            log1p((value / scale) ** 2 / freedom) for value in inner)

    return max(
        ((freedom, factor * edge / t_quantile(INNER, freedom)) for freedom in FREEDOMS for factor in FACTORS),
        key=lambda each: likelihood(*each))
