"""Compute the best number of values per process from stored runs.

The noise of values, the differences between processes, and the seconds of a start and of a value decide it. Prints for
each workload of the runs, and for each run as a whole:

- the standard deviation of values within a process, and that between processes
- the part of the variance of processes' levels that the noise of their values makes
- the seconds of a process without values, and of a value
- the best number of values per process
- the width of an interval after the same time, with other numbers of values, relative to that with six

    python -m tests.benchmarks.values results/example results/example/first-look ...
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.report.table.process_variance import process_variance
from gilscope.toolkit.store import load_run

if TYPE_CHECKING:
    from gilscope.toolkit.stats.values_per_process import VarianceParts

NUMBERS = (2, 3, 4, 8, 10, 12, 20)
USUAL = 6


def main() -> None:
    """Print a line for each workload and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    args = parser.parse_args()
    print(f"{'':38} within between share  start  value  best" + "".join(f"{number:>7}" for number in NUMBERS))
    for folder in args.folders:
        run = load_run(folder)
        for workload in dict.fromkeys(cell.workload for cell in run.cells):
            cells = frozenset(cell for cell in run.cells if cell.workload == workload)
            show(f"{folder.name} {workload}", process_variance(run, cells))
        show(f"{folder.name}, all", process_variance(run))


def variance_per_time(parts: VarianceParts, values: int) -> float:
    """Return the variance of an arm's mean after one second of it, with so many values per process."""
    return (parts.between + parts.within / values) * parts.process_seconds(values)


def show(name: str, parts: VarianceParts | None) -> None:
    """Print the line of one workload or run."""
    if parts is None:
        print(f"{name:38} too few rounds")
        return
    usual = variance_per_time(parts, USUAL)
    widths = "".join(f"{(variance_per_time(parts, number) / usual) ** 0.5 - 1:+7.0%}" for number in NUMBERS)
    noise = parts.within / parts.values
    share = noise / (noise + parts.between) if noise else 0.0
    print(f"{name:38} {parts.within ** 0.5:6.1%} {parts.between ** 0.5:7.1%} {share:5.0%} "
          f"{parts.start:5.2f}s {parts.value:5.3f}s {parts.best_values():5}{widths}")


if __name__ == "__main__":
    main()
