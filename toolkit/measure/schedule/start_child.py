"""How the measured process of each cell is started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gilscope.toolkit.measure.process.spec import ChildSpec, Spec, UserTarget

if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from pathlib import Path

    from gilscope.toolkit.measure.plan.core_demand import Demands
    from gilscope.toolkit.measure.plan.settings import Settings
    from gilscope.toolkit.model import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One measured process before its start."""

    python: str
    spec: Spec
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """What the measured processes of the main job are started with."""

    pythons: Mapping[str, str]  # build label -> python to start
    environments: Mapping[str, dict[str, str]]  # build label -> environment variables
    free_threaded: frozenset[str]  # labels of free-threaded builds
    size: str
    user: UserTarget | None
    units: Mapping[tuple[str, float], tuple[int, int]]  # (workload, task seconds) -> (units per task, tasks)
    services: tuple[int, ...]
    folder: Path  # for the files of the process being measured
    shared_by: int = 1  # workers of the widest cell: all cells have a task for each of them
    demands: Demands | None = None  # None: a cell's kind says what it needs of the cores

    def start(self, cell: Cell, settings: Settings, loops: int) -> Start:
        """Return how the measured process of `cell` is started."""
        units, tasks = (None, None)
        if cell.task_seconds is not None:
            units, tasks = self.units[cell.workload, cell.task_seconds]
        spec = ChildSpec(
            name=cell.name,
            workload=cell.workload,
            user=self.user,
            size=self.size,
            runner=cell.runner,
            workers=cell.workers,
            phase=cell.phase,
            task_units=units,
            tasks=tasks,
            values=settings.values,
            warmups=settings.warmups,
            loops=loops,
            min_seconds=settings.min_seconds,
            progress_timeout=settings.timeout,
            services=self.services,
            folder=str(self.folder),
            shared_by=self.shared_by,
            demand=None if self.demands is None else self.demands.of(cell),
        )
        environment = self.environments[cell.build] | gil_control(cell, self.free_threaded)
        return Start(python=self.pythons[cell.build], spec=spec, environment=environment)


def gil_control(cell: Cell, free_threaded: Container[str]) -> dict[str, str]:
    """Return the variable that makes `cell` the control, threads with the GIL on a build of `free_threaded`."""
    if cell.runner == "threads" and cell.build in free_threaded:
        return {"PYTHON_GIL": "1"}  # -X gil would not reach workers
    return {}


class Starts(Protocol):
    """Says how the measured process of a cell is started: what a scheduler has to know of what it measures."""

    def start(self, cell: Cell, settings: Settings, loops: int) -> Start:
        """Return how to start it; `loops` of the cell's first process, 0 before that one."""
