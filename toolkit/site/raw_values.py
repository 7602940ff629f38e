"""Explanations of a page's numbers, and a command that prints one of them from the pyperf file alone."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.model import Phase
from gilscope.toolkit.report.document import Duration
from gilscope.toolkit.report.wording import ratio_text, value_text
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.verdict import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.report.table import WorkloadTable

# The standard library alone: whoever doubts a number need not trust gilscope.
_PROGRAM = (
    'import json, statistics as s, sys; d = json.load(open(sys.argv[1])); top = d.get("metadata", {}); '
    'print(s.median(s.median(r["values"]) for b in d["benchmarks"] '
    'if {**top, **b.get("metadata", {})}["name"] == sys.argv[2] for r in b["runs"] '
    'if "values" in r and {**top, **r.get("metadata", {})}.get("gilscope_starved") != "yes"))')


def explained_numbers(baseline: str) -> list[dict[str, str]]:
    """Return an explanation of the numbers in each column, by its title.

    Args:
        baseline: The model that ratios are relative to.
    """
    level = f"{CONFIDENCE * 100:g} %"
    texts = {
        "time": (
            "Each process gives one number, the median of its values in the pyperf file. The time is the median over "
            f"processes, one for each round; ± is half of its {level} confidence interval, as a share of it. "
            "`python -m pyperf show` prints another number, the mean and the standard deviation of all values of all "
            "processes, so it differs from this one, most on a busy machine."),
        f"vs {baseline}": (
            "A robust mean over rounds (Huber 1964) of the ratios within rounds: each round gives one, the time of "
            f"{baseline} over that of the cell, whose processes were measured within a second or two. It is "
            "not the quotient of the two times, which may drift from round to round: two cells of different times may "
            "have a ratio of 1.00x."),
        "verdict": (
            "faster or slower: an interval that holds for all cells at once excludes 1, and the difference is larger "
            f"than the noise floor. This needs at least {MIN_ROUNDS} rounds. Few rounds are enough for a large "
            "difference, as the spread of a cell is estimated from all cells of its workload together; the interval "
            "says how much is known."),
        "CPU time": (
            "The same median, of the CPU time of the process and its children. CPU is its ratio to "
            f"{baseline}, within rounds."),
        "memory": "The memory of all processes of the cell at their end, shared pages once (PSS).",
        "rounds": "Processes with values, starved ones too; starved ones count in no other number.",
    }
    return [{"title": title, "text": text} for title, text in texts.items()]


def followed_ratio(tables: Sequence[WorkloadTable], where: str) -> dict[str, Any] | None:
    """Return one ratio of the tables with the command that prints it and its interval; None if no cell has a ratio.

    Args:
        tables: Those of the run.
        where: The folder or label by which `gilscope report` finds the run.
    """
    results = [(result.cell, result.speedup) for table in tables for row in table.rows for result in row.results
               if result.speedup is not None and result.absence is None]
    if not results:
        return None
    cell, speedup = results[0]
    return {"name": cell.name, "build": cell.build, "text": ratio_text(speedup),
            "command": f"gilscope report {shlex.quote(where)} --json"}


def print_command(file: str, name: str) -> str:
    """Return the command that prints the time of a cell, in seconds, from the pyperf file that has its values."""
    return f"python3 -c {shlex.quote(_PROGRAM)} {shlex.quote(file)} {shlex.quote(name)}"


def followed_number(tables: Sequence[WorkloadTable], data: Mapping[str, str]) -> dict[str, Any] | None:
    """Return one number of the tables with the command that prints it; None if no cell has a number and a file."""
    results = [
        (result.cell, result.time) for table in tables if table.phase is Phase.STEADY for row in table.rows
        for result in row.results
        if result.time is not None and result.absence is None and result.cell.build in data]
    if not results:
        return None
    cell, time = results[0]
    return {"model": cell.runner, "build": cell.build, "name": cell.name, "text": value_text(Duration(time.center)),
            "command": print_command(data[cell.build], cell.name)}
