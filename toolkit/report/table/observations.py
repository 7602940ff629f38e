"""One cell's observations into numbers per round, or the reason why there are none."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from statistics import median
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit import metrics
from gilscope.toolkit.model import WRONG_RESULT, Cell, Measurement, Note, Phase
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from gilscope.toolkit.metrics import Metric
    from gilscope.toolkit.model import Build, Failure, Observation, Run, SkipKind

Clock = Literal["wall", "cpu"]
Word = Literal["skipped", "failed", "starved", "not measured"]
IDLE_FROM = 0.9   # of the workers busy: below, what is measured is the number of tasks
Group = tuple[str, Phase, float | None]  # workload, phase, seconds of a task: what one table is about
type NoiseGroup = tuple[Hashable, ...]   # a `Group`, perhaps with values of parameters: cells with common noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """Why a cell has no number."""

    word: Word
    reason: str
    skip: SkipKind | None = None         # of a skipped cell


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValue:
    """A number of a cell beside its time: the median over its rounds."""

    metric: Metric
    number: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSeries:
    """A cell's numbers by round; starved observations are left out."""

    wall: Mapping[int, float]  # seconds
    cpu: Mapping[int, float]   # CPU seconds, process and children; rounds too short for the CPU clock are left out
    metrics: Mapping[str, MetricValue]   # by column, those that are known
    notes: tuple[Note, ...]

    def by(self, clock: Clock) -> Mapping[int, float]:
        """Return the seconds by round of one clock."""
        return self.wall if clock == "wall" else self.cpu


class Index:
    """A run's cells, each with its series or its absence."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.builds = {build.label: build for build in run.builds}
        self._measurements = {m.cell: m for m in run.measurements}
        self._skips = {skip.cell: skip for skip in run.skips}
        self._failed = frozenset(run.failed)
        self._failures: dict[Cell, list[Failure]] = {}
        for failure in run.failures:
            self._failures.setdefault(failure.cell, []).append(failure)
        self._numbers: dict[Cell, CellSeries | Absence] = {}   # needed again for each pair that is compared

    def cells(self) -> list[Cell]:
        """Return every cell that is not an A/A arm, measured or not, in the order of the tables.

        Tables and models come as the run planned them, workers ascending, builds in the order of the run.
        """
        everything = dict.fromkeys([*self.run.cells, *self._measurements, *self._skips, *self._failures])
        cells = [cell for cell in everything if not cell.twin]
        groups, runners = ([*dict.fromkeys(map(key, cells))] for key in (group_of, attrgetter("runner")))
        builds = list(self.builds)
        return sorted(cells, key=lambda cell: (
            groups.index(group_of(cell)), runners.index(cell.runner), cell.workers, builds.index(cell.build)))

    def aa_pairs(self) -> list[tuple[Cell, Cell]]:
        """Return pairs of a cell and its A/A arm."""
        return [(replace(cell, twin=False), cell) for cell in self._measurements if cell.twin]

    @cached_property
    def valid_observations(self) -> dict[Cell, tuple[Observation, ...]]:
        """The observations without starved ones of each cell with numbers, including A/A arms, by name.

        Random draws from them go by position, so the order must not depend on which cell was measured first.
        """
        return {
            cell: tuple(o for o in self._measurements[cell].observations if not o.starved)
            for cell in sorted(self._measurements, key=lambda each: (each.name, each.build))
            if not isinstance(self.look_up(cell), Absence)
        }

    def look_up(self, cell: Cell) -> CellSeries | Absence:
        """Return the cell's numbers, or why it has none.

        Rounds in which it failed are left out, with a note; see `Run.failed` for when there is no number at all.
        """
        if cell not in self._numbers:
            self._numbers[cell] = self._numbers_of(cell)
        return self._numbers[cell]

    def _numbers_of(self, cell: Cell) -> CellSeries | Absence:
        failures = self._failures.get(cell, [])
        if cell in self._failed:
            return Absence(word="failed", reason=_reason(failures))
        if skip := self._skips.get(cell):
            return Absence(word="skipped", reason=skip.reason, skip=skip.kind)
        measurement = self._measurements.get(cell)
        if measurement is None or not measurement.observations:
            return Absence(word="not measured", reason=f"the run has no value of it (it ended by: {self.run.stopped})")
        return _series(measurement, self.builds.get(cell.build), failures)

    def tasks(self, cell: Cell) -> int | None:
        """Return the number of tasks in a pass of the cell, None if the run does not record it."""
        measurement = self._measurements.get(cell)
        return measurement.observations[-1].tasks if measurement and measurement.observations else None

    def demand(self, cell: Cell) -> float | None:
        """Return the cores that the tasks of a baseline keep busy on an idle machine; None: not known."""
        measurement = self._measurements.get(cell)
        demands = [o.demand for o in (measurement.observations if measurement else ()) if o.demand is not None]
        return median(demands) if demands else None

    def by(self, cell: Cell, clock: Clock) -> Mapping[int, float]:
        """Return the cell's seconds by round, empty when it has none."""
        series = self.look_up(cell)
        return {} if isinstance(series, Absence) else series.by(clock)


def group_of(cell: Cell) -> Group:
    """Return the workload, phase and task length of the cell."""
    return cell.workload, cell.phase, cell.task_seconds


def _reason(failures: Sequence[Failure]) -> str:
    """Return the failure of a cell: a wrong result if there was one, else the first failure."""
    shown_failure = min(failures, key=lambda each: each.kind != WRONG_RESULT)
    rounds = len({each.round for each in failures} - {shown_failure.round})
    more = f"; it failed in {counted(rounds, 'more round')}" if rounds else ""
    return f"round {shown_failure.round + 1}: {shown_failure.kind}: {shown_failure.reason}{more}"


def _failure_notes(failures: Sequence[Failure], valued: Sequence[Observation]) -> list[Note]:
    """Return the note on a cell with numbers that failed in some rounds."""
    lost = [each for each in failures if each.round not in {observation.round for observation in valued}]
    if not lost:   # what failed was an attempt to measure a round better
        return []
    rounds = len({each.round for each in lost})
    return [Note(text=f"{rounds} of {rounds + len(valued)} rounds failed and {'are' if rounds > 1 else 'is'} left out "
                      f"({lost[0].kind}: {lost[0].reason})")]


def _series(measurement: Measurement, build: Build | None, failures: Sequence[Failure]) -> CellSeries | Absence:
    valid = [o for o in measurement.observations if not o.starved]
    starved = len(measurement.observations) - len(valid)
    if 2 * starved > len(measurement.observations):
        reason = "did not get the cores it needed in more than half of its rounds"
        return Absence(word="starved", reason=reason)
    notes = [*measurement.notes, *_failure_notes(failures, measurement.observations)]
    if starved:
        notes.append(Note(text=f"{starved} of {len(measurement.observations)} rounds were starved and are left out"))
    notes += _idle_notes(measurement.cell, valid[-1].tasks if valid else None)
    if build is not None:
        notes += _gil_notes(measurement.cell, build, valid)
    return _numbers(valid, notes)


def _numbers(valid: Sequence[Observation], notes: Sequence[Note]) -> CellSeries:
    return CellSeries(
        wall={o.round: o.wall_value for o in valid}, metrics=_metrics(valid), notes=tuple(notes),
        # The CPU time of a sleeping task may be below the clock's resolution: 0 s gives no ratio.
        cpu={o.round: o.cpu_value for o in valid if o.cpu_value},
    )


def busy_workers(workers: int, tasks: int | None) -> float:
    """Return the average number of busy workers with equally long tasks: 4 tasks keep 2 of 3 busy, and 4 of 8."""
    return float(workers) if tasks is None else tasks / -(-tasks // workers)


def leaves_idle(cell: Cell, tasks: int | None) -> bool:
    """Return True if the cell has too few tasks to use its workers, whatever the model."""
    return cell.phase is Phase.STEADY and busy_workers(cell.workers, tasks) < IDLE_FROM * cell.workers


def _idle_notes(cell: Cell, tasks: int | None) -> list[Note]:
    if tasks is None or not leaves_idle(cell, tasks):
        return []
    if tasks < cell.workers:
        return [Note(text=f"only {counted(tasks, 'task')} for {cell.workers} workers: the others have nothing to do")]
    return [Note(text=f"{tasks} tasks do not divide by {cell.workers} workers: at most "
                      f"{busy_workers(cell.workers, tasks):.3g}x where they are equally long")]


def _metrics(observations: Sequence[Observation]) -> dict[str, MetricValue]:
    found: dict[str, MetricValue] = {}
    for metric in metrics.CELL_METRICS:
        numbers = [number for each in observations for name, number in each.metrics
                   if name == metric.name and not isinstance(number, str)]
        if numbers and metric.column not in found:
            found[metric.column] = MetricValue(metric=metric, number=median(numbers))
    return found


def _gil_notes(cell: Cell, build: Build, observations: list[Observation]) -> list[Note]:
    """Return the note on a GIL that was not as the build and the runner promise."""
    if not build.free_threaded:
        return []
    expected = cell.runner == "threads"  # the one runner that is the control: the GIL on in a free-threaded build
    wrong = [o for o in observations if o.gil_end is not None and o.gil_end != expected]
    if not wrong:
        return []
    culprits = Counter(o.gil_culprit for o in wrong if o.gil_culprit)
    by = f", turned on by the import of {culprits.most_common(1)[0][0]!r}" if culprits and not expected else ""
    state = "off" if expected else "on"
    return [Note(text=f"the GIL was {state} at the end of {len(wrong)} of {len(observations)} processes{by}")]
