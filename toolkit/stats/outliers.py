"""Processes that are far from the others of their arm, farther than the tail of all errors of the run explains.

A process that is 30 % slow for its whole life hardly moves a robust estimate, so nobody would see it in a ratio.  Each
arm is split at the widest gap between its processes, and the two sides are some distance apart.  In order, these
distances grow gradually where errors have one distribution, however heavy its tail: of a Pareto tail with exponent a,
the k-th largest is R times the next one with the probability R^(-a k).  Arms whose distances are beyond a break that
is wider than that have far processes.  So the tail need not be fitted, which the few processes of a run hardly allow,
and an arm that is merely noisier than the others has no flag.

No flag does not mean that no process is far: distances are those of all groups of the run, so in a run with a noisy
group, a process that is 30 % slow in a quiet one can go unflagged, and several far ones can hide one another.

Assumptions: fewer than half of a group's arms have such a process; no tail of errors is heavier than that of Student's
t with three degrees of freedom.

Sources: Renyi (1953), "On the Theory of Order Statistics" (ratios of successive order statistics are independent);
Barnett & Lewis (1994), "Outliers in Statistical Data" (gaps).
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import expm1, log1p
from statistics import median

from gilscope.toolkit.stats.log_times import RoundLogs, effects_of_others, fit
from gilscope.toolkit.stats.verdict import MARGIN

LEVEL = 0.05           # chance of any flag in a run without such processes
TAIL = 3.0             # exponent of the heaviest tail: Student's t with so many degrees of freedom
BREAK = (1 + 1 / LEVEL) ** (1 / TAIL)   # 2.8: sum of R^(-TAIL k) over k is LEVEL at this R
BODY = 2.0             # median distances of a group: up to that, distances are no tail, and their order says nothing
LEAST = 3              # processes of an arm, and arms of a group: of two, either may be the far one
FEWEST = 5             # arms of a run: fewer do not show its tail


@dataclass(frozen=True, slots=True, kw_only=True)
class FarProcesses:
    """The processes of an arm on one side of its widest gap."""

    rounds: frozenset[int]   # theirs: the fewer processes, or the slower ones of two equal halves
    share: float             # by how much their time exceeds that of the arm's others; negative: they are faster
    of: int                  # all processes of the arm


def far_processes[Group: Hashable, Arm: Hashable](
    groups: Mapping[Group, RoundLogs[Arm]],
) -> dict[Group, dict[Arm, FarProcesses]]:
    """Return the arms of each group that have processes far from the others.

    Args:
        groups: The levels of all arms of the run; where rounds disturb one class alone, each class is a group.
    """
    splits = {group: _splits(logs) for group, logs in groups.items()}
    usual = {group: median(abs(log1p(far.share)) for far, _ in each.values())
             for group, each in splits.items() if len(each) >= LEAST}
    distances = {(group, arm): abs(log1p(splits[group][arm][0].share)) / scale
                 for group, scale in usual.items() if scale for arm in splits[group]}
    least = _break(sorted(distances.values(), reverse=True))
    return {
        group: {arm: _without_own_part(groups[group], arm, far) for arm, (far, gap) in each.items()
                if gap > log1p(MARGIN) and least is not None and distances.get((group, arm), 0.0) >= least}
        for group, each in splits.items()
    }


def _splits[Arm: Hashable](logs: RoundLogs[Arm]) -> dict[Arm, tuple[FarProcesses, float]]:
    """Return each arm, split at its widest gap, and that gap; without the effect of the rounds."""
    level_fit = fit(logs)
    if level_fit is None:
        return {}
    found: dict[Arm, tuple[FarProcesses, float]] = {}
    for arm in level_fit.residuals:
        levels = {r: value - level_fit.shared[r] for r, value in logs.levels[arm].items() if r in level_fit.shared}
        if len(levels) >= LEAST:
            found[arm] = _split(levels)
    return found


def _split(levels: Mapping[int, float]) -> tuple[FarProcesses, float]:
    ordered = sorted(levels, key=levels.__getitem__)
    widest, place = max((levels[b] - levels[a], index) for index, (a, b) in enumerate(pairwise(ordered), 1))
    fast, slow = ordered[:place], ordered[place:]
    far = frozenset(slow if len(slow) <= len(fast) else fast)
    return FarProcesses(rounds=far, share=_share(levels, far), of=len(ordered)), widest


def _without_own_part[Arm: Hashable](logs: RoundLogs[Arm], arm: Arm, far: FarProcesses) -> FarProcesses:
    """Return the far processes with their share after the effects of rounds on the other arms alone are removed.

    The effect of a round on all arms has a part of what is far in this one, so a share without it would be too small.
    Distances that decide on flags keep it: they are the smaller ones, of all arms alike.
    """
    effects = effects_of_others(logs, arm)
    levels = {r: value - effects[r] for r, value in logs.levels[arm].items() if r in effects}
    return replace(far, share=_share(levels, far.rounds))


def _share(levels: Mapping[int, float], far: Container[int]) -> float:
    """Return by how much the time of the far processes exceeds that of the others; `levels` has both."""
    return expm1(median(levels[r] for r in levels if r in far) - median(levels[r] for r in levels if r not in far))


def _break(ordered: list[float]) -> float | None:
    """Return the smallest distance beyond the last break of descending distances; None without a break."""
    if len(ordered) < FEWEST:
        return None
    beyond = [far for far, near in pairwise(ordered) if far >= BREAK * max(near, BODY)]
    return min(beyond, default=None)
