"""Measure the speed-up of two workers, by model and build.

Runs the project's own command on warm workers with tasks of 25 ms and prints the ratio to the serial baseline of the
same build.  Run it on a quiet machine; starved cells are marked.

    python -m tests.benchmarks.scaling --builds 3.13,3.13t,3.14,3.14t [--rounds 12]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import tempfile

from gilscope.toolkit.cli import main as gilscope
from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.table.observations import Index
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.store import find_label, load_run

MODELS = "subinterpreters,processes-forkserver,processes-spawn,free-threaded"


def main() -> None:
    """Measure and print one line per build and model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builds", required=True, metavar="LABELS")
    parser.add_argument("--build", action="append", default=[], metavar="LABEL=PATH")
    parser.add_argument("--workload", default="countdown")
    parser.add_argument("--rounds", default="12")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--size", default="small", help="small has 4 tasks a pass, medium 16 (default: small)")
    args = parser.parse_args()
    named = [part for each in args.build for part in ("--build", each)]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with contextlib.redirect_stdout(io.StringIO()):
            gilscope(
                [
                    "run",
                    args.workload,
                    "--builds",
                    args.builds,
                    *named,
                    "--models",
                    args.models,
                "--size",
                args.size,
                    "--workers",
                    "2",
                    "--rounds",
                    args.rounds,
                    "--label",
                    "scaling",
                ]
            )
        run = load_run(find_label("scaling"))
    walls = {
        each.cell: {one.round: one.wall_value for one in each.observations if not one.starved}
        for each in run.measurements
    }
    starved = {each.cell: sum(one.starved for one in each.observations) for each in run.measurements}
    ratios = Ratios(Index(run))
    for cell, values in walls.items():
        if cell.runner == "serial" or cell.twin:
            continue
        baseline = Cell(workload=cell.workload, runner="serial", workers=1, build=cell.build)
        if len(values) < 3:
            print(f"{cell.build:8} {cell.runner:22} starved in {starved[cell]} of {run.rounds_done} rounds")
            continue
        if (ratio := ratios.compare(baseline, cell)) is None:
            continue
        print(
            f"{cell.build:8} {cell.runner:22} {ratio.ratio:.2f}x [{ratio.lo:.2f}, {ratio.hi:.2f}] over {ratio.rounds} "
            f"rounds, {starved[cell]} starved"
        )


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "120")
    main()
