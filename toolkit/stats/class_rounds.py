"""What a round does to one class of arms alone, such as those with several workers.

A disturbance of one core slows an arm with two workers, and no arm with one.  All arms of a class have that effect of a
round in common, so ratios within the class do not see it, and neither do A/A arms; ratios between the classes do.  It
is a variance component of its own: class x round.  With few rounds a single group knows little about it, so it is
pooled over the groups of a run, relative to the error of their processes; a group that has significantly more of it
than the others keeps its own.

Assumptions: all arms of a class have the effect alike, and effects of different rounds are independent.

Sources: DerSimonian & Laird (1986), "Meta-Analysis in Clinical Trials" (the variance component by moments, for means of
unequal precision); Satterthwaite (1946), "An Approximate Distribution of Estimates of Variance Components"; Bancroft
(1964), "Analysis and Inference for Incompletely Specified Models Involving the Use of Preliminary Tests of Significance"
(why a component is left out only if p exceeds 25 %).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.distributions import f_above
from gilscope.toolkit.stats.estimators import scale_of_differences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.stats.log_times import LevelFit, RoundLogs

KEPT = 0.25       # p-value from which on the component is left out
DISTINCT = 0.05   # significance level for a group that has more of it than the others
CLIPPED = 3.0     # standard deviations of a process's error: beyond, it is clipped before means are taken


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRounds:
    """The variance component class x round of a run."""

    chance: float        # p-value: the probability of class means this far apart if there is no such component
    share: float         # its variance, over that of a process's error; 0: left out
    freedom: float       # degrees of freedom of its mean square
    mean_square: float   # the part of a process's error in `share` + its own: what `freedom` is about


NO_CLASS_ROUNDS = ClassRounds(chance=1.0, share=0.0, freedom=0.0, mean_square=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    """What one group says about the component."""

    square: float    # weighted sum of the squares of class means; its expectation is `free` if there is none
    free: float
    weight: float    # by how much `square` grows with `share`
    within: float    # degrees of freedom of the variance within classes


def class_rounds[Group: Hashable, Arm: Hashable](
    fits: Mapping[Group, LevelFit[Arm]], logs: Mapping[Group, RoundLogs[Arm]], classes: Mapping[Arm, Hashable],
) -> dict[Group, ClassRounds]:
    """Return the component of each group with more than one class; `chance` is that of the whole run.

    Args:
        fits: Arms and rounds, fitted to `logs`.
        logs: The levels.
        classes: The class of each arm.
    """
    sums = {group: found for group, fit in fits.items() if (found := _sums(fit, logs[group], classes)) is not None}
    if not sums:
        return {}
    every = [*sums.values()]
    pooled = _component(every)
    return {group: _own_or_pooled(each, [other for other in every if other is not each], pooled)
            for group, each in sums.items()}


def _own_or_pooled(sums: _Sums, others: Sequence[_Sums], pooled: ClassRounds) -> ClassRounds:
    if others:
        rest = sum(each.square for each in others) / sum(each.free for each in others)
        if rest and f_above(sums.square / sums.free / rest, sums.free, sum(each.free for each in others)) < DISTINCT:
            own = _component([sums])
            return ClassRounds(chance=min(pooled.chance, own.chance), share=own.share, freedom=own.freedom,
                               mean_square=own.mean_square)
    return pooled


def _component(sums: Sequence[_Sums]) -> ClassRounds:
    square, free = sum(each.square for each in sums), sum(each.free for each in sums)
    weight, within = sum(each.weight for each in sums), sum(each.within for each in sums)
    chance = f_above(square / free, free, within)
    if chance > KEPT or square <= free:
        return ClassRounds(chance=chance, share=0.0, freedom=free, mean_square=0.0)
    return ClassRounds(chance=chance, share=(square - free) / weight, freedom=free, mean_square=square / weight)


def _sums[Arm: Hashable](
    fit: LevelFit[Arm], logs: RoundLogs[Arm], classes: Mapping[Arm, Hashable],
) -> _Sums | None:
    """Return the sums of a group; None if it has one class, or too few arms to know the error within classes."""
    pooled = sorted(value for each in fit.residuals.values() for value in each.values())
    most = CLIPPED / 2**0.5 * scale_of_differences(tuple(pooled))
    rest: dict[Hashable, dict[int, list[float]]] = {}
    for arm, rounds in fit.residuals.items():
        for r in rounds:
            value = logs.levels[arm][r] - fit.shared[r] - fit.centers[arm]
            rest.setdefault(classes[arm], {}).setdefault(r, []).append(max(-most, min(value, most)))
    if len(rest) < 2 or not most:  # noqa: PLR2004 - nothing to compare
        return None
    arms = {name: sum(classes[arm] == name for arm in fit.residuals) for name in rest}
    variances, within = _within(rest, arms)
    if not within:
        return None
    means = {name: {r: fmean(values) for r, values in by_round.items()} for name, by_round in rest.items()}
    middles = {name: fmean(each.values()) for name, each in means.items()}
    usual = sum(variances.values()) / len(variances)
    square = weight = 0.0
    shared = [r for r in fit.shared if sum(r in each for each in rest.values()) > 1]
    for r in shared:
        known = [(len(rest[name][r]) / (variances.get(name) or usual), means[name][r] - middles[name])
                 for name in rest if r in rest[name]]
        total = sum(w for w, _ in known)
        center = sum(w * value for w, value in known) / total
        square += sum(w * (value - center) ** 2 for w, value in known)
        weight += total - sum(w * w for w, _ in known) / total
    rounds, free = len(shared), (len(shared) - 1) * (len(rest) - 1)
    if free <= 0:
        return None
    return _Sums(square=square, free=free, weight=weight * usual * (rounds - 1) / rounds, within=within)


def _within(
    rest: Mapping[Hashable, Mapping[int, Sequence[float]]], arms: Mapping[Hashable, int],
) -> tuple[dict[Hashable, float], float]:
    """Return the variance within each class that has several arms, and the degrees of freedom of them together."""
    variances: dict[Hashable, float] = {}
    within = 0.0
    for name, by_round in rest.items():
        count = sum(map(len, by_round.values()))
        free = count - arms[name] - len(by_round) + 1
        square = sum((value - fmean(values)) ** 2 for values in by_round.values() for value in values)
        if free > 0 and arms[name] > 1 and 0 < square < inf:
            variances[name] = square / free
            within += free
    return variances, within
