"""The model to use for a workload on each build: a set, unless one model is significantly faster."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.concurrency_models import find_model
from gilscope.toolkit.model import Phase, SkipKind
from gilscope.toolkit.stats.verdict import SpeedVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.model import Cell
    from gilscope.toolkit.report.table.cell_results import CellResult
    from gilscope.toolkit.report.table.observations import Index, MetricValue
    from gilscope.toolkit.report.table.ratios import Ratios
    from gilscope.toolkit.stats.verdict import Comparison

Doubt = Literal["starved", "failed", "not measured", "rounds", "floor", "noise"]

SETTLING_GAIN = 0.25   # a gain below it seldom pays for a change of model, so an interval up to it settles the question
NEARLY = 0.95  # of the best number of workers: fewer workers that reach it are the better choice
CLOSE = 0.9    # of the fastest: an option from there on may be preferred for its memory or its simplicity
HALF_CEILING = 0.5  # of what processes do: threads that stay below share something that is in their way
ALIKE = 1.25   # times the least memory: up to there memory is no reason to prefer an option


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A cell that is faster than the baseline."""

    cell: Cell
    speedup: Comparison
    memory: MetricValue | None
    control: bool = False   # measured with the GIL turned on in a free-threaded build: PYTHON_GIL=1


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCell:
    """A cell that may or may not be faster than the baseline, and why that is open."""

    cell: Cell
    why: Doubt
    speedup: Comparison | None = None   # where there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchCost:
    """The cost of handing a task to a worker, of a model that is slower because this exceeds the task itself."""

    runner: str
    seconds: float     # per task, beside its share of the work
    pays_from: float   # seconds of a task from which the model can be faster than the baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingGap:
    """Free threads that are less than half as fast as the same number of processes, which share no objects."""

    cell: Cell
    ceiling: Cell
    comparison: Comparison   # of `cell` with `ceiling`: the ratio is below 0.5, and so is its interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The recommendation for one build."""

    build: str
    missing: str | None = None          # why the baseline has no number; then all fields but `open` are empty
    memory: MetricValue | None = None        # of the baseline
    measured: tuple[Cell, ...] = ()     # all cells that have a number, the baseline first
    shown: tuple[Option, ...] = ()      # the cell that represents each model, faster than the baseline or not
    best: tuple[Cell, ...] = ()         # of `shown` and the baseline: no model is significantly faster than these
    options: tuple[Option, ...] = ()    # of `best`, those faster than the baseline; the preferred one first
    faster: tuple[Option, ...] = ()     # of `shown`, those faster than the baseline
    open: tuple[OpenCell, ...] = ()
    task: float | None = None           # seconds of one task of the baseline
    dispatch: tuple[DispatchCost, ...] = ()   # of each model, the cheapest first
    below_ceiling: CeilingGap | None = None   # of free threads, with the most workers


@dataclass(frozen=True, slots=True, kw_only=True)
class FastestOfBuilds:
    """The fastest model of a free-threaded build compared with the fastest of the build with a GIL."""

    gil: Cell                 # the fastest by its estimate
    free: Cell
    comparison: Comparison    # ratio > 1: the free-threaded one is faster; the interval holds whichever are the fastest


def advise(ratios: Ratios, build: str, results: Sequence[CellResult]) -> Advice:
    """Return the recommendation for the cells of one build, workload, phase and task length."""
    index, baseline = ratios.index, ratios.index.run.baseline
    base = next((each for each in results if each.cell.runner == baseline and each.cell.workers == 1), None)
    if base is None or base.absence is not None:
        absence = base.absence if base is not None else None
        if absence is None:
            return Advice(build=build, missing="not measured")
        starved = [each for each in results if each is not base] if absence.word == "starved" else []
        return Advice(build=build, missing=f"{absence.word}: {absence.reason}", open=tuple(_open(index, starved, None)))
    compared = [Option(cell=each.cell, speedup=each.speedup, memory=each.memory,
                       control=_is_control(index, each.cell)) for each in results if each.speedup]
    # The set is of all measured cells: those shown are chosen by the values that the set is judged by.
    members = ratios.best([base.cell, *(each.cell for each in compared)]) or ()
    shown = _one_of_each(compared, members)
    of_model = {each.cell.runner: each.cell for each in shown} | {base.cell.runner: base.cell}
    best = tuple(of_model[name] for name in dict.fromkeys(each.runner for each in members))
    faster = [each for each in shown if each.speedup.verdict() == SpeedVerdict.FASTER]
    unbeaten = [each for each in faster if each.cell in best]
    # Used if all of them are slower than a cell whose own gain is not significant.
    fastest = sorted(faster, key=lambda each: -each.speedup.ratio)[:1]
    return Advice(
        build=build,
        memory=base.memory,
        measured=(base.cell, *(each.cell for each in compared)),
        shown=tuple(shown),
        best=best,
        options=_preferred(unbeaten or fastest),
        faster=tuple(faster),
        open=tuple(_open(index, results, max((each.speedup.ratio for each in faster), default=None))),
        task=None if base.time is None else base.time.center / (index.tasks(base.cell) or 1),
        dispatch=_dispatch_costs(index, base, results),
        below_ceiling=_below_ceiling(ratios, [each.cell for each in results if each.absence is None]),
    )


def have_fastest(gil: Advice, free: Advice) -> bool:
    """Return True if both builds have a model that is faster than the baseline, so that their fastest are compared."""
    return bool(gil.options and free.options)


def compare_fastest(ratios: Ratios, gil: Advice, free: Advice) -> FastestOfBuilds | None:
    """Compare the fastest models of a build with a GIL and of a free-threaded one, by time; None if one has none.

    The preferred models would not do: one that is simpler may be a tenth slower.  Which models are the fastest is
    uncertain, so the interval holds for whichever of all measured cells they are.
    """
    if not have_fastest(gil, free):
        return None
    found = ratios.compare_fastest(gil.measured, free.measured)
    return None if found is None else FastestOfBuilds(gil=found[0], free=found[1], comparison=found[2])


def _one_of_each(compared: Sequence[Option], members: Sequence[Cell]) -> list[Option]:
    """Return one cell for each model: the one with the fewest workers that nearly reaches the model's fastest cell.

    A model that is not faster than the baseline is represented by its cell with the most workers, as a gain would show
    there first.

    Args:
        compared: The cells of all models.
        members: The set of the best.  A model that has cells in it is represented by one of them.
    """
    representatives = []
    for runner in dict.fromkeys(each.cell.runner for each in compared):
        family = sorted((each for each in compared if each.cell.runner == runner), key=lambda each: each.cell.workers)
        family = [each for each in family if each.cell in members] or family
        faster = [each for each in family if each.speedup.verdict() == SpeedVerdict.FASTER]
        best = max(faster, key=lambda each: each.speedup.ratio, default=family[-1])
        representatives.append(next(each for each in faster or [best]
                                    if each.speedup.ratio >= NEARLY * best.speedup.ratio))
    return representatives


def _preferred(options: Sequence[Option]) -> tuple[Option, ...]:
    """Return the options with the preferred one first: the simplest that is close to the fastest in little memory."""
    if not options:
        return ()
    fastest = max(each.speedup.ratio for each in options)
    close = [each for each in options if each.speedup.ratio >= CLOSE * fastest]
    least = min((each.memory.number for each in close if each.memory is not None), default=0.0)
    light = [each for each in close if each.memory is None or each.memory.number <= ALIKE * least]
    first = min(light, key=lambda each: (each.control, find_model(each.cell.runner).effort))
    return (first, *(each for each in options if each is not first))


def _is_control(index: Index, cell: Cell) -> bool:
    build = index.builds.get(cell.build)
    return build is not None and build.free_threaded and bool(find_model(cell.runner).gil)


def _below_ceiling(ratios: Ratios, measured: Sequence[Cell]) -> CeilingGap | None:
    """Return how far free threads are below as many processes, if by more than half: a hint, no verdict."""
    free = [cell for cell in measured if find_model(cell.runner).gil is False and cell.workers > 1]
    if not free or free[0].phase is not Phase.STEADY:
        return None
    cell = max(free, key=lambda each: each.workers)
    ceilings = [each for each in measured if find_model(each.runner).family == "processes"
                and each.workers == cell.workers]
    found = [CeilingGap(cell=cell, ceiling=each, comparison=comparison)
             for each in ceilings if (comparison := ratios.compare(each, cell)) is not None]
    lowest = min(found, key=lambda each: each.comparison.ratio, default=None)
    return lowest if lowest is not None and lowest.comparison.between[1] < HALF_CEILING else None


def _dispatch_costs(index: Index, base: CellResult, results: Sequence[CellResult]) -> tuple[DispatchCost, ...]:
    """Return the cost of dispatching a task: its time in a model, minus a worker's share of the work.

    A model whose workers share a GIL, or an event loop, gains nothing from longer tasks that compute; it is left out.
    """
    tasks = index.tasks(base.cell)
    if base.time is None or tasks is None or base.cell.phase is not Phase.STEADY:
        return ()
    task, found = base.time.center / tasks, dict[str, DispatchCost]()
    for each in results:
        workers, model = min(each.cell.workers, tasks), find_model(each.cell.runner)
        if each.time is None or each.absence is not None or workers == 1 or model.gil or model.awaits:
            continue
        seconds = each.time.center / tasks - task / workers
        if each.speedup is None or each.speedup.verdict() != SpeedVerdict.SLOWER:
            continue
        if seconds > task and seconds < found.get(model.name, DispatchCost(
                runner=model.name, seconds=math.inf, pays_from=math.inf)).seconds:
            # A task of s seconds takes seconds + s / workers, which is less than s from here on.
            pays_from = seconds * workers / (workers - 1)
            found[model.name] = DispatchCost(runner=model.name, seconds=seconds, pays_from=pays_from)
    return tuple(sorted(found.values(), key=lambda cost: cost.seconds))


def _open(index: Index, results: Sequence[CellResult], best: float | None) -> Iterable[OpenCell]:
    """Yield the cells whose gain is unknown; once a gain is known, only those that may gain as much.

    Args:
        index: The run.
        results: The cells of one build.
        best: The largest significant speed-up; None: there is none.
    """
    for each in results:
        doubt = _doubt(index, each)
        if doubt == "noise" and each.speedup is not None:
            # A single worker has nothing to gain by being one of several.
            worth = each.cell.workers > 1 and (best is None or each.speedup.between[1] >= CLOSE * best)
            doubt = doubt if worth else None
        if doubt is not None:
            yield OpenCell(cell=each.cell, why=doubt, speedup=each.speedup)


def _doubt(index: Index, result: CellResult) -> Doubt | None:
    """Return why the gain of the cell is unknown; None if it is known, or if the cell cannot be measured at all."""
    if result.absence is not None:
        if result.absence.word in {"starved", "failed"}:
            return result.absence.word
        planned = result.absence.word == "not measured" and result.cell in index.run.cells
        return "not measured" if planned or result.absence.skip == SkipKind.OUT_OF_BUDGET else None
    if result.speedup is None:
        return None
    if not result.speedup.judgeable:
        return "floor" if result.speedup.has_enough_rounds else "rounds"
    is_settled = result.speedup.differs or result.speedup.between[1] - 1 <= SETTLING_GAIN
    return None if is_settled else "noise"
