"""`gilscope compare`: two runs, or two builds or models of one run, cell by cell."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.pairing import compare_builds as unfair
from gilscope.toolkit.commands.options import growth
from gilscope.toolkit.errors import ToolkitError, UnknownNameError
from gilscope.toolkit.model import Note
from gilscope.toolkit.report import RENDERERS
from gilscope.toolkit.report.build import comparison_document
from gilscope.toolkit.store import find_label, load_run
from gilscope.toolkit.table import compare_builds, compare_models, compare_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.document import Document
    from gilscope.toolkit.table import Choice, Contrast

SLOWER = 1      # exit code: a cell is slower than --fail-on allows
UNFINISHED = 3  # exit code: --fail-on was asked, and there was nothing to judge

_DESCRIPTION = """\
Say how many times faster each cell of B is than the same cell of A; with one label, set two of its builds or
models against each other. Builds and models of one run were measured in the same rounds and are compared round by
round. Two runs were made at different times, and what the machine did in between is in no interval: prefer one run
with both builds where you can.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `compare` command."""
    parser = subparsers.add_parser(
        "compare", help="Compare two runs, or two builds or models of one run.", description=_DESCRIPTION,
    )
    parser.add_argument("labels", nargs="+", metavar="LABEL",
                        help="One or two labels under results/ in this folder; of two, the first is the baseline.")
    within = parser.add_mutually_exclusive_group()
    within.add_argument("--builds", metavar="A,B", type=_pair,
                        help="Compare build B with build A of one run. Use 3.14,3.14t for what free-threading costs.")
    within.add_argument("--models", metavar="A,B", type=_pair,
                        help="Compare model B with model A of one run. Use it before moving code from A to B, e.g. "
                             "processes-spawn,subinterpreters.")
    parser.add_argument("--clock", metavar="CLOCK", choices=("wall", "cpu", "auto"), default="auto",
                        help="Compare by wall, cpu or auto: CPU time for one worker, wall time for more (default: "
                             "auto). Use 'cpu' for work that does not wait: it is steadier on a busy machine.")
    parser.add_argument("--fail-on", metavar="PERCENT", type=growth,
                        help="Exit with 1 when a cell is slower by more than PERCENT, e.g. 5%%, with its whole "
                             "interval and beyond the noise floor (default: never). Use it in CI.")
    parser.add_argument("--markdown", action="store_true",
                        help="Print GitHub Markdown (default: text). Use it to paste into an issue.")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the comparison; return 1 when a cell is slower than `--fail-on` allows, 3 when it had nothing to judge."""
    runs = [load_run(find_label(label)) for label in _checked(args)]
    contrasts, document = _across(runs[0], runs[1], args.clock) if len(runs) > 1 else _within(runs[0], args)
    print(RENDERERS["markdown" if args.markdown else "terminal"](document))
    judged = [each for each in contrasts if each.comparison and each.comparison.verdict() != "unknown"]
    if args.fail_on is not None and not judged:
        # A gate that judged nothing must not look like one that found nothing.
        print("gilscope: of no cell can it be said whether it is slower, so --fail-on judged nothing", file=sys.stderr)
        return UNFINISHED
    failed = [] if args.fail_on is None else past_limit(contrasts, args.fail_on)
    for each in failed:
        print(f"gilscope: slower by more than {args.fail_on * 100:g} %: {each.sample.name} on {each.sample.build}",
              file=sys.stderr)
    return SLOWER if failed else 0


def past_limit(contrasts: Sequence[Contrast], limit: float) -> list[Contrast]:
    """Return what is slower by more than the share `limit`, with its whole interval and beyond the noise floor."""
    return [
        each for each in contrasts
        if each.comparison and each.comparison.verdict() == "slower" and 1 / each.comparison.hi - 1 > limit
    ]


def _checked(args: argparse.Namespace) -> Sequence[str]:
    """Return the labels, once what was asked makes sense."""
    labels: Sequence[str] = args.labels
    within = args.builds or args.models
    if len(labels) > 2:  # noqa: PLR2004 - A and B
        raise ToolkitError(f"compare takes one or two labels, got {len(labels)}: {', '.join(labels)}")
    if len(labels) > 1 and within:
        raise ToolkitError("--builds and --models compare within one run: give one label")
    if len(labels) == 1 and not within:
        raise ToolkitError("nothing to compare it with: give a second label, --builds A,B or --models A,B")
    return labels


def _across(first: Run, second: Run, clock: Choice) -> tuple[Sequence[Contrast], Document]:
    measured = [{each.cell for each in run.measurements} for run in (first, second)]
    if not measured[0] & measured[1]:
        raise UnknownNameError(f"{first.label!r} and {second.label!r} have no measured cell in common")
    contrasts = compare_runs(first, second, clock)
    return contrasts, comparison_document(
        f"{second.label} against {first.label}", contrasts, baseline=first.label, sample=second.label,
        notes=differences(first, second),
    )


def _within(run_: Run, args: argparse.Namespace) -> tuple[Sequence[Contrast], Document]:
    first, second = args.builds or args.models
    compare = compare_builds if args.builds else compare_models
    contrasts = compare(run_, first, second, args.clock)
    builds = {build.label: build for build in run_.builds}
    notes = unfair(builds[first], builds[second]) if args.builds else ()
    return contrasts, comparison_document(
        f"{run_.label}: {second} against {first}", contrasts, baseline=first, sample=second, notes=notes)


def differences(first: Run, second: Run) -> list[Note]:
    """Return what else than the time differs between two runs, so that a ratio may not be what it seems."""
    notes = []
    if (first.machine.cpu_model, first.machine.cores) != (second.machine.cpu_model, second.machine.cores):
        machines = [f"{run.machine.cpu_model} ({run.machine.cores} cores)" for run in (first, second)]
        notes.append(Note(text=f"different machines: {machines[0]} and {machines[1]}"))
    before = {build.label: build for build in first.builds}
    for build in second.builds:
        other = before.get(build.label)
        if other and (other.version, other.base_executable) != (build.version, build.base_executable):
            notes.append(Note(text=f"{build.label} is {other.version} ({other.base_executable}) in {first.label}, "
                                   f"{build.version} ({build.base_executable}) in {second.label}"))
    sizes = [run.options.get("selection", {}).get("size") for run in (first, second)]
    if sizes[0] != sizes[1]:
        notes.append(Note(text=f"different sizes of the workloads: {sizes[0]} and {sizes[1]}"))
    return notes


def _pair(text: str) -> tuple[str, str]:
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:  # noqa: PLR2004 - A and B
        raise argparse.ArgumentTypeError(f"{text!r} is not two different names; write it like A,B")
    return names[0], names[1]
