"""Compare the atlas of what scales (`gilscope experiment run scaling`) with CPython's own script.

Runs Tools/ftscalingbench/ftscalingbench.py of a checkout of CPython on a build without a GIL, as the control, and
measures the same operations as the atlas does, in the same minutes.  The control says how many times as fast two
threads are as one; the share of two is compared with the limit of the verdict.  Prints a line for each benchmark.

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
from gilscope.toolkit.experiments.scaling.shares import LIMITED, MODES, WORKERS, operation_share
from gilscope.toolkit.model import Cell
from gilscope.toolkit.scale.judgement import SCALES, ScalingVerdict
from gilscope.toolkit.scale.scaling_rounds import RoundCalls
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
LINE = re.compile(r"(\w+)\s+([\d.]+)x (faster|slower)")


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
    runs = [control(build.executable, args.path, args.scale) for _ in range(args.rounds)]
    names = list(dict.fromkeys(name for run in runs for name in run))
    counts: Counter[str] = Counter()
    print(f"{'control':24}{'x faster':>9} {'range':>12}  {'atlas':46}{'of the ceiling':>20}  answer")
    for name in names:
        speedups = [run[name] for run in runs if name in run]
        if name not in OPERATIONS:
            counts["not in the atlas"] += 1
            print(f"{name:24}{statistics.median(speedups):9.1f} {'':>12}  not in the atlas", flush=True)
            continue
        operation, data = OPERATIONS[name]
        share = measured(build.executable, operation, data, args.rounds)
        answer = compared(statistics.median(speedups), share)
        counts[answer] += 1
        span = share.span
        interval = f"{'<' * share.at_most}{span.ratio:.2f} [{span.lo:.2f}, {span.hi:.2f}]" if span else "-"
        print(f"{name:24}{statistics.median(speedups):9.1f} {f'{min(speedups)} to {max(speedups)}':>12}  "
              f"{f'{operation}, {data}':46}{interval:>20}  {answer}: {share.verdict.value}", flush=True)
    print(f"{build.label}: {', '.join(f'{count} {answer}' for answer, count in counts.items())}")


def control(python: str, path: str, scale: int) -> dict[str, float]:
    """Return how many times as fast two threads are as one, by benchmark."""
    done = subprocess.run([python, path, "--threads", str(WORKERS), "--scale", str(scale)], text=True,
                          capture_output=True, check=True, timeout=1800)
    found = {name: (float(number), word) for name, number, word in LINE.findall(done.stdout)}
    return {name: number if word == "faster" else round(1 / number, 2) for name, (number, word) in found.items()}


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
    return operation_share(RoundCalls(found))


def compared(speedup: float, share: OperationShare) -> str:
    """Return whether the two agree."""
    if share.verdict is ScalingVerdict.UNSURE:
        return "open"
    return "agree" if (speedup / WORKERS < SCALES) == (share.verdict in LIMITED) else "DIFFER"


if __name__ == "__main__":
    main()
