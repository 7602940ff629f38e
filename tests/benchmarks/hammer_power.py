"""Tell how often `gilscope.toolkit.hammer` shows the faults of planted projects, and that it blames no fixed one.

Usage: python -m tests.benchmarks.hammer_power PYTHON [--seconds 20] [--runs 10] [--fixed] [NAME ...]

Compiles each project for the free-threaded PYTHON and hammers it RUNS times; prints the machine's load beside.  Those
of C++ need pybind11 here.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from importlib import import_module
from pathlib import Path

from gilscope.toolkit.hammer.hammering import HammerRequest, hammer
from tests.conformance.builds import ROOT

CORPUS = ROOT / "tests" / "corpus"
EXAMPLES = tomllib.loads((CORPUS / "hammer" / "examples.toml").read_text())
NAMED = "import sysconfig; print(sysconfig.get_path('include')); print(sysconfig.get_config_var('EXT_SUFFIX'))"


def compile_module(source, python, folder):
    """Compile an extension module of C, or of C++ with pybind11, for a build."""
    include, suffix = subprocess.run([python, "-c", NAMED], capture_output=True, text=True, check=True).stdout.split()
    compiler = ["cc"]
    if source.suffix == ".cpp":
        compiler = ["c++", "-std=c++17", "-fvisibility=hidden", f"-I{import_module('pybind11').get_include()}"]
    subprocess.run([*compiler, "-O2", "-g", "-shared", "-fPIC", f"-I{include}", str(source), "-o",
                    str(folder / f"{source.stem}{suffix}")], check=True)


def compiled(name, variant, python, folder):
    """Compile a project for a build and return its request, without a time."""
    source = CORPUS / EXAMPLES[name]["folder"] / name / variant / f"_{name}.c"
    compile_module(source if source.exists() else source.with_suffix(".cpp"), python, folder)
    page = folder / f"{name}.txt"
    page.write_text(EXAMPLES[name]["examples"])
    return {"modules": (f"_{name}",), "own": (f"_{name}",), "folders": (str(folder),),
            "files": ((str(page), page.name),)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("python")
    parser.add_argument("names", nargs="*", default=[*EXAMPLES])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_intermixed_args()
    variant = "repaired" if args.fixed else "faulty"
    for name in args.names:
        kinds, told, trials, began = Counter(), 0, 0, time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            made = compiled(name, variant, args.python, Path(folder))
            for _ in range(args.runs):
                report = hammer(Path(args.python), HammerRequest(threads=args.threads, seconds=args.seconds, **made))
                kinds.update({each.kind for each in report.failures})
                told += bool(report.failures)
                trials += report.trials
                for each in report.failures:
                    print(f"    {each.kind}: {each.detail} ({each.failed} of {each.trials})", file=sys.stderr)
                if report.problem:
                    print(f"    {report.problem}", file=sys.stderr)
        print(f"{name} {variant}: told in {told} of {args.runs} ({dict(kinds)}), {trials / args.runs:.0f} trials, "
              f"{(time.monotonic() - began) / args.runs:.1f} s each, load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
