"""Measure how long commands take to start: against a bare interpreter, and `race` against the plain program.

All commands of a round run in random order, with a warm cache of compiled modules.  Prints the median of the times, the
median of the ratios within a round, and for `race` that of the differences.  The Python is the one that runs this.

    python -m tests.benchmarks.start_up [--rounds 20]
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.race_processes import ROOT, Command, checked_command, plain_command

BARE = "a bare interpreter"
RACE = "race of an empty program"
COMMANDS = {
    "--version": ("--version",), "--help": ("--help",), "run --help": ("run", "--help"),
    "report, 44 cells": ("report", str(ROOT / "results" / "example")),
}


def main() -> None:
    """Measure and print one line per command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)   # commands would compile their modules at every start
    with tempfile.TemporaryDirectory() as name:
        program = Path(name, "empty.py")
        program.write_text("")
        commands = {BARE: plain_command(sys.executable, program), RACE: checked_command(sys.executable, program)}
        for label, words in COMMANDS.items():
            commands[label] = Command((sys.executable, "-m", "gilscope", *words), Path(name))
        print_times(commands, rounds_of(commands, args.rounds))


def rounds_of(commands: dict[str, Command], count: int) -> dict[str, list[tuple[float, float]]]:
    """Return wall and CPU seconds by command; the first of each, which fill caches, are left out."""
    found: dict[str, list[tuple[float, float]]] = {label: [] for label in commands}
    for _ in range(count + 1):
        for label in random.sample([*commands], len(commands)):
            cost = commands[label].run()
            found[label].append((cost.wall, cost.cpu))
    return {label: each[1:] for label, each in found.items()}


def print_times(commands: dict[str, Command], found: dict[str, list[tuple[float, float]]]) -> None:
    """Print one line per command."""
    for label in commands:
        wall, cpu = ([1e3 * each[clock] for each in found[label]] for clock in (0, 1))
        bare = [1e3 * each[0] for each in found[BARE]]
        ratio = statistics.median(own / other for own, other in zip(wall, bare, strict=True))
        later = statistics.median(own - other for own, other in zip(wall, bare, strict=True))
        print(f"{label:26} {statistics.median(wall):6.0f} ms, CPU {statistics.median(cpu):5.0f} ms; "
              f"{ratio:5.1f} times {BARE}, {later:+5.0f} ms ({len(wall)} rounds)")


if __name__ == "__main__":
    main()
