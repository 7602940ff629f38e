"""Measure the overhead of an empty task on dask: CPU time, and the time that threads waited for a CPU.

python -m tests.benchmarks.dask_tasks [--build LABEL=PATH ...] [--tasks N] [--passes N]

Prints a line for each pass.  Compare passes with little waiting, in which other programs left the CPUs idle.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from gilscope.runners.catalog import PACKAGES, find
from gilscope.toolkit.measure.preparation import child_environment, needed_packages
from gilscope.workloads.cpu import noop

ROOT = Path(__file__).parents[2]
WORKERS = 2


def used() -> tuple[float, float, int, int]:
    """Return this process's CPU seconds, its threads' seconds waiting for a CPU, voluntary and involuntary switches."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    queued = sum(int(file.read_text().split()[1]) for file in Path("/proc/self/task").glob("*/schedstat"))
    return own.ru_utime + own.ru_stime, queued / 1e9, own.ru_nvcsw, own.ru_nivcsw


def measure(model: str, tasks: int, passes: int) -> None:
    """Run passes of empty tasks in this process's build, and print the cost of each."""
    with find(model).pool(WORKERS) as pool:
        pool.map(noop, range(tasks))
        for _ in range(passes):
            before, began = _everywhere(pool), time.perf_counter()
            pool.map(noop, range(tasks))
            seconds = time.perf_counter() - began
            cpu, queued, wished, forced = ((after - then) / tasks for after, then in
                                           zip(_everywhere(pool), before, strict=True))
            print(f"{model:13} {seconds / tasks * 1e3:6.2f} ms a task; CPU {cpu * 1e3:5.2f} ms, "
                  f"queued {queued * 1e3:6.2f} ms; it waited {wished:.1f} times, was interrupted {forced:.1f} times",
                  flush=True)


def _everywhere(pool: object) -> list[float]:
    """Return the usage of this process and its workers."""
    workers = pool._client.run(used).values() if pool._processes else []
    return [sum(each) for each in zip(used(), *workers, strict=True)]


def main() -> None:
    """Run the measurement in each build."""
    from gilscope.toolkit.builds.environment import build_environment
    from tests.benchmarks.common import build_of

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", metavar="LABEL=PATH", action="append", default=[])
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--passes", type=int, default=3)
    args = parser.parse_args()
    for named in args.build or ["3.14", "3.14t"]:
        build = build_of(named)
        wanted = [*needed_packages(build), *set(PACKAGES.values())]
        python = build_environment(build, wanted, purpose="engines").python
        environment = child_environment(())
        environment["PYTHONPATH"] += os.pathsep + str(ROOT)
        for model in PACKAGES:
            if model == "dask" or build.free_threaded:
                print(build.label, flush=True)
                code = ("from tests.benchmarks.dask_tasks import measure; "
                        f"measure({model!r}, {args.tasks}, {args.passes})")
                subprocess.run([python, "-P", "-c", code], env=environment, check=True, cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
