"""A stored run as an experiment reads it: numbers with their spread, or the reason why there are none."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.report.document import Entry, Quantity, RatioValue
from gilscope.toolkit.report.table.observations import Absence, Index
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.stats.sample import Summary, summarize
from gilscope.toolkit.store import file_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gilscope.toolkit.model import Build, Cell, Observation, Run
    from gilscope.toolkit.report.document import Value
    from gilscope.toolkit.report.footnotes import Footnotes
    from gilscope.toolkit.report.table.cell_results import NoiseFloor
    from gilscope.toolkit.report.table.observations import Clock
    from gilscope.toolkit.stats.verdict import Comparison


class Results:
    """A run of one experiment."""

    def __init__(self, run: Run, folder: Path | None = None, noise_by: Sequence[str] = ()) -> None:
        """Read a run.

        Args:
            run: The run.
            folder: Where it is stored, None if it is not stored.
            noise_by: The experiment's parameters of that name.
        """
        self.run = run
        self.builds: tuple[Build, ...] = run.builds
        self._folder = folder
        self._index = Index(run)
        self._ratios = Ratios(self._index, comparisons=len(self._index.cells()), noise_by=noise_by)
        self._cells = self._index.cells()
        self._unstarved = {each.cell: tuple(o for o in each.observations if not o.starved)
                           for each in run.measurements}

    def cells(
        self, *, build: str | None = None, runner: str | None = None, workers: int | None = None, **parameters: str
    ) -> list[Cell]:
        """Return the planned cells, measured or not, that match all arguments, in plan order and without A/A arms."""
        return [
            cell
            for cell in self._cells
            if (build is None or cell.build == build)
            and (runner is None or cell.runner == runner)
            and (workers is None or cell.workers == workers)
            and parameters.items() <= dict(cell.parameters).items()
        ]

    def find(self, *, build: str, runner: str, workers: int, **parameters: str) -> Cell | None:
        """Return the cell with exactly these parameters, or None if the plan has none."""
        found = self.cells(build=build, runner=runner, workers=workers, **parameters)
        return next((cell for cell in found if len(cell.parameters) == len(parameters)), None)

    def serial(self, build: str, **parameters: str) -> Cell | None:
        """Return the build's serial cell with exactly these parameters, or None if the plan has none."""
        return self.find(build=build, runner="serial", workers=1, **parameters)

    def rows(self, *, build: str | None = None, **parameters: str) -> list[tuple[str, int]]:
        """Return the models and numbers of workers of the matching cells, each pair once, in plan order."""
        found = self.cells(build=build, runner=None, workers=None, **parameters)
        return list(dict.fromkeys((cell.runner, cell.workers) for cell in found))

    def observations(self, cell: Cell | None) -> tuple[Observation, ...]:
        """Return the cell's observations without starved ones; () if it failed, was skipped or is starved."""
        if cell is None or isinstance(self._index.look_up(cell), Absence):
            return ()
        return self._unstarved.get(cell, ())

    def values(self, cell: Cell | None) -> dict[int, float]:
        """Return the cell's value by round."""
        return {each.round: each.wall_value for each in self.observations(cell)}

    def value(self, cell: Cell | None) -> Summary | None:
        """Return the cell's value, in seconds, with its spread over the rounds."""
        found = self.values(cell)
        return summarize(list(found.values())) if found else None

    def metrics(self, cell: Cell | None, name: str) -> dict[int, float]:
        """Return the metric `name` by round, for the rounds that have it as a number."""
        found = {each.round: dict(each.metrics).get(name) for each in self.observations(cell)}
        return {key: float(value) for key, value in found.items() if isinstance(value, int | float)}

    def metric(self, cell: Cell | None, name: str) -> Summary | None:
        """Return the metric `name` with its spread over the rounds, or None if no round has it."""
        found = self.metrics(cell, name)
        return summarize(list(found.values())) if found else None

    def center(self, cell: Cell | None, name: str) -> float | None:
        """Return the median of the metric `name` over the rounds, or None if no round has it."""
        return middle(self.metrics(cell, name))

    def longest(self, cell: Cell | None, name: str) -> Quantity | None:
        """Return the largest of the metric `name`, seconds that are maxima of their rounds; None if no round has it.

        The median of maxima would be the longest of nothing, so the largest counts, and it has no spread.
        """
        found = self.metrics(cell, name)
        return Quantity(max(found.values()), "seconds") if found else None

    def texts(self, cell: Cell | None, name: str) -> list[str]:
        """Return the metric `name` of each round that has it as a text."""
        found = [dict(each.metrics).get(name) for each in self.observations(cell)]
        return [value for value in found if isinstance(value, str)]

    def compare(self, baseline: Cell | None, cell: Cell | None) -> Comparison | None:
        """Return the speed-up of `cell` over `baseline`, paired by round, or None if they share no round."""
        return None if baseline is None or cell is None else self._ratios.compare(baseline, cell)

    def floors(self) -> dict[Clock, NoiseFloor]:
        """Return the noise floors over all groups of cells, with the differences that A/A arms showed."""
        return self._ratios.floors({*map(self._ratios.group, self._cells)})

    def absence(self, cell: Cell | None) -> Absence | None:
        """Return why the cell has no number, or None if it has one."""
        if cell is None:
            return Absence(word="not measured", reason="not part of this run")
        found = self._index.look_up(cell)
        return found if isinstance(found, Absence) else None

    def reason(self, cell: Cell | None) -> str | None:
        """Return why the cell has no number, in one line, or None if it has one."""
        found = self.absence(cell)
        return None if found is None else found.reason

    def notes(self, cell: Cell) -> tuple[str, ...]:
        """Return the caveats of the cell's number, such as starved rounds."""
        found = self._index.look_up(cell)
        return () if isinstance(found, Absence) else tuple(note.text for note in found.notes)

    def entry(self, cell: Cell | None, show: Callable[[Cell], Value | None], footnotes: Footnotes) -> Entry:
        """Return the table entry for `cell`: what `show` returns for it, or a word with its reason as a footnote.

        A cell that the plan does not have gives an empty entry.
        """
        if cell is None:
            return Entry()
        if absent := self.absence(cell):
            return Entry(absent.word, footnotes.marks([absent.reason]))
        shown = show(cell)
        return Entry("-" if shown is None else shown, footnotes.marks(self.notes(cell)))

    def duration(self, cell: Cell) -> Quantity | None:
        """Return the cell's value for a table."""
        return as_quantity(self.value(cell))

    def speedup(self, baseline: Cell | None, cell: Cell) -> RatioValue | None:
        """Return the speed-up of `cell` over `baseline` for a table."""
        found = self.compare(baseline, cell)
        return None if found is None else RatioValue(found)

    def rate(self, cell: Cell, unit: str = "/s", amount: float = 1.0) -> Quantity | None:
        """Return `amount` over the cell's value, for cells whose value is seconds per request or message."""
        found = self.values(cell)
        return as_quantity(summarize([amount / each for each in found.values()]), unit) if found else None

    def file(self, cell: Cell | None, name: str) -> Path | None:
        """Return the file `name` that the latest trial of the cell left, or None if there is none."""
        if cell is None or self._folder is None:
            return None
        path = file_path(self._folder, cell, name)
        return path if path.exists() else None


@dataclass(frozen=True, slots=True)
class BuildArm:
    """A build with one of the models run in it: a column of a table, or a line of a figure."""

    build: Build
    model: str

    @property
    def title(self) -> str:
        """The build's label, with "GIL on" where a free-threaded build ran with its GIL."""
        control = self.build.free_threaded and self.model == "threads"
        return f"{self.build.label}, GIL on" if control else self.build.label

    @property
    def free_threaded(self) -> bool:
        """True if the GIL is off."""
        return self.model == "free-threaded"

    def cells(self, results: Results, *, workers: int | None = None, **parameters: str) -> list[Cell]:
        """Return the arm's cells that match all arguments, in plan order."""
        return results.cells(build=self.build.label, runner=self.model, workers=workers, **parameters)

    def worker_counts(self, results: Results) -> list[int]:
        """Return the arm's numbers of workers, ascending."""
        return sorted({cell.workers for cell in self.cells(results)})

    def find(self, results: Results, workers: int, **parameters: str) -> Cell | None:
        """Return the arm's cell with exactly these parameters, or None if the plan has none."""
        return results.find(build=self.build.label, runner=self.model, workers=workers, **parameters)


def arms_of(results: Results) -> list[BuildArm]:
    """Return the arms of the run in plan order, without the serial ones, which are baselines."""
    return [
        BuildArm(build, model)
        for build in results.builds
        for model in dict.fromkeys(cell.runner for cell in results.cells(build=build.label))
        if model != "serial"
    ]


def parameter(cell: Cell, name: str) -> str:
    """Return the cell's parameter `name`.

    Raises:
        KeyError: the cell has no such parameter.
    """
    return dict(cell.parameters)[name]


def as_quantity(summary: Summary | None, unit: str = "seconds") -> Quantity | None:
    """Return a summary for a table; a single value has no spread, and of 0, none is a share."""
    if summary is None:
        return None
    return Quantity(summary.center, unit, summary.spread if summary.count > 1 and summary.center else None)


def middle(values: dict[int, float]) -> float | None:
    """Return the median over rounds, None of nothing."""
    return median(values.values()) if values else None
