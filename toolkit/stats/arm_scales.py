"""The scales of arms: how much they scatter, and which arms err unlike the others of the run.

The variance of an arm that errs like the others says little by itself and is moderated by theirs.  An arm that errs far
more than they do, in all of its processes or because a few of them are slow, must neither be moderated by the others
nor widen them.  The scatter of the log variances of all arms says how large a variance may be by chance: variances of
d degrees of freedom that are moderated by a prior of d0 have an F distribution, whose d0 follows from their
interquartile range, which a quarter of unlike arms cannot change.

Assumptions: fewer than a quarter of the arms are unlike the others.

Sources: Phipson, Lee, Majewski, Alexander & Smyth (2016), "Robust Hyperparameter Estimation Protects against
Hypervariable Genes and Improves Power to Detect Differential Expression" (the prior by robust quantities, and arms with
a prior of their own); Smyth (2004), section 6.2 (the scatter); Benjamini & Hochberg (1995) (how
many of the largest).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cache
from math import exp, inf, log, sqrt
from statistics import fmean, median, quantiles
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.distributions import digamma, f_above, f_quantile, inverse_trigamma, t_outside, trigamma
from gilscope.toolkit.stats.estimators import FAR_OUT, NORMAL_MAD, scale_of_differences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.stats.log_times import ArmErrors

LEAST_SHARE = 1e-5     # of a group's median variance: the least for an arm, as clocks have a resolution
ALONE = 3              # arms needed to estimate the scatter of scales: two have the same residuals
FEWEST = 8             # arms of a run, or treatments, from which on one can be called unlike the others
FALSE_SHARE = 0.1      # expected share of like arms among those called unlike, which then use their own spread alone
LEAST_PRIOR, MOST_PRIOR = 0.5, 1e4   # degrees of freedom between which the prior of the F distribution is searched


def unlike_arms[Group: Hashable, Arm: Hashable](
    groups: Mapping[Group, Mapping[Arm, ArmErrors]], treatments: Mapping[Arm, Hashable] | None = None,
) -> dict[Group, frozenset[Arm]]:
    """Return the arms of each group whose variance is larger than the scatter of all arms' variances explains.

    Args:
        groups: The errors of every group of the run, by arm.
        treatments: What the arms of different groups have in common, such as build and model.  A treatment that errs
            unlike the others in all groups together is seen with fewer rounds than in one group.
    """
    none: dict[Group, frozenset[Arm]] = dict.fromkeys(groups, frozenset())
    sizes = {
        (group, arm): (log(variance), each[arm].freedom)
        for group, each in groups.items() if len(each) >= ALONE for arm, variance in _variances(each).items()
    }
    if len(sizes) < FEWEST:
        return none
    found = _outlying(sizes, treatments)
    return {group: frozenset(arm for arm in each if (group, arm) in found) for group, each in groups.items()}


def _outlying[Group: Hashable, Arm: Hashable](
    sizes: Mapping[tuple[Group, Arm], tuple[float, float]], treatments: Mapping[Arm, Hashable] | None,
) -> set[tuple[Group, Arm]]:
    """Return the arms with too large a variance.

    Args:
        sizes: Log variance and degrees of freedom, of at least `FEWEST` arms.
        treatments: See `unlike_arms`.
    """
    of_group: dict[Group, list[float]] = {}
    for (group, _), (size, _) in sizes.items():
        of_group.setdefault(group, []).append(size)
    middles = {group: median(each) for group, each in of_group.items()}
    low, _, high = quantiles([size - middles[group] for (group, _), (size, _) in sizes.items()], n=4)
    prior = _prior_by_quartiles(high - low, round(median(free for _, free in sizes.values()), 2))
    chances = {
        key: f_above(exp(size - middles[key[0]]) * f_quantile(0.5, round(free, 2), prior), free, prior)
        for key, (size, free) in sizes.items()
    }
    found = _discoveries(chances)
    if treatments is not None:
        together: dict[Hashable, list[float]] = {}
        for group, arm in chances:
            together.setdefault(treatments[arm], []).append(sizes[group, arm][0] - middles[group])
        sampling = trigamma(median(free for _, free in sizes.values()) / 2)
        large = _discoveries(_treatment_chances(together, sampling))
        found |= {(group, arm) for group, arm in chances if treatments[arm] in large}
    return found


def _treatment_chances[Key: Hashable](sizes: Mapping[Key, Sequence[float]], sampling: float) -> dict[Key, float]:
    """Return the p-value of each treatment: its mean log variance over groups against the scatter of all treatments.

    Args:
        sizes: The log variances of each treatment's arms, those of a group around their median.
        sampling: The variance of one of them by chance alone, a lower bound of the scatter.
    """
    if len(sizes) < FEWEST:
        return {}
    scores = {key: fmean(each) * sqrt(len(each)) for key, each in sizes.items()}
    middle = median(scores.values())
    scatter = max(median(abs(score - middle) for score in scores.values()) / NORMAL_MAD, sqrt(sampling))
    outside = {key: t_outside((score - middle) / scatter, len(sizes) - 1) / 2 for key, score in scores.items()}
    return {key: chance if scores[key] > middle else 1 - chance for key, chance in outside.items()}


def _discoveries[Key: Hashable](chances: Mapping[Key, float]) -> set[Key]:
    """Return the keys with small p-values, at most `FALSE_SHARE` of them by chance.

    Source: Benjamini & Hochberg (1995), "Controlling the False Discovery Rate".
    """
    ordered = sorted(chances.values())
    most = max((chance for rank, chance in enumerate(ordered, 1) if chance <= FALSE_SHARE * rank / len(ordered)),
               default=-1.0)
    return {key for key, chance in chances.items() if chance <= most}


def scatter_of_scales[Arm: Hashable](groups: Sequence[Mapping[Arm, ArmErrors]]) -> float:
    """Return the prior's degrees of freedom: few if the arms of a group differ in scale, infinite if they do not.

    Source: Smyth (2004), section 6.2, with a separate mean for each group.
    """
    squares, free, sampling = 0.0, 0, 0.0
    for group in map(_log_variances, groups):
        if group:
            middle = fmean(value for value, _ in group)
            squares += sum((value - middle) ** 2 for value, _ in group)
            free += len(group) - 1
            sampling += fmean(expected for _, expected in group) * (len(group) - 1)
    if not free:
        return inf
    between = (squares - sampling) / free
    return 2 * inverse_trigamma(between) if between > trigamma(1e6) else inf


def _log_variances[Arm: Hashable](by_arm: Mapping[Arm, ArmErrors]) -> list[tuple[float, float]]:
    """Return the unbiased log variance of each arm, and the variance of that by sampling alone."""
    if len(by_arm) < ALONE:
        return []
    # An outlier belongs to the shape of the errors, not to the scale of its arm; unclipped, it would make the arms look
    # too different for pooling.
    pooled = sorted(value for errors in by_arm.values() for value in errors.by_round.values())
    variances = _variances(by_arm, FAR_OUT / 2**0.5 * scale_of_differences(pooled))
    return [
        (log(variance) - digamma(free / 2) + log(free / 2), trigamma(free / 2))
        for arm, variance in variances.items() for free in (by_arm[arm].freedom,)
    ]


def _variances[Arm: Hashable](by_arm: Mapping[Arm, ArmErrors], most: float = inf) -> dict[Arm, float]:
    """Return the variance of each arm, its residuals clipped at `most`; empty if they have none."""
    variances = {arm: fmean(min(abs(value), most) ** 2 for value in errors.by_round.values())
                 for arm, errors in by_arm.items()}
    least = LEAST_SHARE * median(variances.values())
    return {arm: max(variance, least) for arm, variance in variances.items()} if least > 0 else {}


@cache
def _prior_by_quartiles(distance: float, free: float) -> float:
    """Return the degrees of freedom d0 at which the quartiles of log F(free, d0) are `distance` apart."""
    low, high = LEAST_PRIOR, MOST_PRIOR
    while high / low > 1.05:  # a twentieth is far below the error of the quartiles
        middle = (low * high) ** 0.5
        wide = log(f_quantile(0.75, free, middle) / f_quantile(0.25, free, middle)) > distance
        low, high = (middle, high) if wide else (low, middle)
    return low
