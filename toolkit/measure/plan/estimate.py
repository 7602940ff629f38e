"""How long a plan will take: from what its cells took in earlier runs, or else by the presets' arithmetic.  Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.measure.plan.settings import Settings
    from gilscope.toolkit.model import Cell

# One measured process as gilscope's own runs on two cores of 2026 have it; a guess, and told as one.
START_SECONDS = 0.4
PASS_SECONDS = {"small": 0.15, "medium": 0.6, "large": 2.4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What one process of an earlier run took on this machine."""

    cell: Cell
    size: str
    passes: int      # of the work, the checked one and warm-ups included
    seconds: float   # from its start until the next one's


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """How long a plan will take."""

    seconds: float   # of all rounds, whatever the budget
    known: int       # cells with an earlier process of the same workload
    cells: int


def passes(settings: Settings, seconds: float) -> int:
    """Return how often one process does work of `seconds`: one pass is checked, some warm up, each value is another."""
    return 1 + settings.warmups + settings.values_of(seconds)


def estimate(cells: Sequence[Cell], settings: Settings, size: str, earlier: Iterable[Took]) -> Estimate:
    """Return how long `cells` take with `settings`.

    A cell takes what the same one took, on whatever build; else what other cells of its workload took; else what the
    presets' arithmetic says.  Machines are compared by who gives `earlier`.
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
        found = same.get(_key(cell)) or alike.get((cell.workload, cell.task_seconds))
        known += found is not None
        one_pass = median(found) if found else 0.0
        one_round += one_pass * passes(settings, one_pass) if found else by_arithmetic(cell, settings, size)
    return Estimate(seconds=one_round * settings.rounds, known=known, cells=len(cells))


def by_arithmetic(cell: Cell, settings: Settings, size: str) -> float:
    """Return the seconds of one process of a cell of which nothing is known."""
    one_pass = PASS_SECONDS[size]
    if cell.task_seconds is not None:
        one_pass = max(one_pass, cell.task_seconds * cell.workers)
    value = max(one_pass, settings.min_seconds)
    return START_SECONDS + passes(settings, value) * value


def _key(cell: Cell) -> tuple[object, ...]:
    return cell.workload, cell.runner, cell.workers, cell.phase, cell.task_seconds
