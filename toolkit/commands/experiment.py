"""`gilscope experiment`: repeat the classic measurements about the GIL on the builds at hand."""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit import temporary
from gilscope.toolkit.builds.find import default_pair, find_builds, select_builds
from gilscope.toolkit.builds.pairing import compare_builds
from gilscope.toolkit.commands.options.common import add_build, duration, positive
from gilscope.toolkit.commands.options.files import add_json
from gilscope.toolkit.commands.output.dry_run import skip_lines
from gilscope.toolkit.commands.output.figures import draw_pictures, python_that_draws
from gilscope.toolkit.commands.output.reports import ReportOutput, add_output, refuse_beside_dry_run, write_json
from gilscope.toolkit.commands.streams import print_stderr, print_stdout, put
from gilscope.toolkit.commands.summaries import SUMMARIES
from gilscope.toolkit.errors import (
    BadFileError,
    BuildError,
    LabelTakenError,
    ToolkitError,
    UnknownNameError,
    cannot_write,
)
from gilscope.toolkit.experiments import catalog
from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.experiments.report import beside, document, experiment_of, experiments_values
from gilscope.toolkit.experiments.running import ExperimentRequest, PreparedBuilds, begin, measure, plan, prepare
from gilscope.toolkit.model import Build  # noqa: TC001 - `from_plain` reads the hints
from gilscope.toolkit.records import DamagedError, from_plain, to_plain
from gilscope.toolkit.report import markdown
from gilscope.toolkit.report.document import Column, Document, Entry, Lines, Table
from gilscope.toolkit.report.progress import ProgressReporter
from gilscope.toolkit.report.terminal import render_for_stdout
from gilscope.toolkit.store import (
    Store,
    default_label,
    find_runs,
    label_path,
    load_run,
    make_folder,
    read_json,
    results_folder,
    results_folders,
)
from gilscope.toolkit.units import format_minutes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.experiments.base import Experiment
    from gilscope.toolkit.model import Run, RunEnd

def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope experiment`."""
    parser = commands.add_parser(
        "experiment",
        help=SUMMARIES["experiment"],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Repeat well-known measurements about the GIL on the available builds, and show how each has\n"
        "changed since it was published. Prints a table beside the published numbers, draws figures, and stores\n"
        "pyperf files.\n\n"
        "Experimental: options and files may change.",
        epilog="examples:\n"
        "  gilscope experiment list\n"
        "  gilscope experiment run convoy --quick\n"
        "  gilscope experiment run all --quick --builds 3.14,3.14t --label today\n"
        "  gilscope experiment run --resume today\n"
        "  gilscope experiment show today/convoy",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list the experiments, their sources and how long each takes")
    add_json(listing, "table")
    listing.set_defaults(run=show_list)
    _add_run(actions.add_parser(
        "run", help="measure experiments and show their tables",
        description="Measure one, several or all experiments, print their tables and draw their figures. Results are "
        "kept as LABEL/EXPERIMENT where `gilscope run` stores runs, saved after each round.",
    ))
    show = actions.add_parser("show", help="show the tables and figures of an earlier run again")
    show.add_argument("label", metavar="LABEL", help="Label of an earlier run: LABEL for all its experiments, "
                                                     "LABEL/EXPERIMENT for one.")
    _add_output(show)
    show.set_defaults(run=show_again)


def _add_run(parser: Any) -> None:
    parser.add_argument(
        "name", nargs="*", metavar="NAME",
        help="Experiments to run, or all. `gilscope experiment list` shows them.",
    )
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument(
        "--quick", action="store_const", const=EffortLevel.QUICK, dest="effort",
        help="Smaller grids and sizes, few rounds: all experiments on two builds in about 20 minutes.",
    )
    effort.add_argument(
        "--smoke", action="store_const", const=EffortLevel.SMOKE, dest="effort",
        help="Everything tiny, once: shows whether each experiment works here. Its numbers mean nothing.",
    )
    parser.add_argument(
        "--builds", metavar="LABELS",
        help="Measure these builds, e.g. 3.14,3.14t (default: the newest pair built alike). `gilscope builds` shows "
        "them.",
    )
    add_build(parser)
    parser.add_argument(
        "--rounds", metavar="N", type=positive,
        help="Measure N rounds, each with one fresh process per cell (default: depends on the effort: --quick, "
        "--smoke or neither). More rounds narrow the intervals. Replaces the budget of --quick.",
    )
    parser.add_argument(
        "--budget", metavar="TIME", type=duration,
        help="Stop each experiment before TIME is over, e.g. 5m (default: depends on the effort). Fewer rounds mean "
        "wider intervals.",
    )
    parser.add_argument(
        "--timeout", metavar="TIME", type=duration,
        help="Kill a measured process that reports nothing for TIME (default: each experiment's own).",
    )
    parser.add_argument("--seed", metavar="N", type=int, help="Seed the order of the cells with N (default: random).")
    parser.add_argument("--label", metavar="LABEL",
                        help="Store results as LABEL/EXPERIMENT (default: date and time).")
    parser.add_argument(
        "--resume", metavar="LABEL",
        help="Continue experiments that were interrupted or killed, with their own options. With --budget TIME, also "
        "continue those that ran out of budget, for TIME. Do not give NAME.",
    )
    parser.add_argument("--dry-run", action="store_true", help="Only show the cells that would be measured, and why "
                                                               "others would not.")
    _add_output(parser)
    parser.set_defaults(run=run)


def _add_output(parser: Any) -> None:
    parser.add_argument("--no-figures", action="store_true", help="Print tables only. The first figure installs "
                        "matplotlib into gilscope's cache. Use --no-figures on a machine without a network.")
    add_output(parser, "the reports")


def show_list(args: argparse.Namespace) -> int:
    """Print the experiments."""
    found = [catalog.find(name) for name in catalog.EXPERIMENTS]
    if write_json(args.json, [_described(each) for each in found]):
        return 0
    columns = (Column(title="experiment", key=True, align="left"), Column(title="--quick"), Column(title="in full"),
               Column(title="what", align="left"))
    rows = [
        (Entry(each.name), *(Entry(_time(each, effort)) for effort in (EffortLevel.QUICK, EffortLevel.FULL)),
         Entry(each.summary))
        for each in found
    ]
    sources = [
        f"{each.name}: {source.cited()}: {source.headline}"
        for each in found for source in each.sources
    ]
    put(render_for_stdout(Document((
        Table(title="", columns=columns, rows=tuple(rows)), Lines("Sources, and what they measured", tuple(sources)),
    ))))
    return 0


def _time(experiment: Experiment, effort: EffortLevel) -> str:
    return format_minutes(experiment.levels[effort].seconds)


def _described(experiment: Experiment) -> dict[str, Any]:
    return {
        "name": experiment.name, "title": experiment.title, "summary": experiment.summary, "claim": experiment.claim,
        "sources": [dataclasses.asdict(source) for source in experiment.sources],
        "packages": [package.requirement for package in experiment.packages],
        "seconds": {str(effort): level.seconds for effort, level in experiment.levels.items()},
    }


ALL = "all"
REQUEST = "experiments.json"  # in the folder of a label: the experiments that were started together
FAILED = 3
FIXED = {  # options that a resumed run cannot change: attribute of the command line -> as a user writes it
    "name": "NAME", "effort": "--quick or --smoke", "builds": "--builds", "build": "--build", "rounds": "--rounds",
    "seed": "--seed", "label": "--label", "dry_run": "--dry-run",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentBatch:
    """Experiments that were started together; stored in the folder of one label."""

    builds: tuple[Build, ...]
    asked: tuple[ExperimentRequest, ...]  # in the order in which they are run

    def save(self, target: Path) -> None:
        """Write the batch into the folder `target`."""
        (target / REQUEST).write_text(json.dumps(to_plain(self), indent=1) + "\n")

    @classmethod
    def load(cls, target: Path) -> ExperimentBatch:
        """Return the batch that `save` wrote.

        Raises:
            BadFileError: The file is damaged.
        """
        try:
            return from_plain(cls, read_json(target / REQUEST))
        except DamagedError as error:
            raise BadFileError(f"{target / REQUEST} was edited: {error}") from error


def run(args: argparse.Namespace) -> int:
    """Measure the experiments; return the exit code."""
    refuse_beside_dry_run(args)
    with tempfile.TemporaryDirectory(prefix=temporary.prefix()) as folder:
        return _start(args, Path(folder)) if args.resume is None else _resume(args, Path(folder))


def _start(args: argparse.Namespace, folder: Path) -> int:
    names = _chosen(args.name)
    label = args.label or default_label()
    target = label_path(label)
    if target.exists():
        raise LabelTakenError(f"{target} exists already: choose another --label, or continue it with --resume {label}")
    builds = _builds(args)
    effort = args.effort or EffortLevel.FULL
    seed = random.SystemRandom().randrange(2**32) if args.seed is None else args.seed
    request = ExperimentBatch(builds=builds, asked=tuple(
        _asked(args, name, effort, seed, len(builds)) for name in names))
    prepared = prepare([catalog.find(name) for name in names], builds, print_stderr)
    if args.dry_run:
        return _show_plans(request, prepared)
    try:
        make_folder(target)
        request.save(target)
    except OSError as error:
        raise cannot_write(
            f"results to {target.resolve()}", error, "; run gilscope in a folder you may write to") from error
    print_stderr(f"{', '.join(names)} on {', '.join(build.label for build in builds)}, seed {seed}, "
                 f"results in {target}")
    return _go_through(request, prepared, target, folder, args)


def _chosen(names: Sequence[str]) -> list[str]:
    if not names:
        raise ToolkitError("name an experiment, or all; `gilscope experiment list` shows them")
    if ALL in names:
        return list(catalog.EXPERIMENTS)
    return [catalog.find(name).name for name in dict.fromkeys(names)]


def _builds(args: argparse.Namespace) -> tuple[Build, ...]:
    found = find_builds(args.build, project_dir=Path.cwd())
    if args.builds is not None:
        return select_builds(found, args.builds)
    if args.build:
        return select_builds(found, ",".join(each.partition("=")[0] for each in args.build))
    return default_pair(found)


def _asked(
    args: argparse.Namespace, name: str, effort: EffortLevel, seed: int, builds: int,
) -> ExperimentRequest:
    level = catalog.find(name).levels[effort]
    quick = level.seconds * max(1.0, builds / 2)   # a level's is for two
    budget = args.budget or (quick if args.rounds is None and effort is EffortLevel.QUICK else None)
    return ExperimentRequest(
        experiment=name, effort=effort, rounds=args.rounds or level.rounds, budget=budget,
        timeout=args.timeout or catalog.find(name).timeout, seed=seed,
    )


def _show_plans(request: ExperimentBatch, prepared: PreparedBuilds) -> int:
    for asked in request.asked:
        experiment = catalog.find(asked.experiment)
        planned, level = plan(experiment, asked, prepared), experiment.levels[asked.effort]
        seconds = level.seconds * asked.rounds / level.rounds * len(request.builds) / 2  # a level's is for two
        counts = Counter(cell.build for cell in planned.cells)
        cells = ", ".join(f"{number} on {build}" for build, number in counts.items()) or "none"
        print_stdout(f"{asked.experiment}: cells: {cells}; {asked.rounds} rounds, one process each; "
                     f"about {format_minutes(min(seconds, asked.budget or seconds))}")
        for line in filter(None, skip_lines(planned)):
            print_stdout(f"  {line}")
    return 0


def _resume(args: argparse.Namespace, folder: Path) -> int:
    if given := [option for name, option in FIXED.items() if getattr(args, name) not in (None, False, [])]:
        raise ToolkitError(f"{', '.join(given)} cannot be changed in a run that has begun: leave it out")
    target = _find_target(args.resume)
    request = ExperimentBatch.load(target)
    for build in request.builds:
        if not Path(build.executable).exists():
            raise BuildError(f"{build.label} is gone from {build.executable}, so {args.resume} cannot go on")
    asked = tuple(
        dataclasses.replace(each, budget=args.budget or each.budget, timeout=args.timeout or each.timeout)
        for each in request.asked
    )
    request = dataclasses.replace(request, asked=asked)
    prepared = prepare([catalog.find(each.experiment) for each in asked], request.builds, print_stderr)
    return _go_through(request, prepared, target, folder, args)


def _find_target(label: str) -> Path:
    for path in (*(folder / label for folder in results_folders()), Path(label)):
        if (path / REQUEST).is_file():
            return path
    known = ", ".join(sorted(
        path.parent.name for folder in results_folders() for path in folder.glob(f"*/{REQUEST}"))) or "none yet"
    raise UnknownNameError(
        f"no experiments called {label!r} under {results_folder().resolve()}; existing labels: {known}")


def _go_through(
    request: ExperimentBatch, prepared: PreparedBuilds, target: Path, folder: Path, args: argparse.Namespace,
) -> int:
    """Run the unfinished experiments one after the other, each with its report; a failure ends only that one."""
    mismatches = tuple(note for build in request.builds[1:] for note in compare_builds(request.builds[0], build))
    prepared = dataclasses.replace(prepared, notes=(*mismatches, *prepared.notes))
    python = _python_that_draws(args, target.name)   # may install packages, so before anything is measured
    output, reported = ReportOutput(args), []
    failed = False
    try:
        for number, asked in enumerate(request.asked, 1):
            print_stderr(f"{asked.experiment} ({number} of {len(request.asked)})")
            try:
                done = _finished(asked, prepared, target, folder, more_time=bool(args.resume and args.budget))
            except LabelTakenError:
                raise
            except ToolkitError as error:
                print_stderr(f"{asked.experiment}: {error}")
                failed = True
                continue
            failed = failed or bool(done.failed)
            _report(done, target / asked.experiment, output, python, keep=True)
            reported.append((done, target / asked.experiment))
    except KeyboardInterrupt:
        print_stderr(f"the measured values are kept; to continue: gilscope experiment run --resume {target.name}")
        raise
    output.finish(lambda: experiments_values(reported))
    return FAILED if failed else 0


def _finished(
    asked: ExperimentRequest, prepared: PreparedBuilds, target: Path, folder: Path, *, more_time: bool,
) -> Run:
    """Return the finished run of one experiment: start it, continue it, or load it if it ended without failures.

    With `more_time`, a run that its budget ended is continued too.
    """
    experiment = catalog.find(asked.experiment)
    path = target / experiment.name
    if (path / "run.json").is_file():
        store, run = Store.reopen(path)
        goes_on: set[RunEnd] = {"running", "interrupted", "failures"}
        if more_time:
            goes_on.add("budget")
        if run.stopped not in goes_on and run.rounds_done < run.rounds_planned:
            store.close()
            return load_run(path)
    else:
        store, run = begin(experiment, asked, prepared, target)
    try:
        with ProgressReporter(print_stderr) as reporter:
            return measure(experiment, asked, prepared, store, run, folder=folder, reporter=reporter)
    finally:
        store.close()


def _report(done: Run, path: Path, output: ReportOutput, python: Path | None, *, keep: bool) -> None:
    experiment = experiment_of(done)
    pictures = draw_pictures(done, path, python)
    if keep or pictures:   # otherwise the report would lose the figures that were drawn earlier
        stored = document(experiment, done, path, beside(pictures))
        (path / "report.md").write_text(markdown.render(stored) + "\n", encoding="utf-8")
    output.show(document(experiment, done, path, pictures))


def show_again(args: argparse.Namespace) -> int:
    """Print the reports of earlier runs again, and redraw their figures."""
    output = ReportOutput(args)
    runs = [(load_run(path), path) for path in find_runs(args.label)]
    python = _python_that_draws(args, args.label)
    for run_, path in runs:
        _report(run_, path, output, python, keep=False)
    output.finish(lambda: experiments_values(runs))
    return 0


def _python_that_draws(args: argparse.Namespace, label: str) -> Path | None:
    return None if args.no_figures else python_that_draws(f"gilscope experiment show {label}")
