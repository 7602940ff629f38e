"""Measure how alternating the arms' values reduces noise, and how a waiting arm affects the others.

Measures each workload's cell and its A/A twin (the same cell again) in several ways, the ways in random order in each
round: *far*, one process after the other with those of all workloads between the two, as a run without turns has it;
*near*, both alive and in turn; and in turn while 10 or 20 processes of all models wait.  Prints the spread of
log(cell / twin) of the processes' medians, and by how much the medians are off those of *near*.

    python -m tests.benchmarks.turns --build 3.14=PATH --rounds 12
    python -m tests.benchmarks.turns --build 3.14t=PATH --model free-threaded --workers 2 --json turns.json
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import replace
from math import exp, log
from pathlib import Path
from statistics import median, stdev
from typing import TYPE_CHECKING, Any, Self

from gilscope.toolkit.builds.environment import build_environment
from gilscope.toolkit.measure.loopback_servers import services
from gilscope.toolkit.measure.measured_process import MeasuredProcess, end_all
from gilscope.toolkit.measure.preparation import child_environment, needed_packages, workload_packages
from gilscope.toolkit.measure.rounds import CellStarter, OneAtATime, Round
from gilscope.toolkit.measure.settings import Settings
from gilscope.toolkit.measure.turns import InterleavedPasses
from gilscope.toolkit.model import Cell
from gilscope.workloads import catalog
from tests.benchmarks.common import build_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.measure.rounds import ArmResult

WORKLOADS = ("primes", "nbody", "json_roundtrip", "sha256_64k", "regex", "sort")
MODELS = (("serial", 1), ("threads", 2), ("subinterpreters", 2), ("processes-forkserver", 2), ("asyncio", 1),
          ("interpreter-pool", 2), ("processes-spawn", 2), ("free-threaded", 2))
MAD = 1.4826   # makes the median absolute deviation a standard deviation of what is normal
Values = dict[str, dict[str, list[tuple[float, float]]]]   # way -> workload -> (cell, twin) of each round, in seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=f"host={sys.executable}", metavar="LABEL=PATH")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), metavar="NAMES")
    parser.add_argument("--model", default="serial")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--waiting", default="10,20", metavar="COUNTS", help="arms that wait beside (default: 10,20)")
    parser.add_argument("--values", type=int, default=6, help="of each process (default: 6)")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gilscope-") as folder:
        bench = Bench(args, Path(folder))
        with bench:
            for index in range(args.rounds):
                bench.take(index)
                print(f"round {index + 1}/{args.rounds}", file=sys.stderr, flush=True)
    for line in bench.lines():
        print(line)
    if args.json:
        Path(args.json).write_text(json.dumps(bench.summary(), indent=1))


class Silent:
    """A progress display that shows nothing."""

    def on_arm_start(self, cell: Cell) -> None:
        """Show nothing."""

    def on_pass_end(self, done: int, passes: int) -> None:
        """Show nothing."""


class Bench(contextlib.ExitStack):
    """The cells of one build, model and number of workers, with their measurements."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        super().__init__()
        self._args = args
        self._folder = folder
        self._build = build_of(args.build)
        self._names = args.workloads.split(",")
        self._counts = [int(each) for each in args.waiting.split(",") if each]
        self._settings = Settings(rounds=args.rounds, values=args.values, warmups=0, min_seconds=0.02, timeout=120.0,
                                  retakes=0)
        self._loops: dict[str, int] = {}
        self.wall: Values = defaultdict(lambda: defaultdict(list))
        self.cpu: Values = defaultdict(lambda: defaultdict(list))

    def __enter__(self) -> Self:
        """Make the environment and start the servers."""
        chosen = [catalog.find(name) for name in self._names]
        made = build_environment(self._build, needed_packages(self._build), workload_packages(chosen))
        needed = dict.fromkeys(each.service for each in chosen if each.service)
        running = self.enter_context(services(needed, child_environment(())))
        self._arms = CellStarter(
            pythons={self._build.label: str(made.python)},
            environments={self._build.label: {**child_environment(()), **running.environment}},
            free_threaded=frozenset({self._build.label} if self._build.free_threaded else ()), size="small", user=None,
            units={}, services=running.pids, folder=self._folder)
        return self

    def _pair(self, workload: str) -> list[Cell]:
        cell = Cell(workload=workload, runner=self._args.model, workers=self._args.workers, build=self._build.label)
        return [cell, replace(cell, twin=True)]

    def _around(self, index: int) -> Round:
        def keep(cell: Cell, loops: int) -> None:
            self._loops.setdefault(cell.workload, loops)

        return Round(
            index=index, settings=self._settings, baseline="serial", keep_loops=keep, reporter=Silent(),
            start=lambda cell: self._arms.start(cell, self._settings, self._loops.get(cell.workload, 0)),
            seconds_left=lambda: None)

    def take(self, index: int) -> None:
        """Measure every workload in every way once."""
        draw = random.Random(index)
        ways = ["far", *(f"near, {count} waiting" for count in (0, *self._counts))]
        for way in draw.sample(ways, len(ways)):
            if way == "far":
                self._far(index, draw)
                continue
            with self._waiting(int(way.split()[1])):
                for name in draw.sample(self._names, len(self._names)):
                    self._keep(way, name, InterleavedPasses().measure(self._pair(name), self._around(index)))

    def _far(self, index: int, draw: random.Random) -> None:
        pairs = {name: draw.sample(self._pair(name), 2) for name in self._names}
        taken: dict[str, list[ArmResult]] = defaultdict(list)
        for side in range(2):
            for name in draw.sample(self._names, len(self._names)):
                taken[name] += OneAtATime().measure([pairs[name][side]], self._around(index))
                each = taken[name][-1]
                # The next process may have the same files.
                each.details["values"] = values_of(each)
        for name, both in taken.items():
            self._keep("far", name, both)

    @contextlib.contextmanager
    def _waiting(self, count: int) -> Iterator[None]:
        """Keep `count` processes waiting for turns that they never get."""
        children: list[MeasuredProcess] = []
        models = itertools.cycle(MODELS)
        try:
            while len(children) < count:
                runner, workers = next(models)
                cell = Cell(workload=self._names[0], runner=runner, workers=workers, build=self._build.label)
                start = self._arms.start(cell, self._settings, 1)
                place = self._folder / f"waiting-{len(children)}"
                place.mkdir(exist_ok=True)
                spec = replace(start.spec, folder=str(place))
                child = MeasuredProcess(start.python, spec, start.environment, talks=True)
                children.append(child)
                if child.receive() is None:   # the build does not have the model
                    end_all([children.pop()])
            yield
        finally:
            end_all(children)

    def _keep(self, way: str, workload: str, taken: list[ArmResult]) -> None:
        both = sorted(taken, key=lambda each: each.cell.twin)
        assert all(each.answer.kind == "measured" for each in both), [each.answer for each in both]
        walls = [median(each.details.get("values") or values_of(each)) for each in both]
        self.wall[way][workload].append((walls[0], walls[1]))
        cpus = [median(each.answer.fields["cpu"]) for each in both]
        self.cpu[way][workload].append((cpus[0], cpus[1]))

    def summary(self) -> dict[str, Any]:
        """Return spreads and shifts by clock, workload and way."""
        return {
            "build": self._build.label, "model": self._args.model, "workers": self._args.workers,
            "rounds": self._args.rounds, "values": self._args.values, "made": time.strftime("%Y-%m-%d"),
            **{clock: {name: {way: spreads(found[way][name], found["near, 0 waiting"][name]) for way in found}
                       for name in self._names}
               for clock, found in (("wall", self.wall), ("cpu", self.cpu))},
        }

    def lines(self) -> Iterator[str]:
        """Yield a table for each clock."""
        ways = list(self.wall)
        ways.sort(key=lambda way: (way != "far", int(way.split()[1]) if way != "far" else 0))
        summary = self.summary()
        yield (f"{summary['build']}, {summary['model']}, workers {summary['workers']}; {summary['rounds']} rounds, "
               f"{summary['values']} values of each process")
        for clock in ("wall", "cpu"):
            yield ""
            yield f"{clock:16}" + "".join(f"{way:>26}" for way in ways)
            for name in [*self._names, "median"]:
                of = summary[clock]
                rows = [of[name]] if name != "median" else [of[each] for each in self._names]
                cells = [tuple(median(row[way][what] for row in rows) for what in ("sd", "robust", "shift"))
                         for way in ways]
                yield f"{name:16}" + "".join(
                    f"{sd:>10.1%} ({robust:5.1%}) {shift:+6.1%}" for sd, robust, shift in cells)
        yield ""
        yield "sd of log(cell / twin) (from the median absolute deviation), and the median against near, 0 waiting"


def values_of(taken: ArmResult) -> list[float]:
    """Return the values in the file of a measured process, in seconds."""
    benchmark, = json.loads(taken.start.spec.result_path.read_text())["benchmarks"]
    values: list[float] = benchmark["runs"][0]["values"]
    return values


def spreads(pairs: list[tuple[float, float]], near: list[tuple[float, float]]) -> dict[str, float]:
    """Return the spread of the pairs' log ratios, robust and not, and how far their median is from that of `near`."""
    ratios = [log(one / other) for one, other in pairs]
    centre = median(ratios)
    shift = median(log(one) for pair in pairs for one in pair) - median(log(one) for pair in near for one in pair)
    return {
        "sd": stdev(ratios) if len(ratios) > 1 else 0.0,
        "robust": MAD * median(abs(each - centre) for each in ratios), "shift": exp(shift) - 1,
    }


if __name__ == "__main__":
    main()
