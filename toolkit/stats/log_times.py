"""What all comparisons start from: for each arm and round one number, the log of the process's seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, log, nan
from typing import Self

from gilscope.toolkit.stats.estimators import hodges_lehmann, trimmed_mean

SWEEPS = 3   # over passes and arms in turn; what a fourth changes is far below the noise


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundLogs[Arm: Hashable]:
    """Arms whose processes were alive in the same rounds: as a rule those of one workload, by one clock.

    A round that an arm missed (it was starved, failed, or had rounds enough) is not among its rounds.
    """

    levels: Mapping[Arm, Mapping[int, float]]   # log seconds by round, one for each process

    @classmethod
    def of_seconds(cls, seconds: Mapping[Arm, Mapping[int, float]]) -> Self:
        """Return the logs of arms whose processes were measured one after the other: one number each, no passes."""
        return cls(levels={arm: {r: log(value) for r, value in rounds.items()} for arm, rounds in seconds.items()})

    def difference(self, baseline: Arm, sample: Arm) -> dict[int, float]:
        """Return by round the log of how many times faster `sample` was; rounds that only one of them has are left out.

        A slow minute of the machine slows both, and is not in it.
        """
        left, right = self.levels.get(baseline, {}), self.levels.get(sample, {})
        return {r: left[r] - right[r] for r in left if r in right}


def by_pass(values: Sequence[float], passes: Sequence[int]) -> list[float]:
    """Return a process's values, each at the place of the pass that it was taken in; NaN elsewhere, and for 0."""
    found = [nan] * (max(passes) + 1)
    for place, value in zip(passes, values, strict=False):
        found[place] = value or nan
    return found


def process_levels[Arm: Hashable](passes: Mapping[Arm, Sequence[float]]) -> dict[Arm, float]:
    """Return one log level for each process of one round, without what the machine did from pass to pass.

    Neighbours change within a second, and pass k of all arms is of one second: what all arms have in common in a pass
    is the machine's (a trimmed mean, so that no arm's burst counts as everybody's), the Hodges-Lehmann estimate of what
    is left is the process's.  With two arms, the difference of their levels is the Hodges-Lehmann estimate of the
    differences pass by pass.

    Args:
        passes: Seconds by arm, pass k at index k; NaN, or nothing at the end, where an arm has no value.

    Returns:
        Log seconds by arm; arms without any value are left out.
    """
    logs = {
        arm: {k: log(value) for k, value in enumerate(values) if not isnan(value)} for arm, values in passes.items()
    }
    together = Counter(k for values in logs.values() for k in values)
    # What an arm did alone has nothing to be set against; it serves where there is nothing else.
    logs = {arm: {k: v for k, v in values.items() if together[k] > 1} or values for arm, values in logs.items()}
    logs = {arm: values for arm, values in logs.items() if values}
    levels = _start(logs)
    for _ in range(SWEEPS):
        shared = _shared(logs, levels)
        levels = {
            arm: hodges_lehmann([value - shared[k] for k, value in values.items()])
            for arm, values in logs.items()
        }
    return levels


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit[Arm: Hashable]:
    """A group's levels, each as that of its arm, what its round has in common, and a rest."""

    centers: Mapping[Arm, float]                    # log seconds
    shared: Mapping[int, float]                     # by round, 0 on the whole
    residuals: Mapping[Arm, Mapping[int, float]]    # see `residuals`


def residuals[Arm: Hashable](logs: RoundLogs[Arm]) -> Mapping[Arm, Mapping[int, float]]:
    """Return what is left of each level without its arm and its round, scaled up to an error's own size.

    Fitting an arm and a round takes some of the error away; residuals times root (n / (n - arms - rounds + 1)) have the
    errors' variance.  Arms with less than two rounds, and rounds of less than two arms, tell nothing and are left out.

    Returns:
        Log residuals by arm and round; empty when there are not more numbers than arms and rounds.
    """
    found = fit(logs)
    return {} if found is None else found.residuals


def fit[Arm: Hashable](logs: RoundLogs[Arm]) -> Fit[Arm] | None:
    """Return what arms and rounds explain of the levels, None when there are not more numbers than both."""
    levels = _connected(logs.levels)
    if not levels:
        return None
    centers = _start(levels)
    shared: dict[int, float] = {}
    for _ in range(SWEEPS):
        shared = _shared(levels, centers)
        centers = {
            arm: hodges_lehmann([value - shared[r] for r, value in rounds.items()]) for arm, rounds in levels.items()
        }
    count = sum(map(len, levels.values()))
    free = count - len(levels) - len(shared) + 1
    if free <= 0:
        return None
    scale = (count / free) ** 0.5
    return Fit(centers=centers, shared=shared, residuals={
        arm: {r: (value - shared[r] - centers[arm]) * scale for r, value in rounds.items()}
        for arm, rounds in levels.items()
    })


def _start[Arm: Hashable](logs: Mapping[Arm, Mapping[int, float]]) -> dict[Arm, float]:
    """Return a first guess of the levels that knows when each arm was measured: by the arm that was always there.

    Arms that were there in a slow hour alone would else agree with one another that it was not.
    """
    if not logs:
        return {}
    always = max(logs.values(), key=len)
    return {
        arm: hodges_lehmann([value - always[k] for k, value in values.items() if k in always] or [*values.values()])
        for arm, values in logs.items()
    }


def _shared[Arm: Hashable](logs: Mapping[Arm, Mapping[int, float]], levels: Mapping[Arm, float]) -> dict[int, float]:
    """Return what all arms have in common in each pass or round, 0 on the whole."""
    away: dict[int, list[float]] = {}
    for arm, values in logs.items():
        for k, value in values.items():
            away.setdefault(k, []).append(value - levels[arm])
    found = {k: trimmed_mean(values) for k, values in away.items()}
    if not found:
        return {}
    middle = hodges_lehmann([*found.values()])
    return {k: value - middle for k, value in found.items()}


def _connected[Arm: Hashable](levels: Mapping[Arm, Mapping[int, float]]) -> dict[Arm, dict[int, float]]:
    """Return the numbers of arms with two rounds or more, in rounds with two such arms or more."""
    found = {arm: dict(rounds) for arm, rounds in levels.items()}
    while True:
        arms_of = Counter(r for rounds in found.values() for r in rounds)
        fewer = {
            arm: {r: value for r, value in rounds.items() if arms_of[r] > 1} for arm, rounds in found.items()
        }
        fewer = {arm: rounds for arm, rounds in fewer.items() if len(rounds) > 1}
        if fewer == found:
            return found
        found = fewer
