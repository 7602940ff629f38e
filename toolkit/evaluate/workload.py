"""Cost, gain and contention by the user's workload: one process per build and number of threads, in interleaved rounds.

Measured as experiments are, in the scratch environments; waits and parked time by the preloaded shim, in processes of
their own, so that what is timed is not watched.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from toolkit.evaluate.evaluation import Contention, Cost, Gain, Interval, Missing, Place
from toolkit.evaluate.predict import ceiling, predict
from toolkit.evaluate.testing import Shown
from toolkit.experiments.trial import TrialSpec
from toolkit.gil import preload
from toolkit.gil.records import read_folder
from toolkit.gil.summary import Summary, summarize
from toolkit.measure.noise import usable_cores
from toolkit.measure.prepare import OUR_PACKAGES, child_environment
from toolkit.measure.process import Answer, run_child
from toolkit.stats.paired import compare_paired

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolkit.evaluate.evaluation import MachineFacts
    from toolkit.evaluate.project import Project
    from toolkit.evaluate.testing import Bench
    from toolkit.model import Build
    from toolkit.stats.paired import Comparison

PROGRAM = "toolkit.evaluate.programs.workload"
MOST_ROUNDS = 10
LEAST_ROUNDS = 3
PASS_SECONDS = 0.5        # that all calls of a function take together
SILENT_SECONDS = 300.0    # of a script, which reports no progress
MOST_PLACES = 10
Cell = tuple[str, int]    # label of the build; number of threads, 0: the script's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is run: "script" with its path, or "function" with its "package.module:name"."""

    kind: str
    name: str

    @classmethod
    def of(cls, text: str, root: Path) -> Workload | Missing:
        """Return what the user named."""
        if ":" in text and not text.endswith(".py"):
            top = text.partition(":")[0].partition(".")[0]
            if top in OUR_PACKAGES:
                return Missing(reason=f"gilscope itself has a package {top!r}: rename yours to measure it")
            return cls(kind="function", name=text)
        path = next((each for each in (Path(text), root / text) if each.is_file()), None)
        if path is None:
            return Missing(reason=f"--workload {text}: there is no such script, and no module:function is named")
        return cls(kind="script", name=str(path.resolve()))


@dataclass(slots=True)
class Measured:
    """All rounds of one cell."""

    wall: dict[int, float] = field(default_factory=dict)   # seconds by round; starved rounds are left out
    cpu: dict[int, float] = field(default_factory=dict)
    rss: list[float] = field(default_factory=list)         # bytes
    imports: list[float] = field(default_factory=list)     # seconds
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """The sections of one build."""

    cost: Cost | Missing
    gain: Gain | Missing
    contention: Contention | Missing


class WorkloadMeasurer:
    """Measures one workload on several builds."""

    def __init__(
        self, project: Project, workload: Workload, benches: Mapping[str, Bench], builds: Mapping[str, Build],
        machine: MachineFacts | Missing, *, deadline: Callable[[], float], say: Callable[[str], None], seed: int = 0,
    ) -> None:
        """`deadline` returns the seconds that are left; `benches` and `builds` are by label."""
        self._project = project
        self._workload = workload
        self._benches = benches
        self._builds = builds
        self._machine = machine
        self._left = deadline
        self._say = say
        self._random = random.Random(seed)
        self._calls = 1
        self._found: dict[Cell, Measured] = {}

    def measure(self) -> None:
        """Take rounds until the time is up or there are enough."""
        if self._workload.kind == "function":
            self._calibrate()
        cells = [(label, count) for label in self._benches for count in self._thread_counts()]
        self._found = {cell: Measured() for cell in cells}
        with tempfile.TemporaryDirectory(prefix="gilscope-") as folder:
            longest = 0.0
            for number in range(MOST_ROUNDS):
                began = time.monotonic()
                if number >= LEAST_ROUNDS and longest > self._left():
                    break
                self._say(f"workload: round {number + 1} of at most {MOST_ROUNDS}")
                for cell in self._random.sample(cells, len(cells)):
                    self._take(cell, number, folder)
                longest = max(longest, time.monotonic() - began)

    def sections(self, label: str, against: str) -> Sections:
        """Return what was found on the build `label` against `against`, which has a GIL."""
        first = min(self._thread_counts())
        here, there = self._found.get((label, first)), self._found.get((against, first))
        if here is None or there is None:
            missing = Missing(reason=f"no build like {label} with a GIL is at hand")
            return Sections(cost=missing, gain=missing, contention=missing)
        for place, measured in ((label, here), (against, there)):
            if measured.failure:
                missing = Missing(reason=f"the workload failed on {place}: {measured.failure}")
                return Sections(cost=missing, gain=missing, contention=missing)
        cost = self._cost(here, there, against)
        return Sections(cost=cost, gain=self._gain(label, against, cost), contention=self._contention(label))

    def _thread_counts(self) -> tuple[int, ...]:
        if self._workload.kind == "script":
            return (0,)
        return tuple(2**power for power in range(usable_cores().bit_length()) if 2**power <= usable_cores())

    def _calibrate(self) -> None:
        """Choose how often the function is called: together PASS_SECONDS, on the build with the GIL."""
        label = next((each for each in self._benches if not self._builds[each].free_threaded), None)
        if label is None:
            return
        with tempfile.TemporaryDirectory(prefix="gilscope-") as folder:
            answer = self._ask((label, 1), folder, {})
        seconds = float(answer.fields.get("seconds") or 0.0)
        most = max(self._thread_counts())
        self._calls = max(most, round(PASS_SECONDS / seconds / most) * most) if seconds else most

    def _take(self, cell: Cell, number: int, folder: str) -> None:
        measured = self._found[cell]
        if measured.failure:
            return
        answer = self._ask(cell, folder, {})
        if answer.kind != "measured":
            measured.failure = answer.reason
            self._say(f"{cell[0]}: the workload: {answer.reason}")
            return
        measured.rss.append(float(answer.fields["metrics"]["rss"]))
        if "import" in answer.fields["metrics"]:
            measured.imports.append(float(answer.fields["metrics"]["import"]))
        if not answer.fields["starved"]:
            measured.wall[number] = float(answer.fields["seconds"])
        measured.cpu[number] = float(answer.fields["cpu"][0])

    def _ask(self, cell: Cell, folder: str, extra: Mapping[str, str]) -> Answer:
        label, count = cell
        bench, build = self._benches[label], self._builds[label]
        spec = TrialSpec(
            name=f"workload/{label}/{count}", progress_timeout=SILENT_SECONDS, folder=folder, program=PROGRAM,
            build=label, model="threads" if not build.free_threaded else "free-threaded", workers=max(count, 1),
            gil=None, parameters={"kind": self._workload.kind, "name": self._workload.name},
            scales={"calls": self._calls, "cores": usable_cores()}, host=sys.executable, suite=False,
        )
        environment = child_environment((*bench.folders, self._project.root)) | dict(extra)
        return run_child(str(bench.python), spec, environment)

    def _cost(self, here: Measured, there: Measured, against: str) -> Cost | Missing:
        if not here.cpu.keys() & there.cpu.keys():
            return Missing(reason="the workload has no round in which both builds were measured")
        rss = median(here.rss) / median(there.rss) if here.rss and there.rss else None
        return Cost(against=against, cpu=compare_paired(there.cpu, here.cpu), rss=rss,
                    import_seconds=median(here.imports) if here.imports else None)

    def _gain(self, label: str, against: str, cost: Cost | Missing) -> Gain | Missing:
        counts = [count for count in self._thread_counts() if count != 1]
        if not counts:
            return Missing(reason="there is one core only")
        most = max(counts)
        watched = self._watched((against, most))
        share = None if isinstance(watched, Missing) else watched.wanted_share
        effective = None if isinstance(self._machine, Missing) else self._machine.effective
        return Gain(
            against=against, wait_share=share, ceiling=None if share is None else ceiling(share, effective),
            predicted=self._predicted(label, against, most, cost), measured=self._ratios(label, against, counts),
        )

    def _ratios(self, label: str, against: str, counts: list[int]) -> dict[int, Comparison] | Missing:
        found = {}
        for count in counts:
            here, there = self._found[label, count].wall, self._found[against, count].wall
            if here.keys() & there.keys():
                found[count] = compare_paired(there, here)
        return found or Missing(reason="every round was starved of the cores that it needed")

    def _predicted(self, label: str, against: str, count: int, cost: Cost | Missing) -> Interval | Missing:
        if isinstance(cost, Missing):
            return cost
        if self._workload.kind == "script":
            return Missing(reason="a script chooses its threads itself, so what they do to each other is not known")
        there = self._found[against, count]
        if not there.wall or not there.cpu:
            return Missing(reason=f"no round on {against} got its cores")
        return predict(wall=median(there.wall.values()), cpu=median(there.cpu.values()), cost=cost.cpu,
                       inflation=self._inflation(label), threads=count, machine=self._machine)

    def _inflation(self, label: str) -> list[float]:
        """Return, round by round, the CPU time with the most threads against one."""
        counts = self._thread_counts()
        one, many = self._found.get((label, 1)), self._found.get((label, max(counts)))
        if one is None or many is None or one is many:
            return []
        # A round in which they did not run at the same time shows no inflation.
        return [many.cpu[key] / one.cpu[key] for key in one.cpu.keys() & many.cpu.keys() & many.wall.keys()]

    def _contention(self, label: str) -> Contention | Missing:
        watched = self._watched((label, max(self._thread_counts())))
        inflation = self._inflation(label)
        if isinstance(watched, Missing) and not inflation:
            return watched
        parked: float | None = None
        places: tuple[Place, ...] = ()
        if not isinstance(watched, Missing):
            parked, places = watched.parked_share, self._places(watched, self._benches[label])
        return Contention(inflation=median(inflation) if inflation else None, parked=parked, places=places)

    def _places(self, watched: Summary, bench: Bench) -> tuple[Place, ...]:
        shown = Shown(self._project, bench)
        return tuple(Place(file=shown.path(each.file) or each.file, line=each.line, what=each.what,
                           seconds=each.seconds)
                     for each in watched.places[:MOST_PLACES] if not each.idle)

    def _watched(self, cell: Cell) -> Summary | Missing:
        """Return what the shim saw of one more run of the cell."""
        if reason := preload.unavailable():
            return Missing(reason=reason)
        with tempfile.TemporaryDirectory(prefix="gilscope-") as folder:
            records = Path(folder, "gil")
            records.mkdir()
            answer = self._ask(cell, folder, preload.environment(str(records)))
            if answer.kind != "measured":
                return Missing(reason=f"the workload failed while its waits were recorded: {answer.reason}")
            processes = read_folder(records)
        return summarize(processes) if processes else Missing(reason="the recorded process left nothing")
