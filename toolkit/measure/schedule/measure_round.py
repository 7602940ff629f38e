"""How the cells of a round are measured: one process after the other, or all of a workload together and in turn.

What a round is, what is kept of it and when it is given up is the scheduler's.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from gilscope.toolkit.measure.process.running import Answer, run_child

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gilscope.toolkit.measure.plan.settings import Settings
    from gilscope.toolkit.measure.schedule.start_child import Start
    from gilscope.toolkit.model import Cell


class Told(Protocol):
    """Who is told what is being done."""

    def arm_begins(self, cell: Cell) -> None:
        """Say that a process of `cell` is started."""

    def pass_ends(self, done: int, passes: int) -> None:
        """Say that every arm of a workload has taken the value `done` of `passes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What measuring a part of a round needs to know."""

    index: int
    settings: Settings
    baseline: str                          # the runner that others are compared with
    start: Callable[[Cell], Start]
    keep_loops: Callable[[Cell, int], None]    # told what the first process of a cell has found
    reporter: Told
    seconds_left: Callable[[], float | None]   # of the budget, where it may cut this round; None: no end

    def random(self, *where: object) -> random.Random:
        """Return a source that depends on seed, round and place alone: a resumed run goes on as it would have."""
        return random.Random("/".join(map(str, (self.settings.seed, self.index, *where))))

    def spent(self) -> bool:
        """Return whether the budget is over."""
        left = self.seconds_left()
        return left is not None and left < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one measured process came to."""

    cell: Cell
    start: Start
    answer: Answer
    details: dict[str, Any] = field(default_factory=dict)   # beside the answer's own fields


class Way(Protocol):
    """How the cells of a round are measured."""

    def groups(self, cells: Sequence[Cell], around: Round) -> list[list[Cell]]:
        """Return the cells in parts that are each measured as a whole, in the order in which that is done."""

    def measure(self, cells: Sequence[Cell], around: Round) -> list[Taken]:
        """Measure one of the parts; cells for which there was no time are not among what is returned.

        Raises:
            KeyboardInterrupt: the user pressed Ctrl-C; every process is gone.
        """


class OneByOne:
    """Each cell's process from its start to its end, then the next: for processes that give one value each."""

    def __init__(self, measure: Callable[..., Answer] = run_child) -> None:
        """`measure` starts a process and returns what it answers."""
        self._measure = measure

    def groups(self, cells: Sequence[Cell], around: Round) -> list[list[Cell]]:
        """Return each cell on its own, in random order."""
        order = list(cells)
        around.random().shuffle(order)
        return [[cell] for cell in order]

    def measure(self, cells: Sequence[Cell], around: Round) -> list[Taken]:
        """Measure the one cell."""
        (cell,) = cells
        around.reporter.arm_begins(cell)
        start, began = around.start(cell), time.monotonic()
        answer = self._measure(start.python, start.spec, start.environment)
        return [Taken(cell=cell, start=start, answer=answer, details={"seconds": time.monotonic() - began})]
