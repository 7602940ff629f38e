"""The cells of a workload as the scheduler knows them, what a round of it takes, and what comes out of one."""

from __future__ import annotations

from math import exp, nan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gilscope.toolkit.evaluate.project.measured import SEED
from gilscope.toolkit.measure.plan.settings import Settings
from gilscope.toolkit.measure.schedule.measure_round import Round
from gilscope.toolkit.model import Cell as Arm
from gilscope.toolkit.stats.log_times import by_pass, process_levels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.measure.schedule.measure_round import Taken
    from gilscope.toolkit.measure.schedule.start_child import Start

    Clock = Literal["wall", "cpu"]

VALUES = 2            # that a process of a function takes ...
LONG_SECONDS = 1.0    # ... where they are not longer than that
RETAKES = 1           # of a value whose threads had not the cores that they need


class Cell(NamedTuple):
    """What is measured in one process."""

    label: str             # of the build
    workers: int           # 0: the script's own
    model: str = "threads"
    twin: bool = False     # the A/A arm: the same once more

    @property
    def arm(self) -> Arm:
        """The cell as the scheduler knows it."""
        return Arm(workload="workload", runner=self.model, workers=self.workers, build=self.label, twin=self.twin)

    @classmethod
    def of(cls, arm: Arm) -> Cell:
        """Return the cell whose `arm` it is."""
        return cls(arm.build, arm.workers, arm.runner, arm.twin)


def round_of(
    number: int, pass_seconds: float, start: Callable[[Cell], Start], left: Callable[[], float | None],
) -> Round:
    """Return what measuring the round `number` takes.

    Args:
        number: From 0 on.
        pass_seconds: That one value takes, about.
        start: Says how the process of a cell is started.
        left: Seconds that are left for this round, where it may be cut; None: it is made to its end.
    """
    settings = Settings(rounds=1, values=VALUES if pass_seconds <= LONG_SECONDS else 1, warmups=0, min_seconds=0.0,
                        timeout=0.0, retakes=RETAKES, seed=SEED)
    return Round(index=number, settings=settings, baseline="threads", start=lambda arm: start(Cell.of(arm)),
                 keep_loops=lambda _arm, _loops: None, reporter=_Silent(), seconds_left=left)


def seconds_of(taken: Sequence[Taken], clock: Clock) -> dict[Cell, float]:
    """Return the seconds of each process of one round that was measured, values of one pass against one another."""
    passes = {Cell.of(each.cell): by_pass(_values(each.answer.fields, clock), each.details.get("passes") or [0])
              for each in taken}
    return {cell: exp(level) for cell, level in process_levels(passes).items()}


def _values(fields: Mapping[str, Any], clock: Clock) -> list[float]:
    if clock == "wall" and fields["starved"]:
        return [nan] * len(fields["values"])
    return [float(each["seconds" if clock == "wall" else "cpu"]) for each in fields["values"]]


class _Silent:
    """A round is announced by who takes it."""

    def arm_begins(self, cell: Arm) -> None:
        """Nobody asks."""

    def pass_ends(self, done: int, passes: int) -> None:
        """Nobody asks."""
