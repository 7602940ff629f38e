"""Check the noise of a run by its A/A arms, which are measured twice."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.distributions import NORMAL, chi_square_above, t_outside, t_quantile
from gilscope.toolkit.stats.noise import Noise, pool_noise
from gilscope.toolkit.stats.ratios import compare_pairs
from gilscope.toolkit.stats.sample import CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.stats.log_times import RoundLogs
    from gilscope.toolkit.stats.pair_kinds import ArmClass
    from gilscope.toolkit.stats.ratios import Ratio

CHANCE = 0.05      # significance level: below it the pooled noise is considered too small
FARTHEST = 8.0     # the largest normal score of an arm: a single one widens a run by no more


@dataclass(frozen=True, slots=True, kw_only=True)
class AACheck:
    """The result of checking the pooled noise by the A/A arms."""

    arms: int
    chance: float      # p-value: the probability of differences this large if the pooled noise is right
    widening: float    # factor on all intervals and floors: 1.0 unless the p-value is below 5 %


def check_aa_pairs(aa_pairs: Sequence[Ratio]) -> AACheck:
    """Check the pooled noise by arms that are equal by construction.

    Each A/A ratio over its error goes through Student's distribution to a normal score; the squares of m scores add up
    to chi-square with m degrees of freedom.  If its p-value is below 5 %, all intervals are widened by the root of the
    mean square: the factor by which the errors must have been too small.

    Args:
        aa_pairs: The A/A ratios of a run by one clock, compared by the noise of their groups; no two share an arm.

    Source: Birge (1932), "The Calculation of Errors by the Method of Least Squares" (the factor).
    """
    squares = sum(_normal_score(each) ** 2 for each in aa_pairs)
    chance = chi_square_above(squares, len(aa_pairs)) if aa_pairs else 1.0
    widening = max(sqrt(squares / len(aa_pairs)), 1.0) if chance < CHANCE else 1.0
    return AACheck(arms=len(aa_pairs), chance=chance, widening=widening)


def _normal_score(ratio: Ratio) -> float:
    """Return the normal score that is as improbable as the ratio's distance from 1."""
    if ratio.center == 0:
        return 0.0
    reach = ratio.noise.reach(CONFIDENCE, ratio.rounds)
    if not ratio.error or reach == inf:
        return 0.0 if reach == inf else FARTHEST
    freedom = ratio.noise.freedom(ratio.rounds)
    distance = abs(ratio.center) / ratio.error * t_quantile(CONFIDENCE, freedom) / reach
    return min(-NORMAL.inv_cdf(max(t_outside(distance, freedom) / 2, 1e-30)), FARTHEST)


def checked_noise[Group: Hashable, Arm: Hashable](
    groups: Mapping[Group, RoundLogs[Arm]], aa_pairs: Mapping[Group, Sequence[tuple[Arm, Arm]]], *,
    classes: Mapping[Arm, ArmClass] | None = None, treatments: Mapping[Arm, Hashable] | None = None,
    shared_rounds: bool = False,
) -> tuple[dict[Group, Noise], AACheck]:
    """Return the noise of each group of a run by one clock, widened if the A/A arms require it, and their check.

    Args:
        groups: Arms that share rounds, including both arms of each A/A pair.
        aa_pairs: The A/A pairs by group; a group may have none.
        classes: The class of every arm, see `pool_noise`.
        treatments: What arms of different groups have in common, see `pool_noise`.
        shared_rounds: See `pool_noise`.
    """
    noises = pool_noise(groups, classes=classes, treatments=treatments, shared_rounds=shared_rounds)
    check = check_aa_pairs([
        ratio for group, pairs in aa_pairs.items()
        for ratio in compare_pairs(groups[group], noises[group], pairs).values()
    ])
    return {group: noise.widened(check.widening) for group, noise in noises.items()}, check
