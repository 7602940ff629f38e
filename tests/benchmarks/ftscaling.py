"""Compare the atlas of what scales (`gilscope experiment run scaling`) with CPython's own script.

Runs Tools/ftscalingbench/ftscalingbench.py of a checkout of CPython on a build without a GIL, as the control, and
measures the same operations as the atlas does.  The control says how many times as fast two threads are as one.  On a
busy machine that depends on the neighbours; so the time of its work in two threads is also compared with that in two
processes at once, whose range over the rounds lies on one side of the limit, or leaves the control open.

    python -m tests.benchmarks.ftscaling ~/cpython/Tools/ftscalingbench/ftscalingbench.py --build 3.14t
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.scaling.measuring import load, take_round
from gilscope.toolkit.experiments.scaling.shares import MODES, WORKERS, operation_share
from gilscope.toolkit.model import Cell
from gilscope.toolkit.scale.judgement import LOST, SCALES, ScalingVerdict
from gilscope.toolkit.scale.scaling_rounds import RoundCalls
from gilscope.toolkit.scale.throughput import near_limit
from gilscope.toolkit.scale.zygote_process import ZygoteProcess
from tests.benchmarks.common import build_of

if TYPE_CHECKING:
    from gilscope.toolkit.experiments.scaling.shares import OperationShare
    from gilscope.toolkit.scale.throughput import CleanCalls

OPERATIONS = {      # of the control: the operation of the atlas, and whose its data is
    "object_cfunction": ("list popped in front and appended", "private"),
    "cmodule_function": ("C function of a module called", "private"),
    "object_lookup_special": ("round, a special method looked up", "private"),
    "context_manager": ("with of an instance of its own", "shared"),
    "mult_constant": ("constant, a float", "private"),
    "generator": ("generator made and run", "shared"),
    "pymethod": ("own instance, method called", "shared"),
    "pyfunction": ("function called", "shared"),
    "module_function": ("function of a module called", "shared"),
    "load_string_const": ("constant, a text", "private"),
    "load_tuple_const": ("constant, a tuple", "private"),
    "create_pyobject": ("empty instance created", "shared"),
    "create_closure": ("function defined and called", "private"),
    "create_dict": ("dict created", "private"),
    "thread_local_read": ("threading.local written and read", "shared"),
    "instantiate_dataclass": ("dataclass created", "shared"),
    "super_call": ("super called", "private"),
    "classmethod_call": ("own instance, classmethod called", "shared"),
    "staticmethod_call": ("own instance, staticmethod called", "shared"),
    "setattr_non_interned": ("own instance, setattr of names made anew", "shared"),
}
SPEEDUP = re.compile(r"(\w+)\s+([\d.]+)x (faster|slower)")
TIME = re.compile(r"(\w+)\s+([\d.]+) ms")


def main() -> None:
    """Run the control and the atlas, print a line for each benchmark, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", metavar="PATH", help="ftscalingbench.py")
    parser.add_argument("--build", default="3.14t", metavar="LABEL[=PATH]", help="a build without a GIL")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="of both (default: 5)")
    parser.add_argument("--scale", type=int, default=1000, metavar="N",
                        help="of the control's work, long enough for a busy machine (default: 1000)")
    args = parser.parse_args()
    build = build_of(args.build)
    control = Control(build.executable, args.path, args.scale)
    rounds = [(control.speedups(), control.shares()) for _ in range(args.rounds)]
    counts: Counter[str] = Counter()
    print(f"{'control':22}{'x faster':>9} {'of processes':>18}  {'atlas':48}{'of the ceiling':>18}  answer")
    for name in rounds[0][0]:
        says = statistics.median(speedups[name] for speedups, _ in rounds)
        shares = [share[name] for _, share in rounds]
        of_processes = f"{statistics.median(shares):.2f} ({min(shares):.2f}-{max(shares):.2f})"
        if name not in OPERATIONS:
            counts["not in the atlas"] += 1
            print(f"{name:22}{says:9.1f} {of_processes:>18}  not in the atlas", flush=True)
            continue
        operation, data = OPERATIONS[name]
        share = measured(build.executable, operation, data, args.rounds)
        answer = compared(shares, share)
        counts[answer] += 1
        span = share.span
        interval = f"{'<' * share.at_most}{span.ratio:.2f} [{span.lo:.2f}, {span.hi:.2f}]" if span else "-"
        print(f"{name:22}{says:9.1f} {of_processes:>18}  {f'{operation}, {data}':48}{interval:>18}  "
              f"{share.verdict.value}: {answer}", flush=True)
    print(f"{build.label}: {', '.join(f'{count} {answer}' for answer, count in counts.items())}")


class Control:
    """CPython's script on a build."""

    def __init__(self, python: str, path: str, scale: int) -> None:
        self._command = [python, path, "--scale", str(scale)]

    def speedups(self) -> dict[str, float]:
        """Return how many times as fast two threads are as one, by benchmark, as the script says it."""
        (said,) = self._said(1, "--threads", str(WORKERS))
        found = {name: (float(number), word) for name, number, word in SPEEDUP.findall(said)}
        return {name: number if word == "faster" else 1 / number for name, (number, word) in found.items()}

    def shares(self) -> dict[str, float]:
        """Return the time of two processes at once over that of two threads, by benchmark."""
        (together,) = self._said(1, "--threads", str(WORKERS), "--parallel-only")
        threads = {name: float(time) for name, time in TIME.findall(together)}
        alone = [{name: float(time) for name, time in TIME.findall(said)}
                 for said in self._said(WORKERS, "--baseline-only")]
        return {name: statistics.mean(each[name] for each in alone) / time for name, time in threads.items()}

    def _said(self, processes: int, *options: str) -> list[str]:
        """Run the script in so many processes at once and return what each said."""
        running = [subprocess.Popen([*self._command, *options], text=True, stdout=subprocess.PIPE)
                   for _ in range(processes)]
        said = [each.communicate()[0] for each in running]
        if any(each.returncode for each in running):
            raise SystemExit(f"{' '.join([*self._command, *options])} failed")
        return said


def measured(python: str, operation: str, data: str, rounds: int) -> OperationShare:
    """Return the answer of the atlas, each round by a process of its own, as its runs have it."""
    cell = Cell(workload="scaling", runner="free-threaded", workers=WORKERS, build="measured",
                parameters=(("operation", operation), ("data", data)))
    found: dict[str, dict[int, CleanCalls]] = {mode: {} for mode in MODES}
    for number in range(rounds):
        with ZygoteProcess(python, []) as process:
            load(process, cell)
            for mode, calls in take_round(process, reverse=number % 2 == 1).items():
                found[mode][number] = calls
    handoffs = [calls.handoff for by_round in found.values() for calls in by_round.values() if not calls.one_core]
    return operation_share(RoundCalls(found, near_limit(handoffs)))


def compared(control: list[float], share: OperationShare) -> str:
    """Return if the two agree on whether it scales."""
    if share.verdict is ScalingVerdict.UNSURE:
        return "atlas open"
    if min(control) < SCALES <= max(control):
        return "control open"
    return "agree" if (max(control) < SCALES) == (share.verdict in LOST) else "DIFFER"


if __name__ == "__main__":
    main()
