"""The effect of a round on one class of arms alone, such as those with several workers.

A disturbance of one core slows an arm with two workers, and no arm with one.  All arms of a class have that effect of a
round in common, so ratios within the class do not see it, and neither do A/A arms; ratios between the classes do.  It
is a variance component of its own: class x round.  With few rounds a single group knows little about it, so it is
pooled over the groups of a run, relative to the error of their processes; a group that has significantly more of it
than the others keeps its own.

A disturbance may last for several rounds: the effects of successive rounds then agree better with each other than with
the truth.  Their lag-1 correlation is estimated as that of errors is (`serial_correlation`).

Assumption: all arms of a class have the effect alike.

Sources: DerSimonian & Laird (1986), "Meta-Analysis in Clinical Trials" (the variance component by moments, for means of
unequal precision); Satterthwaite (1946), "An Approximate Distribution of Estimates of Variance Components"; Bancroft
(1964), "Analysis and Inference for Incompletely Specified Models Involving the Use of Preliminary Test(s) of
Significance" (why a component is left out only if p exceeds 25 %).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.stats.distributions import f_above
from gilscope.toolkit.stats.estimators import FAR_OUT, scale_of_differences
from gilscope.toolkit.stats.serial_correlation import (
    INDEPENDENT,
    KEPT,
    SerialCorrelation,
    effect_correlation,
    freedom_loss,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.stats.log_times import LevelFit, RoundLogs

DISTINCT = 0.05   # significance level for a group that has more of it than the others
ALIKE = 10.0      # degrees of freedom that say in advance that the classes err alike


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRounds:
    """The variance component class x round of a run."""

    chance: float        # p-value: the probability of class means this far apart if there is no such component
    share: float         # its variance, over that of a process's error; 0: left out
    freedom: float       # degrees of freedom of its mean square
    mean_square: float   # the part of a process's error in `share` + its own: what `freedom` is about
    correlation: SerialCorrelation = INDEPENDENT   # of the effects of successive rounds


NO_CLASS_ROUNDS = ClassRounds(chance=1.0, share=0.0, freedom=0.0, mean_square=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    """The estimate of the component from one group."""

    square: float    # weighted sum of the squares of class means; its expectation is `free` if there is none
    free: float
    weight: float    # by how much `square` grows with `share`
    within: float    # degrees of freedom of the variance within classes
    effects: tuple[tuple[float, ...], ...]   # on a class against another, of consecutive rounds, in standard errors


def class_rounds[Group: Hashable, Arm: Hashable](
    fits: Mapping[Group, LevelFit[Arm]], logs: Mapping[Group, RoundLogs[Arm]], classes: Mapping[Arm, Hashable],
) -> dict[Group, ClassRounds]:
    """Return the component of each group with more than one class; `chance` is that of the whole run.

    Args:
        fits: Arms and rounds, fitted to `logs`.
        logs: The levels.
        classes: The class of each arm.
    """
    rests = {group: rest for group, fit in fits.items() if len(rest := _rest(fit, logs[group], classes)) > 1}
    factors = _class_factors(rests.values())
    sums = {group: found for group, rest in rests.items()
            if (found := _sums(rest, factors, fits[group].residuals)) is not None}
    if not sums:
        return {}
    distinct = {group for group in sums if _is_distinct(group, sums)}
    chance = _component([*sums.values()]).chance
    pooled = _component([each for group, each in sums.items() if group not in distinct])
    return {group: replace(_component([each]) if group in distinct else pooled, chance=chance)
            for group, each in sums.items()}


def _is_distinct[Group: Hashable](group: Group, sums: Mapping[Group, _Sums]) -> bool:
    """Return True if a group has significantly more of the component than the others together (Bonferroni)."""
    others = [each for other, each in sums.items() if other != group]
    rest = sum(each.square for each in others)
    if not rest:
        return False
    free, own = sum(each.free for each in others), sums[group]
    return f_above(own.square / own.free / (rest / free), own.free, free) < DISTINCT / len(sums)


def _component(sums: Sequence[_Sums]) -> ClassRounds:
    square, free = sum(each.square for each in sums), sum(each.free for each in sums)
    weight, within = sum(each.weight for each in sums), sum(each.within for each in sums)
    chance = f_above(square / free, free, within)
    if chance > KEPT or square <= free:
        return ClassRounds(chance=chance, share=0.0, freedom=free, mean_square=0.0)
    series = [effects for each in sums for effects in each.effects]
    correlation = effect_correlation(series, 1 - free / square)
    lost = freedom_loss(correlation.applied, round(fmean(map(len, series)))) if series else 1.0
    return ClassRounds(chance=chance, share=(square - free) / weight, freedom=free / lost, mean_square=square / weight,
                       correlation=correlation)


type _Rest = Mapping[Hashable, Mapping[int, Sequence[float]]]   # what arms and rounds leave, by class and round


def _rest[Arm: Hashable](fit: LevelFit[Arm], logs: RoundLogs[Arm], classes: Mapping[Arm, Hashable]) -> _Rest:
    """Return the residuals of a group's levels after the fit of arms and rounds."""
    pooled = sorted(value for each in fit.residuals.values() for value in each.values())
    most = FAR_OUT / 2**0.5 * scale_of_differences(tuple(pooled))
    rest: dict[Hashable, dict[int, list[float]]] = {}
    for arm, rounds in fit.residuals.items():
        for r in rounds:
            value = logs.levels[arm][r] - fit.shared[r] - fit.centers[arm]
            rest.setdefault(classes[arm], {}).setdefault(r, []).append(value)
    return {name: {r: _clipped(values, most) for r, values in by_round.items()} for name, by_round in rest.items()}


def _clipped(values: Sequence[float], most: float) -> list[float]:
    """Return the values, none farther than `most` from their median: one slow process is no effect of its class."""
    middle = median(values)
    return [middle + max(-most, min(value - middle, most)) for value in values]


def _within(by_round: Mapping[int, Sequence[float]]) -> tuple[float, float]:
    """Return the sum of squares within the rounds of a class, and its degrees of freedom; 0 for a single arm."""
    arms = max(map(len, by_round.values()))
    count = sum(map(len, by_round.values()))
    square = sum((value - fmean(values)) ** 2 for values in by_round.values() for value in values)
    return square, max(count - arms - len(by_round) + 1, 0.0) if arms > 1 else 0.0


def _class_factors(rests: Iterable[_Rest]) -> dict[Hashable, float]:
    """Return the variance of each class over that of its group, pooled over groups, as a class may have few arms."""
    sums: dict[Hashable, list[float]] = {}
    for rest in rests:
        parts = {name: _within(by_round) for name, by_round in rest.items()}
        free = sum(each for _, each in parts.values())
        usual = sum(square for square, _ in parts.values()) / free if free else 0.0
        for name, (square, own) in parts.items():
            if usual:
                total = sums.setdefault(name, [ALIKE, ALIKE])
                total[0] += square / usual
                total[1] += own
    return {name: square / free for name, (square, free) in sums.items()}


def _sums(
    rest: _Rest, factors: Mapping[Hashable, float], by_arm: Mapping[Any, Mapping[int, float]],
) -> _Sums | None:
    """Return the sums of a group; None if it has too few arms or rounds to know the error within classes."""
    parts = [_within(by_round) for by_round in rest.values()]
    within = sum(free for _, free in parts)
    shared = [r for r in dict.fromkeys(r for each in rest.values() for r in each)
              if sum(r in each for each in rest.values()) > 1]
    rounds, free = len(shared), (len(shared) - 1) * (len(rest) - 1)
    usual = sum(square for square, _ in parts) / within if within else 0.0
    if not usual or free <= 0:
        return None
    means = {name: {r: fmean(values) for r, values in by_round.items()} for name, by_round in rest.items()}
    middles = {name: fmean(each.values()) for name, each in means.items()}
    square = weight = 0.0
    effects: dict[Hashable, dict[int, float]] = {}   # by class: against the first of the round
    for r in shared:
        names = [name for name in rest if r in rest[name]]
        known = [(len(rest[name][r]) / (factors[name] * usual), means[name][r] - middles[name]) for name in names]
        total = sum(w for w, _ in known)
        center = sum(w * value for w, value in known) / total
        square += sum(w * (value - center) ** 2 for w, value in known)
        weight += total - sum(w * w for w, _ in known) / total
        (first, base), *others = known
        for name, (w, value) in zip(names[1:], others, strict=True):
            effects.setdefault(name, {})[r] = (value - base) / (1 / w + 1 / first) ** 0.5
    return _Sums(square=square, free=free, weight=weight * usual * (rounds - 1) / rounds, within=within, effects=tuple(
        stretch for each in effects.values() for stretch in _stretches(each, by_arm)))


def _stretches(effects: Mapping[int, float], by_arm: Mapping[Any, Mapping[int, float]]) -> list[tuple[float, ...]]:
    """Return the effects of consecutive rounds together, apart where no arm goes on, as between sessions."""
    found: list[list[float]] = []
    for r in sorted(effects):
        goes_on = r - 1 in effects and any(r - 1 in rounds and r in rounds for rounds in by_arm.values())
        if goes_on:
            found[-1].append(effects[r])
        else:
            found.append([effects[r]])
    return [tuple(each) for each in found]
