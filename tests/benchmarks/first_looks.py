"""Measure how consistent the results of repeated `gilscope run --quick` are.

Repeats `gilscope run --quick`, stores each run as LABEL-NN in the usual folder, and prints statistics over all runs.
Existing runs are included and not measured again.

- floors: the median over runs and workloads, and the worst;
- false words: cells measured twice (A/A) that are called faster or slower than themselves, by either clock;
- coverage: how many 95 % intervals of such cells hold 1;
- found: of the cells that are more than 1.2x over all runs (median of their ratios), how often one run calls them
  faster;
- winners: how often two runs, the first and the second, the third and the fourth, name sets of the fastest without a
  common member, and how large the sets are.

    python -m tests.benchmarks.first_looks --runs 20 --label idle --builds 3.14,3.14t
    python -m tests.benchmarks.first_looks --runs 0 --label idle      # count what is there
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.report.table.observations import Index
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.store import load_run, results_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.table.observations import Clock

CLEAR = 1.2
CLOCKS: tuple[Clock, ...] = ("wall", "cpu")


@dataclass
class Look:
    """The results of one run."""

    run: Run
    floors: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))   # by clock
    twins: dict[str, list[tuple[bool, bool]]] = field(default_factory=lambda: defaultdict(list))  # false word, holds 1
    gains: dict[Cell, tuple[float, bool]] = field(default_factory=dict)                 # ratio, called faster
    best: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)           # by workload and build
    others: list[float] = field(default_factory=list)                                   # cores' worth


def main() -> None:
    """Measure the missing runs and print the statistics."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="Runs in all; those that are there count.")
    parser.add_argument("--label", default="look")
    parser.add_argument("--builds", help="As of `gilscope run`; LABEL=PATH,LABEL=PATH are added.")
    args = parser.parse_args()
    found = sorted(results_folder().glob(f"{args.label}-[0-9]*"))
    for number in range(len(found), args.runs):
        began = time.perf_counter()
        measure(f"{args.label}-{number:02d}", (args.builds or "").split(",") if args.builds else [])
        print(f"{args.label}-{number:02d}: {time.perf_counter() - began:.0f} s", flush=True)
    known = [load_run(path) for path in sorted(results_folder().glob(f"{args.label}-[0-9]*"))]
    runs = [run for run in known if run.stopped not in {"running", "killed", "interrupted"}]
    if not runs:
        parser.error(f"no {args.label}-NN to count in {results_folder()}")
    for line in counted([look(run) for run in runs]):
        print(line)


def measure(label: str, builds: list[str]) -> None:
    """Make one quick run in a separate process, as a user does."""
    named = [word for each in builds if "=" in each for word in ("--build", each)]
    listed = ["--builds", ",".join(each.partition("=")[0] for each in builds)] if builds else []
    command = [sys.executable, "-m", "gilscope", "run", "--quick", "--label", label, *named, *listed]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def look(run: Run) -> Look:
    """Return the results of a run as its report shows them."""
    said, index = Look(run), Index(run)
    ratios = Ratios(index)
    for table in build_tables(run):
        for clock, floor in table.floors.items():
            if floor.range is not None:
                said.floors[clock].append(floor.range[1])
        for row in table.rows:
            for each in row.results:
                if each.speedup is not None:
                    said.gains[each.cell] = (each.speedup.ratio, each.speedup.verdict() == "faster")
        for advice in table.advice:
            if advice.best:   # with too few rounds none is named
                said.best[table.workload, advice.build] = frozenset(cell.runner for cell in advice.best)
    for clock in CLOCKS:
        seen = [ratios.compare(cell, twin, clock) for cell, twin in index.aa_pairs()]
        said.twins[clock] = [(each.differs, each.lo <= 1 <= each.hi)
                             for each in seen if each is not None]
    said.others = [each.evidence.others_cores or 0.0 for one in run.measurements for each in one.observations]
    return said


def counted(looks: list[Look]) -> Iterator[str]:
    """Yield the statistics over all runs, as lines."""
    rounds = [each.run.rounds_done for each in looks]
    busy = median(median(each.others) for each in looks if each.others)
    yield f"{len(looks)} runs of {min(rounds)} to {max(rounds)} rounds; others used {busy:.2f} cores (median)"
    for clock in CLOCKS:
        floors = [floor for each in looks for floor in each.floors[clock]]
        if floors:
            yield f"noise floor of a workload, {clock}: median {median(floors):.1%}, worst {max(floors):.1%}"
    for clock in CLOCKS:
        twins = [seen for each in looks for seen in each.twins[clock]]
        if twins:
            yield (f"A/A, {clock}: {sum(false for false, _ in twins)} false words of {len(twins)}; "
                   f"{sum(holds for _, holds in twins) / len(twins):.1%} of the 95 % intervals hold 1")
    yield from _found(looks)
    yield from _winners(looks)


def _found(looks: list[Look]) -> Iterator[str]:
    ratios: dict[Cell, list[tuple[float, bool]]] = defaultdict(list)
    for each in looks:
        for cell, seen in each.gains.items():
            ratios[cell].append(seen)
    clear = {cell: seen for cell, seen in ratios.items() if median(ratio for ratio, _ in seen) > CLEAR}
    said = [called for seen in clear.values() for _, called in seen]
    yield f"{len(clear)} cells are more than {CLEAR}x: called faster {sum(said)} times of {len(said)}"
    for cell, seen in clear.items():
        if not all(called for _, called in seen):
            shown = f"{median(ratio for ratio, _ in seen):.2f}x"
            yield f"  {cell.name} on {cell.build}, {shown}: {sum(called for _, called in seen)} of {len(seen)}"


def _winners(looks: list[Look]) -> Iterator[str]:
    pairs = [(one.best[key], two.best[key], key) for one, two in zip(looks[::2], looks[1::2], strict=False)
             for key in one.best.keys() & two.best.keys()]
    apart = [key for one, two, key in pairs if not one & two]
    sizes = [len(each) for look in looks for each in look.best.values()]
    yield (f"sets of the fastest: {len(apart)} of {len(pairs)} pairs have no common member{_named(apart)}; "
           f"{f'median size {median(sizes):g}' if sizes else 'no look names one'}")


def _named(keys: Iterable[tuple[str, str]]) -> str:
    names = dict.fromkeys(f"{workload} on {build}" for workload, build in keys)
    return f" ({', '.join(names)})" if names else ""


if __name__ == "__main__":
    main()
