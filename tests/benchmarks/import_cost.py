"""What importing one task module costs a fresh worker, beyond the bare interpreter.

Starts fresh processes in pairs, bare and with the import, in random order, and takes the CPU time of each whole
process; prints the median difference.  The same for a fresh own-GIL interpreter, by the clock around the import
inside it.

    python -m tests.benchmarks.import_cost [--build LABEL=PATH] [--pairs 60]
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.common import build_of, prepared

MODULES = (
    "gilscope.workloads.cpu",
    "gilscope.workloads.native",
    "gilscope.workloads.io",
    "gilscope.workloads.mixed",
    "gilscope.workloads.contention",
    "gilscope.workloads.transfer",
)
INSIDE = """
from gilscope.runners.catalog import find
from tests_import_clock import clock
import sys
with find("subinterpreters").pool(1) as pool:
    print(pool.map(clock, [sys.argv[1]])[0])
"""
CLOCK = """
import time
def clock(name):
    began = time.perf_counter()
    __import__(name)
    return time.perf_counter() - began
"""


def main() -> None:
    """Measure and print one line per module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=f"host={sys.executable}", metavar="LABEL=PATH")
    parser.add_argument("--pairs", type=int, default=60)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _, python, environment, _ = prepared(build_of(args.build), "countdown", folder)
        Path(folder, "tests_import_clock.py").write_text(CLOCK)
        inside_environment = {**environment, "PYTHONPATH": f"{environment['PYTHONPATH']}{os.pathsep}{folder}"}
        for module in MODULES:
            differences = []
            for _ in range(args.pairs):
                seconds = {}
                for code in random.sample(["pass", f"import {module}"], 2):
                    seconds[code] = cpu_seconds([python, "-c", code], environment)
                differences.append(seconds[f"import {module}"] - seconds["pass"])
            inside = [
                float(
                    subprocess.run(
                        [python, "-c", INSIDE, module],
                        env=inside_environment,
                        capture_output=True,
                        text=True,
                        check=True,
                    ).stdout
                )
                for _ in range(max(5, args.pairs // 6))
            ]
            print(
                f"{module:22} process {statistics.median(differences) * 1e3:+.2f} ms CPU, "
                f"subinterpreter {statistics.median(inside) * 1e3:.2f} ms wall"
            )


def cpu_seconds(command: list[str], environment: dict[str, str]) -> float:
    """Return the CPU seconds of a process from start to end."""
    process = subprocess.Popen(command, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
