"""A simulated machine on which other programs run in bursts, and measured processes on it: nothing is started.

The scheduler, the turns and what a measured process does between them are the real ones; only values are made up.
"""

import random
import threading
from dataclasses import dataclass, field
from math import exp, nan
from queue import SimpleQueue
from statistics import fmean, median

from gilscope.toolkit.measure.child.other_load import bearable_others
from gilscope.toolkit.measure.child.spec import ProcessSpec
from gilscope.toolkit.measure.child.turns import take_value
from gilscope.toolkit.measure.measured_process import ProcessAnswer
from gilscope.toolkit.measure.rounds import ProcessStart
from gilscope.toolkit.measure.scheduler import Scheduler
from gilscope.toolkit.measure.settings import Settings
from gilscope.toolkit.measure.turns import InterleavedPasses
from gilscope.toolkit.model import Cell, Evidence, Measurement, Observation, Run
from gilscope.toolkit.stats.log_times import RoundLogs, by_pass, process_levels
from tests.fakes import MACHINE, make_build
from tests.measure.test_scheduler import Silent

CORES = 2
TICKS = 0.02         # seconds of CPU time by which the kernel's counters may be off, as in WindowLoad
BURST_CORES = 1.0    # that another program uses in a burst
SERIAL = Cell(workload="work", runner="serial", workers=1, build="3.14t")
PARALLEL = [Cell(workload="work", runner=runner, workers=2, build="3.14t")
            for runner in ("free-threaded", "subinterpreters", "processes-spawn", "processes-forkserver")]


@dataclass
class BurstyMachine:
    """Tells how long work takes; its clock advances by that alone."""

    share: float       # of the time, in which another program runs
    length: float      # seconds of a burst, on average; 0: each lasts as long as one value
    seed: int = 1
    now: float = 0.0
    _until: float = 0.0
    _busy: bool = True

    def __post_init__(self):
        self.draw = random.Random(self.seed)

    def work(self, seconds, slower):
        """Do work that takes `seconds` alone, `slower` times as long in a burst; return its time, and the burst's."""
        if not self.length:
            wall = seconds * slower if (hit := self.draw.random() < self.share) else seconds
            self.now += wall
            return wall, wall * hit
        began, bursts, left = self.now, 0.0, seconds
        while left > 0:
            if self.now >= self._until:
                self._busy = not self._busy if 0 < self.share < 1 else self.share == 1
                mean = self.length if self._busy else self.length * (1 - self.share) / max(self.share, 1e-9)
                self._until = self.now + self.draw.expovariate(1 / mean)
            rate = slower if self._busy else 1.0
            step = min(self._until - self.now, left * rate)
            self.now += step
            left -= step / rate
            bursts += step if self._busy else 0.0
        return self.now - began, bursts


@dataclass(frozen=True)
class Work:
    """The true times: those of the toy example in which retakes of parallel arms alone print 1.98x for 1.90x."""

    serial: float = 0.1
    speedup: float = 1.9
    serial_slower: float = 1.33     # in a burst
    parallel_slower: float = 1.5
    noise: float = 0.01             # standard deviation of the log of a value


@dataclass
class SimulatedProcess:
    """Takes values on the machine; `alone` is the rule before: it keeps its best of three if it wants two cores."""

    machine: BurstyMachine
    work: Work
    cell: Cell
    rule: str = "together"
    values: list = field(default_factory=list)

    def __post_init__(self):
        self._orders, self._messages = SimpleQueue(), SimpleQueue()
        self.bearable = bearable_others(self.cell.workers, CORES)
        self.buried = True      # `end_all` has nothing to kill
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def send(self, **order):
        self._orders.put(order)

    def receive(self):
        return self._messages.get()

    def answer(self):
        self._thread.join()
        others = sum(burst for _, burst in self.values) / sum(wall for wall, _ in self.values) * BURST_CORES
        starved = self.rule != "none" and others > self.bearable
        return ProcessAnswer(kind="measured", reason="", output="", fields={
            "wall": [wall for wall, _ in self.values], "starved": starved, "evidence": {"others_cores": others},
            "wanted": self.cell.workers,
            "bearable": self.bearable if self.rule == "together" else None})

    def _run(self):
        self._messages.put({"pids": (), "peak": 0, "seconds": self.work.serial, "loops": 1})
        self._orders.get()
        order = "take"
        while order != "end":
            value, order, _ = take_value(self, self._take, self._load)
            self.values.append(value)
        self._messages.put(None)

    def next(self, **load):
        self._messages.put(load)
        order = self._orders.get()
        return order["order"], order.get("keep", 0)

    def _take(self):
        first = self._once()
        if self.rule != "alone" or self.cell.workers == 1:
            return first
        attempts = [first]
        while self._certain(attempts[-1]) > self.bearable and len(attempts) < 3:
            attempts.append(self._once())
        return min(attempts, key=self._certain)

    def _once(self):
        alone = self.cell.workers == 1
        slower = self.work.serial_slower if alone else self.work.parallel_slower
        seconds = self.work.serial / (1 if alone else self.work.speedup)
        noise = self.machine.draw.lognormvariate(0, self.work.noise)
        return self.machine.work(seconds * noise, slower)

    @staticmethod
    def _certain(value):
        wall, burst = value
        return max(0.0, burst * BURST_CORES - TICKS) / wall

    def _load(self, value):
        return self._certain(value), self.bearable if self.rule == "together" else None


class MemoryStore:
    """Keeps observations, as a Store does, without files."""

    def __init__(self):
        self.kept = {}

    def add(self, cell, _path, details):
        fields = {name: details[name] for name in ("round", "starved", "retakes")}
        evidence = Evidence(others_cores=details["evidence"]["others_cores"], steal=None, pressure=None, load=None)
        self.kept[cell, details["round"]] = Observation(
            wall=tuple(details["wall"]), cpu=tuple(details["wall"]), loops=1, evidence=evidence,
            passes=tuple(details["passes"]), **fields)
        return self.kept[cell, details["round"]]

    def keep_files(self, cell, files):
        pass

    def save(self, run):
        pass

    def measurements(self):
        cells = dict.fromkeys(cell for cell, _ in self.kept)
        return tuple(Measurement(cell=cell, observations=tuple(
            observation for (each, _), observation in self.kept.items() if each == cell)) for cell in cells)


def simulate(machine, folder, *, rule="together", work=None, rounds=20, values=6, retakes=2):
    """Measure one workload for some rounds; return the run.

    `rule` is "together", which is gilscope's; "alone": parallel arms take values again alone; or "none".
    """
    work = work or Work()
    cells = (SERIAL, *PARALLEL)
    settings = Settings(rounds=rounds, values=values, warmups=0, min_seconds=0.0, timeout=60.0, seed=machine.seed,
                        retakes=retakes if rule == "together" else 0)

    class Starter:
        def start(self, cell, _settings, _loops):
            spec = ProcessSpec(name=cell.name, progress_timeout=60.0, folder=str(folder))
            return ProcessStart(python=cell.build, spec=spec, environment={})

    def begin(python, spec, _environment, **_options):
        return SimulatedProcess(machine, work, Cell.parse(spec.name, python), rule)

    run = Run(label="simulated", started="2026-11-24T12:00:00+00:00", builds=(make_build("3.14t"),), machine=MACHINE,
              seed=machine.seed, rounds_planned=rounds, rounds_done=0, stopped="running", baseline="serial",
              measurements=(), cells=cells)
    method = InterleavedPasses(begin, room=lambda: None)
    return Scheduler(run, MemoryStore(), Starter(), settings, Silent(), method, clock=lambda: machine.now).go()


def speedup(run):
    """Return the speed-up of the parallel cells, and the rounds behind it: of each cell, on average."""
    by_round = {}
    for measurement in run.measurements:
        for each in measurement.observations:
            if not each.starved:
                by_round.setdefault(each.round, {})[measurement.cell] = by_pass(each.wall, each.passes)
    levels = {number: process_levels(arms) for number, arms in by_round.items()}
    logs = RoundLogs(levels={cell: {number: found[cell] for number, found in levels.items() if cell in found}
                             for cell in (SERIAL, *PARALLEL)})
    found = [list(logs.difference(SERIAL, cell).values()) for cell in PARALLEL]
    known = [each for each in found if each]
    return (exp(fmean(map(median, known))), fmean(map(len, found))) if known else (nan, 0.0)
