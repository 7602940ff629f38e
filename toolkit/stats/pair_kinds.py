"""The spread of a kind of pairs: of different classes of workers, or of different builds.

It is relative to the spread of pairs that have the same class of workers, on the same build or not.

A disturbance of one core slows arms with two workers, and no arm with one; a build may be favoured for a round by its
memory layout.  All arms of a class share that, so pairs within the class do not see it, and neither do A/A arms; pairs
across classes do.  With few rounds a pair alone knows little about it, so the variance of its differences over rounds
is pooled by kind over all workloads of a run, relative to that of pairs within a class of workers, from which the
spread of a workload is pooled, too.  A workload whose own pairs of the kind show more than that keeps what they show:
what disturbed it alone would be diluted by the others.

Pairs of one workload share their rounds, so they are as many observations of the excess as there are rounds.

Assumption: the excess is the same for all pairs of a kind in a workload.

Source: Satterthwaite (1946), "An Approximate Distribution of Estimates of Variance Components".
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from math import inf
from operator import attrgetter
from statistics import fmean, median
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.estimators import FAR_OUT, scale_of_differences

if TYPE_CHECKING:
    from gilscope.toolkit.stats.log_times import LevelFit, RoundLogs


class PairKind(StrEnum):
    """What the two arms of a pair have in common."""

    WITHIN = "within a class"
    ACROSS = "across classes"       # of workers
    BUILDS = "between builds"       # in the same class of workers


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmClass:
    """What a round may disturb by itself: arms of one class of workers, or of one build."""

    workers: Hashable
    build: Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSpread:
    """The spread of the pairs of a kind."""

    ratio: float      # of their variance over rounds, to that of pairs within a class of workers
    freedom: float    # degrees of freedom of the excess: rounds, not pairs

    def prior(self, usual: float) -> float:
        """Return the degrees of freedom of the kind's spread, where that within a class of workers has `usual` ones."""
        uncertain = (self.ratio - 1) ** 2 / self.freedom + (1 / usual if usual else inf)
        return self.ratio**2 / uncertain if uncertain else inf


def kind_of(one: ArmClass | None, other: ArmClass | None) -> PairKind:
    """Return the kind of a pair of arms; arms without a class are of the same one."""
    if one is None or other is None or one == other:
        return PairKind.WITHIN
    return PairKind.ACROSS if one.workers != other.workers else PairKind.BUILDS


def kind_spreads[Group: Hashable, Arm: Hashable](
    fits: Mapping[Group, LevelFit[Arm]], logs: Mapping[Group, RoundLogs[Arm]], classes: Mapping[Arm, ArmClass],
    unlike: Mapping[Group, Collection[Arm]], *, shared_rounds: bool = False,
) -> dict[Group, dict[PairKind, KindSpread]]:
    """Return the spread of each kind of pairs but those of one class, by workload.

    Args:
        fits: Arms and rounds, fitted to `logs`.
        logs: The levels of all workloads.
        classes: The class of each arm.
        unlike: The arms that err unlike the others: these do not count.
        shared_rounds: True if a round is one time for all workloads, as a session is: what it does to one, it may do to
            all, so more workloads are no more observations.
    """
    own = {group: _own_spreads(_clipped(fit, logs[group], classes), classes, unlike[group])
           for group, fit in fits.items()}
    total = max if shared_rounds else sum
    pooled: dict[PairKind, KindSpread] = {}
    for kind in PairKind:
        if pool := [each[kind] for each in own.values() if kind in each]:
            ratio = _mean([(each.ratio, each.freedom) for each in pool])
            pooled[kind] = KindSpread(ratio=max(ratio, 1.0), freedom=total(each.freedom for each in pool))
    return {group: {kind: max(usual, each.get(kind, usual), key=attrgetter("ratio")) for kind, usual in pooled.items()}
            for group, each in own.items()}


def _own_spreads[Arm: Hashable](
    levels: Mapping[Arm, Mapping[int, float]], classes: Mapping[Arm, ArmClass], unlike: Collection[Arm],
) -> dict[PairKind, KindSpread]:
    """Return the spreads that a workload's own pairs show."""
    variances: dict[PairKind, list[tuple[float, float]]] = {}   # with their degrees of freedom
    for one, other in combinations([arm for arm in levels if arm not in unlike], 2):
        away = [levels[one][r] - levels[other][r] for r in levels[one] if r in levels[other]]
        if len(away) > 1:
            kind = kind_of(classes[one], classes[other])
            middle, freedom = fmean(away), len(away) - 1
            # Not statistics.variance, whose exact fractions take a tenth of the time of a report.
            squares = sum((value - middle) ** 2 for value in away)
            variances.setdefault(kind, []).append((squares / freedom, freedom))
    # The unit is that of `noise`, whose errors are those within a class of workers, over all builds.
    inside = [*variances.pop(PairKind.WITHIN, ()), *variances.get(PairKind.BUILDS, ())]
    unit = _mean(inside) if inside else 0.0
    rounds = max(map(len, levels.values()))
    return {kind: KindSpread(ratio=_mean(found) / unit, freedom=rounds - 1)
            for kind, found in variances.items()} if unit else {}


def _mean(weighted: list[tuple[float, float]]) -> float:
    return sum(value * weight for value, weight in weighted) / sum(weight for _, weight in weighted)


def _clipped[Arm: Hashable](
    fit: LevelFit[Arm], logs: RoundLogs[Arm], classes: Mapping[Arm, ArmClass],
) -> dict[Arm, dict[int, float]]:
    """Return the levels less their arms' centres, none farther from its class in the round than errors usually are.

    One slow process is no effect of the round.
    """
    most = FAR_OUT / 2**0.5 * scale_of_differences(sorted(
        value for rounds in fit.residuals.values() for value in rounds.values()))
    levels = {arm: {r: logs.levels[arm][r] - fit.centers[arm] for r in rounds} for arm, rounds in fit.residuals.items()}
    together: dict[tuple[Hashable, int], list[float]] = {}
    for arm, rounds in levels.items():
        for r, value in rounds.items():
            together.setdefault((classes[arm].workers, r), []).append(value)
    middles = {key: median(values) for key, values in together.items()}
    return {arm: {r: middle + max(-most, min(value - middle, most)) for r, value in rounds.items()
                  for middle in (middles[classes[arm].workers, r],)}
            for arm, rounds in levels.items()}
