"""The variance and the duration of a run's processes, from which the number of values per process is chosen."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.report.table.observations import group_of
from gilscope.toolkit.stats.log_times import by_pass
from gilscope.toolkit.stats.values_per_process import ProcessValues, VarianceParts, variance_parts

if TYPE_CHECKING:
    from collections.abc import Container

    from gilscope.toolkit.model import Cell, Observation, Run
    from gilscope.toolkit.report.table.observations import Group


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
