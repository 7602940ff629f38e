"""The number of values per process that gives the narrowest intervals in a given time: optimal two-stage sampling.

A process costs its start, and each value its time; the level of a process errs by what the process draws once, and by
the noise of its values.  With n values, the variance of a level is between + within / n, and a process takes
start + n * value seconds.  Their product, the variance that is left after a given time, is smallest at
n = sqrt(start / value * within / between).

Source: Cochran (1977), "Sampling Techniques", section 10.6; Kalibera & Jones (2013), "Rigorous Benchmarking in
Reasonable Time", section 7, for repetitions of benchmarks.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.log_times import RoundLogs, process_levels, residuals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FEWEST, MOST = 2, 20   # beyond, intervals are hardly narrower, and few processes say little of their differences


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessValues:
    """The values of one process."""

    seconds: Sequence[float]     # by pass, NaN where it has none, as `process_levels` takes them
    start: float                 # seconds that the process takes without its values
    value: float                 # seconds that one value takes


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceParts:
    """The variance of log times of processes, and the time that they take, averaged over arms."""

    within: float     # of one value, among those of its process
    between: float    # of processes, whose levels were known exactly; 0.0 if the values explain all differences
    values: float     # of a process, on average
    start: float      # seconds
    value: float      # seconds

    def process_seconds(self, values: float) -> float:
        """Return the seconds that a process with so many values takes."""
        return self.start + values * self.value

    def best_values(self) -> int:
        """Return the number of values per process that gives the smallest variance in a given time."""
        if self.within <= 0 or self.value <= 0:
            return FEWEST
        if self.between <= 0:
            return MOST
        best = sqrt(self.start / self.value * self.within / self.between)
        return min(MOST, max(FEWEST, round(best)))


def variance_parts[Arm: Hashable](
    groups: Iterable[Mapping[int, Mapping[Arm, ProcessValues]]],
) -> VarianceParts | None:
    """Split the variance of processes into that of their values and that between processes.

    The levels of two halves of a process's values differ by the noise of values alone, whatever estimator makes levels
    of values.  What the levels of processes differ by beyond that noise is between processes.

    Args:
        groups: The processes of arms that took their values in turn, by round and arm; a group is one workload.

    Returns:
        Averages over all groups, weighted by their processes; None unless there are two rounds of two arms somewhere.
    """
    halves, levels = _Squares(), _Squares()
    processes: list[ProcessValues] = []
    for rounds in groups:
        of_arms: dict[Arm, dict[int, float]] = {}
        for number, arms in rounds.items():
            known = {arm: each for arm, each in arms.items() if _count(each) > 1}
            halves.add(_half_differences(known), free=len(known) - 1)
            for arm, level in process_levels({arm: each.seconds for arm, each in known.items()}).items():
                of_arms.setdefault(arm, {})[number] = level
            processes += known.values()
        found = residuals(RoundLogs(levels=of_arms))
        rest = [each for by_round in found.values() for each in by_round.values()]   # scaled to the errors' variance
        levels.add(rest, free=len(rest) - len(found) - len({r for each in found.values() for r in each}) + 1,
                   scaled=True)
    if halves.free <= 0 or levels.free <= 0:
        return None
    values = fmean(map(_count, processes))
    # A half has half of the values, and the difference of two halves has twice the variance of one.
    within = halves.variance * values / 4
    return VarianceParts(
        within=within, between=max(0.0, levels.variance - within / values), values=values,
        start=fmean(each.start for each in processes), value=fmean(each.value for each in processes))


class _Squares:
    """Sums of squares over several groups, with their degrees of freedom."""

    def __init__(self) -> None:
        self._sum = 0.0
        self.free = 0

    def add(self, differences: Sequence[float], free: int, *, scaled: bool = False) -> None:
        """Add what one group differs by; `scaled`: root mean squares are the standard deviation already."""
        if free > 0 and differences:
            squares = sum(each * each for each in differences)
            self._sum += squares / len(differences) * free if scaled else squares
            self.free += free

    @property
    def variance(self) -> float:
        return self._sum / self.free


def _count(process: ProcessValues) -> int:
    return sum(each == each for each in process.seconds)   # noqa: PLR0124 - NaN is not equal to itself


def _half_differences[Arm: Hashable](arms: Mapping[Arm, ProcessValues]) -> list[float]:
    """Return the difference of the levels of two halves of each process, without what all arms have in common."""
    first, second = (process_levels({arm: _every_second(each.seconds, start) for arm, each in arms.items()})
                     for start in (0, 1))
    differences = [first[arm] - second[arm] for arm in first if arm in second]
    middle = median(differences) if differences else 0.0
    return [each - middle for each in differences]


def _every_second(seconds: Sequence[float], start: int) -> list[float]:
    nan = float("nan")
    return [value if place % 2 == start else nan for place, value in enumerate(seconds)]
