"""Measure the overhead of gilscope's pytest plugins without their options, and that of `--gil=off`.

Without --guard: prints what the plugins import, the wall time of these imports in a fresh process that has imported
pytest already, and the CPU time of whole runs of one empty test with the plugins and without (`-p no:...`), in pairs in
random order.

With --guard: prints the CPU time of whole runs of 1,000 tests with and without `--gil=off`, in pairs in random order.
Each test calls two functions of the project, which take about a millisecond; every tenth does so in a second thread.
`--work 0` shows the cost for tests that do nothing, which is the worst case.

    python -m tests.benchmarks.plugin_cost [--pairs 30]
    python -m tests.benchmarks.plugin_cost --guard 3.14t [--pairs 30] [--work LOOPS]
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

from gilscope.toolkit.builds.find import find_builds, select_builds
from tests.benchmarks.import_cost import cpu_seconds
from tests.gil_guard.guarded import make_environment

PLUGINS = ("gilscope.toolkit.race.pytest_.plugin", "gilscope.toolkit.gil_guard.plugin")
IMPORT = f"""
import pytest, sys, time
before = set(sys.modules)
began = time.perf_counter()
import {", ".join(PLUGINS)}
print((time.perf_counter() - began) * 1e3, *sorted(set(sys.modules) - before))
"""
TESTS = 1_000
WORK = 6_000     # loops, about a millisecond
SHOP = """
def inner(number):
    return number + 1
def work(loops):
    total = inner(loops)
    for _ in range(loops):
        total += 1
    return total
"""
TEST = """
import threading, pytest, shop
@pytest.mark.parametrize("number", range({tests}))
def test_it(number):
    if number % 10:
        shop.work({work})
    else:
        thread = threading.Thread(target=shop.work, args=({work},))
        thread.start()
        thread.join()
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--guard", metavar="BUILD")
    parser.add_argument("--work", metavar="LOOPS", type=int, default=WORK)
    args = parser.parse_args()
    if args.guard:
        guard_cost(args.guard, args.pairs, args.work)
        return
    told = [subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True).stdout.split()
            for _ in range(args.pairs)]
    print(f"imports {', '.join(told[0][1:])}")
    print(f"in {statistics.median(float(each[0]) for each in told):.2f} ms by the clock (median of {args.pairs})")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_nothing.py").write_text("def test():\n    pass\n")
        common = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_nothing.py"]
        without = [*common, "-p", "no:gilscope_race", "-p", "no:gilscope_gil"]
        pairs = measured_pairs(common, without, args.pairs, Path(folder))
    show("a test run takes", [(ours - plain) * 1e3 for ours, plain in pairs], "ms CPU more with them")


def guard_cost(label: str, count: int, work: int) -> None:
    """Print what --gil=off adds to the CPU time of 1,000 tests on a free-threaded build."""
    (build,) = select_builds(find_builds([]), label)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = make_environment(build, folder / "environment")
        root = folder / "project"
        root.mkdir()
        (root / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
        (root / "shop.py").write_text(SHOP)
        (root / "test_it.py").write_text(TEST.format(tests=TESTS, work=work))
        common = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
        pairs = measured_pairs([*common, "--gil=off"], common, count, root)
    print(f"{build.label}: {TESTS:,} tests take {statistics.median(plain for _, plain in pairs):.2f} s CPU without it")
    show("--gil=off takes", [(ours / plain - 1) * 100 for ours, plain in pairs], "% CPU more")


def measured_pairs(
    ours: list[str], plain: list[str], count: int, folder: Path,
) -> list[tuple[float, float]]:
    """Return the CPU seconds of both commands, run in `folder` in pairs in random order; the first pair is left out."""
    environment = dict(os.environ)
    silent = ["sh", "-c", 'cd "$0" && exec "$@" >/dev/null', str(folder)]
    pairs = []
    for _ in range(count + 1):
        seconds = {}
        for command in random.sample([ours, plain], 2):
            seconds[tuple(command)] = cpu_seconds([*silent, *command], environment)
        pairs.append((seconds[tuple(ours)], seconds[tuple(plain)]))
    return pairs[1:]


def show(what: str, values: list[float], unit: str) -> None:
    """Print the median and the quartiles."""
    low, _, high = statistics.quantiles(values)
    print(f"{what} {statistics.median(values):+.1f} {unit} "
          f"(median of {len(values)} pairs; quartiles {low:+.1f} to {high:+.1f})")


if __name__ == "__main__":
    main()
