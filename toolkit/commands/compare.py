"""`gilscope compare`: compare two runs, or two builds or models of one run, cell by cell."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit import temporary
from gilscope.toolkit.builds.pairing import compare_builds as unfair
from gilscope.toolkit.commands.fleet.reports import fleet_hosts
from gilscope.toolkit.commands.options.common import duration, growth, positive
from gilscope.toolkit.commands.output.reports import ReportOutput, add_full, add_output
from gilscope.toolkit.commands.run.compare_again import LEAST_ROUNDS, RemeasureRequest, measure_again
from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.commands.summaries import SUMMARIES
from gilscope.toolkit.errors import ToolkitError, UnknownNameError
from gilscope.toolkit.model import Note
from gilscope.toolkit.report.as_json import compare_values
from gilscope.toolkit.report.cautions import cautions, cautions_beside_pairs, stopping_text
from gilscope.toolkit.report.comparison import (
    TWO_RUNS,
    comparison_answer,
    comparison_document,
    in_short,
)
from gilscope.toolkit.report.hosts.wording import cautions_of_all
from gilscope.toolkit.report.sessions import scope_text
from gilscope.toolkit.report.table.contrast import build_keys, compare_builds, compare_models, compare_runs
from gilscope.toolkit.report.table.judgement import gate
from gilscope.toolkit.report.table.observations import Index
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.stats.verdict import MARGIN
from gilscope.toolkit.store import Store, find_label, load_run
from gilscope.toolkit.store.shared_values import refuse_shared_values
from gilscope.toolkit.units import inflect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.commands.fleet.reports import HostRuns
    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.table.contrast import Contrast
    from gilscope.toolkit.report.table.judgement import Gate

SLOWER = 1      # exit code: a cell is slower than --fail-on allows
UNFINISHED = 3  # exit code: --fail-on could judge no cell

_DESCRIPTION = """\
Show how many times faster each cell of NEW is than the same cell of OLD. With one label, compare two builds or models
of that run. Builds and models of one run were measured in the same rounds and are compared round by round. Rounds of
two runs cannot be paired, and the machine may have changed in between, so these ratios have no verdict. If the code
still exists, --again measures both sides again, interleaved; this separates code from machine.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `compare` command."""
    parser = subparsers.add_parser(
        "compare", help=SUMMARIES["compare"], description=_DESCRIPTION,
        usage="gilscope compare [options] OLD [NEW]",
    )
    parser.add_argument("labels", nargs="+", metavar="OLD [NEW]",
                        help="One or two labels of runs in this folder. OLD is the baseline.")
    within = parser.add_mutually_exclusive_group()
    within.add_argument("--builds", metavar="A,B", type=_pair,
                        help="Compare build B with build A of one run. Use 3.14,3.14t to see what free-threading "
                             "costs.")
    within.add_argument("--models", metavar="A,B", type=_pair,
                        help="Compare model B with model A of one run. Use it before moving code from A to B, e.g. "
                             "processes-spawn,subinterpreters.")
    parser.add_argument("--clock", metavar="CLOCK", choices=("wall", "cpu", "auto"), default="auto",
                        help="Compare wall time (wall), CPU time (cpu), or CPU time for one worker and wall time for "
                             "more (auto; default: auto). Use 'cpu' for work that does not wait: it is steadier on a "
                             "busy machine.")
    parser.add_argument("--margin", metavar="PERCENT", type=growth, default=MARGIN,
                        help="Call two cells 'same' if every difference beyond PERCENT is excluded (default: "
                             f"{MARGIN * 100:g}%%). Use more if small differences do not matter to you.")
    parser.add_argument("--fail-on", metavar="PERCENT", type=growth,
                        help="Exit with 1 if a cell is slower by more than PERCENT, e.g. 5%%; with 3 if no cell can be "
                             "judged (default: never). A cell counts only if its whole confidence interval exceeds "
                             "PERCENT. Prints how many cells were not "
                             "judged. Use it in CI. Two runs need --again: otherwise no cell can be judged.")
    again = parser.add_argument_group("measuring again")
    again.add_argument("--again", action="store_true",
                       help="Measure both sides of two runs again, interleaved in one new run, and compare that. Use "
                            "it to know whether the code changed the speed. Each side has its own interpreters, "
                            "folders of modules and packages, as they are now.")
    again.add_argument("--path", metavar="FOLDER", type=Path,
                       help="With --again: take the modules of OLD from FOLDER (default: the folder in its run). Use "
                            "it for a function of yours that you changed, e.g. after `git worktree add ../before "
                            "COMMIT`.")
    again.add_argument("--rounds", metavar="N", type=positive,
                       help="With --again: measure N rounds (default: as many as the runs have, at least "
                            f"{LEAST_ROUNDS}).")
    again.add_argument("--budget", metavar="TIME", type=duration,
                       help="With --again: stop before TIME is over, e.g. 5m (default: no limit).")
    again.add_argument("--label", metavar="LABEL", help="With --again: name the new run LABEL (default: date and "
                                                        "time).")
    add_full(parser, "times of both sides, noise floors, what each word means, why cells were not compared",
             "the verdicts, at most 14 cells, those that differ first")
    add_output(parser, "the comparison")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the comparison; return 1 if a cell is slower than `--fail-on` allows, 3 if it could judge no cell."""
    labels = _checked(args)
    fleets = [fleet_hosts(label) for label in labels]
    if several := [each for each in fleets if each and not each.is_one_machine]:
        hosts = " ".join(map(_one_host, fleets, labels))
        raise ToolkitError(f"{several[0].label} has {len(several[0].states)} hosts, and compare is about one machine: "
                           f"name a host, as in `gilscope compare {hosts}`")
    runs = [each.merged() if each else load_run(find_label(label)) for label, each in zip(labels, fleets, strict=True)]
    if args.again:
        asked = _again(runs[0], runs[1], args)
    else:
        asked = _across(runs[0], runs[1], args) if len(runs) > 1 else _within(runs[0], args)
    contrasts = asked.contrasts
    sides: dict[str, Any] = {"baseline": asked.baseline, "sample": asked.sample}
    judged = None if args.fail_on is None else gate(contrasts, args.fail_on)
    output = ReportOutput(args)
    output.show_answer(
        lambda: comparison_answer(asked.title, contrasts, **sides, notes=asked.notes, margin=args.margin),
        lambda: comparison_document(
            f"{asked.title} {asked.scope}", contrasts, **sides, margin=args.margin, again=args.again, notes=asked.notes,
            remarks=asked.remarks), full=args.full)
    output.finish(lambda: compare_values(
        contrasts, **sides, margin=args.margin, gate=judged, sentences=in_short(contrasts, **sides, margin=args.margin),
        scope=asked.scope,
        notes=(*asked.notes, *(Note(text=text) for text in asked.remarks))))
    if judged is not None and len(labels) > 1 and not args.again:
        print_stderr(f"gilscope: --fail-on judges no two separate runs: `gilscope compare {' '.join(labels)} --again "
                     f"--fail-on {judged.limit * 100:g}%` measures both sides in turn")
        return UNFINISHED
    return _judged(judged)


def _judged(judged: Gate | None) -> int:
    """Print the verdict of --fail-on, and return the exit code."""
    if judged is None:
        return 0
    for line in gate_lines(judged):
        print_stderr(f"gilscope: {line}")
    if judged.past:
        return SLOWER
    # A gate that judged nothing must not look like one that found nothing.
    return 0 if judged.judged else UNFINISHED


def gate_lines(gate: Gate) -> list[str]:
    """Return messages on `--fail-on`: the cells that fail, and how many were not judged and why."""
    limit = f"{gate.limit * 100:g} %"
    lines = [f"slower by more than {limit}: {each.sample.name} on {each.sample.build}" for each in gate.past]
    lines.append(f"--fail-on {limit}: {len(gate.past)} slower by more, {len(gate.within)} not")
    noisy, one_sided, empty = len(gate.undecided), len(gate.one_sided), len(gate.empty)
    reasons = [
        f"{noisy} {inflect(noisy, 'is', 'are')} too noisy to exclude more than {limit}" if noisy else "",
        f"{one_sided} {inflect(one_sided, 'has', 'have')} values on one side only" if one_sided else "",
        f"{empty} {inflect(empty, 'has', 'have')} nothing to compare" if empty else "",
    ]
    unjudged = noisy + one_sided + empty
    if unjudged:
        lines[-1] += f"; {unjudged} not judged: {', '.join(filter(None, reasons))}"
    if not gate.judged:
        lines.append("--fail-on judged no cell: measure more rounds, use a quieter machine, or allow a larger PERCENT")
    return lines


def _checked(args: argparse.Namespace) -> Sequence[str]:
    """Return the labels, after checking that the options go together."""
    labels: Sequence[str] = args.labels
    within = args.builds or args.models
    if len(labels) > 2:  # A and B
        raise ToolkitError(f"compare takes one or two labels, got {len(labels)}: {', '.join(labels)}")
    if len(labels) > 1 and within:
        raise ToolkitError("--builds and --models compare within one run: give one label")
    if len(labels) > len(set(labels)):
        raise ToolkitError(f"{labels[0]} is named twice; compare parts of one run by --builds A,B or --models A,B")
    if args.again and len(labels) == 1:
        raise ToolkitError("--again measures both sides of two runs: give two labels")
    given = [f"--{name}" for name in ("path", "rounds", "budget", "label") if getattr(args, name) is not None]
    if given and not args.again:
        raise ToolkitError(f"{given[0]} goes with --again")
    if len(labels) == 1 and not within:
        raise ToolkitError("nothing to compare it with: give a second label, --builds A,B or --models A,B")
    return labels


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledContrasts:
    """A comparison of two sides, cell by cell."""

    title: str
    contrasts: Sequence[Contrast]
    baseline: str
    sample: str
    notes: Sequence[Note]   # shown before the table
    remarks: Sequence[str]  # shown after it
    scope: str              # what it is about; "": a run of several sessions


def _across(first: Run, second: Run, args: argparse.Namespace) -> LabelledContrasts:
    measured = [{each.cell for each in run.measurements} for run in (first, second)]
    if not measured[0] & measured[1]:
        raise UnknownNameError(f"{first.label!r} and {second.label!r} have no measured cell in common")
    refuse_shared_values(first, second, (first.label, second.label))
    return LabelledContrasts(
        title=f"{second.label} against {first.label}", contrasts=compare_runs(first, second, args.clock),
        baseline=first.label, sample=second.label, notes=(*differences(first, second), *run_notes(first, second)),
        remarks=run_remarks(first, second), scope=TWO_RUNS)


def _again(first: Run, second: Run, args: argparse.Namespace) -> LabelledContrasts:
    if args.label is not None:
        Store.refuse_taken(args.label)
    wanted = RemeasureRequest(label=args.label, rounds=args.rounds, budget=args.budget, path=args.path)
    with tempfile.TemporaryDirectory(prefix=temporary.prefix()) as folder:
        done, pairs = measure_again(first, second, wanted, Path(folder))
    together, notes = sum(len(build_keys(done, *pair)) for pair in pairs), [Note(text=each) for each in cautions(done)]
    ratios = Ratios(Index(done), comparisons=together)
    contrasts = [each for pair in pairs for each in compare_builds(done, *pair, args.clock, ratios=ratios)]
    if len(pairs) == 1:
        return LabelledContrasts(title=f"{done.label}: {pairs[0][1]} against {pairs[0][0]}, measured in turn",
                                 contrasts=contrasts, baseline=pairs[0][0], sample=pairs[0][1], notes=notes,
                                 remarks=run_remarks(done), scope=scope_text(done))
    # One table per build, as for two runs, so both sides of a row get the build's own name.
    names = {label: label.removesuffix(f"-{first.label}") for label, _ in pairs}
    names |= {other: names[label] for label, other in pairs}
    contrasts = [
        replace(each, baseline=replace(each.baseline, build=names[each.baseline.build]),
                sample=replace(each.sample, build=names[each.sample.build]))
        for each in contrasts
    ]
    return LabelledContrasts(title=f"{done.label}: {second.label} against {first.label}, measured in turn",
                             contrasts=contrasts, baseline=first.label, sample=second.label, notes=notes,
                             remarks=run_remarks(done), scope=scope_text(done))


def _within(run_: Run, args: argparse.Namespace) -> LabelledContrasts:
    first, second = args.builds or args.models
    compare = compare_builds if args.builds else compare_models
    contrasts = compare(run_, first, second, args.clock)
    builds = {build.label: build for build in run_.builds}
    return LabelledContrasts(
        title=f"{run_.label}: {second} against {first}", contrasts=contrasts, baseline=first, sample=second,
        notes=(*(unfair(builds[first], builds[second]) if args.builds else ()), *run_notes(run_)),
        remarks=run_remarks(run_), scope=scope_text(run_))


def run_notes(*runs: Run) -> list[Note]:
    """Return the warnings of the reports of runs, which are about their ratios, too."""
    return [Note(text=text) for text in cautions_of_all((each.label, cautions_beside_pairs(each)) for each in runs)]


def run_remarks(*runs: Run) -> list[str]:
    """Return how early stopping biases the ratios of runs."""
    return cautions_of_all((each.label, filter(None, [stopping_text(each)])) for each in runs)


def differences(first: Run, second: Run) -> list[Note]:
    """Return notes on differences between two runs that may confound their ratios."""
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
    if None not in sizes and sizes[0] != sizes[1]:   # a function of one's own has none
        notes.append(Note(text=f"different sizes of the workloads: {sizes[0]} and {sizes[1]}"))
    return notes


def _one_host(fleet: HostRuns | None, label: str) -> str:
    return label if fleet is None else f"{label}/{next(iter(fleet.folders))}"


def _pair(text: str) -> tuple[str, str]:
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:  # A and B
        raise argparse.ArgumentTypeError(f"{text!r} is not two different names; write it like A,B")
    return names[0], names[1]
