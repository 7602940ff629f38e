"""Draw conclusions from a workload's rounds: cost, gain and contention of a build, and the result in other models."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.evaluate.project.measured import FEW, cost_of
from gilscope.toolkit.evaluate.project.where_to_run import ProjectPaths, short
from gilscope.toolkit.evaluate.project.workload.schedule import WorkloadCell
from gilscope.toolkit.evaluate.project.workload.waits import (
    busiest,
    by_line,
    contended,
    parked_share,
    queued_share,
    wait_share,
    working,
)
from gilscope.toolkit.evaluate.sections import (
    NO_TIME,
    NOT_THE_SAME,
    BuildSpeed,
    Cause,
    Contention,
    Cost,
    Forced,
    Gain,
    Memory,
    Missing,
    NativePool,
    Place,
    WorkloadFailure,
    workload_failed,
)
from gilscope.toolkit.gil.recorder import BUSY
from gilscope.toolkit.stats.pair_kinds import ArmClass
from gilscope.toolkit.stats.paired import PairedArms
from gilscope.toolkit.stats.verdict import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.evaluate.project.measured import CellMeasurements
    from gilscope.toolkit.evaluate.project.workload.rounds import WorkloadMeasurer
    from gilscope.toolkit.evaluate.sections import MachineFacts, Measure
    from gilscope.toolkit.gil.summary import RecordingSummary
    from gilscope.toolkit.stats.verdict import Comparison

MOST_PLACES = 10
WATCHED = 3     # runs, if there is time
LEAST_SHARE = 0.01   # of the threads' time: places that cost less are not named
ONE_CORE = Missing(reason="there is one core only")
STARVED = Missing(
    reason=f"fewer than {MIN_ROUNDS} of the rounds taken had the cores that they needed, as the machine was busy: "
    "--wait-quiet waits until it is quiet", cause=Cause.BUSY)
STARVED_IN_BUDGET = Missing(reason=f"{STARVED.reason}, and a larger --budget takes more rounds", cause=Cause.BUSY)


class Speed:
    """The results of a measured workload for each build."""

    def __init__(self, measurer: WorkloadMeasurer, machine: MachineFacts | Missing) -> None:
        """Take the results of `measurer`, which runs the workload again for each query to the shim."""
        self._measurer = measurer
        self._machine = machine
        self._found = measurer.found
        self._counts = measurer.thread_counts()
        # For a build with a GIL, which may be the counterpart of several others.
        self._waiting: dict[WorkloadCell, RecordingSummary | Missing] = {}

    def on(self, label: str, against: str) -> BuildSpeed:
        """Return the results of the build `label` compared with `against`, which has a GIL; "" if there is none."""
        pair = self._pair(label, against)
        if isinstance(pair, Missing):
            return BuildSpeed.missing(pair)
        here, _ = pair
        if flipped := self.flipped(label):
            lacking = Missing(reason=flipped)
            return replace(BuildSpeed.missing(lacking), gain=self._gain(label, against, lacking),
                           failure=WorkloadFailure(kind="turns-gil-on", detail=flipped))
        failure = self._failure(label)
        lacking = workload_failed(failure, f"on {label}")
        differs = self._difference(label, against)
        other = Missing(reason=NOT_THE_SAME) if differs else None
        return BuildSpeed(
            cost=lacking if here.failure else self._cost(label, against),
            failure=WorkloadFailure(kind="fails", detail=failure) if failure else None,
            differs=differs,
            gain=self._gain(label, against, lacking if failure else other),
            contention=lacking if here.failure else self._contention(label))

    def flipped(self, label: str) -> str:
        """Return how the workload turned the GIL on, on a free-threaded build; "" if it did not."""
        return next((each.flipped for cell, each in self._found.items() if cell.label == label and each.flipped), "")

    def forced(self, label: str, against: str) -> Forced | Missing:
        """Return the results with the GIL forced off on the build `label`, from a measurer that forced it."""
        pair = self._pair(label, against)
        if isinstance(pair, Missing):
            return pair
        here, _ = pair
        if not (here.cpu or self._failure(label)):
            return NO_TIME
        failure = self._failure(label)
        lacking = workload_failed(failure)
        counts = [count for count in self._counts if count != 1]
        return Forced(
            against=against, by=self._by, failure=failure, machine=self._machine,
            cost=lacking if here.failure else self._cost(label, against),
            measured=lacking if failure else self._ratios(label, against, counts) if counts else ONE_CORE)

    def _pair(self, label: str, against: str) -> tuple[CellMeasurements, CellMeasurements] | Missing:
        """Return the measurements with the fewest threads on both builds, or why they cannot be compared."""
        if not self._found:
            return NO_TIME
        first = min(self._counts)
        here, there = self._found.get(WorkloadCell(label, first)), self._found.get(WorkloadCell(against, first))
        if here is None or there is None:
            return Missing(reason=f"no build like {label} with a GIL could run it")
        if broken := self._failure(against):
            return workload_failed(broken, f"on {against}")
        return here, there

    def _cost(self, label: str, against: str) -> Cost | Missing:
        here, there = (WorkloadCell(each, min(self._counts)) for each in (label, against))
        cost = cost_of(self._found[here], self._found[there], self._cpus.compare(there, here), against, self._by)
        return cost if isinstance(cost, Missing) else replace(cost, memory=self._memory(label, against) or cost.memory)

    def _memory(self, label: str, against: str) -> Memory | None:
        """Return the memory of a process with the largest number of threads, as a deployed one has several."""
        most = max(self._counts)
        here, there = (self._found[WorkloadCell(each, most)].rss for each in (label, against))
        if most < 2 or not (here and there):  # the cost of one thread includes that
            return None
        process = f"the process of the workload with {most} threads"
        return Memory(here=median(here), there=median(there), process=process)

    @property
    def _by(self) -> Measure:
        return "workload" if min(self._counts) else "script"

    def _difference(self, label: str, against: str) -> str:
        """Return how results in threads differ from the other build's; "" if they do not or that is unknown."""
        (main, here), (main_there, there) = self._given(label), self._given(against)
        if len(here) != 1 or len(there) != 1 or here == there:
            return ""
        inherits = ""
        if main == main_there == here:
            inherits = (f" (in the main thread {_only(main)}, too: without the GIL a thread begins, from 3.14 on, with "
                        "the context of the thread that starts it, decimal's among it, with the GIL with a new one)")
        return f"the workload gives {_only(here)} in threads, and {_only(there)} on {against}{inherits}"

    def _given(self, label: str) -> tuple[set[str], set[str]]:
        """Return the results on a build, in the main thread and in another, without those that vary between calls."""
        processes = [given for cell, measured in self._found.items() if cell.label == label for given in measured.given]
        return {main for main, *_ in processes}, {each for _, *others in processes for each in others}

    def _failure(self, label: str) -> str:
        """Return why the workload fails in threads on a build; "" if it does not."""
        for cell in sorted(self._found, key=lambda cell: cell.workers):
            if cell.label == label and cell.model == "threads" and (why := self._found[cell].failure):
                return f"with {cell.workers} threads: {why}" if cell.workers > 1 else why
        return ""

    @property
    def models_compared(self) -> bool:
        """True if a function was measured in several workers, and so in workers of other models."""
        return max(self._counts) > 1

    def other_model(self, label: str, model: str) -> Comparison | Missing:
        """Compare the workload in workers of another model on the build `label` with as many threads there."""
        most = max(self._counts)
        here, there = self._found.get(WorkloadCell(label, most, model)), self._found.get(WorkloadCell(label, most))
        if here is None or there is None:
            return Missing(reason="no function was measured in several workers")
        if here.unavailable:
            return Missing(reason=f"{model} on {label}: {here.failure}")
        if here.failure or there.failure:
            return workload_failed(here.failure or there.failure)
        return self._compared(WorkloadCell(label, most), WorkloadCell(label, most, model))

    def failure(self, label: str, model: str) -> str:
        """Return why the workload fails in a model although it works in threads; "" otherwise."""
        most = max(self._counts)
        here, there = self._found.get(WorkloadCell(label, most, model)), self._found.get(WorkloadCell(label, most))
        if here is None or there is None or here.unavailable or there.failure:
            return ""
        return here.failure

    def _gain(self, label: str, against: str, lacking: Missing | None) -> Gain | Missing:
        """Return the time that threads wait for the GIL and, unless the build is `lacking`, their gain without it."""
        counts = [count for count in self._counts if count != 1]
        if not counts:
            return ONE_CORE
        most = max(counts)
        gain = Gain(against=against, wait_share=None, ceiling=None,
                    measured=lacking or self._ratios(label, against, counts))
        seen = self._watched(WorkloadCell(against, most))
        if isinstance(seen, Missing):
            return gain
        effective = None if isinstance(self._machine, Missing) or self._machine.doubts else self._machine.effective
        share = wait_share(seen)
        gain = replace(gain, wait_share=share, ceiling=ceiling(share, effective), queued=queued_share(seen))
        # A function is called by `most` threads of ours, a script (0) by none; how even ours work says nothing of it.
        own = max(0, seen.at_once - most)
        return replace(gain, threads=own, busiest=busiest(seen)) if not most else replace(gain, threads=own or None)

    def _watched(self, cell: WorkloadCell) -> RecordingSummary | Missing:
        """Return the run with the most waits for the GIL: under other load threads may never meet."""
        if cell not in self._waiting:
            runs = [self._measurer.watched(cell)]
            while len(runs) < WATCHED and self._measurer.has_time():
                runs.append(self._measurer.watched(cell))
            seen = [run for run in runs if not isinstance(run, Missing)]
            self._waiting[cell] = max(seen, key=wait_share) if seen else runs[0]
        return self._waiting[cell]

    def _ratios(self, label: str, against: str, counts: Sequence[int]) -> dict[int, Comparison] | Missing:
        seen = {count: self._compared(WorkloadCell(against, count), WorkloadCell(label, count)) for count in counts}
        found = {count: each for count, each in seen.items() if not isinstance(each, Missing)}
        return found or next(each for each in seen.values() if isinstance(each, Missing))

    def _compared(self, baseline: WorkloadCell, sample: WorkloadCell) -> Comparison | Missing:
        """Return the speed-up between two cells, with the noise of all cells of the workload."""
        here, there = self._found[sample], self._found[baseline]
        if len(here.wall.keys() & there.wall.keys()) < MIN_ROUNDS <= len(here.cpu.keys() & there.cpu.keys()):
            return STARVED_IN_BUDGET if self._measurer.out_of_time else STARVED
        return self._walls.compare(baseline, sample) or FEW

    @cached_property
    def _walls(self) -> PairedArms[WorkloadCell]:
        return PairedArms({cell: measured.wall for cell, measured in self._found.items()}, self._twins,
                          classes=self._classes)

    @cached_property
    def _cpus(self) -> PairedArms[WorkloadCell]:
        return PairedArms({cell: measured.cpu for cell, measured in self._found.items()}, self._twins,
                          classes=self._classes, clock="CPU time")

    @property
    def _classes(self) -> dict[WorkloadCell, ArmClass]:
        return {cell: ArmClass(workers=cell.workers == 1, build=cell.label) for cell in self._found}

    @property
    def _twins(self) -> list[tuple[WorkloadCell, WorkloadCell]]:
        """The A/A arms, each with the cell that it repeats."""
        return [(cell._replace(twin=False), cell) for cell in self._found if cell.twin]

    def _inflation(self, label: str) -> list[float]:
        """Return, for each round, the CPU time with the most threads divided by that with one."""
        one, many = self._found.get(WorkloadCell(label, 1)), self._found.get(WorkloadCell(label, max(self._counts)))
        if one is None or many is None or one is many:
            return []
        # Rounds in which threads did not run at the same time show no inflation.
        return [many.cpu[key] / one.cpu[key] for key in one.cpu.keys() & many.cpu.keys() & many.wall.keys()]

    def _contention(self, label: str) -> Contention | Missing:
        most = max(self._counts)
        watched = self._measurer.watched(WorkloadCell(label, most))
        inflation = self._inflation(label)
        if isinstance(watched, Missing) and not inflation:
            return watched
        parked: float | None = None
        places: tuple[Place, ...] = ()
        threads = most
        if not isinstance(watched, Missing):
            # Under other load a thread yields until the owner of its lock gets a core again.
            parked = None if (queued_share(watched) or 0.0) > BUSY else parked_share(watched)
            places, threads = self._places(watched, label), most or watched.at_once
        pools = tuple(NativePool(library=name, threads=count) for name,
                      count in self._found[WorkloadCell(label, most)].pools.items())
        return Contention(inflation=median(inflation) if inflation else None, parked=parked, places=places,
                          threads=threads, pools=pools, cores=usable_cores())

    def _places(self, watched: RecordingSummary, label: str) -> tuple[Place, ...]:
        shown = ProjectPaths(self._measurer.project, self._measurer.run_sites[label])
        least = LEAST_SHARE * sum(each.seconds - each.idle for each in working(watched))
        return tuple(_named_as(each, shown.path(each.file))
                     for each in by_line(contended(watched.places))[:MOST_PLACES] if each.seconds >= least)


def ceiling(share: float, effective: float | None) -> float:
    """Return the most that threads can gain without the GIL: no waits left, limited by what the cores can do.

    Args:
        share: Share of the time in which threads want to run Python code that they wait for the GIL, 0..1.
        effective: Cores' worth of work that the machine does at once; None if unknown.
    """
    free = 1 / max(1e-9, 1 - share)
    return free if effective is None else min(free, effective)


def _named_as(place: Place, name: str | None) -> Place:
    """Return a place with the project's name of its file, or as a library's if that is None."""
    return replace(place, file=name or short(place.file), own=name is not None)


def _only(several: set[str]) -> str:
    (one,) = several
    return one
