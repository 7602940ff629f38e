"""Reduce measurements to the input of all comparisons: one log time per arm and round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, log, nan
from typing import Self

from gilscope.toolkit.stats.estimators import hodges_lehmann, trimmed_mean

SWEEPS = 3   # of the alternating fit; a fourth changes results by far less than the noise


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundLogs[Arm: Hashable]:
    """Log times of arms that were measured in the same rounds, usually those of one workload by one clock.

    An arm has no entry for rounds that it missed: it was starved, failed, or needed no more rounds.
    """

    levels: Mapping[Arm, Mapping[int, float]]   # log seconds by round, one per process

    @classmethod
    def of_seconds(cls, seconds: Mapping[Arm, Mapping[int, float]]) -> Self:
        """Return the logs of arms whose processes were measured one after the other, with one number each."""
        return cls(levels={arm: {r: log(value) for r, value in rounds.items()} for arm, rounds in seconds.items()})

    def difference(self, baseline: Arm, sample: Arm) -> dict[int, float]:
        """Return the log ratio of `sample` to `baseline` by round, for the rounds that both have.

        A slow minute of the machine slows both arms, so it cancels.
        """
        left, right = self.levels.get(baseline, {}), self.levels.get(sample, {})
        return {r: left[r] - right[r] for r in left if r in right}


def by_pass(values: Sequence[float], passes: Sequence[int]) -> list[float]:
    """Return a process's values at the index of their pass; NaN elsewhere, and for 0."""
    by_index = [nan] * (max(passes) + 1)
    for place, value in zip(passes, values, strict=False):
        by_index[place] = value or nan
    return by_index


def process_levels[Arm: Hashable](passes: Mapping[Arm, Sequence[float]]) -> dict[Arm, float]:
    """Return one log time per process of a round, corrected for the machine's load from pass to pass.

    Other load changes within a second, and all arms take pass k within about one.  The common effect of a pass, a
    trimmed mean so that one arm's burst does not count for all, is attributed to the machine; the Hodges-Lehmann
    estimate of the rest is the process's level.  With two arms, the difference of their levels is the Hodges-Lehmann
    estimate of the differences by pass.

    Args:
        passes: Seconds by arm, pass k at index k; NaN, or a shorter list, if an arm has no value.

    Returns:
        Log seconds by arm; arms without any value are left out.
    """
    logs = {
        arm: {k: log(value) for k, value in enumerate(values) if not isnan(value)} for arm, values in passes.items()
    }
    together = Counter(k for values in logs.values() for k in values)
    # Passes of a single arm cannot be corrected; they are used only if the arm has no others.
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
class ArmErrors:
    """The errors of one arm's processes, as far as they are known."""

    by_round: Mapping[int, float]   # log residuals, see `LevelFit`
    freedom: float                  # degrees of freedom that the fit of arms and rounds left to them


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelFit[Arm: Hashable]:
    """The levels of a group, decomposed into arm, round and residual.

    The fit absorbs some of the error: the residuals are scaled to the variance of the errors, by root (n / (n - arms -
    rounds + 1)).
    """

    centers: Mapping[Arm, float]                    # log seconds
    shared: Mapping[int, float]                     # effect of each round, centred at 0
    residuals: Mapping[Arm, Mapping[int, float]]    # by arm and round
    free: float                                     # share of the levels that the fit leaves as degrees of freedom

    @property
    def errors(self) -> dict[Arm, ArmErrors]:
        """Return the errors of each arm."""
        return {arm: ArmErrors(by_round=rounds, freedom=len(rounds) * self.free)
                for arm, rounds in self.residuals.items()}


def fit[Arm: Hashable](logs: RoundLogs[Arm]) -> LevelFit[Arm] | None:
    """Fit arms and rounds to the levels robustly; None unless there are more numbers than arms and rounds.

    Arms with fewer than two rounds, and rounds with fewer than two arms, have no information and are left out.
    """
    levels = _connected(logs.levels)
    centers, shared = _start(levels), {}
    for _ in range(SWEEPS):
        shared = _shared(levels, centers)
        centers = {
            arm: hodges_lehmann([value - shared[r] for r, value in rounds.items()]) for arm, rounds in levels.items()
        }
    count = sum(map(len, levels.values()))
    freedom = count - len(levels) - len(shared) + 1
    if not levels or freedom <= 0:
        return None
    free = freedom / count
    return LevelFit(centers=centers, shared=shared, free=free, residuals={
        arm: {r: (value - shared[r] - centers[arm]) / free**0.5 for r, value in rounds.items()}
        for arm, rounds in levels.items()
    })


def _start[Arm: Hashable](logs: Mapping[Arm, Mapping[int, float]]) -> dict[Arm, float]:
    """Return a first guess of the levels relative to the arm with the most rounds.

    Without that reference, arms that were measured only in a slow hour would make that hour look normal.
    """
    if not logs:
        return {}
    always = max(logs.values(), key=len)
    return {
        arm: hodges_lehmann([value - always[k] for k, value in values.items() if k in always] or [*values.values()])
        for arm, values in logs.items()
    }


def _shared[Arm: Hashable](logs: Mapping[Arm, Mapping[int, float]], levels: Mapping[Arm, float]) -> dict[int, float]:
    """Return the common effect of each pass or round, centred at 0."""
    away: dict[int, list[float]] = {}
    for arm, values in logs.items():
        for k, value in values.items():
            away.setdefault(k, []).append(value - levels[arm])
    effects = {k: trimmed_mean(values) for k, values in away.items()}
    if not effects:
        return {}
    middle = hodges_lehmann([*effects.values()])
    return {k: value - middle for k, value in effects.items()}


def _connected[Arm: Hashable](levels: Mapping[Arm, Mapping[int, float]]) -> dict[Arm, dict[int, float]]:
    """Return the levels of arms with at least two rounds, in rounds with at least two such arms."""
    connected = {arm: dict(rounds) for arm, rounds in levels.items()}
    while True:
        arms_of = Counter(r for rounds in connected.values() for r in rounds)
        fewer = {
            arm: {r: value for r, value in rounds.items() if arms_of[r] > 1} for arm, rounds in connected.items()
        }
        fewer = {arm: rounds for arm, rounds in fewer.items() if len(rounds) > 1}
        if fewer == connected:
            return connected
        connected = fewer
