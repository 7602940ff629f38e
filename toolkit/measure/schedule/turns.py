"""Values in turn: the processes of all arms of a workload are alive together, and one value of each after the other.

What a machine does changes within a second, so the two sides of a ratio should be taken within one.  A process starts,
checks its work and warms up while no other does anything; then it waits for its turns without using the CPU.  In each
pass every arm has one turn, in random order.

Source: Bulej et al. (2020), "Duet Benchmarking: Improving Measurement Accuracy in the Cloud", ICPE (pairs at the time
scale of the noise; there at the same time, which takes cores that parallel arms need themselves).
"""

from __future__ import annotations

import dataclasses
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.measure.machine.memory_left import memory_left
from gilscope.toolkit.measure.process.running import Child, end_all
from gilscope.toolkit.measure.schedule.measure_round import Round, Taken

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gilscope.toolkit.measure.schedule.start_child import Start
    from gilscope.toolkit.model import Cell

MOST_ALIVE = 32        # arms: with more of them two turns of one are too far apart to be a pair


@dataclass(slots=True)
class Arm:
    """One measured process that takes turns."""

    cell: Cell
    start: Start
    child: Child
    pids: Sequence[int] = ()
    peak: int = 0            # bytes it has taken at most
    value_seconds: float = 0.0
    seconds: float = 0.0     # of the run that it took: its start, its turns, its end
    left: int = 0            # values that it will still take
    passes: list[int] = field(default_factory=list)   # in which it took its values
    starved: bool = False    # for sure, in its last value

    @property
    def can_take(self) -> bool:
        """Whether it has a turn in the next pass."""
        return self.left > 0


class InTurn:
    """Measures all arms of a workload together."""

    def __init__(self, begin: Callable[..., Child] = Child, room: Callable[[], int | None] = memory_left) -> None:
        """`begin` starts a process, `room` says how many bytes further ones may take."""
        self._begin = begin
        self._room = room
        self._peaks: dict[Cell, int] = {}

    def groups(self, cells: Sequence[Cell], around: Round) -> list[list[Cell]]:
        """Return the cells by what is compared: a workload in one phase with one length of task; in random order."""
        groups: dict[object, list[Cell]] = {}
        for cell in cells:
            groups.setdefault((cell.workload, cell.phase, cell.task_seconds), []).append(cell)
        order = list(groups.values())
        around.random().shuffle(order)
        return order

    def measure(self, cells: Sequence[Cell], around: Round) -> list[Taken]:
        """Measure them in turn; see `Way`."""
        group = _Group(cells, around, self._begin, self._room, self._peaks)
        try:
            return group.measure()
        finally:
            end_all([arm.child for arm in group.arms])


class _Group:
    """The arms of one workload in one round.

    Where memory does not suffice for all of them they come in batches.  The baselines stay alive through all batches
    and take values in each, so what is compared shares passes with its baseline; all builds, and the A/A arm, of one
    model and number of workers are in one batch.
    """

    def __init__(
        self, cells: Sequence[Cell], around: Round, begin: Callable[..., Child], room: Callable[[], int | None],
        peaks: dict[Cell, int],
    ) -> None:
        self._around = around
        self._begin = begin
        self._room = room
        self._peaks = peaks
        self._cells = cells
        self._where = (cells[0].workload, cells[0].phase, cells[0].task_seconds)
        self._taken: list[Taken] = []
        self._values = 0       # of each process in one batch
        self._futile = False   # values taken again were starved again: the machine stays busy
        self._passes = 0       # done so far
        self.arms: list[Arm] = []

    def measure(self) -> list[Taken]:
        """Return what the processes came to, those that were started."""
        waiting = self._families()
        while waiting and not ((self.arms or self._taken) and self._around.spent()):
            new = self._start_some(waiting)
            self._values = self._values or self._choose_values()
            beside = sum(not self._is_baseline(arm) for arm in new)
            batches = 1 if self._around.spent() else 1 + -(-sum(map(len, waiting)) // max(1, beside))
            for arm in new:
                arm.left = self._values * (batches if self._is_baseline(arm) else 1)
            self._take_passes(lambda: any(arm.can_take and not self._is_baseline(arm) for arm in self.arms))
        self._take_passes(lambda: any(arm.can_take for arm in self.arms))
        return self._taken

    def _families(self) -> list[list[Cell]]:
        """Return the cells of one model and number of workers together: the baseline first, then in random order."""
        families: dict[tuple[str, int], list[Cell]] = {}
        for cell in self._cells:
            families.setdefault((cell.runner, cell.workers), []).append(cell)
        baselines = families.pop((self._around.baseline, 1), [])
        draw = self._around.random(*self._where, "start")
        rest = list(families.values())
        for family in (baselines, *rest):
            draw.shuffle(family)
        draw.shuffle(rest)
        return [baselines, *rest] if baselines else rest

    def _is_baseline(self, arm: Arm) -> bool:
        return (arm.cell.runner, arm.cell.workers) == (self._around.baseline, 1)

    def _start_some(self, waiting: list[list[Cell]]) -> list[Arm]:
        """Start as many families of `waiting` as there is room for, and take them out of it."""
        new: list[Arm] = []
        while waiting:
            enough = any(not self._is_baseline(arm) for arm in new)
            if (enough and not self._has_room(waiting[0])) or (new and self._around.spent()):
                break
            new += [arm for cell in waiting.pop(0) if (arm := self._start(cell)) is not None]
        return new

    def _has_room(self, family: Sequence[Cell]) -> bool:
        if len(self.arms) + len(family) > MOST_ALIVE:
            return False
        room = self._room()
        if room is None:
            return True
        largest = max((arm.peak for arm in self.arms), default=0)
        # One of those alive may grow to its peak in its turn; the others keep what they have.
        return room >= largest + sum(self._peaks.get(cell, largest) for cell in family)

    def _start(self, cell: Cell) -> Arm | None:
        """Start the process of `cell` and wait until it has checked its work; None when it fails."""
        self._around.reporter.arm_begins(cell)
        start = self._around.start(cell)
        folder = Path(start.spec.folder, f"arm-{len(self.arms) + len(self._taken)}")
        folder.mkdir(exist_ok=True)
        start = dataclasses.replace(start, spec=dataclasses.replace(start.spec, folder=str(folder)))
        began = time.monotonic()
        arm = Arm(cell=cell, start=start, child=self._begin(start.python, start.spec, start.environment, talks=True))
        self.arms.append(arm)
        said = arm.child.hear()
        arm.seconds = time.monotonic() - began
        if said is None:
            self._take_answer(arm)
            return None
        arm.pids, arm.peak, arm.value_seconds = said["pids"], said["peak"], said["seconds"]
        self._peaks[cell] = arm.peak
        self._around.keep_loops(cell, said["loops"])
        return arm

    def _choose_values(self) -> int:
        """Return how many values each process takes: fewer of long ones, and what the budget has time for."""
        seconds = [arm.value_seconds for arm in self.arms]
        if not seconds:
            return self._around.settings.values
        values, left = self._around.settings.values_of(median(seconds)), self._around.seconds_left()
        return values if left is None else max(1, min(values, int(left / sum(seconds))))

    def _take_passes(self, going: Callable[[], bool]) -> None:
        """Take passes while `going` says so; then end the processes that have all their values."""
        while going():
            self._take_pass([arm for arm in self.arms if arm.can_take])
            self._passes += 1
            to_come = max((arm.left for arm in self.arms), default=0)
            self._around.reporter.pass_ends(self._passes, self._passes + to_come)
        self._end([arm for arm in self.arms if not arm.can_take])

    def _end(self, arms: Sequence[Arm]) -> None:
        """End `arms` side by side: nobody is started or takes a value meanwhile."""
        began = time.monotonic()
        for arm in arms:
            arm.child.tell(order="end", ours=[])
        for arm in arms:
            self._take_answer(arm, began)
            began = time.monotonic()

    def _take_pass(self, arms: list[Arm]) -> None:
        draw = self._around.random(*self._where, "pass", self._passes)
        draw.shuffle(arms)
        for arm in arms:
            values = {"values": arm.left} if not arm.passes else {}
            if self._turn(arm, order="take", **values):
                arm.passes.append(self._passes)
                arm.left -= 1
        for _ in range(self._around.settings.retakes):
            starved = [arm for arm in arms if arm.starved and arm in self.arms]
            if self._futile or not starved:
                return
            draw.shuffle(starved)
            for arm in starved:
                self._turn(arm, order="again")
            self._futile = all(arm.starved for arm in starved)

    def _turn(self, arm: Arm, **order: Any) -> bool:
        """Have `arm` take a value; return False when it did not live to tell."""
        ours = [os.getpid(), *(pid for other in self.arms if other is not arm for pid in other.pids)]
        began = time.monotonic()
        arm.child.tell(ours=ours, **order)
        said = arm.child.hear()
        if said is None:
            self._take_answer(arm, began)
            return False
        arm.seconds += time.monotonic() - began
        arm.starved = said["starved"]
        return True

    def _take_answer(self, arm: Arm, began: float | None = None) -> None:
        """Wait for the end of `arm` and keep what it answers."""
        answer = arm.child.answer()
        self.arms.remove(arm)
        if began is not None:
            arm.seconds += time.monotonic() - began
        details = {"passes": arm.passes, "seconds": arm.seconds}
        self._taken.append(Taken(cell=arm.cell, start=arm.start, answer=answer, details=details))
