"""The far processes of a cell, session by session, and whose rounds' common effect they are free of.

Sessions stay apart: of two of them, one may have a slow process and the other a fast one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.outliers import far_processes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gilscope.toolkit.model import Cell
    from gilscope.toolkit.stats.outliers import FarProcesses

WorkerClass = Literal["one", "several"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FarGroup:
    """The far processes of a cell in one session."""

    processes: FarProcesses
    session: int | None          # None: the run has one session
    cells: WorkerClass | None    # whose common effect of each round was removed; None: all cells of the workload's


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelGroup:
    """The levels of the cells of a workload in one session, for `far_groups`."""

    logs: RoundLogs[Cell]
    session: int | None
    split: bool                  # rounds disturb the cells of one worker class alone, so each class has its own effect


def worker_class(cell: Cell) -> WorkerClass:
    """Return the class of a cell that a round may disturb alone: what slows two workers need not slow one."""
    return "one" if cell.workers == 1 else "several"


def far_groups(groups: Iterable[LevelGroup]) -> Mapping[Cell, tuple[FarGroup, ...]]:
    """Return the far processes of each cell that has some, the farthest first.

    Args:
        groups: Those of all workloads and sessions of a run, as the noise of the run is judged as a whole.
    """
    logs: dict[tuple[int, WorkerClass | None], RoundLogs[Cell]] = {}
    sessions: dict[int, int | None] = {}
    classes: tuple[WorkerClass, ...] = ("one", "several")
    for number, group in enumerate(groups):
        sessions[number] = group.session
        for name in classes if group.split else (None,):
            logs[number, name] = RoundLogs(levels={
                cell: levels for cell, levels in group.logs.levels.items()
                if levels and name in {None, worker_class(cell)}})
    found: dict[Cell, list[FarGroup]] = {}
    for (number, name), cells in far_processes(logs).items():
        for cell, processes in cells.items():
            found.setdefault(cell, []).append(FarGroup(processes=processes, session=sessions[number], cells=name))
    return {cell: tuple(sorted(each, key=lambda one: -abs(one.processes.share))) for cell, each in found.items()}
