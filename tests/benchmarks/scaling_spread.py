"""Show how the share of the ceiling depends on the process, on the moment, and on how far the CPUs are apart.

Starts some processes with a planted program of tests/corpus/scaling, and measures threads and processes in each of
them in turn.  Prints the mean share and ceiling on hyperthreads of one core, on CPUs that are near, and on such that
are far: a cache line takes at least twice its first decile from one to the other.  Then, of those on near CPUs, the
mean of each process and of each round, with the F ratio of an analysis of variance: about 1 if the one or the other
does not matter.

    python -m tests.benchmarks.scaling_spread --build 3.14t shared_argument nested_attribute
"""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack
from dataclasses import dataclass
from math import exp, log, nan
from statistics import fmean, median, variance

from gilscope.toolkit.scale.scaling_rounds import ONE, PROCESSES, THREADS, compared_modes
from gilscope.toolkit.scale.throughput import near_limit
from gilscope.toolkit.scale.zygote_process import ZygoteProcess
from tests.benchmarks.common import build_of
from tests.scale.planted import CORPUS, programs

WORKERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Threads and processes, measured once in one process; share and ceiling are logarithms."""

    process: int
    round: int
    one_core: bool
    handoff: float      # nanoseconds
    share: float
    ceiling: float


def main() -> None:
    """Measure each program, and print what its share depends on."""
    known = programs()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME", choices=known, help="programs")
    parser.add_argument("--build", default="3.14t", metavar="LABEL[=PATH]", help="a build without a GIL")
    parser.add_argument("--processes", type=int, default=5, metavar="N", help="(default: 5)")
    parser.add_argument("--rounds", type=int, default=6, metavar="N", help="in each of them (default: 6)")
    args = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)     # with it, the constants of all programs are counted
    build = build_of(args.build)
    for name in args.names:
        measure(name, build.executable, args.processes, args.rounds)


def measure(name: str, python: str, processes: int, rounds: int) -> None:
    """Measure one program and print what was found."""
    program = programs()[name]
    turns: list[Turn] = []
    with ExitStack() as stack:
        running = []
        for _ in range(processes):
            process = stack.enter_context(ZygoteProcess(python, [CORPUS]))
            process.load(program.function, f"{name}:payloads" if program.payloads else None, None, WORKERS)
            running.append(process)
        for number in range(rounds):
            for place in range(processes) if number % 2 else reversed(range(processes)):
                turn = taken(running[place], place, number)
                turns += [] if turn is None else [turn]
    limit = near_limit(each.handoff for each in turns if not each.one_core)
    kinds = {"on one core": [each for each in turns if each.one_core],
             "near": [each for each in turns if not each.one_core and each.handoff <= limit],
             "far": [each for each in turns if not each.one_core and each.handoff > limit]}
    print(name)
    for kind, each in kinds.items():
        handoff = f"{median(one.handoff for one in each):.0f} ns, " if each and kind != "on one core" else ""
        print(f"    {kind}: {len(each)} times; {handoff}of the ceiling {mean([one.share for one in each])}, ceiling "
              f"{mean([one.ceiling for one in each])}")
    for what, count in (("process", processes), ("round", rounds)):
        groups = [[one.share for one in kinds["near"] if getattr(one, what) == each] for each in range(count)]
        print(f"    by {what}: {' '.join(map(mean, groups))}; F = {f_ratio(groups):.1f}", flush=True)


def taken(running: ZygoteProcess, place: int, number: int) -> Turn | None:
    """Measure once in one process; None if neighbours disturbed it, or the CPUs changed meanwhile."""
    modes, before = compared_modes(WORKERS), len(running.handoffs)
    calls = {mode: running.measure(modes[mode]) for mode in (ONE, THREADS, PROCESSES)}
    handoffs = running.handoffs[before:]
    one_core = {bool(calls[mode].one_core) for mode in (THREADS, PROCESSES)}
    if len(one_core) > 1 or not all(each.rate for each in calls.values()) or (one_core == {False} and not handoffs):
        return None
    return Turn(process=place, round=number, one_core=one_core.pop(), handoff=max(handoffs, default=0.0),
                share=log(calls[THREADS].rate / calls[PROCESSES].rate),
                ceiling=log(calls[PROCESSES].rate / calls[ONE].rate))


def mean(logarithms: list[float]) -> str:
    """Return the geometric mean as text."""
    return f"{exp(fmean(logarithms)):.2f}" if logarithms else "-"


def f_ratio(groups: list[list[float]]) -> float:
    """Return the variance between groups in that within them; NaN if there are too few values."""
    groups = [each for each in groups if len(each) > 1]
    count = sum(map(len, groups))
    if len(groups) < 2:
        return nan
    within = sum((len(each) - 1) * variance(each) for each in groups) / (count - len(groups))
    grand = sum(map(sum, groups)) / count
    return sum(len(each) * (fmean(each) - grand) ** 2 for each in groups) / (len(groups) - 1) / within


if __name__ == "__main__":
    main()
