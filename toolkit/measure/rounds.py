"""Start the processes of a round and measure its cells, one process at a time; `turns.py` measures them in turn.

The scheduler decides what a round is, what is stored of it and when to give it up.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from gilscope.toolkit.measure.child.spec import CellSpec, ProcessSpec, UserTarget
from gilscope.toolkit.measure.measured_process import ProcessAnswer, run_child

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.measure.settings import CoreDemands, Settings
    from gilscope.toolkit.model import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStart:
    """One measured process before its start."""

    python: str
    spec: ProcessSpec
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellStarter:
    """Starts the measured processes of the main job."""

    pythons: Mapping[str, str]  # build label -> python to start
    environments: Mapping[str, dict[str, str]]  # build label -> environment variables
    free_threaded: frozenset[str]  # labels of free-threaded builds
    size: str
    user: UserTarget | None
    units: Mapping[tuple[str, float], tuple[int, int]]  # (workload, task seconds) -> (units per task, tasks)
    services: tuple[int, ...]  # process ids of loopback servers
    folder: Path  # for the files of the measured processes
    shared_by: int = 1  # workers of the widest cell: all cells have a task for each of them
    demands: CoreDemands | None = None  # None: estimated from the kind of a workload

    def start(self, cell: Cell, settings: Settings, loops: int) -> ProcessStart:
        """Return the measured process of `cell`, ready to start."""
        units, tasks = (None, None)
        if cell.task_seconds is not None:
            units, tasks = self.units[cell.workload, cell.task_seconds]
        spec = CellSpec(
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
        return ProcessStart(python=self.pythons[cell.build], spec=spec, environment=environment)


def gil_control(cell: Cell, free_threaded: Container[str]) -> dict[str, str]:
    """Return the variable that turns the GIL on for the control: threads on a free-threaded build."""
    if cell.runner == "threads" and cell.build in free_threaded:
        return {"PYTHON_GIL": "1"}  # -X gil would not reach workers
    return {}


class ProcessStarter(Protocol):
    """The interface through which a scheduler starts the processes of what it measures."""

    def start(self, cell: Cell, settings: Settings, loops: int) -> ProcessStart:
        """Return the process of `cell`, ready to start; `loops` were calibrated by its first process, 0: not yet."""


class ProgressCallbacks(Protocol):
    """Callbacks for progress within a round."""

    def on_arm_start(self, cell: Cell) -> None:
        """Report that a process of `cell` is being started."""

    def on_pass_end(self, done: int, passes: int) -> None:
        """Report that every arm of a workload has taken value number `done` of `passes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The context in which the cells of a round are measured."""

    index: int
    settings: Settings
    baseline: str                          # the baseline's runner
    start: Callable[[Cell], ProcessStart]
    keep_loops: Callable[[Cell, int], None]    # called with the loops that a cell's first process has calibrated
    reporter: ProgressCallbacks
    seconds_left: Callable[[], float | None]   # of the budget, if it may cut this round; None: no limit
    attempt: int = 0                       # at the cells of this round: 0, or the number of the retake

    def random(self, *where: object) -> random.Random:
        """Return a generator seeded by run, round and place alone, so that a resumed run continues unchanged."""
        attempt = ("attempt", self.attempt) if self.attempt else ()
        return random.Random("/".join(map(str, (self.settings.seed, self.index, *attempt, *where))))

    def spent(self) -> bool:
        """Return True if the budget is used up."""
        left = self.seconds_left()
        return left is not None and left < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmResult:
    """The result of one measured process."""

    cell: Cell
    start: ProcessStart | None    # None: the method of measuring has processes of its own
    answer: ProcessAnswer
    details: dict[str, Any] = field(default_factory=dict)   # added to the answer's fields
    values: tuple[float, ...] = ()    # seconds; empty: they are in the process's pyperf file


class RoundMethod(Protocol):
    """A method of measuring the cells of a round."""

    def groups(self, cells: Sequence[Cell], around: Round) -> list[list[Cell]]:
        """Return groups of cells that are each measured as a whole, in the order of measuring."""

    def measure(self, cells: Sequence[Cell], around: Round) -> list[ArmResult]:
        """Measure one group; cells for which there was no time are missing from the results.

        Raises:
            KeyboardInterrupt: The user pressed Ctrl-C; every process has been killed.
        """


class OneAtATime:
    """The method that runs one process from start to end before the next: for processes with a single value each."""

    def __init__(self, measure: Callable[..., ProcessAnswer] = run_child) -> None:
        """Prepare to call `measure`, which runs a process and returns its answer."""
        self._measure = measure

    def groups(self, cells: Sequence[Cell], around: Round) -> list[list[Cell]]:
        """Return each cell as a group, in random order."""
        order = list(cells)
        around.random().shuffle(order)
        return [[cell] for cell in order]

    def measure(self, cells: Sequence[Cell], around: Round) -> list[ArmResult]:
        """Measure the one cell."""
        (cell,) = cells
        around.reporter.on_arm_start(cell)
        start, began = around.start(cell), time.monotonic()
        answer = self._measure(start.python, start.spec, start.environment)
        return [ArmResult(cell=cell, start=start, answer=answer, details={"seconds": time.monotonic() - began})]
