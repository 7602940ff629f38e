"""The cells of a workload in the terms of the scheduler, the measurement of a round, and its results."""

from __future__ import annotations

from math import exp, nan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gilscope.toolkit.evaluate.project.measured import SEED
from gilscope.toolkit.measure.rounds import Round
from gilscope.toolkit.measure.settings import Settings
from gilscope.toolkit.model import Cell as Arm
from gilscope.toolkit.stats.log_times import by_pass, process_levels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.measure.rounds import ArmResult, ProcessStart

    Clock = Literal["wall", "cpu"]

VALUES = 2            # values of each process of a function ...
LONG_SECONDS = 1.0    # ... if they are not longer than this
RETAKES = 1           # of a value whose threads did not get the cores that they need


class WorkloadCell(NamedTuple):
    """The cell of one process."""

    label: str             # of the build
    workers: int           # 0 if a script chooses itself
    model: str = "threads"
    twin: bool = False     # the A/A arm: the same cell again

    @property
    def arm(self) -> Arm:
        """The cell in the terms of the scheduler."""
        return Arm(workload="workload", runner=self.model, workers=self.workers, build=self.label, twin=self.twin)

    @classmethod
    def of(cls, arm: Arm) -> WorkloadCell:
        """Return the cell of an `arm`."""
        return cls(arm.build, arm.workers, arm.runner, arm.twin)


def round_of(
    number: int, pass_seconds: float, start: Callable[[WorkloadCell], ProcessStart], left: Callable[[], float | None],
) -> Round:
    """Return the measurement of the round `number`.

    Args:
        number: From 0 on.
        pass_seconds: Approximate duration of one value.
        start: Returns how to start the process of a cell.
        left: Returns the seconds left for this round if it may be cut short; None if it must be complete.
    """
    settings = Settings(rounds=1, values=VALUES if pass_seconds <= LONG_SECONDS else 1, warmups=0, min_seconds=0.0,
                        timeout=0.0, retakes=RETAKES, seed=SEED)
    return Round(index=number, settings=settings, baseline="threads", start=lambda arm: start(WorkloadCell.of(arm)),
                 keep_loops=lambda _arm, _loops: None, reporter=_Silent(), seconds_left=left)


def seconds_of(taken: Sequence[ArmResult], clock: Clock) -> dict[WorkloadCell, float]:
    """Return the seconds of each process in a measured round, comparing values of the same pass."""
    passes = {WorkloadCell.of(each.cell): by_pass(_values(each.answer.fields, clock), each.details.get("passes") or [0])
              for each in taken}
    return {cell: exp(level) for cell, level in process_levels(passes).items()}


def _values(fields: Mapping[str, Any], clock: Clock) -> list[float]:
    if clock == "wall" and fields["starved"]:
        return [nan] * len(fields["values"])
    return [float(each["seconds" if clock == "wall" else "cpu"]) for each in fields["values"]]


class _Silent:
    """Callbacks that do nothing: the caller announces the round."""

    def on_arm_start(self, cell: Arm) -> None:
        """Do nothing."""

    def on_pass_end(self, done: int, passes: int) -> None:
        """Do nothing."""
