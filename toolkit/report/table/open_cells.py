"""Select the cells of a running measurement that need more rounds: open ones, and those they are compared with.

The open comparisons are those of the answer: first each cell against the baseline of its build, and the cost of
free-threading for one thread; then, once those are clear, the best models of two builds.  `stats.interim_looks` decides
which comparisons are clear.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.report.table.build_pairs import build_pairs
from gilscope.toolkit.report.table.matrix import table_rows
from gilscope.toolkit.report.table.observations import Index, group_of
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.report.table.recommendation import advise, have_fastest
from gilscope.toolkit.stats.interim_looks import open_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.table.observations import Clock
    from gilscope.toolkit.stats.best import FastestRatio
    from gilscope.toolkit.stats.ratios import Ratio

    type Question = tuple[tuple[Cell, ...], Clock]   # the cells that the answer compares

def open_cells(run: Run, cells: Sequence[Cell], resolution: float | None = None) -> frozenset[Cell]:
    """Return those of `cells` that need more rounds, none if every answer is clear.

    Args:
        run: The complete rounds so far, of its last session only.
        cells: Those that can be measured, A/A arms among them.
        resolution: See `open_pairs`.
    """
    ratios = Ratios(Index(run))   # of one session
    groups: dict[object, list[Cell]] = {}
    for cell in cells:
        if not cell.twin:
            groups.setdefault(group_of(cell), []).append(cell)
    required = {question for group in groups.values() for question in _required_pairs(group, run)}
    known: dict[Question, Ratio | FastestRatio[Cell]] = {
        (pair, clock): ratio for pair, clock in required if (ratio := ratios.ratio(*pair, clock)) is not None}
    for group in groups.values():
        known |= _fastest_of_builds(ratios, group)
    open_ = open_pairs(known, resolution) | (required - known.keys())
    needed = {cell for asked, _ in (open_ & required) or open_ for cell in asked}
    # The result of a baseline that nothing is compared with is its time: every round makes that more precise.
    needed |= {cell for cell in cells if not cell.twin} - {cell for pair, _ in required for cell in pair}
    needed |= {_baseline(cell, run) for cell in needed}
    return frozenset(cells) & (needed | _checks(needed, cells))


def _required_pairs(cells: Sequence[Cell], run: Run) -> Iterator[tuple[tuple[Cell, Cell], Clock]]:
    """Yield the comparisons among `cells`, all of one group, that the answer always shows."""
    for cell in cells:
        if cell != (baseline := _baseline(cell, run)):
            yield (baseline, cell), "wall"
    for gil, free in _with_and_without_gil(run):
        one, other = (_baseline(replace(cells[0], build=build), run) for build in (gil, free))
        if one in cells and other in cells:
            yield (one, other), "cpu"


def _fastest_of_builds(ratios: Ratios, cells: Sequence[Cell]) -> dict[Question, FastestRatio[Cell]]:
    """Return the comparisons of the fastest models of two builds, as the report makes them.

    They come last: these models are often so similar that telling them apart would take all of the remaining time.
    """
    run = ratios.index.run
    rows = table_rows(ratios, cells)
    advice = {build.label: advise(ratios, build.label, [row.results[i] for row in rows])
              for i, build in enumerate(run.builds)}
    pairs = [(advice[gil], advice[free]) for gil, free in _with_and_without_gil(run)]
    found = [ratios.fastest(gil.measured, free.measured) for gil, free in pairs if have_fastest(gil, free)]
    return {((*each.baselines, *each.samples), "wall"): each for each in found}


def _with_and_without_gil(run: Run) -> list[tuple[str, str]]:
    """Return the labels of each pair of a GIL build and the free-threaded build that is compared with it."""
    return [(gil.label, free.label) for gil, free in build_pairs(run.builds)
            if free.free_threaded and not gil.free_threaded]


def _baseline(cell: Cell, run: Run) -> Cell:
    return replace(cell, runner=run.baseline, workers=1, twin=False)


def _checks(needed: set[Cell], cells: Sequence[Cell]) -> set[Cell]:
    """Return the A/A arms that check the noise of the `needed` cells, each with the cell that it repeats."""
    widest: dict[object, int] = {}
    for cell in needed:
        widest[group_of(cell)] = max(widest.get(group_of(cell), 0), cell.workers)
    # Cells with one worker are checked by arms with one worker, if there are any; only wider ones need wider arms.
    arms = [cell for cell in cells if cell.twin and group_of(cell) in widest]
    single = {group_of(cell) for cell in arms if cell.workers == 1}
    used = [cell for cell in arms
            if cell.workers == 1 or widest[group_of(cell)] > 1 or group_of(cell) not in single]
    return {*used, *(replace(cell, twin=False) for cell in used)}
