"""Compare the cost and gain reported by `gilscope evaluate` with a plain script that does not use gilscope.

Measures programs as evaluate measures a `--workload`, then with a script of a few lines that alternates the builds, one
process each, and takes the median of the paired ratios with its 95 % interval by order statistics.  The results should
differ by at most 3 %, or their intervals should overlap.  Run it on a quiet machine.

    python -m tests.benchmarks.evaluate_truth --free 3.14t --gil 3.14
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.project.where_to_run import RunSite
from gilscope.toolkit.evaluate.project.workload.rounds import UserWorkload, WorkloadMeasurer
from gilscope.toolkit.evaluate.project.workload.speed import Speed
from gilscope.toolkit.evaluate.sections import Missing
from gilscope.toolkit.stats.sample import summarize
from tests.benchmarks.common import build_of, pair_parser
from tests.benchmarks.evaluate_programs import threaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.evaluate.sections import BuildSpeed
    from gilscope.toolkit.model import Build
    from gilscope.toolkit.stats.verdict import Comparison

PROGRAMS = ("arithmetic", "own_dict", "sorting", "text", "parsing", "hashing")
WITHIN = 0.03
FOLDER = Path(threaded.__file__).parent
PASS_SECONDS = 0.4   # of the plain script's calls
# Tells wall and CPU seconds of the calls, shared out among so many threads; one call before is not counted.
PLAIN = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
import threaded
work, threads, calls = getattr(threaded, sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
def share():
    for _ in range(calls // threads):
        work()
work()
wall, cpu = time.perf_counter(), time.process_time()
if threads == 1:
    share()
else:
    started = [threading.Thread(target=share) for _ in range(threads)]
    for each in started: each.start()
    for each in started: each.join()
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


def main() -> None:
    """Measure, and print two lines for each program."""
    parser = pair_parser(__doc__, PROGRAMS, seconds=90.0)
    parser.add_argument("--pairs", type=int, default=31, help="of plain scripts, per program (default: 31)")
    args = parser.parse_args()
    builds = (build_of(args.free), build_of(args.gil))
    print(f"{'program':12}{'':6}{'evaluate':>24}{'plain script':>24}{'off by':>9}")
    good = [line for name in args.programs.split(",") for line in program(name, builds, args.seconds, args.pairs)]
    print(f"{sum(good)} of {len(good)} within {WITHIN:.0%}, or no further off than both intervals allow")


def program(name: str, builds: tuple[Build, Build], seconds: float, pairs: int) -> list[bool]:
    """Measure one program both ways and print its lines; return for each line whether the results agree."""
    found, most = evaluated(name, builds, seconds)
    cost = found.cost if isinstance(found.cost, Missing) else found.cost.cpu
    gain = found.gain if isinstance(found.gain, Missing) else found.gain.measured
    several = gain if isinstance(gain, Missing) else gain[most]
    return [line(name, "cost", cost, plain(name, builds, 1, pairs)[1]),
            line("", "gain", several, plain(name, builds, most, pairs)[0])]


def evaluated(name: str, builds: tuple[Build, Build], seconds: float) -> tuple[BuildSpeed, int]:
    """Measure one program as evaluate does; return its result for the first build, and the maximum of threads."""
    end = time.monotonic() + seconds
    benches = {build.label: RunSite(build=build.label, python=Path(build.executable), folders=(FOLDER,))
               for build in builds}
    measurer = WorkloadMeasurer(
        find_project(FOLDER), UserWorkload(kind="function", name=f"threaded:{name}"), benches,
        {build.label: build for build in builds}, left=lambda: end - time.monotonic(),
        say=lambda text: print(f"{name}: {text}", file=sys.stderr))
    measurer.measure()
    speed = Speed(measurer, measurer.calibration.facts()).on(builds[0].label, builds[1].label)
    return speed, max(measurer.thread_counts())


def line(name: str, what: str, told: Comparison | Missing, ratios: Sequence[float]) -> bool:
    """Print one line; return True if the reported value agrees with the script's ratios."""
    truth = summarize(ratios)
    found = f"{truth.center:.3f}x [{truth.lo:.3f}, {truth.hi:.3f}]"
    if isinstance(told, Missing):
        print(f"{name:12}{what:6}{'-':>24}{found:>24}  {told.reason}")
        return False
    off, held = told.ratio / truth.center - 1, told.lo <= truth.hi and truth.lo <= told.hi
    said = f"{told.ratio:.3f}x [{told.lo:.3f}, {told.hi:.3f}]"
    print(f"{name:12}{what:6}{said:>24}{found:>24}{off:>+9.1%}{'  held' * held}")
    return held or abs(off) <= WITHIN


def plain(name: str, builds: tuple[Build, Build], threads: int, pairs: int) -> tuple[list[float], list[float]]:
    """Return how many times faster the first build is than the second in each pair, by wall and by CPU time."""
    seconds, _ = script(builds[1], name, 1, 1)
    calls = max(threads, round(PASS_SECONDS / seconds / threads) * threads)
    walls, cpus = [], []
    for number in range(pairs):
        order = builds if number % 2 else builds[::-1]
        taken = {build.label: script(build, name, threads, calls) for build in order}
        free, gil = (taken[build.label] for build in builds)
        walls.append(gil[0] / free[0])
        cpus.append(gil[1] / free[1])
    return walls, cpus


def script(build: Build, name: str, threads: int, calls: int) -> tuple[float, float]:
    """Return wall and CPU seconds of a plain script."""
    done = subprocess.run([build.executable, "-c", PLAIN, str(FOLDER), name, str(threads), str(calls)],
                          capture_output=True, text=True, check=True)
    wall, cpu = map(float, done.stdout.split())
    return wall, cpu


if __name__ == "__main__":
    main()
