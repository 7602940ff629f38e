"""`gilscope report`: list runs, or show the tables of an earlier run again."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.commands.fleet.reports import HostRuns, fleet_hosts, publish_hosts, reported
from gilscope.toolkit.commands.options.files import STDOUT, add_page
from gilscope.toolkit.commands.output.figures import draw_pictures, python_that_draws
from gilscope.toolkit.commands.output.pages import HtmlFile
from gilscope.toolkit.commands.output.reports import ReportOutput, add_output, all_options, requested, save_as_text
from gilscope.toolkit.commands.streams import print_stderr, print_stdout
from gilscope.toolkit.commands.summaries import SUMMARIES
from gilscope.toolkit.errors import BadFileError, ToolkitError, UnknownNameError
from gilscope.toolkit.escaping import visible_all
from gilscope.toolkit.experiments.report import beside, document, experiment_of, experiments_values, pictures_of
from gilscope.toolkit.publish import publish, without_traces
from gilscope.toolkit.redaction import without_places
from gilscope.toolkit.report.as_json import listed_values, run_values
from gilscope.toolkit.report.run_document import run_document
from gilscope.toolkit.report.run_list import runs_document
from gilscope.toolkit.site.pages.run import run_page
from gilscope.toolkit.site.single.reports import report_values
from gilscope.toolkit.store import find_runs, list_runs, load_run, results_folder
from gilscope.workloads.catalog import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.document import Document, Picture


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope report`."""
    parser = commands.add_parser(
        "report",
        help=SUMMARIES["report"],
        description="Show the tables of an earlier run again. Everything is computed again from the values in "
        "the run's folder, including those of an interrupted run. With several labels, or the run of a fleet, show one "
        "report over all hosts. Without LABEL, list all runs.",
    )
    parser.add_argument(
        "labels", nargs="*", metavar="LABEL", help="A run, or experiments that were started together, by label or "
        "folder (default: list all runs). Several, one per machine, as LABEL, FOLDER or NAME=FOLDER, give one report "
        "over all machines, e.g. laptop=.gilscope-results/first server=copied/first."
    )
    add_output(parser)
    add_page(parser)
    # The spelling of --markdown in earlier versions.
    parser.add_argument("--format", choices=("terminal", "markdown"), help=argparse.SUPPRESS)
    parser.add_argument(
        "--publish",
        metavar="FOLDER",
        type=Path,
        help="Copy the run to FOLDER without paths and host name, with its tables as report.md and "
        "report.txt. Use it for a repository or a website.",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the report, or the list of runs."""
    if args.format == "markdown" and args.markdown is None:
        args.markdown = STDOUT
    if args.publish is not None:
        return _publish_all(args)
    if not args.labels:
        if args.html:
            raise ToolkitError("--html makes a page of one run; name the run, as in `gilscope report LABEL --html "
                               f"{args.html}`; `gilscope report` lists all runs")
        return _list_all(args)
    page = HtmlFile.requested(args)
    if (hosts := _hosts(args)) is not None:
        return _report_hosts(args, hosts, page)
    (label,) = args.labels
    runs, failed = _loaded(find_runs(label))
    output = ReportOutput(args)
    for run_, path in runs:
        output.show(_document(run_, path))
    if len(runs) == 1 and "experiment" not in runs[0][0].options:
        output.finish(lambda: run_values(runs[0][0]))
    else:
        output.finish(lambda: experiments_values([each for each in runs if "experiment" in each[0].options]))
    if page:
        _write_page(page, runs, str(label))
    return failed


def _hosts(args: argparse.Namespace) -> HostRuns | None:
    """Return the hosts of several labels or of a fleet, or None for one run or experiments."""
    if len(args.labels) > 1:
        return HostRuns.of_folders(args.labels)
    return fleet_hosts(args.labels[0])


def _report_hosts(args: argparse.Namespace, hosts: HostRuns, page: HtmlFile | None) -> int:
    document, values = reported(hosts)
    output = ReportOutput(args)
    output.show(document)
    output.finish(values)
    if page:
        public = visible_all(document, without_places)
        page.write("report.html", report_values([public], hosts.label), hosts=hosts.hostnames)
    return hosts.failed


def _write_page(page: HtmlFile, runs: Sequence[tuple[Run, Path]], label: str) -> None:
    """Write a page with the content of `--publish`, and the figures that are stored beside experiments."""
    hosts = [run_.machine.hostname for run_, _ in runs]
    if len(runs) == 1 and "experiment" not in runs[0][0].options:
        kinds = {each.name: each.kind for each in WORKLOADS}
        page.write("run.html", run_page(without_traces(runs[0][0]), kinds, around={"made": page.made}), hosts=hosts)
        return
    documents, files = [], []
    for run_, path in runs:
        drawn = _stored_pictures(run_, path)
        documents.append(_document(without_traces(run_), path, beside(drawn)))
        files += [Path(each.path) for each in drawn]
    page.write("report.html", report_values(documents, Path(label).name), pictures=files, hosts=hosts)


def _stored_pictures(run_: Run, path: Path) -> list[Picture]:
    """Return the pictures that were drawn with the run of an experiment in the folder `path`; of another run none."""
    if "experiment" not in run_.options:
        return []
    return [each for each in pictures_of(experiment_of(run_), run_, path) if Path(each.path).is_file()]


def _loaded(paths: Sequence[Path]) -> tuple[list[tuple[Run, Path]], int]:
    """Return the runs with their folders, and the exit code; of several runs, leave damaged ones out."""
    runs, failed = [], 0
    for path in paths:
        try:
            runs.append((load_run(path), path))
        except BadFileError as error:
            if len(paths) == 1:
                raise
            print_stderr(f"gilscope: {error}")
            failed = error.exit_code
    if len(paths) > 1 and any("experiment" not in run_.options for run_, _ in runs):
        # Unrelated runs in one folder make no report.
        raise UnknownNameError(f"{paths[0].parent} contains several runs: name one of {', '.join(map(str, paths))}, "
                               "or, if each is of a machine of its own, all of them")
    return runs, failed


def _list_all(args: argparse.Namespace) -> int:
    found = list_runs()
    output = ReportOutput(args)
    if found or any(requested(args)):
        output.show(runs_document(found))
    else:
        print_stdout(f"no runs under {results_folder().resolve()} yet; `gilscope run --quick` makes one")
    output.finish(lambda: listed_values(found))
    return 0


def _publish_all(args: argparse.Namespace) -> int:
    if len(args.labels) != 1:
        raise ToolkitError(
            "--publish copies one run: name it, as in `gilscope report LABEL --publish FOLDER`; `gilscope report` "
            "lists what there is"
        )
    if any(requested(args)) or args.html:
        raise ToolkitError(f"--publish writes report.md into its folder: leave {all_options('--html')} out")
    if (hosts := fleet_hosts(args.labels[0])) is not None:
        return publish_hosts(hosts, args.publish)
    paths = find_runs(args.labels[0])
    runs, failed = _loaded(paths)
    for _, path in runs:
        _publish(path, args.publish / path.name if len(paths) > 1 else args.publish)
    return failed


def _publish(path: Path, target: Path) -> None:
    published = publish(path, target)
    pictures: list[Picture] = []
    if "experiment" in published.options:
        # Files of trials, such as timelines, contain paths, so only figures of them are published.
        python = python_that_draws(f"gilscope report {path.name} --publish {target}")
        pictures = draw_pictures(published, path, python, into=target)
        names = {Path(each.path).name for each in pictures}
        # What was published before lacks the files that some figures show: those stay as they were drawn.
        for each in _stored_pictures(published, path):
            if Path(each.path).name not in names:
                shutil.copyfile(each.path, target / Path(each.path).name)
                pictures.append(each)
    report = _document(published, target, beside(pictures))
    save_as_text(report, target)
    print_stdout(f"published in {target}")


def _document(run: Run, path: Path, pictures: Sequence[Picture] = ()) -> Document:
    return document(experiment_of(run), run, path, pictures) if "experiment" in run.options else run_document(run)
