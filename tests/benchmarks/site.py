"""Measure time, memory and page sizes of a site of many runs: `python -m tests.benchmarks.site`.

Runs are made from a real one: its cells again under other names until there are enough, each value a little off, a day
apart.  Time, CPU time and the memory of the largest process are those of `gilscope site` with all that it starts; pages
are counted without the raw data.  `--browser` also says what the page of a run needs in Chromium, in a site and alone.
"""

import argparse
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from itertools import product
from math import exp
from pathlib import Path

from tests.conformance.builds import ROOT
from tests.site.browser.opened import launched

REAL = ROOT / "results" / "example" / "first-look"
LARGE = 1008   # cells of a large page
NOISE = 0.01   # standard deviation of the log of a value's own error
MIB = 1024 * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", default="10,100,300", help="numbers of runs, e.g. 10,100,300")
    parser.add_argument("--cells", type=int, default=84, help="cells of each run (default: 84)")
    parser.add_argument("--keep", type=Path, help="keep the sites in this folder")
    parser.add_argument("--browser", action="store_true", help="open pages in Chromium, too")
    args = parser.parse_args()
    print(f"{'runs':>5} {'cells':>6} {'seconds':>8} {'CPU s':>8} {'MiB':>6} {'pages MiB':>10} {'largest page':>40}")
    for number in map(int, args.runs.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "results"
            made.mkdir()
            for i in range(number):
                write_run(made / f"made-{i:03}", i, args.cells)
            report(number, args.cells, made, args.keep / str(number) if args.keep else Path(folder) / "site",
                   browser=args.browser)


def report(number, cells, results, out, *, browser):
    """Make a site in a separate process and print its cost."""
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
    peak = usage.ru_maxrss / 1024   # of its own processes, too; all children's would be that of a larger site before
    pages = {path.name: path.stat().st_size for path in out.glob("*.html")}
    largest = max(pages, key=pages.get)
    busy = usage.ru_utime + usage.ru_stime
    print(f"{number:5} {cells:6} {seconds:8.1f} {busy:8.1f} {peak:6.0f} {sum(pages.values()) / MIB:10.1f} "
          f"{largest:>30} {pages[largest] / 1024:5.0f} KiB", flush=True)
    if browser:
        report_browser(out)


def report_browser(site):
    """Print a browser's time and memory for the page of a run, and for one with more than a thousand cells."""
    page = next(site.glob("run-*.html")).read_text(encoding="utf-8")
    begin, end = page.index('<section id="w0"'), page.index('<section aria-labelledby="again"')
    sections = page[begin:end]
    times = LARGE // sections.count("<tr class=") + 1
    again = "".join(sections.replace('"w', f'"x{i}w') for i in range(times))
    (site / "large.html").write_text(page[:begin] + again + page[end:], encoding="utf-8")
    write_run(site / "large", 0, LARGE)
    words = ["report", str(site / "large"), "--html", str(site / "alone.html")]
    subprocess.run([sys.executable, "-m", "gilscope", *words], check=True, stdout=subprocess.DEVNULL)
    with launched() as chromium:
        for path in (next(site.glob("run-*.html")), site / "large.html", site / "alone.html"):
            context = chromium.new_context(viewport={"width": 1280, "height": 900})
            context.add_init_script("""
                window.longest = 0;
                const look = list => list.getEntries().forEach(
                    each => { window.longest = Math.max(window.longest, each.duration); });
                new PerformanceObserver(look).observe({ type: "longtask", buffered: true });
            """)
            opened = context.new_page()
            opened.goto(path.as_uri())
            opened.locator(".filters input").first.uncheck()
            opened.wait_for_timeout(500)
            paint = opened.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            longest, cells = opened.evaluate("window.longest"), opened.locator("table.cells tbody tr").count()
            print(f"      {path.name}: {cells} cells, first paint {paint:.0f} ms, longest task {longest:.0f} ms",
                  flush=True)
            context.close()


def write_run(folder, number, cells):
    """Write a run with `count` measured cells with different values."""
    draw = random.Random(number)
    folder.mkdir()
    header = json.loads((REAL / "run.json").read_text())
    suites = {build["label"]: json.loads((REAL / f"{build['label']}.json").read_text()) for build in header["builds"]}
    names = {label: [each["metadata"]["name"] for each in suite["benchmarks"]] for label, suite in suites.items()}
    real = sum("twin=" not in name for found in names.values() for name in found)
    again = -(-cells // real)
    left = cells
    kept = set()
    for label, suite in suites.items():
        benchmarks = []
        for copy_, each in product(range(again), suite["benchmarks"]):
            name = renamed(each["metadata"]["name"], copy_)
            twin = "twin=" in name
            if twin or left:
                left -= not twin
                kept.add((label, name))
                benchmarks.append(noisy(each, name, draw))
        suite["benchmarks"] = benchmarks
        (folder / f"{label}.json").write_text(json.dumps(suite))
    started = datetime.fromisoformat(header["started"]) + timedelta(days=number)
    header |= {
        "label": folder.name, "started": started.isoformat(), "seed": number,
        "cells": [cell for copy_ in range(again) for each in header["cells"]
                  if key(cell := {**each, "workload": renamed(each["workload"], copy_)}) in kept],
        "skips": [{**each, "cell": {**each["cell"], "workload": renamed(each["cell"]["workload"], copy_)}}
                  for copy_ in range(again) for each in header["skips"]],
        "answered": [],
    }
    (folder / "run.json").write_text(json.dumps(header))


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
        run["values"] = [value * exp(draw.gauss(0, NOISE)) for value in run.get("values", ())]
    return made


if __name__ == "__main__":
    main()
