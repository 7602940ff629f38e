"""Which cells of a run that is being made need more rounds: those whose answer is open, and what they stand against.

Asked is what the overview answers: how each cell stands to the baseline of its build, and what free-threading costs one
thread; when that is clear, how the best of two builds compare.  `stats.looks` says what is clear.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.report.table.matrix import build_pairs, table_rows
from gilscope.toolkit.report.table.observations import Index, group_of
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.report.table.recommendation import advise, compare_twins
from gilscope.toolkit.stats.looks import open_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.table.observations import Clock

    Pair = tuple[Cell, Cell, Clock]   # the baseline first

def open_cells(run: Run, cells: Sequence[Cell], resolution: float | None = None) -> frozenset[Cell]:
    """Return which of `cells` the next rounds have to measure; none when every answer is clear.

    Args:
        run: The complete rounds so far.
        cells: Those that can be measured, A/A arms among them.
        resolution: See `open_pairs`.
    """
    ratios = Ratios(Index(run))
    groups: dict[object, list[Cell]] = {}
    for cell in cells:
        if not cell.twin:
            groups.setdefault(group_of(cell), []).append(cell)
    asked = {pair for group in groups.values() for pair in _asked(group, run)}
    later = {pair for group in groups.values() for pair in _asked_later(ratios, group)}
    known = {pair: ratio for pair in asked | later if (ratio := ratios.ratio(*pair)) is not None}
    open_ = open_pairs(known, resolution=resolution).keys() | ((asked | later) - known.keys())
    open_ = (open_ & asked) or open_
    needed = {cell for baseline, sample, _ in open_ for cell in (baseline, sample)}
    # Of a baseline that nothing is compared with, its time is the answer: the more rounds, the better it is known.
    needed |= {cell for cell in cells if not cell.twin} - {cell for pair in asked for cell in pair[:2]}
    needed |= {_baseline(cell, run) for cell in needed}
    return frozenset(cells) & (needed | _checks(needed, cells))


def _asked(cells: Sequence[Cell], run: Run) -> Iterator[Pair]:
    """Yield what is asked of `cells`, all of one group."""
    for cell in cells:
        if cell != (baseline := _baseline(cell, run)):
            yield baseline, cell, "wall"
    for gil, free in _twins(run):
        one, other = (_baseline(replace(cells[0], build=build), run) for build in (gil, free))
        if one in cells and other in cells:
            yield one, other, "cpu"


def _asked_later(ratios: Ratios, cells: Sequence[Cell]) -> Iterator[Pair]:
    """Yield how the best of two builds compare: often so alike that it takes all the time there is."""
    run = ratios.index.run
    rows = table_rows(ratios, cells)
    advice = {build.label: advise(ratios, build.label, [row.results[i] for row in rows])
              for i, build in enumerate(run.builds)}
    for gil, free in _twins(run):
        if (best := compare_twins(ratios, advice[gil], advice[free])) is not None:
            yield best.gil.cell, best.free.cell, "wall"


def _twins(run: Run) -> list[tuple[str, str]]:
    """Return each free-threaded build after the one with a GIL that it is set against, by their labels."""
    return [(gil.label, free.label) for gil, free in build_pairs(run.builds)
            if free.free_threaded and not gil.free_threaded]


def _baseline(cell: Cell, run: Run) -> Cell:
    return replace(cell, runner=run.baseline, workers=1, twin=False)


def _checks(needed: set[Cell], cells: Sequence[Cell]) -> set[Cell]:
    """Return the A/A arms, each with the cell that it repeats, that the floors of `needed` cells go by."""
    widest: dict[object, int] = {}
    for cell in needed:
        widest[group_of(cell)] = max(widest.get(group_of(cell), 0), cell.workers)
    # What has one worker goes by arms with one worker, where there are any: wider ones are first needed by wider cells.
    arms = [cell for cell in cells if cell.twin and group_of(cell) in widest]
    single = {group_of(cell) for cell in arms if cell.workers == 1}
    used = [cell for cell in arms
            if cell.workers == 1 or widest[group_of(cell)] > 1 or group_of(cell) not in single]
    return {*used, *(replace(cell, twin=False) for cell in used)}
