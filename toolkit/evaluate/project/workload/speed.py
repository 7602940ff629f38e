"""What the rounds of a workload come to: cost, gain and contention of a build, and what other models would do."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.evaluate.project.measured import FEW, cost_of
from gilscope.toolkit.evaluate.project.where_to_run import Shown, short
from gilscope.toolkit.evaluate.project.workload.predict import Round, ceiling, predict
from gilscope.toolkit.evaluate.project.workload.schedule import Cell
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
    WORKLOAD_FAILED,
    WORKLOAD_FAILS,
    Contention,
    Cost,
    Forced,
    Gain,
    Interval,
    Memory,
    Missing,
    Place,
    Pool,
    Sections,
)
from gilscope.toolkit.gil.recorder import BUSY
from gilscope.toolkit.stats.paired import Together
from gilscope.toolkit.stats.words import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.evaluate.project.measured import Measured
    from gilscope.toolkit.evaluate.project.workload.rounds import WorkloadMeasurer
    from gilscope.toolkit.evaluate.sections import MachineFacts, Measure
    from gilscope.toolkit.gil.summary import Summary
    from gilscope.toolkit.stats.words import Comparison

MOST_PLACES = 10
WATCHED = 3     # runs, while there is time
LEAST_SHARE = 0.01   # of the threads' time, that a place must have cost to be named
ONE_CORE = Missing(reason="there is one core only")
STARVED = Missing(
    reason=f"fewer than {MIN_ROUNDS} of the rounds taken had the cores that they needed, as the machine was busy: "
    "--wait-quiet waits for it, and a larger --budget takes more rounds", passing=True)


class Speed:
    """What a measured workload says of each build."""

    def __init__(self, measurer: WorkloadMeasurer, machine: MachineFacts | Missing) -> None:
        """`measurer` has measured; it runs the workload again for each thing that the shim is asked."""
        self._measurer = measurer
        self._machine = machine
        self._found = measurer.found
        self._counts = measurer.thread_counts()
        # Of a build with a GIL, which several others may have as twin.
        self._waiting: dict[Cell, Summary | Missing] = {}

    def sections(self, label: str, against: str) -> Sections:
        """Return what was found on the build `label` against `against`, which has a GIL; "": there is none."""
        pair = self._pair(label, against)
        if isinstance(pair, Missing):
            return Sections.missing(pair)
        here, _ = pair
        if flipped := self.flipped(label):
            lacking = Missing(reason=flipped)
            return replace(Sections.missing(lacking), gain=self._gain(label, against, lacking), failure=flipped)
        failure = self._failure(label)
        lacking = Missing(reason=f"{WORKLOAD_FAILED} {label}: {failure}")
        otherwise = self._otherwise(label, against)
        other = Missing(reason=NOT_THE_SAME) if otherwise else None
        return Sections(
            cost=lacking if here.failure else self._cost(label, against),
            failure=f"{WORKLOAD_FAILS}{failure}" if failure else "",
            otherwise=otherwise,
            gain=self._gain(label, against, lacking if failure else other),
            contention=lacking if here.failure else self._contention(label))

    def flipped(self, label: str) -> str:
        """Return how the workload turned the GIL on, on a build without one; "": it did not."""
        return next((each.flipped for cell, each in self._found.items() if cell.label == label and each.flipped), "")

    def forced(self, label: str, against: str) -> Forced | Missing:
        """Return what was found with the GIL forced off on the build `label`, by a measurer that did so."""
        pair = self._pair(label, against)
        if isinstance(pair, Missing):
            return pair
        here, _ = pair
        if not (here.cpu or self._failure(label)):
            return NO_TIME
        failure = self._failure(label)
        lacking = Missing(reason=f"the workload failed: {failure}")
        counts = [count for count in self._counts if count != 1]
        return Forced(
            against=against, by=self._by, failure=failure, machine=self._machine,
            cost=lacking if here.failure else self._cost(label, against),
            measured=lacking if failure else self._ratios(label, against, counts) if counts else ONE_CORE)

    def _pair(self, label: str, against: str) -> tuple[Measured, Measured] | Missing:
        """Return what the fewest threads took on both builds, or why that cannot be compared."""
        if not self._found:
            return NO_TIME
        first = min(self._counts)
        here, there = self._found.get(Cell(label, first)), self._found.get(Cell(against, first))
        if here is None or there is None:
            return Missing(reason=f"no build like {label} with a GIL could run it")
        if broken := self._failure(against):
            return Missing(reason=f"{WORKLOAD_FAILED} {against}: {broken}")
        return here, there

    def _cost(self, label: str, against: str) -> Cost | Missing:
        here, there = (Cell(each, min(self._counts)) for each in (label, against))
        cost = cost_of(self._found[here], self._found[there], self._cpus.compare(there, here), against, self._by)
        return cost if isinstance(cost, Missing) else replace(cost, memory=self._memory(label, against) or cost.memory)

    def _memory(self, label: str, against: str) -> Memory | None:
        """Return what a process with as many threads as are measured takes: what is deployed has several, too."""
        most = max(self._counts)
        here, there = (self._found[Cell(each, most)].rss for each in (label, against))
        if most < 2 or not (here and there):  # noqa: PLR2004 - the cost of one thread has that already
            return None
        process = f"the process of the workload with {most} threads"
        return Memory(here=median(here), there=median(there), process=process)

    @property
    def _by(self) -> Measure:
        return "workload" if min(self._counts) else "script"

    def _otherwise(self, label: str, against: str) -> str:
        """Return how threads give something else than on the other build; "": they do not, or it cannot be compared."""
        (main, here), (main_there, there) = self._given(label), self._given(against)
        if len(here) != 1 or len(there) != 1 or here == there:
            return ""
        inherits = ""
        if main == main_there == here:
            inherits = (f" (in the main thread {_only(main)}, too: without the GIL a thread begins, from 3.14 on, with "
                        "the context of the thread that starts it, decimal's among it, with the GIL with a new one)")
        return f"the workload gives {_only(here)} in threads, and {_only(there)} on {against}{inherits}"

    def _given(self, label: str) -> tuple[set[str], set[str]]:
        """Return what the workload gave on a build, in the main thread and in another; not the same: it varies."""
        processes = [given for cell, measured in self._found.items() if cell.label == label for given in measured.given]
        return {main for main, *_ in processes}, {each for _, *others in processes for each in others}

    def _failure(self, label: str) -> str:
        """Return why the workload fails in threads on a build; "": it does not."""
        for cell in sorted(self._found, key=lambda cell: cell.workers):
            if cell.label == label and cell.model == "threads" and (why := self._found[cell].failure):
                return f"with {cell.workers} threads: {why}" if cell.workers > 1 else why
        return ""

    @property
    def several(self) -> bool:
        """Whether a function was measured in several workers, so in those of other models, too."""
        return max(self._counts) > 1

    def other_model(self, label: str, model: str) -> Comparison | Missing:
        """Return the workload in workers of another model on the build `label`, against as many threads there."""
        most = max(self._counts)
        here, there = self._found.get(Cell(label, most, model)), self._found.get(Cell(label, most))
        if here is None or there is None:
            return Missing(reason="no function was measured in several workers")
        if here.unavailable:
            return Missing(reason=f"{model} on {label}: {here.failure}")
        if here.failure or there.failure:
            return Missing(reason=f"the workload failed: {here.failure or there.failure}")
        return self._compared(Cell(label, most), Cell(label, most, model))

    def failure(self, label: str, model: str) -> str:
        """Return why the workload fails in a model where it does not in threads; "" where it does in both or none."""
        most = max(self._counts)
        here, there = self._found.get(Cell(label, most, model)), self._found.get(Cell(label, most))
        if here is None or there is None or here.unavailable or there.failure:
            return ""
        return here.failure

    def _gain(self, label: str, against: str, lacking: Missing | None) -> Gain | Missing:
        """Return what threads wait for with the GIL, and, unless the build is `lacking` it, what they gain without."""
        counts = [count for count in self._counts if count != 1]
        if not counts:
            return ONE_CORE
        most = max(counts)
        gain = Gain(
            against=against, wait_share=None, ceiling=None,
            predicted=lacking or self._predicted(label, against, most),
            measured=lacking or self._ratios(label, against, counts))
        seen = self._watched(Cell(against, most))
        if isinstance(seen, Missing):
            return gain
        effective = None if isinstance(self._machine, Missing) or self._machine.doubts else self._machine.effective
        share = wait_share(seen)
        return replace(gain, wait_share=share, ceiling=ceiling(share, effective), queued=queued_share(seen),
                       threads=seen.at_once, busiest=busiest(seen))

    def _watched(self, cell: Cell) -> Summary | Missing:
        """Return the run with the most waits for the GIL of several: beside other load threads may never meet."""
        if cell not in self._waiting:
            runs = [self._measurer.watched(cell)]
            while len(runs) < WATCHED and self._measurer.has_time():
                runs.append(self._measurer.watched(cell))
            seen = [run for run in runs if not isinstance(run, Missing)]
            self._waiting[cell] = max(seen, key=wait_share) if seen else runs[0]
        return self._waiting[cell]

    def _ratios(self, label: str, against: str, counts: Sequence[int]) -> dict[int, Comparison] | Missing:
        seen = {count: self._compared(Cell(against, count), Cell(label, count)) for count in counts}
        found = {count: each for count, each in seen.items() if not isinstance(each, Missing)}
        return found or next(each for each in seen.values() if isinstance(each, Missing))

    def _compared(self, baseline: Cell, sample: Cell) -> Comparison | Missing:
        """Return how many times faster one cell is than another, by the noise of all cells of the workload."""
        here, there = self._found[sample], self._found[baseline]
        if len(here.wall.keys() & there.wall.keys()) < MIN_ROUNDS <= len(here.cpu.keys() & there.cpu.keys()):
            return STARVED
        return self._walls.compare(baseline, sample) or FEW

    @cached_property
    def _walls(self) -> Together[Cell]:
        return Together({cell: measured.wall for cell, measured in self._found.items()}, self._twins)

    @cached_property
    def _cpus(self) -> Together[Cell]:
        return Together({cell: measured.cpu for cell, measured in self._found.items()}, self._twins, clock="CPU")

    @property
    def _twins(self) -> list[tuple[Cell, Cell]]:
        """The A/A arms: each with the cell that it is once more."""
        return [(cell._replace(twin=False), cell) for cell in self._found if cell.twin]

    def _predicted(self, label: str, against: str, count: int) -> Interval | Missing:
        if count == 0:
            return Missing(reason="a script chooses its threads itself, so what they do to each other is not known")
        return predict(self._rounds(label, against, count), count, self._machine)

    def _rounds(self, label: str, against: str, count: int) -> list[Round]:
        """Return the rounds in which everything was measured, and threads ran at the same time."""
        one, many = self._found[Cell(label, 1)], self._found[Cell(label, count)]
        with_gil, together = self._found[Cell(against, 1)], self._found[Cell(against, count)]
        spins = self._measurer.calibration.spins
        return [
            Round(wall=together.wall[key], cpu=with_gil.cpu[key], cost=one.cpu[key] / with_gil.cpu[key],
                  inflation=many.cpu[key] / one.cpu[key], cores=spins[key].given, idle=with_gil.idle.get(key, 0.0))
            for key in sorted(together.wall.keys() & with_gil.cpu.keys() & one.cpu.keys() & many.wall.keys()
                              & spins.keys())
        ]

    def _inflation(self, label: str) -> list[float]:
        """Return, round by round, the CPU time with the most threads against one."""
        one, many = self._found.get(Cell(label, 1)), self._found.get(Cell(label, max(self._counts)))
        if one is None or many is None or one is many:
            return []
        # A round in which they did not run at the same time shows no inflation.
        return [many.cpu[key] / one.cpu[key] for key in one.cpu.keys() & many.cpu.keys() & many.wall.keys()]

    def _contention(self, label: str) -> Contention | Missing:
        most = max(self._counts)
        watched = self._measurer.watched(Cell(label, most))
        inflation = self._inflation(label)
        if isinstance(watched, Missing) and not inflation:
            return watched
        parked: float | None = None
        places: tuple[Place, ...] = ()
        threads = most
        if not isinstance(watched, Missing):
            # Beside other load a thread yields until the one that has its lock gets a core again.
            parked = None if (queued_share(watched) or 0.0) > BUSY else parked_share(watched)
            places, threads = self._places(watched, label), most or watched.at_once
        pools = tuple(Pool(library=name, threads=count) for name, count in self._found[Cell(label, most)].pools.items())
        return Contention(inflation=median(inflation) if inflation else None, parked=parked, places=places,
                          threads=threads, pools=pools, cores=usable_cores())

    def _places(self, watched: Summary, label: str) -> tuple[Place, ...]:
        shown = Shown(self._measurer.project, self._measurer.benches[label])
        least = LEAST_SHARE * sum(each.seconds - each.idle for each in working(watched))
        return tuple(replace(each, file=shown.path(each.file) or short(each.file))
                     for each in by_line(contended(watched.places))[:MOST_PLACES] if each.seconds >= least)


def _only(several: set[str]) -> str:
    (one,) = several
    return one
