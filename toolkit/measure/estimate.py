"""Estimate the duration of a plan from earlier runs of its cells, or else from the settings.  Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.measure.cells import BASELINE
from gilscope.toolkit.stats.verdict import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gilscope.toolkit.measure.settings import Settings
    from gilscope.toolkit.model import Cell

# Typical of measured processes on two cores of 2026; a guess, and reported as one.
START_SECONDS = 0.4
PASS_SECONDS = {"small": 0.15, "medium": 0.6, "large": 2.4}


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierProcess:
    """The duration of one measured process in an earlier run on this machine."""

    cell: Cell
    size: str
    passes: int      # of the work, including the checked one and warm-ups
    seconds: float   # from its start to the start of the next process


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimated duration of a plan."""

    seconds: float   # of all rounds, without regard to the budget
    known: int       # cells whose workload was measured before
    cells: int


def passes(settings: Settings, seconds: float) -> int:
    """Return the passes of one process over work of `seconds`: the checked one, warm-ups, and one for each value."""
    return 1 + settings.warmups + settings.values_of(seconds)


def least_seconds(
    cells: Sequence[Cell], settings: Settings, serial: Callable[[Cell], float | None],
    speedup: Callable[[Cell], float], *, rounds: int, values: int,
) -> float:
    """Return the least seconds of the passes of `rounds` rounds, with `values` values for each process.

    Args:
        cells: Those to measure.
        settings: The effort.
        rounds: The number of rounds.
        values: The number of values.
        serial: Returns the seconds of a serial pass over a cell's work; None: unknown, the cell counts as nothing.
        speedup: Returns the largest speed-up that a cell can have.
    """
    one_pass = sum((serial(cell) or 0.0) / speedup(cell) for cell in cells)
    return one_pass * (1 + settings.warmups + values) * rounds


def least_of_run(
    cells: Sequence[Cell], settings: Settings, serial: Callable[[Cell], float | None],
    speedup: Callable[[Cell], float],
) -> float:
    """Return the least seconds that a run of a user's function takes; it is refused if its budget is shorter.

    That is one value for each process, in the fewest rounds that can show a difference; see `least_seconds`.
    """
    return least_seconds(cells, settings, serial, speedup, rounds=min(MIN_ROUNDS, settings.rounds), values=1)


def least_again(cells: Sequence[Cell], settings: Settings, size: str, earlier: Iterable[EarlierProcess]) -> float:
    """Return `least_of_run` by earlier runs: a lower bound, because they tell neither the tasks nor what overlaps."""
    fastest: dict[str, float] = {}
    for each in earlier:
        if each.size == size and each.cell.runner == BASELINE:
            one_pass = max(0.0, each.seconds - START_SECONDS) / each.passes
            fastest[each.cell.workload] = min(one_pass, fastest.get(each.cell.workload, one_pass))
    return least_of_run(cells, settings, lambda cell: fastest.get(cell.workload),
                        lambda cell: 1.0 if cell.runner == BASELINE else float(cell.workers))


def estimate(cells: Sequence[Cell], settings: Settings, size: str, earlier: Iterable[EarlierProcess]) -> Estimate:
    """Estimate the duration of `cells` with `settings`.

    The estimate of a cell comes from the same cell on any build, else from other cells of its workload, else from the
    settings alone.  The caller makes sure that `earlier` is of this machine.
    """
    same: dict[tuple[object, ...], list[float]] = defaultdict(list)
    alike: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for each in earlier:
        if each.size == size:
            one_pass = each.seconds / each.passes
            same[_key(each.cell)].append(one_pass)
            alike[each.cell.workload, each.cell.task_seconds].append(one_pass)
    known, one_round = 0, 0.0
    for cell in cells:
        earlier_passes = same.get(_key(cell)) or alike.get((cell.workload, cell.task_seconds))
        known += earlier_passes is not None
        one_pass = median(earlier_passes) if earlier_passes else 0.0
        one_round += one_pass * passes(settings, one_pass) if earlier_passes else by_arithmetic(cell, settings, size)
    return Estimate(seconds=one_round * settings.rounds, known=known, cells=len(cells))


def by_arithmetic(cell: Cell, settings: Settings, size: str) -> float:
    """Return the seconds of one process of a cell without earlier measurements."""
    one_pass = PASS_SECONDS[size]
    if cell.task_seconds is not None:
        one_pass = max(one_pass, cell.task_seconds * cell.workers)
    value = max(one_pass, settings.min_seconds)
    return START_SECONDS + passes(settings, value) * value


def _key(cell: Cell) -> tuple[object, ...]:
    return cell.workload, cell.runner, cell.workers, cell.phase, cell.task_seconds
