"""A stored run as an experiment reads it: numbers with their spread, or the reason why there are none."""

from __future__ import annotations

from math import nan
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.report.document import Duration, Entry, Quantity
from gilscope.toolkit.report.table.observations import Absence, Index, group_of
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.stats.sample import Summary, summarize
from gilscope.toolkit.store import file_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gilscope.toolkit.model import Build, Cell, Observation, Run
    from gilscope.toolkit.report.document import Value
    from gilscope.toolkit.report.footnotes import Footnotes
    from gilscope.toolkit.report.table.floors import Floors
    from gilscope.toolkit.stats.words import Comparison


class Results:
    """A run of one experiment."""

    def __init__(self, run: Run, folder: Path | None = None) -> None:
        """`folder` is where it is stored; None when it is not."""
        self.run = run
        self.builds: tuple[Build, ...] = run.builds
        self._folder = folder
        self._index = Index(run)
        self._ratios = Ratios(self._index)
        self._cells = self._index.cells()
        self._kept = {each.cell: tuple(o for o in each.observations if not o.starved) for each in run.measurements}

    def cells(
        self, *, build: str | None = None, runner: str | None = None, workers: int | None = None, **parameters: str
    ) -> list[Cell]:
        """Return the cells, measured or not, that have all these; in the order of the plan, A/A arms not among them."""
        return [
            cell
            for cell in self._cells
            if (build is None or cell.build == build)
            and (runner is None or cell.runner == runner)
            and (workers is None or cell.workers == workers)
            and parameters.items() <= dict(cell.parameters).items()
        ]

    def find(self, *, build: str, runner: str, workers: int, **parameters: str) -> Cell | None:
        """Return the one cell with exactly these parameters, None when the plan has none."""
        found = self.cells(build=build, runner=runner, workers=workers, **parameters)
        return next((cell for cell in found if len(cell.parameters) == len(parameters)), None)

    def observations(self, cell: Cell | None) -> tuple[Observation, ...]:
        """Return what was observed while the cell got its cores; nothing when it failed, was skipped or is starved."""
        if cell is None or isinstance(self._index.look_up(cell), Absence):
            return ()
        return self._kept.get(cell, ())

    def values(self, cell: Cell | None) -> dict[int, float]:
        """Return the cell's value by round."""
        return {each.round: each.wall_value for each in self.observations(cell)}

    def value(self, cell: Cell | None) -> Summary | None:
        """Return the cell's value, in seconds, with its spread over the rounds."""
        found = self.values(cell)
        return summarize(list(found.values())) if found else None

    def metrics(self, cell: Cell | None, name: str) -> dict[int, float]:
        """Return the metric `name` by round, of those rounds that have it as a number."""
        found = {each.round: dict(each.metrics).get(name) for each in self.observations(cell)}
        return {key: float(value) for key, value in found.items() if isinstance(value, int | float)}

    def metric(self, cell: Cell | None, name: str) -> Summary | None:
        """Return the metric `name` with its spread over the rounds; None when no round has it."""
        found = self.metrics(cell, name)
        return summarize(list(found.values())) if found else None

    def texts(self, cell: Cell | None, name: str) -> list[str]:
        """Return the metric `name` of each round that has it as a text."""
        found = [dict(each.metrics).get(name) for each in self.observations(cell)]
        return [value for value in found if isinstance(value, str)]

    def compare(self, baseline: Cell | None, cell: Cell | None) -> Comparison | None:
        """Return how many times faster `cell` is than `baseline`, paired by round; None when they share none."""
        return None if baseline is None or cell is None else self._ratios.compare(baseline, cell)

    def floors(self) -> Floors:
        """Return what a cell that is measured twice may differ by from itself, and what A/A arms did."""
        return self._ratios.floors(group_of(self._cells[0]))

    def absence(self, cell: Cell | None) -> Absence | None:
        """Return why the cell has no number; None when it has one."""
        if cell is None:
            return Absence(word="not measured", reason="not part of this run")
        found = self._index.look_up(cell)
        return found if isinstance(found, Absence) else None

    def reason(self, cell: Cell | None) -> str | None:
        """Return why the cell has no number, in one line."""
        found = self.absence(cell)
        return None if found is None else found.reason

    def notes(self, cell: Cell) -> tuple[str, ...]:
        """Return what a reader must know of the cell's number, such as rounds that were starved."""
        found = self._index.look_up(cell)
        return () if isinstance(found, Absence) else tuple(note.text for note in found.notes)

    def entry(self, cell: Cell | None, show: Callable[[Cell], Value | None], footnotes: Footnotes) -> Entry:
        """Return the place of a table for `cell`: what `show` says of it, or a word with its reason below the table.

        A cell that the plan does not have is an empty place.
        """
        if cell is None:
            return Entry()
        if absent := self.absence(cell):
            return Entry(absent.word, footnotes.marks([absent.reason]))
        shown = show(cell)
        return Entry("-" if shown is None else shown, footnotes.marks(self.notes(cell)))

    def duration(self, cell: Cell) -> Duration | None:
        """Return the cell's value for a table."""
        return shown_duration(self.value(cell))

    def rate(self, cell: Cell, unit: str = "/s") -> Quantity | None:
        """Return one over the cell's value, for cells whose value is seconds per request or message."""
        found = self.values(cell)
        return shown_quantity(summarize([1 / each for each in found.values()]), unit) if found else None

    def file(self, cell: Cell | None, name: str) -> Path | None:
        """Return the file `name` that the latest trial of the cell left; None when there is none."""
        if cell is None or self._folder is None:
            return None
        path = file_path(self._folder, cell, name)
        return path if path.exists() else None


def shown_duration(summary: Summary | None) -> Duration | None:
    """Return a summary of seconds for a table; one value has no spread."""
    return None if summary is None else Duration(summary.center, _spread(summary))


def shown_quantity(summary: Summary | None, unit: str) -> Quantity | None:
    """Return a summary of anything else for a table."""
    return None if summary is None else Quantity(summary.center, unit, _spread(summary))


def _spread(summary: Summary) -> float | None:
    return summary.spread if summary.count > 1 else None


def relative_speed(comparison: Comparison | None) -> tuple[float, float, float]:
    """Return for a figure how many times faster it is and the ends of the interval, NaN for what is not known."""
    if comparison is None:
        return nan, nan, nan
    return (comparison.ratio, comparison.lo, comparison.hi) if comparison.sure else (comparison.ratio, nan, nan)


def relative_time(comparison: Comparison | None) -> tuple[float, float, float]:
    """Return for a figure the time against the baseline's, likewise."""
    ratio, lo, hi = relative_speed(comparison)
    return 1 / ratio, 1 / hi, 1 / lo


def middle(values: dict[int, float]) -> float | None:
    """Return the median over rounds, None of nothing."""
    return median(values.values()) if values else None
