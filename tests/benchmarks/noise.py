"""How often does gilscope see a difference that is not there, and miss one that is?

Measures four arms of one build in interleaved rounds: a cell, its A/A twin, the same work a third time (the null
arm), and a little more work (3 %, or --more).  Every --window rounds count as one run: its twin gives the noise floor,
and the null arm and the one with more work get their verdict.  With --busy N, N processes keep the cores busy.

    python -m tests.benchmarks.noise --busy 2 --runs 20
    python -m tests.benchmarks.noise --more 0.01 --runs 20 --window 40
    python -m tests.benchmarks.noise --more 0.01 --runs 200 --window 46 --resample results/example/first-look

With --resample, nothing is measured: the errors of the processes are drawn from those of a stored run, by CPU time.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import itertools
import math
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.measure.machine import this_machine
from gilscope.toolkit.measure.rounds import CellStarter, ProcessStart
from gilscope.toolkit.measure.scheduler import Scheduler
from gilscope.toolkit.measure.settings import Settings
from gilscope.toolkit.measure.turns import InterleavedPasses
from gilscope.toolkit.model import Cell, Run
from gilscope.toolkit.report.progress import ProgressReporter
from gilscope.toolkit.report.table.observations import Clock, Index, group_of
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.stats.log_times import RoundLogs, fit, process_levels
from gilscope.toolkit.stats.noise_floor import checked_noise
from gilscope.toolkit.stats.paired import conclude
from gilscope.toolkit.stats.ratios import compare
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.store import Store, load_run
from tests.benchmarks.common import build_of, prepared

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CLOCKS: tuple[Clock, ...] = ("cpu", "wall")
WORKLOAD = "countdown"
LENGTHS = {"base": 1.0, "null": 2.0, "more": 3.0}


def main() -> None:
    """Measure, and print how the runs came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=f"host={sys.executable}", metavar="LABEL=PATH")
    parser.add_argument("--busy", type=int, default=0, help="processes that keep the cores busy (default: 0)")
    parser.add_argument("--runs", type=int, default=20, help="default: 20; 0 reads the kept values again")
    parser.add_argument("--window", type=int, default=20, help="rounds per run (default: 20)")
    parser.add_argument("--values", type=int, default=3, help="values of each process (default: 3)")
    parser.add_argument("--pass-seconds", type=float, default=0.04, help="what one of them takes (default: 0.04)")
    parser.add_argument("--more", type=float, default=0.03, help="the true difference, as a share (default: 0.03)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the values in FOLDER/results/noise")
    parser.add_argument("--resample", type=Path, metavar="RUN", help="draw the errors of processes from this run")
    args = parser.parse_args()
    if args.resample:
        resample(load_run(args.resample), args.runs, args.window, more=args.more)
        return
    if args.keep and not args.runs:
        report(load_run(args.keep / "results" / "noise"), args.window, more=args.more)
        return
    folder = args.keep or tempfile.mkdtemp(prefix="noise-")
    Path(folder).mkdir(exist_ok=True)
    try:
        begun = time.monotonic()
        with busy(args.busy):
            run = measure(args.build, args.runs * args.window, Path(folder), more=args.more,
                          values=args.values, pass_seconds=args.pass_seconds)
        seconds = (time.monotonic() - begun) / args.runs
    finally:
        if args.keep is None:
            shutil.rmtree(folder)
    report(run, args.window, more=args.more)
    print(f"a run took {seconds:.0f} s, starts and the two arms that only check included")


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep `count` processes counting."""
    # They end with this process also when it is killed.
    code = "import os; parent = os.getppid()\nwhile os.getppid() == parent: sum(range(100_000))"
    hogs = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def arm(name: str, *, twin: bool = False) -> Cell:
    """Return one of the arms, which take turns."""
    return Cell(workload=WORKLOAD, runner="serial", workers=1, build="host", parameters=(("arm", name),), twin=twin)


@dataclass(frozen=True)
class ByName:
    """Starts the arms: a made-up task length stands for the units of work of each."""

    arms: CellStarter

    def start(self, cell: Cell, settings: Settings, loops: int) -> ProcessStart:
        """Return how the arm is started."""
        sized = replace(cell, parameters=(), task_seconds=LENGTHS[dict(cell.parameters)["arm"]])
        start = self.arms.start(sized, settings, loops)
        return replace(start, spec=replace(start.spec, name=cell.name))


def measure(
    build: str, rounds: int, folder: Path, *, more: float, values: int = 3, pass_seconds: float = 0.04,
) -> Run:
    """Return `rounds` interleaved rounds of the four arms; the last has `more` (a share) more to do."""
    found, python, environment, rate = prepared(build_of(build, "host"), WORKLOAD, folder)
    units = round(rate * pass_seconds)
    cells = (arm("base"), arm("base", twin=True), arm("null"), arm("more"))
    run = Run(
        label="noise",
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        builds=(found,),
        machine=this_machine(),
        seed=1,
        rounds_planned=rounds,
        rounds_done=0,
        stopped="running",
        baseline="serial",
        measurements=(),
        cells=cells,
    )
    arms = CellStarter(
        pythons={"host": python},
        environments={"host": environment},
        free_threaded=frozenset(),
        size="small",
        user=None,
        services=(),
        folder=folder,
        units={
            (WORKLOAD, 1.0): (units, 1),
            (WORKLOAD, 2.0): (units, 1),
            (WORKLOAD, 3.0): (round(units * (1 + more)), 1),
        },
    )
    settings = Settings(rounds=rounds, values=values, warmups=0, min_seconds=0.0, timeout=120.0)
    store = Store.create("noise", folder / "results")
    with ProgressReporter(print) as reporter:
        return Scheduler(run, store, ByName(arms), settings, reporter, InterleavedPasses()).go()


def cut(run: Run, first: int, window: int) -> Run:
    """Return a window of the rounds as a run of its own."""
    return replace(run, measurements=tuple(
        replace(each, observations=tuple(one for one in each.observations if first <= one.round < first + window))
        for each in run.measurements
    ))


def truths(more: float) -> dict[Cell, float]:
    """Return how long each arm takes, as a share of the first one."""
    return {arm("base"): 1.0, arm("base", twin=True): 1.0, arm("null"): 1.0, arm("more"): 1 + more}


def holds(ratios: Ratios, pair: tuple[Cell, Cell], clock: Clock, more: float) -> bool:
    """Return whether the interval of two arms holds their true ratio."""
    found, (left, right) = ratios.compare(*pair, clock), (truths(more)[each] for each in pair)
    return found is not None and found.lo <= left / right <= found.hi


def spread(run: Run, clock: Clock, first: int) -> float:
    """Return the standard deviation of processes by their `first` values, from the middle half of them."""
    rounds: dict[int, dict[Cell, Sequence[float]]] = {}
    for each in run.measurements:
        for one in each.observations:
            rounds.setdefault(one.round, {})[each.cell] = (one.cpu if clock == "cpu" else one.wall)[:first]
    levels: dict[Cell, dict[int, float]] = {}
    for number, arms in rounds.items():
        for cell, level in process_levels(arms).items():
            levels.setdefault(cell, {})[number] = level
    rests = [value for each in fit(RoundLogs(levels=levels)).residuals.values() for value in each.values()]
    return 1.4826 * statistics.median(map(abs, rests))


def resample(run: Run, runs: int, window: int, *, more: float) -> None:
    """Print how often a difference is found in runs whose errors are those of each workload of `run`, drawn again."""
    names = ("base", "twin", "null", "more")
    for group, measured in Ratios(Index(run)).cpu.logs.items():
        errors = [value for each in fit(measured).residuals.values() for value in each.values()]
        draw, found, false = random.Random(str(group)), 0, 0
        for _ in range(runs):
            logs = RoundLogs(levels={
                name: {r: draw.choice(errors) + (math.log1p(more) if name == "more" else 0.0)
                       for r in range(window)} for name in names})
            noises, _ = checked_noise({0: logs}, {0: [("base", "twin")]})
            words = [conclude(compare(logs, noises[0], "base", name), CONFIDENCE).verdict()
                     for name in ("null", "more")]
            false += words[0] in {"faster", "slower"}
            found += words[1] == "slower"
        print(f"{group[0]}: processes differ by {statistics.pstdev(errors):.2%}; a true {more:.0%} found in {found} of "
              f"{runs} runs of {window} rounds; false faster/slower {false}")


def report(run: Run, window: int, *, more: float) -> None:
    """Print the errors and verdicts of the runs."""
    runs = run.rounds_done // window
    base = arm("base")
    for clock in CLOCKS:
        errors, false, found, held = [], 0, 0, []
        for index in range(runs):
            ratios = Ratios(Index(cut(run, index * window, window)), comparisons=1)
            errors.append(ratios.floors([group_of(base)])[clock].aa_error)
            held += [holds(ratios, pair, clock, more) for pair in itertools.combinations(truths(more), 2)]
            verdicts = {name: ratios.compare(base, arm(name), clock).verdict() for name in ("null", "more")}
            false += verdicts["null"] in {"faster", "slower"}
            found += verdicts["more"] == "slower"
        whole = Ratios(Index(run), comparisons=1).compare(base, arm("more"), clock)
        print(
            f"{clock:4}: {runs} runs of {window} rounds: A/A error median {statistics.median(errors):.2%}, "
            f"largest {max(errors):.2%}; false faster/slower {false}; a true {more:.0%} found in {found}; "
            f"over all rounds {1 / whole.ratio - 1:+.2%}; "
            f"{sum(held)} of {len(held)} intervals of two arms hold the truth"
        )
    values = min(len(one.cpu) for each in run.measurements for one in each.observations)
    for clock in CLOCKS:
        spreads = ", ".join(f"{spread(run, clock, first):.2%} by {first}" for first in (1, 3, 6, 12) if first <= values)
        print(f"{clock:4}: processes of a cell differ by (1.48 x MAD, what their round has in common taken out): "
              f"{spreads} of their values")
    others = [one.evidence.others_cores or 0.0 for each in run.measurements for one in each.observations]
    print(f"others used {statistics.median(others):.2f} of {run.machine.cores} cores (median)")


if __name__ == "__main__":
    main()
