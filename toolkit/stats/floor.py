"""The noise floor: what a build differs by from itself in one session.  Nothing smaller is a change."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.distributions import NORMAL, chi_square_above, t_outside, t_quantile
from gilscope.toolkit.stats.noise import DRAWS, Noise, pool_noise
from gilscope.toolkit.stats.ratios import compare_pairs
from gilscope.toolkit.stats.sample import CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.stats.log_times import RoundLogs
    from gilscope.toolkit.stats.ratios import Ratio

CHANCE = 0.05      # below it the pooled noise is taken for too small
FARTHEST = 8.0     # of a normal score: no single arm widens a whole run more


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What a cell of a group may differ by from itself."""

    error: float | None       # what the worst A/A arm was off by, a share; None: no A/A arm shows it
    bound: float              # what it may differ by, by the spread of all processes; the error or more
    rounds: int               # of the cell


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinCheck:
    """Whether the A/A arms differ by what the pooled noise says they may."""

    arms: int
    chance: float      # of arms as far apart as these if the pooled noise is right
    widening: float    # of all intervals and floors: 1.0 unless the chance is below 5 %


def check_twins(twins: Sequence[Ratio]) -> TwinCheck:
    """Check the pooled noise by arms that are equal by construction.

    Each A/A ratio over its error goes through Student's distribution to a normal score; the squares of m scores add up
    to chi-square with m degrees of freedom.  If that sum has a chance below 5 %, all intervals are widened by the root
    of its mean: what divided errors must have been too small by.

    Args:
        twins: The A/A ratios of a run by one clock, compared by the noise of their groups; each of its own two arms.

    Source: Birge (1932), "The Calculation of Errors by the Method of Least Squares" (the factor).
    """
    squares = sum(_normal_score(each) ** 2 for each in twins)
    chance = chi_square_above(squares, len(twins)) if twins else 1.0
    widening = max(sqrt(squares / len(twins)), 1.0) if chance < CHANCE else 1.0
    return TwinCheck(arms=len(twins), chance=chance, widening=widening)


def _normal_score(ratio: Ratio) -> float:
    """Return how far off 1 the ratio is, in standard deviations of a normal variable as improbable."""
    if ratio.center == 0:
        return 0.0
    reach = ratio.noise.reach(CONFIDENCE, ratio.rounds)
    if not ratio.error or reach == inf:
        return 0.0 if reach == inf else FARTHEST
    freedom = ratio.noise.freedom(ratio.rounds)
    distance = abs(ratio.center) / ratio.error * t_quantile(CONFIDENCE, freedom) / reach
    return min(-NORMAL.inv_cdf(max(t_outside(distance, freedom) / 2, 1e-30)), FARTHEST)


def checked_noise[Group: Hashable, Arm: Hashable](
    groups: Mapping[Group, RoundLogs[Arm]], twins: Mapping[Group, Sequence[tuple[Arm, Arm]]], *,
    draws: int = DRAWS, seed: int = 0,
) -> tuple[dict[Group, Noise], TwinCheck]:
    """Return the noise of each group of a run by one clock, widened where the A/A arms say so, and what they say.

    Args:
        groups: Arms that share rounds, the second arm of each A/A pair among them.
        twins: By group, the A/A pairs; a group may have none.
        draws: Of the bootstrap, 0 for none.
        seed: Of the draws.
    """
    noises = pool_noise(groups, draws=draws, seed=seed)
    check = check_twins([
        ratio for group, pairs in twins.items()
        for ratio in compare_pairs(groups[group], noises[group], pairs).values()
    ])
    return {group: replace(noise, widening=check.widening) for group, noise in noises.items()}, check
