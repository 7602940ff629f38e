"""`--html` and `--publish` of `gilscope report`: copies for others, without the names of people and machines."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.commands.fleet.reports import fleet_hosts, publish_hosts
from gilscope.toolkit.commands.output.figures import draw_pictures, python_that_draws
from gilscope.toolkit.commands.output.reports import all_options, requested, save_as_text
from gilscope.toolkit.commands.report.runs import is_experiment, load_runs, report_of
from gilscope.toolkit.commands.streams import print_stdout
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.escaping import visible_all
from gilscope.toolkit.experiments.report import beside, experiment_of, pictures_of
from gilscope.toolkit.publish import publish, without_traces
from gilscope.toolkit.redaction import without_places
from gilscope.toolkit.site.pages.run import run_page
from gilscope.toolkit.site.single.reports import report_values
from gilscope.toolkit.store import find_runs
from gilscope.workloads.catalog import WORKLOADS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gilscope.toolkit.commands.fleet.reports import HostRuns
    from gilscope.toolkit.commands.output.pages import HtmlFile
    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.document import Document, Picture


def write_page(page: HtmlFile, runs: Sequence[tuple[Run, Path]], label: str) -> None:
    """Write a page with the content of `--publish`, and the figures that are stored beside experiments."""
    hosts = [run.machine.hostname for run, _ in runs]
    if len(runs) == 1 and not is_experiment(runs[0][0]):
        kinds = {each.name: each.kind for each in WORKLOADS}
        page.write("run.html", run_page(without_traces(runs[0][0]), kinds, around={"made": page.made}), hosts=hosts)
        return
    documents, files = [], []
    for run, path in runs:
        drawn = _stored_pictures(run, path)
        documents.append(report_of(without_traces(run), path, beside(drawn)))
        files += [Path(each.path) for each in drawn]
    page.write("report.html", report_values(documents, Path(label).name), pictures=files, hosts=hosts)


def write_hosts_page(page: HtmlFile, hosts: HostRuns, document: Document) -> None:
    """Write a page with the report of several hosts."""
    public = visible_all(document, without_places)
    page.write("report.html", report_values([public], hosts.label), hosts=hosts.hostnames)


def _stored_pictures(run: Run, path: Path) -> list[Picture]:
    """Return the pictures that were drawn with the run of an experiment in the folder `path`; of another run none."""
    if not is_experiment(run):
        return []
    return [each for each in pictures_of(experiment_of(run), run, path) if Path(each.path).is_file()]


def publish_all(args: argparse.Namespace) -> int:
    """Copy the run, the experiments or the fleet that the command line names; return the exit code."""
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
    runs, failed = load_runs(paths)
    for _, path in runs:
        _publish(path, args.publish / path.name if len(paths) > 1 else args.publish)
    return failed


def _publish(path: Path, target: Path) -> None:
    published = publish(path, target)
    pictures: list[Picture] = []
    if is_experiment(published):
        # Files of trials, such as timelines, contain paths, so only figures of them are published.
        python = python_that_draws(f"gilscope report {path.name} --publish {target}")
        pictures = draw_pictures(published, path, python, into=target)
        names = {Path(each.path).name for each in pictures}
        # What was published before lacks the files that some figures show: those stay as they were drawn.
        for each in _stored_pictures(published, path):
            if Path(each.path).name not in names:
                shutil.copyfile(each.path, target / Path(each.path).name)
                pictures.append(each)
    report = report_of(published, target, beside(pictures))
    save_as_text(report, target)
    print_stdout(f"published in {target}")
