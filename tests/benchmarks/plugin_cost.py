"""What gilscope's pytest plugin costs a test run without --race.

Prints what the plugin imports, how long that takes by the clock in a fresh process that has pytest already, and the CPU
time of whole runs of one empty test with the plugin and without (`-p no:gilscope_race`), in pairs in random order.

    python -m tests.benchmarks.plugin_cost [--pairs 30]
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

from tests.benchmarks.import_cost import cpu_seconds

IMPORT = """
import pytest, sys, time
before = set(sys.modules)
began = time.perf_counter()
import gilscope.toolkit.race.pytest_.plugin
print((time.perf_counter() - began) * 1e3, *sorted(set(sys.modules) - before))
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=30)
    pairs = parser.parse_args().pairs
    told = [subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True).stdout.split()
            for _ in range(pairs)]
    print(f"imports {', '.join(told[0][1:])}")
    print(f"in {statistics.median(float(each[0]) for each in told):.2f} ms by the clock (median of {pairs})")
    with tempfile.TemporaryDirectory() as folder:
        test = Path(folder, "test_nothing.py")
        test.write_text("def test():\n    pass\n")
        common = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
        without = [*common, "-p", "no:gilscope_race"]
        environment = dict(os.environ)
        silent = ["sh", "-c", 'exec "$@" >/dev/null', "sh"]
        costs = []
        for _ in range(pairs):
            seconds = {}
            for name in random.sample(["with", "without"], 2):
                command = common if name == "with" else without
                seconds[name] = cpu_seconds([*silent, *command], environment)
            costs.append(seconds["with"] - seconds["without"])
    low, _, high = statistics.quantiles(costs)
    print(f"a test run takes {statistics.median(costs) * 1e3:+.1f} ms CPU more with it "
          f"(median of {pairs} pairs; quartiles {low * 1e3:+.1f} to {high * 1e3:+.1f})")


if __name__ == "__main__":
    main()
