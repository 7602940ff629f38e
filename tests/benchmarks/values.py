"""Compute the best number of values per process from stored runs.

The noise of values, the differences between processes, and the seconds of a start and of a value decide it; every run
takes six. Prints for each workload of the runs, and for each run as a whole:

- the standard deviation of values within a process, and that between processes
- the part of the variance of processes' levels that the noise of their values makes
- the seconds of a process without values, and of a value
- the best number of values per process
- the width of an interval after the same time, with other numbers of values, relative to that with six

A process costs its start, and each value its time; the level of a process errs by what the process draws once, and by
the noise of its values. With n values, the variance of a level is between + within / n, and a process takes
start + n * value seconds. Their product, the variance that is left after a given time, is smallest at
n = sqrt(start / value * within / between): Cochran (1977), "Sampling Techniques", section 10.6.

    python -m tests.benchmarks.values results/example results/example/first-look ...
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

from gilscope.toolkit.report.table.observations import group_of
from gilscope.toolkit.stats.log_times import RoundLogs, by_pass, fit, process_levels
from gilscope.toolkit.store import load_run

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Iterable, Mapping, Sequence

    from gilscope.toolkit.model import Cell, Observation, Run
    from gilscope.toolkit.report.table.observations import Group

NUMBERS = (2, 3, 4, 8, 10, 12, 20)
USUAL = 6
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
        found = fit(RoundLogs(levels=of_arms)).residuals
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


def process_variance(run: Run, cells: Container[Cell] | None = None) -> VarianceParts | None:
    """Return the variance within and between processes by the wall clock, and the seconds they take.

    Args:
        run: The rounds so far.
        cells: The cells that count; None: all.

    Returns:
        None if there are too few rounds, or if processes did not take their values in turn.
    """
    groups: dict[Group, dict[int, dict[Cell, ProcessValues]]] = {}
    for measurement in run.measurements:
        if cells is None or measurement.cell in cells:
            rounds = groups.setdefault(group_of(measurement.cell), {})
            for each in measurement.observations:
                if not each.starved and each.passes and each.seconds is not None:
                    rounds.setdefault(each.round, {})[measurement.cell] = _values_of(each, each.seconds)
    return variance_parts(groups.values())


def _values_of(observation: Observation, seconds: float) -> ProcessValues:
    taken = sum(observation.wall) * observation.loops
    return ProcessValues(seconds=by_pass(observation.wall, observation.passes), start=max(0.0, seconds - taken),
                         value=median(observation.wall) * observation.loops)


def main() -> None:
    """Print a line for each workload and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    args = parser.parse_args()
    print(f"{'':38} within between share  start  value  best" + "".join(f"{number:>7}" for number in NUMBERS))
    for folder in args.folders:
        run = load_run(folder)
        for workload in dict.fromkeys(cell.workload for cell in run.cells):
            cells = frozenset(cell for cell in run.cells if cell.workload == workload)
            show(f"{folder.name} {workload}", process_variance(run, cells))
        show(f"{folder.name}, all", process_variance(run))


def variance_per_time(parts: VarianceParts, values: int) -> float:
    """Return the variance of an arm's mean after one second of it, with so many values per process."""
    return (parts.between + parts.within / values) * parts.process_seconds(values)


def show(name: str, parts: VarianceParts | None) -> None:
    """Print the line of one workload or run."""
    if parts is None:
        print(f"{name:38} too few rounds")
        return
    usual = variance_per_time(parts, USUAL)
    widths = "".join(f"{(variance_per_time(parts, number) / usual) ** 0.5 - 1:+7.0%}" for number in NUMBERS)
    noise = parts.within / parts.values
    share = noise / (noise + parts.between) if noise else 0.0
    print(f"{name:38} {parts.within ** 0.5:6.1%} {parts.between ** 0.5:7.1%} {share:5.0%} "
          f"{parts.start:5.2f}s {parts.value:5.3f}s {parts.best_values():5}{widths}")


if __name__ == "__main__":
    main()
