"""Measure what repairs by hand gain in packages that `gilscope scale` named an object of, and print its own answer.

Each round starts a new process for the function and for each of its repairs, in tests/corpus/scaling_packages, and
measures them in turn: in one thread, in two, and in two processes (the ceiling).  Only calls count during which every
thread had its core, as in `gilscope scale`.  Threads that wait for a lock are hardly ever undisturbed on a busy
machine: of them, the speed-up by all calls is printed after "<", as the true one is smaller, since neighbours hide
contention; what compares two functions by all calls is printed after "~".

    python -m tests.benchmarks.scaling_repairs --build 3.14t
    python -m tests.benchmarks.scaling_repairs --build 3.14t --rounds 12 --repairs-only modern-di
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.environment import build_environment
from gilscope.toolkit.measure.machine_lock import MachineLock
from gilscope.toolkit.scale.investigation import investigate
from gilscope.toolkit.scale.investigation_text import investigation_sentences, span_text
from gilscope.toolkit.scale.scaling_rounds import ONE, PROCESSES, THREADS, RoundCalls, compared_modes
from gilscope.toolkit.scale.throughput import near_limit
from gilscope.toolkit.scale.zygote_process import ZygoteProcess
from tests.benchmarks.common import build_of
from tests.conformance.builds import ROOT

if TYPE_CHECKING:
    from gilscope.toolkit.scale.throughput import CleanCalls

PROGRAMS = ROOT / "tests" / "corpus" / "scaling_packages"
WORKERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairedPackage:
    """A function of a package, and repairs of it."""

    requirement: str
    function: str
    repairs: tuple[str, ...]


PACKAGES = {
    "modern-di": RepairedPackage(requirement="modern-di==2.31.1", function="di:resolve_20", repairs=(
        "di:resolve_20_from_own_container", "di:resolve_20_from_own_providers")),
    "prometheus-client": RepairedPackage(requirement="prometheus-client==0.26.0", function="metrics:count", repairs=(
        "metrics:count_by_thread",)),
    "jinja2": RepairedPackage(requirement="jinja2==3.1.6", function="page:look_up_20", repairs=(
        "page:look_up_20_in_own_environment",)),
    "numpy": RepairedPackage(requirement="numpy==2.5.5", function="unpickled:total_20", repairs=(
        "unpickled:total_20_of_canonical", "unpickled:total_20_of_own")),
}


def main() -> None:
    """Measure and print a table for each package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PACKAGES)} (default: all)")
    parser.add_argument("--build", default="3.14t", metavar="LABEL[=PATH]", help="a build without a GIL")
    parser.add_argument("--rounds", type=int, default=8, metavar="N", help="of new processes (default: 8)")
    parser.add_argument("--repairs-only", action="store_true", help="do not ask `gilscope scale`")
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in PACKAGES]:
        parser.error(f"no such package: {', '.join(unknown)}")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)     # with it, the constants of all programs are counted
    build = build_of(args.build)
    machine = MachineLock(alone=False, waiting=lambda: None)
    for name in args.names or PACKAGES:
        package = PACKAGES[name]
        python = str(build_environment(build, [], user=[package.requirement]).python)
        with machine.hold():
            print(f"{package.requirement} on {build.label}", flush=True)
            if not args.repairs_only:
                for sentence in said(python, package.function):
                    print(f"  {sentence}", flush=True)
            for line in compared(python, package, args.rounds):
                print(line, flush=True)


def said(python: str, function: str) -> list[str]:
    """Return the verdict and the sentences of `gilscope scale` on a function, for one build."""
    with ZygoteProcess(python, [PROGRAMS]) as process:
        found = investigate(process, process.load(function, None, None, WORKERS), WORKERS)
    of_ceiling = f"{found.judgement.verdict.value}, {span_text(found.evidence.of_ceiling)} of the ceiling"
    return [f"scale {function}: {of_ceiling}", *investigation_sentences(found)]


def compared(python: str, package: RepairedPackage, rounds: int) -> list[str]:
    """Return a line for the function and each repair: speed-ups, shares of the ceiling, throughput against it."""
    functions = (package.function, *package.repairs)
    found: dict[str, dict[int, CleanCalls]] = {f"{each} {mode}": {} for each in functions
                                               for mode in compared_modes(WORKERS)}
    for number in range(rounds):
        for function in functions[::-1] if number % 2 else functions:
            with ZygoteProcess(python, [PROGRAMS]) as process:
                process.load(function, None, None, WORKERS)
                for mode, how in compared_modes(WORKERS).items():
                    found[f"{function} {mode}"][number] = process.measure_cleanly(how)
    calls = RoundCalls(found, near_limit(
        one.handoff for by_round in found.values() for one in by_round.values() if not one.one_core))
    lines = [f"  {'':32} {'speed-up':>20} {'of the ceiling':>20} {'two threads, times':>20} {'one thread, times':>20}"]
    for each in functions:
        threads, one, processes = (f"{each} {mode}" for mode in (THREADS, ONE, PROCESSES))
        first = f"{package.function} {THREADS}", f"{package.function} {ONE}"
        against = [("", "") if each == package.function else pair for pair in ((first[0], threads), (first[1], one))]
        cells = [ratio(calls, *pair) for pair in ((one, threads), (processes, threads), *against)]
        queued = calls.total(threads).queued_share
        lines.append(f"  {each.partition(':')[2]:32} {' '.join(f'{cell:>20}' for cell in cells)}  queued {queued:.2f}")
    return [*lines, f"  {rounds} rounds, load average now {os.getloadavg()[0]:.1f}"]


def ratio(calls: RoundCalls, baseline: str, sample: str) -> str:
    """Return how many times the rate of one that of the other is, with its interval; by all calls if few are clean."""
    if not baseline:
        return ""
    if (span := calls.span(baseline, sample)) is not None and calls.enough([baseline, sample]):
        return span_text(span)
    same_function = baseline.rpartition(" ")[0] == sample.rpartition(" ")[0]
    return f"{'<' if same_function else '~'}{span_text(calls.span_on_cores(baseline, sample))}"


if __name__ == "__main__":
    main()
