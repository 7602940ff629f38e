"""Values in turn: the processes of all arms of a workload are alive together and take one value each in turn.

The load of a machine changes within a second, so both sides of a ratio should be measured within one.  A process
starts, checks its work and warms up while all others are idle; then it waits for its turns without using the CPU.  In
each pass every arm has one turn, in random order.  A pass that other programs disturbed is taken again by all of its
arms, and the same attempt counts for all of them: see `disturbance.py`.

Source: Bulej et al. (2020), "Duet Benchmarking: Improving Measurement Accuracy in the Cloud", ICPE (pairs at the time
scale of the noise; there at the same time, which takes cores that parallel arms need themselves).
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.cores import own_control_groups
from gilscope.toolkit.measure.disturbance import QUIET, ArmLoad, attempt_load, comparable, with_baselines_starved
from gilscope.toolkit.measure.measured_process import MeasuredProcess, end_all
from gilscope.toolkit.measure.rounds import ArmResult, Round

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from gilscope.toolkit.measure.rounds import ProcessStart
    from gilscope.toolkit.model import Cell

MOST_ALIVE = 32        # arms; with more of them, turns of one pass are too far apart in time to be paired
_KEPT_FREE = 0.1  # share of the memory: for other programs, and for passes that need more than the last one


@dataclass(slots=True)
class Arm:
    """One measured process that takes turns."""

    cell: Cell
    start: ProcessStart
    child: MeasuredProcess
    pids: Sequence[int] = ()
    peak: int = 0            # bytes, its peak so far
    value_seconds: float = 0.0
    seconds: float = 0.0     # of the run spent on it: its start, its turns, its end
    left: int = 0            # values still to take
    passes: list[int] = field(default_factory=list)   # the passes in which it took its values
    load: ArmLoad = QUIET    # during its last turn, by what is certain of it
    keep: int = 0            # the attempt at its last value that counts

    @property
    def can_take(self) -> bool:
        """True if it has a turn in the next pass."""
        return self.left > 0


class InterleavedPasses:
    """The method that measures all arms of a workload together, one value of each in turn."""

    def __init__(
        self, begin: Callable[..., MeasuredProcess] = MeasuredProcess, room: Callable[[], int | None] | None = None,
    ) -> None:
        """Prepare to measure.

        Args:
            begin: Starts a process.
            room: Returns the bytes that further processes may take; None: `memory_left`.
        """
        self._begin = begin
        self._room = room or memory_left
        self._peaks: dict[Cell, int] = {}

    def groups(self, cells: Sequence[Cell], around: Round) -> list[list[Cell]]:
        """Return the groups of cells that are compared: one workload, phase and task length; in random order."""
        order = comparable(cells)
        around.random().shuffle(order)
        return order

    def measure(self, cells: Sequence[Cell], around: Round) -> list[ArmResult]:
        """Measure them in turn; see `RoundMethod`."""
        group = _Group(cells, around, self._begin, self._room, self._peaks)
        try:
            return group.measure()
        finally:
            end_all([arm.child for arm in group.arms])


class _Group:
    """The arms of one workload in one round.

    If memory does not suffice for all of them, they are measured in batches.  The baselines stay alive through all
    batches and take values in each, so every cell shares passes with its baseline.  A batch has all builds, and the A/A
    arm, of each of its models and worker counts.
    """

    def __init__(
        self, cells: Sequence[Cell], around: Round, begin: Callable[..., MeasuredProcess],
        room: Callable[[], int | None], peaks: dict[Cell, int],
    ) -> None:
        self._around = around
        self._begin = begin
        self._room = room
        self._peaks = peaks
        self._cells = cells
        self._where = (cells[0].workload, cells[0].phase, cells[0].task_seconds)
        self._taken: list[ArmResult] = []
        self._values = 0       # of each process in one batch
        self._futile = False   # a retaken pass was no less disturbed, so the machine stays busy
        self._passes = 0       # completed
        self.arms: list[Arm] = []

    def measure(self) -> list[ArmResult]:
        """Return the results of the processes that were started."""
        waiting = self._families()
        while waiting and (self._has_time(len(waiting[0])) or not (self.arms or self._taken)):
            new = self._start_some(waiting)
            self._values = self._values or self._choose_values()
            batches = 1 + self._batches_to_come(waiting, beside=sum(not self._is_baseline(arm) for arm in new))
            for arm in new:
                arm.left = self._values * (batches if self._is_baseline(arm) else 1)
            self._take_passes(lambda: any(arm.can_take and not self._is_baseline(arm) for arm in self.arms))
        self._take_passes(lambda: any(arm.can_take for arm in self.arms))
        return with_baselines_starved(self._taken, self._is_baseline_cell)

    def _batches_to_come(self, waiting: Sequence[Sequence[Cell]], *, beside: int) -> int:
        """Return the number of further batches, as many as the budget has time for; each takes `beside` arms."""
        size = max([beside, *map(len, waiting)])
        wanted = -(-sum(map(len, waiting)) // size) if waiting else 0
        return next((count for count in range(wanted, 0, -1) if self._has_time(count * size)), 0)

    def _families(self) -> list[list[Cell]]:
        """Group the cells by model and number of workers: the baseline first, the others in random order."""
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
        return self._is_baseline_cell(arm.cell)

    def _is_baseline_cell(self, cell: Cell) -> bool:
        return (cell.runner, cell.workers) == (self._around.baseline, 1)

    def _start_some(self, waiting: list[list[Cell]]) -> list[Arm]:
        """Start as many families of `waiting` as memory allows, and remove them from it."""
        new: list[Arm] = []
        while waiting:
            enough = any(not self._is_baseline(arm) for arm in new)
            if (enough and not self._has_room(waiting[0])) or (new and not self._has_time(len(waiting[0]))):
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
        # One living process may grow to its peak in its turn; the others stay as they are.
        return room >= largest + sum(self._peaks.get(cell, largest) for cell in family)

    def _has_time(self, more: int) -> bool:
        """Return True if the budget suffices for a value of each arm, and to start and measure `more` like them."""
        left, seconds = self._around.seconds_left(), [arm.value_seconds for arm in self.arms]
        return left is None or left >= sum(seconds) + 2 * more * max(seconds, default=0.0)

    def _start(self, cell: Cell) -> Arm | None:
        """Start the process of `cell` and wait until it has checked its work; return None if it fails."""
        self._around.reporter.on_arm_start(cell)
        start = self._around.start(cell)
        folder = Path(start.spec.folder, f"arm-{len(self.arms) + len(self._taken)}")
        folder.mkdir(exist_ok=True)
        start = dataclasses.replace(start, spec=dataclasses.replace(start.spec, folder=str(folder)))
        began = time.monotonic()
        arm = Arm(cell=cell, start=start, child=self._begin(start.python, start.spec, start.environment, talks=True))
        self.arms.append(arm)
        message = arm.child.receive()
        arm.seconds = time.monotonic() - began
        if message is None:
            self._take_answer(arm)
            return None
        arm.pids, arm.peak, arm.value_seconds = message["pids"], message["peak"], message["seconds"]
        self._peaks[cell] = arm.peak
        self._around.keep_loops(cell, message["loops"])
        return arm

    def _choose_values(self) -> int:
        """Return the number of values per process: fewer if they are long or the budget is short."""
        seconds = [arm.value_seconds for arm in self.arms]
        if not seconds:
            return self._around.settings.values
        values, left = self._around.settings.values_of(median(seconds)), self._around.seconds_left()
        return values if left is None else max(1, min(values, int(left / sum(seconds))))

    def _take_passes(self, going: Callable[[], bool]) -> None:
        """Take passes while `going()` is true; then end the processes that have all their values."""
        while going():
            self._take_pass([arm for arm in self.arms if arm.can_take])
            self._passes += 1
            to_come = max((arm.left for arm in self.arms), default=0)
            self._around.reporter.on_pass_end(self._passes, self._passes + to_come)
        self._end([arm for arm in self.arms if not arm.can_take])

    def _end(self, arms: Sequence[Arm]) -> None:
        """End `arms` side by side: no process is started or measured meanwhile."""
        began = time.monotonic()
        for arm in arms:
            arm.child.send(order="end", keep=arm.keep, ours=[])
        for arm in arms:
            self._take_answer(arm, began)
            began = time.monotonic()

    def _take_pass(self, arms: list[Arm]) -> None:
        draw = self._around.random(*self._where, "pass", self._passes)
        draw.shuffle(arms)
        for arm in arms:
            values = {"values": arm.left} if not arm.passes else {}
            if self._turn(arm, order="take", keep=arm.keep, **values):
                arm.passes.append(self._passes)
                arm.left -= 1
                arm.keep = 0
        self._retake_pass([arm for arm in arms if arm in self.arms], draw)

    def _retake_pass(self, arms: list[Arm], draw: random.Random) -> None:
        """Have all arms take their values of a disturbed pass again; the least disturbed attempt counts for all."""
        best = attempt_load(arm.load for arm in arms)
        for attempt in range(1, self._around.settings.retakes + 1):
            if self._futile or not best.disturbed or not self._has_time(0):
                return
            draw.shuffle(arms)
            for arm in arms:
                self._turn(arm, order="again")
            arms = [arm for arm in arms if arm in self.arms]
            again = attempt_load(arm.load for arm in arms)
            self._futile = again >= best
            if again < best:
                best = again
                for arm in arms:
                    arm.keep = attempt

    def _turn(self, arm: Arm, **order: Any) -> bool:
        """Have `arm` take a value; return False if it ended instead."""
        ours = [os.getpid(), *(pid for other in self.arms if other is not arm for pid in other.pids)]
        began = time.monotonic()
        arm.child.send(ours=ours, **order)
        message = arm.child.receive()
        if message is None:
            self._take_answer(arm, began)
            return False
        arm.seconds += time.monotonic() - began
        arm.load = ArmLoad(others=message["others"], bearable=message["bearable"])
        return True

    def _take_answer(self, arm: Arm, began: float | None = None) -> None:
        """Wait for the end of `arm` and store its answer."""
        answer = arm.child.answer()
        self.arms.remove(arm)
        if began is not None:
            arm.seconds += time.monotonic() - began
        details = {"passes": arm.passes, "seconds": arm.seconds}
        self._taken.append(ArmResult(cell=arm.cell, start=arm.start, answer=answer, details=details))


def memory_left() -> int | None:
    """Return the bytes that further processes may take, by the machine and by control groups; None if unknown."""
    limits = [each for each in (_of_machine(), *_of_groups()) if each is not None]
    return min(limits) if limits else None


def _of_machine() -> int | None:
    fields = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            fields[line.partition(":")[0]] = int(line.split()[1]) * 1024
    if "MemAvailable" not in fields:
        return None
    return round(fields["MemAvailable"] - _KEPT_FREE * fields["MemTotal"])


def _of_groups() -> list[int | None]:
    """Return the memory left in each control group that limits this process."""
    return [_of_group(Path(folder)) for folder in own_control_groups()]


def _of_group(folder: Path) -> int | None:
    """Source: Documentation/admin-guide/cgroup-v2.rst; inactive file pages can be reclaimed."""
    with contextlib.suppress(OSError, ValueError):
        most = int((folder / "memory.max").read_text())  # "max" is no limit
        used = int((folder / "memory.current").read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return round(most * (1 - _KEPT_FREE)) - used + int(stat.get("inactive_file", 0))
    return None
