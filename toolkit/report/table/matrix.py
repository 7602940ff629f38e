"""A run as tables, one per workload: a row per runner and number of workers, a column per build."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit import metrics
from gilscope.toolkit.model import Note, Phase
from gilscope.toolkit.report.table.build_pairs import build_pairs
from gilscope.toolkit.report.table.cell_results import CellResult, TableRow
from gilscope.toolkit.report.table.contrast import Contrast, contrast_builds
from gilscope.toolkit.report.table.footnotes_of_cells import note_on_ratio, note_on_time
from gilscope.toolkit.report.table.observations import Absence, Group, Index, group_of
from gilscope.toolkit.report.table.process_notes import slowest_process
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.report.table.recommendation import Advice, FastestOfBuilds, advise, compare_fastest
from gilscope.toolkit.stats.sample import summarize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.table.cell_results import NoiseFloor
    from gilscope.toolkit.report.table.observations import Clock
    from gilscope.toolkit.stats.sample import Summary
    from gilscope.toolkit.stats.verdict import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadTable:
    """Everything about one workload, phase and task length."""

    workload: str
    phase: Phase
    task_seconds: float | None
    baseline: str                       # runner
    busy: float | None                  # cores that the baseline keeps busy: 1.0 if it computes, 0.0 if it waits
    builds: tuple[str, ...]
    rows: tuple[TableRow, ...]
    floors: Mapping[Clock, NoiseFloor]
    contrasts: tuple[Contrast, ...]     # build against build, every runner and number of workers
    notes: tuple[Note, ...]
    advice: tuple[Advice, ...]          # one per build
    fastest_of_builds: tuple[FastestOfBuilds, ...]   # one per free-threaded build that is compared with a GIL build

    @property
    def times(self) -> list[Summary]:
        """Return the times of all cells that have one."""
        return [result.time for row in self.rows for result in row.results if result.time is not None]

    @property
    def speedups(self) -> list[Comparison]:
        """Return the speed-ups of all cells that have one."""
        return [result.speedup for row in self.rows for result in row.results if result.speedup is not None]

    @property
    def metric_columns(self) -> list[str]:
        """Return the headings of the metrics that some cell has, in the order of their declaration; memory always."""
        columns = {column for row in self.rows for result in row.results for column in result.metrics}
        return list(dict.fromkeys(
            each.column for each in metrics.CELL_METRICS if each.column in {metrics.MEMORY, *columns}))

    def compares(self, result: CellResult) -> bool:
        """Return True if a cell should have a ratio: neither the baseline nor a skipped cell has one."""
        is_baseline = result.cell.runner == self.baseline and result.cell.workers == 1
        return not is_baseline and (result.absence is None or result.absence.word in {"starved", "failed"})


def build_tables(run: Run, ratios: Ratios | None = None) -> tuple[WorkloadTable, ...]:
    """Return one table per workload, phase and task length, in the order in which they appear in the run.

    Args:
        run: The run.
        ratios: The ratios of the run if they exist already: the noise is then estimated only once.
    """
    ratios = ratios or Ratios(Index(run))
    groups = dict.fromkeys(group_of(cell) for cell in ratios.index.cells())
    return tuple(_table(ratios, group) for group in groups)


def _table(ratios: Ratios, group: Group) -> WorkloadTable:
    index, run = ratios.index, ratios.index.run
    cells = [cell for cell in index.cells() if group_of(cell) == group]
    builds = tuple(build.label for build in run.builds)
    rows = table_rows(ratios, cells)
    contrasts = [contrast for first, second in build_pairs(run.builds)
                 for contrast in contrast_builds(ratios, cells, first.label, second.label)]
    advice = {build: advise(ratios, build, [row.results[i] for row in rows])
              for i, build in enumerate(builds)}
    return WorkloadTable(
        workload=group[0], phase=group[1], task_seconds=group[2], baseline=run.baseline, busy=_busy(index, rows),
        builds=builds, rows=rows, floors=ratios.floors([group]),
        notes=_common_notes(rows, contrasts), contrasts=tuple(contrasts),
        advice=tuple(advice.values()),
        fastest_of_builds=tuple(
            fastest
            for first, second in build_pairs(run.builds) if second.free_threaded and not first.free_threaded
            if (fastest := compare_fastest(ratios, advice[first.label], advice[second.label])) is not None
        ),
    )


def table_rows(ratios: Ratios, cells: Sequence[Cell]) -> tuple[TableRow, ...]:
    """Return the rows of the table that `cells`, all of one group, belong to."""
    run = ratios.index.run
    return tuple(
        TableRow(runner=runner, workers=workers, results=tuple(
            _result(ratios, replace(cells[0], runner=runner, workers=workers, build=build.label))
            for build in run.builds
        ))
        for runner, workers in _row_keys(cells, run.baseline)
    )


def _row_keys(cells: Sequence[Cell], baseline: str) -> list[tuple[str, int]]:
    """Return runner and workers of each row, in the order of the cells but the baseline first."""
    keys = dict.fromkeys((cell.runner, cell.workers) for cell in cells)
    return sorted(keys, key=lambda key: key[0] != baseline)


def _result(ratios: Ratios, cell: Cell) -> CellResult:
    index, series = ratios.index, ratios.index.look_up(cell)
    if isinstance(series, Absence):
        return CellResult(cell=cell, absence=series)
    time = summarize(list(series.wall.values()))
    base_cell = replace(cell, runner=index.run.baseline, workers=1)
    result = CellResult(
        cell=cell, time=time, metrics=series.metrics, is_baseline=cell == base_cell,
        slowest=slowest_process(series.wall.values()),
    )
    result = replace(result, notes=(*series.notes, *result.process_notes))
    if result.is_baseline:
        return _with_lack(result, note_on_time(ratios, cell))
    base = index.look_up(base_cell)
    if isinstance(base, Absence):
        missing = Note(text=f"no ratio, as the baseline {base_cell.runner} has no number ({base.word}: {base.reason})")
        return replace(result, notes=(*result.notes, missing))
    return _compared(result, ratios, base_cell)


def _compared(result: CellResult, ratios: Ratios, base: Cell) -> CellResult:
    cell = result.cell
    speedup = ratios.compare(base, cell)
    if speedup is None:
        return replace(result, notes=(*result.notes, Note(text="no ratio: it shares no round with its baseline")))
    work = ratios.ratio(cell, base, "cpu")
    # Efficiency is defined only for a fixed amount of work; starting more workers is more work.
    per_worker = speedup.ratio / cell.workers if cell.phase is Phase.STEADY else None
    if speedup.between[0] > cell.workers and cell.phase is Phase.STEADY:
        result = replace(result, notes=(*result.notes, Note(
            text=f"more than {cell.workers} workers can gain by themselves: something slows {base.runner}, such as "
                 "cores that go to sleep while it waits, or caches that its work does not fit into")))
    result = replace(result, speedup=speedup, efficiency=per_worker,
                     cpu_inflation=None if work is None else work.ratio)
    return _with_lack(result, note_on_ratio(ratios, base, cell, "wall"))


def _with_lack(result: CellResult, note: Note | None) -> CellResult:
    """Return the result with the note that its number lacks sessions of the run, if it does."""
    return result if note is None else replace(result, notes=(*result.notes, note), lacking_sessions=note)


def _common_notes(rows: Sequence[TableRow], contrasts: Sequence[Contrast]) -> tuple[Note, ...]:
    """Return the notes of speed-ups, and of the CPU time of builds, without duplicates: nearly all have the same."""
    speedups = (result.speedup for row in rows for result in row.results)
    costs = (each.comparison for each in contrasts if each.sample.workers == 1)
    return tuple(dict.fromkeys(note for each in (*speedups, *costs) if each is not None for note in each.notes))


def _busy(index: Index, rows: Sequence[TableRow]) -> float | None:
    """Return the share of a core that the baseline keeps busy, the median over builds."""
    cells = [result.cell for result in rows[0].results if rows[0].runner == index.run.baseline]
    shares = [each for cell in cells if (each := index.demand(cell) or _cores_used(index, cell)) is not None]
    return median(shares) if shares else None


def _cores_used(index: Index, cell: Cell) -> float | None:
    """Return the CPU seconds of the cell for each second, None when it has no numbers."""
    wall, cpu = index.by(cell, "wall"), index.by(cell, "cpu")
    shares = [cpu.get(r, 0.0) / wall[r] for r in wall]   # work too short for the CPU clock waits
    return median(shares) if shares else None
