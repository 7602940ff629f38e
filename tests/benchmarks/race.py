"""Measure the overhead of `gilscope race`, and its recall and false alarms on a folder of programs.

Measures each program in pairs, plain and checked, in random order, and prints the ratio of the CPU time of the whole
processes (gilscope's own included), that of the work alone (less what an empty program takes), and that of the peak
memory; then what an empty program's start takes longer by the clock.  With --corpus, counts right and wrong verdicts
over the programs in DIR that begin with `# EXPECT:` (see tests/race/whole/expectations.py).

    python -m tests.benchmarks.race [--builds 3.14,3.14t=PATH] [--pairs 7] [--only cache,bank]
    python -m tests.benchmarks.race --corpus DIR [--builds ...] [--runs 20] [--only NAME]
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from pathlib import Path

from tests.benchmarks.common import build_of
from tests.benchmarks.race_processes import Command, Cost, checked_command, plain_command
from tests.benchmarks.race_verdicts import judge_folder

PROGRAMS = Path(__file__).with_name("race_programs")
HELLO = PROGRAMS / "micro" / "hello.py"
MEMORY_RUNS = 3


def main() -> None:
    """Run the requested measurements and print the results."""
    args = parser().parse_args()
    only = tuple(filter(None, args.only.split(",")))
    for named in args.builds.split(","):
        build = build_of(named)
        print(f"== {build.label}: {build.executable}", flush=True)
        if args.corpus is not None:
            judge_folder(build.executable, args.corpus.resolve(), runs=args.runs, only=only)
        else:
            print_costs(build.executable, args.pairs, only)


def parser() -> argparse.ArgumentParser:
    """Return the options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--builds", default=f"host={sys.executable}", metavar="LABEL[=PATH],...")
    made.add_argument("--pairs", type=int, default=7, help="measurements of each program (default: 7)")
    made.add_argument("--only", default="", metavar="NAME,...", help="programs whose path contains a NAME")
    made.add_argument("--corpus", type=Path, metavar="DIR", help="judge the programs in DIR instead")
    made.add_argument("--runs", type=int, default=1, help="with --corpus: runs of each program (default: 1)")
    return made


def programs() -> tuple[list[Path], list[Path]]:
    """Return the counters, and the ten realistic programs."""
    counters = sorted(path for path in (PROGRAMS / "micro").glob("*.py") if path != HELLO)
    return counters, sorted(PROGRAMS.glob("*.py"))


def print_costs(python: str, pairs: int, only: tuple[str, ...]) -> None:
    """Measure and print the table of one build."""
    counters, realistic = programs()
    chosen = [path for path in (*counters, *realistic) if not only or any(name in str(path) for name in only)]
    empty = measure(python, HELLO, max(pairs, 15))
    print(f"{'program':22} {'plain':>9} {'checked':>9}  {'CPU ratio':24} {'work alone':>10} {'memory':>8}")
    ratios = {}
    for path in chosen:
        costs = measure(python, path, pairs)
        ratios[path] = [checked.cpu / plain.cpu for plain, checked in costs]
        print_row(path.stem, costs, ratios[path], empty, peak_ratio(python, path))
    ten = [statistics.median(ratios[path]) for path in realistic if path in ratios]
    if ten:
        print(f"{f'median of {len(ten)}':22} {'':20} {statistics.median(ten):.2f}x, worst {max(ten):.2f}x")
    later = sorted(1e3 * (checked.wall - plain.wall) for plain, checked in empty)
    print(f"start-up, warm: {spread(later, ' ms')} later by the clock ({len(later)} pairs)")


def print_row(name: str, costs: list[tuple[Cost, Cost]], ratios: list[float], empty: list[tuple[Cost, Cost]],
              memory: str) -> None:
    """Print the overhead of one program."""
    plain, checked = (statistics.median(pair[side].cpu for pair in costs) for side in (0, 1))
    nothing = [statistics.median(pair[side].cpu for pair in empty) for side in (0, 1)]
    work = f"{(checked - nothing[1]) / (plain - nothing[0]):.2f}x" if plain > nothing[0] else "-"
    print(f"{name:22} {plain * 1e3:6.0f} ms {checked * 1e3:6.0f} ms  {spread(ratios, 'x'):24} {work:>10} {memory:>8}",
          flush=True)


def spread(values: list[float], unit: str) -> str:
    """Return the median with the quartiles around it."""
    if len(values) < 2:
        return f"{values[0]:.2f}{unit}"
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.2f}{unit} [{low:.2f}, {high:.2f}]"


def measure(python: str, program: Path, pairs: int) -> list[tuple[Cost, Cost]]:
    """Return the costs of `pairs` pairs of a plain and a checked run, after one of each to fill the caches."""
    plain, checked = plain_command(python, program), checked_command(python, program)
    expected = plain.run().stdout
    first = checked.run()
    if first.stdout != expected:
        print(f"{program.stem}: printed {first.stdout!r} under the checker, {expected!r} without", file=sys.stderr)
    return [in_random_order(plain, checked) for _ in range(pairs)]


def in_random_order(plain: Command, checked: Command) -> tuple[Cost, Cost]:
    """Run both once."""
    costs = {command: command.run() for command in random.sample([plain, checked], 2)}
    return costs[plain], costs[checked]


def peak_ratio(python: str, program: Path) -> str:
    """Return the ratio of the process's peak memory with and without the checker."""
    peaks = [
        statistics.median(command.peak_bytes() for _ in range(MEMORY_RUNS))
        for command in (plain_command(python, program), checked_command(python, program))
    ]
    return f"{peaks[1] / peaks[0]:.2f}x" if all(peaks) else "-"


if __name__ == "__main__":
    main()
