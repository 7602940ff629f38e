"""How long a site of many runs takes, how much memory, how large its pages are: `python -m tests.benchmarks.site`.

Runs are made from a real one: its cells again under other names until there are enough, each value a little off, a day
apart.  Time and memory are those of a process of its own with the one that renders; pages are counted without the raw
data.  Figures in CONTRIBUTING.md are from a quiet machine.
"""

import argparse
import copy
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

from tests.conformance.builds import ROOT

REAL = ROOT / "results" / "example" / "first-look"
NOISE = 0.01   # standard deviation of the log of a value's own error
MIB = 1024 * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", default="10,100,300", help="numbers of runs, e.g. 10,100,300")
    parser.add_argument("--cells", type=int, default=84, help="cells of each run (default: 84)")
    parser.add_argument("--keep", type=Path, help="keep the sites in this folder")
    args = parser.parse_args()
    print(f"{'runs':>5} {'cells':>6} {'seconds':>8} {'per run':>8} {'MiB':>6} {'pages MiB':>10} {'largest page':>40}")
    for number in map(int, args.runs.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "results"
            made.mkdir()
            for i in range(number):
                write_run(made / f"made-{i:03}", i, args.cells)
            report(number, args.cells, made, args.keep / str(number) if args.keep else Path(folder) / "site")


def report(number, cells, results, out):
    """Make a site in a process of its own and print what it took."""
    if out.exists():
        shutil.rmtree(out)
    started = time.perf_counter()
    pid = os.fork()
    if not pid:
        os.execv(sys.executable, [sys.executable, "-m", "gilscope", "site", str(results), "--out", str(out)])
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - started
    if status:
        raise SystemExit(f"gilscope site ended with {status}")
    peak = max(usage.ru_maxrss, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024
    pages = {path.name: path.stat().st_size for path in out.glob("*.html")}
    largest = max(pages, key=pages.get)
    print(f"{number:5} {cells:6} {seconds:8.1f} {seconds / number:8.3f} {peak:6.0f} {sum(pages.values()) / MIB:10.1f} "
          f"{largest:>30} {pages[largest] / 1024:5.0f} KiB", flush=True)


def write_run(folder, number, cells):
    """Write a run of so many measured cells, each with values of its own."""
    draw, folder_of = random.Random(number), folder
    folder_of.mkdir()
    header = json.loads((REAL / "run.json").read_text())
    suites = {build["label"]: json.loads((REAL / f"{build['label']}.json").read_text()) for build in header["builds"]}
    names = {label: [each["metadata"]["name"] for each in suite["benchmarks"]] for label, suite in suites.items()}
    real = sum("twin=" not in name for found in names.values() for name in found)
    again = -(-cells // real)
    left = cells
    kept = set()
    for label, suite in suites.items():
        benchmarks = []
        for copy_ in range(again):
            for each in suite["benchmarks"]:
                name = renamed(each["metadata"]["name"], copy_)
                twin = "twin=" in name
                if not twin and not left:
                    continue
                left -= not twin
                kept.add((label, name))
                benchmarks.append(noisy(each, name, draw))
        suite["benchmarks"] = benchmarks
        (folder_of / f"{label}.json").write_text(json.dumps(suite))
    started = datetime.fromisoformat(header["started"]) + timedelta(days=number)
    header |= {
        "label": folder.name, "started": started.isoformat(), "seed": number,
        "cells": [cell for copy_ in range(again) for each in header["cells"]
                  if key(cell := {**each, "workload": renamed(each["workload"], copy_)}) in kept],
        "skips": [{**each, "cell": {**each["cell"], "workload": renamed(each["cell"]["workload"], copy_)}}
                  for copy_ in range(again) for each in header["skips"]],
        "answered": [],
    }
    (folder_of / "run.json").write_text(json.dumps(header))


def renamed(name, copy_):
    workload, slash, rest = name.partition("/")
    return f"{workload}_{copy_}{slash}{rest}" if copy_ else name


def key(cell):
    twin = "/twin=1" if cell["twin"] else ""
    return cell["build"], (f"{cell['workload']}/runner={cell['runner']}/workers={cell['workers']}/phase={cell['phase']}"
                           + twin)


def noisy(benchmark, name, draw):
    made = copy.deepcopy(benchmark)
    made["metadata"]["name"] = name
    for run in made["runs"]:
        run["values"] = [value * 2.718281828 ** draw.gauss(0, NOISE) for value in run.get("values", ())]
    return made


if __name__ == "__main__":
    main()
