"""Measure the time of `gilscope evaluate` for a project of 5,500 lines with 100 tests.

Writes such a project to a temporary folder and evaluates it: once to create its environments, then from scratch with
and without a `--workload`, and once more without changes.

    python -m tests.benchmarks.evaluate_time --build 3.14t=/path/to/python3.14t --build 3.14=/path/to/python3.14
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODULES, FUNCTIONS = 50, 12
TESTED, EACH = 20, 5   # modules with tests, and tests of each
PYPROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "fivek"
version = "1"
dependencies = []
[dependency-groups]
test = ["pytest"]
"""
FUNCTION = '''
def work_{number}(n):
    """Return a sum of {number}."""
    total = 0
    for i in range(n):
        total += (i * {factor}) % 97
    if total > 10:
        total -= math.isqrt(total)
    return total
'''
WORKLOAD = "from fivek import part_1, part_2\n\ndef work():\n    return part_1.work_3(20000) + part_2.work_4(20000)\n"


def main() -> None:
    """Evaluate, and print a line for each call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="append", default=[], metavar="LABEL=PATH", help="beside those at hand")
    parser.add_argument("--target", default="3.14t", metavar="LABEL", help="the build without a GIL (default: 3.14t)")
    args = parser.parse_args()
    builds = [word for each in args.build for word in ("--build", each)]
    with tempfile.TemporaryDirectory() as name:
        lines = written(Path(name))
        print(f"{lines} lines, {TESTED * EACH} tests")
        workload = ("--workload", "fivek.app:work")
        for what, words in (("at first", workload), ("anew, with a workload", ("--fresh", *workload)),
                            ("nothing changed", workload), ("anew, without a workload", ("--fresh",))):
            began = time.monotonic()
            done = subprocess.run(
                [sys.executable, "-m", "gilscope", "evaluate", ".", "--builds", args.target, *builds, *words],
                cwd=name, check=False, capture_output=True, text=True)
            seconds = time.monotonic() - began
            indented = (line.strip() for line in done.stdout.splitlines() if line.startswith("  "))
            said = next(indented, done.stderr[-200:])
            print(f"{what:26}{seconds:7.1f} s  {said}", flush=True)


def written(folder: Path) -> int:
    """Write the project into a folder; return how many lines its own code has."""
    package, tests = folder / "src" / "fivek", folder / "tests"
    package.mkdir(parents=True)
    tests.mkdir()
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (package / "__init__.py").write_text("")
    (package / "app.py").write_text(WORKLOAD)
    for module in range(MODULES):
        code = "".join(FUNCTION.format(number=number, factor=number + module + 1) for number in range(FUNCTIONS))
        (package / f"part_{module}.py").write_text(f"import math\n{code}")
    for module in range(TESTED):
        code = "".join(f"\n\ndef test_{number}():\n    assert part_{module}.work_{number}(500) >= 0\n"
                       for number in range(EACH))
        (tests / f"test_{module}.py").write_text(f"from fivek import part_{module}\n{code}")
    return sum(len(file.read_text().splitlines()) for file in package.glob("*.py"))


if __name__ == "__main__":
    main()
