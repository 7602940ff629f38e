"""Ratios between cells of a run, with the noise estimated from all its processes.

`stats` has the statistics; this module passes them the numbers of a run, group by group: a group is one workload, phase
and task length.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import expm1, log
from typing import TYPE_CHECKING, get_args

from gilscope.toolkit.model import Phase
from gilscope.toolkit.report.table.build_pairs import build_pairs
from gilscope.toolkit.report.table.cell_results import NoiseFloor
from gilscope.toolkit.report.table.observations import Absence, Clock, group_of
from gilscope.toolkit.report.table.process_notes import noise_notes
from gilscope.toolkit.stats.best import best_of, fastest_ratio
from gilscope.toolkit.stats.interim_looks import final_confidence
from gilscope.toolkit.stats.log_times import RoundLogs, by_pass, process_levels
from gilscope.toolkit.stats.noise_floor import AACheck, checked_noise
from gilscope.toolkit.stats.pair_kinds import ArmClass
from gilscope.toolkit.stats.paired import conclude
from gilscope.toolkit.stats.ratios import Ratio, compare, compare_pairs, simultaneous
from gilscope.toolkit.stats.sessions import FEWEST, levels_of_sessions
from gilscope.toolkit.stats.unpaired import run_level
from gilscope.toolkit.units import clock_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gilscope.toolkit.model import Cell, Observation
    from gilscope.toolkit.report.table.observations import Index, NoiseGroup
    from gilscope.toolkit.stats.best import FastestRatio
    from gilscope.toolkit.stats.noise import Noise
    from gilscope.toolkit.stats.unpaired import RunLevel
    from gilscope.toolkit.stats.verdict import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockRatios:
    """The numbers of a run by one clock."""

    logs: Mapping[NoiseGroup, RoundLogs[Cell]]   # by round; from three sessions on, by session
    noises: Mapping[NoiseGroup, Noise]
    check: AACheck
    aa_errors: Mapping[NoiseGroup, float]   # the largest difference between a cell and its A/A arm, as a share

    def ratio(self, group: NoiseGroup, baseline: Cell, sample: Cell) -> Ratio | None:
        """Return the estimated ratio of two cells of a group, None if they share no round."""
        logs = self.logs.get(group)
        if logs is None or not logs.difference(baseline, sample):
            return None
        return compare(logs, self.noises[group], baseline, sample)


class Ratios:
    """Compares cells of one run with each other.

    From three sessions on, a session takes the place of a round, see `stats.sessions`.

    Args:
        index: The run.
        comparisons: The number of comparisons judged together: the chance of any false verdict among them is 5 %.
            None: those of the run's report, see `reported_comparisons`.
        noise_by: Parameters of cells: only cells that have the same value of each have their noise in common.
    """

    def __init__(self, index: Index, comparisons: int | None = None, noise_by: Sequence[str] = ()) -> None:
        self.index = index
        self._noise_by = tuple(noise_by)
        self.comparisons = reported_comparisons(index) if comparisons is None else comparisons
        self._together = final_confidence(index.run.looks)
        self._rounds: dict[Clock, Mapping[NoiseGroup, RoundLogs[Cell]]] = {}

    def group(self, cell: Cell) -> NoiseGroup:
        """Return the key of the cells with which a cell is compared and has its noise in common."""
        parameters = dict(cell.parameters)
        return (*group_of(cell), *(parameters.get(name) for name in self._noise_by))

    @cached_property
    def wall(self) -> ClockRatios:
        """The run by the wall clock."""
        return self._clocked("wall")

    @cached_property
    def cpu(self) -> ClockRatios:
        """The run by CPU time."""
        return self._clocked("cpu")

    @property
    def confidence(self) -> float:
        """Return the confidence of the intervals that verdicts use."""
        return simultaneous(self.comparisons, self._together)

    @cached_property
    def sessions(self) -> int:
        """Return the number of sessions in which something was measured."""
        return len(set(self._session_of_round.values()))

    @cached_property
    def _session_of_round(self) -> Mapping[int, int]:
        return {each.round: each.session
                for observations in self.index.valid_observations.values() for each in observations}

    def compare(self, baseline: Cell, sample: Cell, clock: Clock = "wall") -> Comparison | None:
        """Return the speed-up of `sample` over `baseline`, None if the two share no round."""
        ratio = self.ratio(baseline, sample, clock)
        if ratio is None:
            return None
        return self._concluded(ratio, baseline, sample, clock)

    def _concluded(self, ratio: Ratio | FastestRatio[Cell], baseline: Cell, sample: Cell, clock: Clock) -> Comparison:
        rounds = self._shared_rounds(baseline, sample, clock)
        comparison = conclude(
            ratio, self.confidence, self.by(clock).check, clock=clock_text(clock), rounds=len(rounds),
            notes=[*noise_notes(self.by(clock).noises[self.group(sample)].usual, clock)])
        if self.sessions < 2:
            return comparison
        return replace(comparison, sessions=len({self._session_of_round[r] for r in rounds}),
                       run_sessions=self.sessions)

    def _shared_rounds(self, baseline: Cell, sample: Cell, clock: Clock) -> Collection[int]:
        """Return the rounds of all sessions that both cells have."""
        return self.rounds(clock)[self.group(sample)].difference(baseline, sample)

    def ratio(self, baseline: Cell, sample: Cell, clock: Clock = "wall") -> Ratio | None:
        """Return the estimated ratio of `sample` to `baseline`, None if they share no round.

        `compare` derives the interval and the verdict from it.
        """
        return self.by(clock).ratio(self.group(sample), baseline, sample)

    def level(self, cell: Cell, clock: Clock) -> RunLevel:
        """Return the level of a cell that has numbers, to compare it with that in another run."""
        group, numbers = self.group(cell), self.by(clock)
        return replace(run_level(numbers.logs[group], numbers.noises[group], cell),
                       rounds=len(self.rounds(clock)[group].levels[cell]))

    def best(self, cells: Sequence[Cell]) -> tuple[Cell, ...] | None:
        """Return the cells, all of one group, that may be the fastest; None if the noise is unknown.

        Args:
            cells: Cells of one group; each must have numbers.
        """
        known = self._floors(self.group(cells[0]), "wall")
        return best_of(cells, self._judgeable_ratio, self._together) if known else None

    def compare_fastest(
        self, baselines: Sequence[Cell], samples: Sequence[Cell],
    ) -> tuple[Cell, Cell, Comparison] | None:
        """Compare the fastest of `samples` with the fastest of `baselines`, whichever they are.

        Args:
            baselines: Cells of one group that have numbers, at least one.
            samples: The same of the same group on another build.

        Returns:
            The fastest by their estimates, and the comparison; None if these two share no round.
        """
        found = self.fastest(baselines, samples)
        if found.leading is None:
            return None
        return (*found.leaders, self._concluded(found, *found.leaders, "wall"))

    def fastest(self, baselines: Sequence[Cell], samples: Sequence[Cell]) -> FastestRatio[Cell]:
        """Return the ratio of the fastest cells, see `compare_fastest`."""
        return fastest_ratio(baselines, samples, self._judgeable_ratio, self.confidence)

    def _judgeable_ratio(self, baseline: Cell, sample: Cell) -> Ratio | None:
        """Return the ratio by wall time, None if it can have no verdict."""
        ratio = self.ratio(baseline, sample)
        return None if ratio is None or ratio.floor is None else ratio

    def floors(self, groups: Collection[NoiseGroup]) -> dict[Clock, NoiseFloor]:
        """Return the largest expected differences between two cells of equal speed of some groups, by clock."""
        found: dict[Clock, NoiseFloor] = {}
        for clock in get_args(Clock):
            known = [floor for group in groups for floor in self._floors(group, clock)]
            errors = [error for group, error in self.by(clock).aa_errors.items() if group in groups]
            found[clock] = NoiseFloor(
                range=(min(known), max(known)) if known else None, aa_error=max(errors, default=None))
        return found

    def by(self, clock: Clock) -> ClockRatios:
        """Return the run by one clock."""
        return self.wall if clock == "wall" else self.cpu

    def _floors(self, group: NoiseGroup, clock: Clock) -> list[float]:
        """Return the known noise floors of the cells of a group: of what is compared, else of its A/A arms."""
        logs = self.by(clock).logs.get(group)
        compared: list[tuple[Cell, Cell]] = []
        cells = [cell for cell in logs.levels if not cell.twin] if logs else []
        for cell in cells:
            compared.append((replace(cell, runner=self.index.run.baseline, workers=1), cell))
            compared += [(replace(cell, build=first.label), cell)
                         for first, second in build_pairs(self.index.run.builds) if second.label == cell.build]
        pairs = [pair for pair in compared if pair[0] != pair[1]]
        return self._known_floors(pairs, clock) or self._known_floors(
            [(cell, replace(cell, twin=True)) for cell in cells], clock)

    def _known_floors(self, pairs: Sequence[tuple[Cell, Cell]], clock: Clock) -> list[float]:
        ratios = (self.ratio(*pair, clock) for pair in pairs)
        return [ratio.floor for ratio in ratios if ratio is not None and ratio.floor is not None]

    def rounds(self, clock: Clock) -> Mapping[NoiseGroup, RoundLogs[Cell]]:
        """Return the logs of each group by round, those of all sessions."""
        if clock not in self._rounds:
            groups: dict[NoiseGroup, dict[Cell, Sequence[Observation]]] = {}
            for cell, observations in self.index.valid_observations.items():
                groups.setdefault(self.group(cell), {})[cell] = observations
            self._rounds[clock] = {group: _logs(cells, clock) for group, cells in groups.items()}
        return self._rounds[clock]

    def _clocked(self, clock: Clock) -> ClockRatios:
        logs = self.rounds(clock)
        if self.sessions < FEWEST:
            return self._numbers(logs)
        return self._numbers({group: levels_of_sessions(each) for group, each in self._split(logs).items()},
                             shared_rounds=True)

    def _split(
        self, logs: Mapping[NoiseGroup, RoundLogs[Cell]],
    ) -> dict[NoiseGroup, dict[int, RoundLogs[Cell]]]:
        """Return the logs of each group by session."""
        split: dict[NoiseGroup, dict[int, RoundLogs[Cell]]] = {}
        for group, each in logs.items():
            sessions = sorted({self._session_of_round[r] for rounds in each.levels.values() for r in rounds})
            split[group] = {session: RoundLogs(levels={
                cell: {r: level for r, level in rounds.items() if self._session_of_round[r] == session}
                for cell, rounds in each.levels.items()}) for session in sessions}
        return split

    def _numbers(self, logs: Mapping[NoiseGroup, RoundLogs[Cell]], *, shared_rounds: bool = False) -> ClockRatios:
        aa_pairs = {group: [pair for pair in self.index.aa_pairs() if self.group(pair[0]) == group] for group in logs}
        cells = [cell for each in logs.values() for cell in each.levels]
        noises, check = checked_noise(
            logs, aa_pairs, shared_rounds=shared_rounds,
            classes={cell: ArmClass(workers=cell.workers > 1, build=cell.build) for cell in cells},
            treatments={cell: _treatment(cell) for cell in cells})
        found = {group: compare_pairs(logs[group], noises[group], pairs) for group, pairs in aa_pairs.items()}
        aa_errors = {group: max(expm1(abs(ratio.center)) for ratio in ratios.values())
                     for group, ratios in found.items() if ratios}
        return ClockRatios(logs=logs, noises=noises, check=check, aa_errors=aa_errors)


def _treatment(cell: Cell) -> tuple[str, str, int]:
    """Return the key that cells of different workloads share: build, model and workers."""
    return cell.build, cell.runner, cell.workers


def reported_comparisons(index: Index) -> int:
    """Return the number of verdicts in the report of a run.

    They are the speed-up of every cell against its baseline, the CPU time of every cell with one worker between two
    builds, and the fastest models of a build with a GIL and of a free-threaded one.  The choice of a number of workers,
    and the hint at what free threads lack of the throughput of processes, go by estimates and are no verdicts.
    """
    run = index.run
    cells = {cell for cell in index.cells() if not isinstance(index.look_up(cell), Absence)}
    against_baseline = sum(cell != (base := replace(cell, runner=run.baseline, workers=1)) and base in cells
                           for cell in cells)
    pairs = [(first.label, second.label) for first, second in build_pairs(run.builds)]
    between_builds = sum(cell.workers == 1 and cell.build == first and replace(cell, build=second) in cells
                         for cell in cells for first, second in pairs)
    free = {build.label for build in run.builds if build.free_threaded}
    groups = {(group_of(cell), cell.build) for cell in cells if cell.phase is Phase.STEADY}
    fastest = sum(second in free and first not in free and build == first and (group, second) in groups
                for group, build in groups for first, second in pairs)
    return against_baseline + between_builds + fastest


def _logs(cells: Mapping[Cell, Sequence[Observation]], clock: Clock) -> RoundLogs[Cell]:
    """Return one log level for each process; processes that took turns are compared pass by pass."""
    # Use positions as keys: every lookup by a cell hashes all of its fields.
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
    """Return the values of a process in the order of their passes."""
    return by_pass(observation.wall if clock == "wall" else observation.cpu, observation.passes)
