"""How many times faster cells of a run are than others, by noise that is known from all its processes.

`stats` has the statistics; this hands them a run's numbers: a group is one workload, phase and task
length by one clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import expm1, isfinite, log
from typing import TYPE_CHECKING

from gilscope.toolkit.report.table.floors import Floors
from gilscope.toolkit.report.table.observations import group_of
from gilscope.toolkit.stats.best import best
from gilscope.toolkit.stats.floor import Floor, TwinCheck, checked_noise
from gilscope.toolkit.stats.log_times import RoundLogs, by_pass, process_levels
from gilscope.toolkit.stats.looks import at_last
from gilscope.toolkit.stats.paired import conclude
from gilscope.toolkit.stats.ratios import Ratio, compare, compare_pairs, simultaneous
from gilscope.toolkit.stats.words import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.model import Cell, Observation
    from gilscope.toolkit.report.table.observations import Clock, Group, Index
    from gilscope.toolkit.stats.noise import Noise
    from gilscope.toolkit.stats.words import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocked:
    """One clock's numbers of a whole run."""

    logs: Mapping[Group, RoundLogs[Cell]]
    noises: Mapping[Group, Noise]
    check: TwinCheck


class Ratios:
    """Compares cells of one run with each other.

    Args:
        index: The run.
        words: How many comparisons are shown together, so that one false word in all of them has a chance of 5 %; None:
            every cell with one.
    """

    def __init__(self, index: Index, words: int | None = None) -> None:
        self.index = index
        self._words = words
        self._together = at_last(index.run.looks)
        self._errors: dict[tuple[Group, Clock, bool], float | None] = {}

    def showing(self, words: int) -> Ratios:
        """Return the same for so many comparisons that are shown together; what is known of the noise is shared."""
        found = Ratios(self.index, words)
        found.wall, found.cpu, found._errors = self.wall, self.cpu, self._errors
        return found

    @cached_property
    def wall(self) -> Clocked:
        """The run by the wall clock."""
        return self._clocked("wall")

    @cached_property
    def cpu(self) -> Clocked:
        """The run by CPU time."""
        return self._clocked("cpu")

    @cached_property
    def confidence(self) -> float:
        """Return the confidence of the interval that each word goes by."""
        return simultaneous(self._words or len(self.index.cells()), self._together)

    def compare(self, baseline: Cell, sample: Cell, clock: Clock = "wall") -> Comparison | None:
        """Return how many times faster `sample` is than `baseline`, None when the two share no round."""
        ratio = self.ratio(baseline, sample, clock)
        return None if ratio is None else conclude(ratio, self.by(clock).check, self.confidence, clock=clock)

    def ratio(self, baseline: Cell, sample: Cell, clock: Clock = "wall") -> Ratio | None:
        """Return the same as what the rounds so far come to, from which intervals and words follow."""
        group, found = group_of(sample), self.by(clock)
        logs = found.logs.get(group)
        if logs is None or not logs.difference(baseline, sample):
            return None
        error = self.error(group, clock, max(baseline.workers, sample.workers))
        return replace(compare(logs, found.noises[group], baseline, sample), twins_off=error or 0.0)

    def best(self, cells: Sequence[Cell]) -> tuple[Cell, ...] | None:
        """Return which of `cells`, all of one group, are not told apart from the fastest; None where noise is unknown.

        Args:
            cells: Each with numbers.
        """
        group = group_of(cells[0])
        logs, noise = self.wall.logs[group], self.wall.noises[group]
        return best(logs, noise, cells, self._together) if isfinite(noise.spread) else None

    def floors(self, group: Group) -> Floors:
        """Return what a cell that is measured twice over all rounds of the run may differ by from itself."""
        return Floors(
            single_wall=self._floor(group, "wall", 1), single_cpu=self._floor(group, "cpu", 1),
            all_wall=self._floor(group, "wall"), all_cpu=self._floor(group, "cpu"),
        )

    def by(self, clock: Clock) -> Clocked:
        """Return the run by one clock."""
        return self.wall if clock == "wall" else self.cpu

    def _floor(self, group: Group, clock: Clock, workers: int | None = None) -> Floor | None:
        found = self.by(clock)
        logs, noise = found.logs.get(group), found.noises.get(group)
        rounds = max((len(each) for each in logs.levels.values()), default=0) if logs else 0
        if noise is None or rounds < MIN_ROUNDS or not isfinite(bound := noise.floor(rounds)):
            return None
        error = self.error(group, clock, workers)
        return Floor(error=error, bound=max(bound, error or 0.0), rounds=rounds)

    def error(self, group: Group, clock: Clock, workers: int | None = None) -> float | None:
        """Return what the A/A arms of the group were off by at most, None where it has none.

        Args:
            group: Of the arms.
            clock: Of the comparison.
            workers: Of its wider side: with one worker, only such arms count, where there are any.
        """
        key = (group, clock, workers == 1)
        if key not in self._errors:
            arms = [(cell, twin) for cell, twin in self.index.twins() if group_of(cell) == group]
            single = [arm for arm in arms if arm[0].workers == 1]
            found = self.by(clock)
            seen = compare_pairs(found.logs[group], found.noises[group], single if workers == 1 and single else arms)
            self._errors[key] = max((expm1(abs(each.center)) for each in seen.values()), default=None)
        return self._errors[key]

    def _clocked(self, clock: Clock) -> Clocked:
        groups: dict[Group, dict[Cell, Sequence[Observation]]] = {}
        for cell, observations in self.index.kept().items():
            groups.setdefault(group_of(cell), {})[cell] = observations
        logs = {group: _logs(cells, clock) for group, cells in groups.items()}
        twins: dict[Group, list[tuple[Cell, Cell]]] = {group: [] for group in logs}
        for cell, twin in self.index.twins():
            if cell in groups.get(group_of(cell), {}) and twin in groups[group_of(cell)]:
                twins[group_of(cell)].append((cell, twin))
        noises, check = checked_noise(logs, twins, seed=self.index.run.seed)
        return Clocked(logs=logs, noises=noises, check=check)


def _logs(cells: Mapping[Cell, Sequence[Observation]], clock: Clock) -> RoundLogs[Cell]:
    """Return one log level for each process; of those that took their values in turn, pass against pass."""
    # By place: whatever is looked up by a cell sums up all that the cell is, each time.
    rounds: dict[int, dict[int, Observation]] = {}
    for place, observations in enumerate(cells.values()):
        for each in observations:
            rounds.setdefault(each.round, {})[place] = each
    levels: dict[int, dict[int, float]] = {}
    for number, arms in rounds.items():
        for place, level in _levels(arms, clock).items():
            levels.setdefault(place, {})[number] = level
    order = [*cells]
    return RoundLogs(levels={order[place]: each for place, each in levels.items()})


def _levels(arms: Mapping[int, Observation], clock: Clock) -> dict[int, float]:
    if all(each.passes for each in arms.values()):
        return process_levels({place: _in_turn(each, clock) for place, each in arms.items()})
    values = {place: each.wall_value if clock == "wall" else each.cpu_value for place, each in arms.items()}
    # A sleeping task may use less CPU time than the clock can tell from none: no ratio there.
    return {place: log(value) for place, value in values.items() if value}


def _in_turn(observation: Observation, clock: Clock) -> list[float]:
    """Return the process's values, each at the place of the pass that it was taken in."""
    return by_pass(observation.wall if clock == "wall" else observation.cpu, observation.passes)
