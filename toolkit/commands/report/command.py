"""`gilscope report`: list runs, or show the tables of an earlier run again.

Modules that only --html, --publish, several hosts or experiments need are imported there: that takes longer than the
report of one run.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.commands.options.files import STDOUT, add_page
from gilscope.toolkit.commands.output.reports import ReportOutput, add_full_run, add_output, requested
from gilscope.toolkit.commands.streams import print_stdout
from gilscope.toolkit.commands.summaries import SUMMARIES
from gilscope.toolkit.errors import ToolkitError

if TYPE_CHECKING:
    from gilscope.toolkit.commands.fleet.reports import HostRuns
    from gilscope.toolkit.commands.output.pages import HtmlFile


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope report`."""
    parser = commands.add_parser(
        "report",
        help=SUMMARIES["report"],
        description="Show the answer of an earlier run again: what to use, what it costs, what is open. Everything is "
        "computed again from the values in the run's folder, including those of an interrupted run. With several "
        "labels, or the run of a fleet, show one report over all hosts. Without LABEL, list all runs.",
    )
    parser.add_argument(
        "labels", nargs="*", metavar="LABEL", help="A run, or experiments that were started together, by label or "
        "folder (default: list all runs). Several, one per machine, as LABEL, FOLDER or NAME=FOLDER, give one report "
        "over all machines, e.g. laptop=.gilscope-results/first server=copied/first."
    )
    add_full_run(parser)
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
        from gilscope.toolkit.commands.report.publishing import publish_all

        return publish_all(args)
    if not args.labels:
        if args.html:
            raise ToolkitError("--html makes a page of one run; name the run, as in `gilscope report LABEL --html "
                               f"{args.html}`; `gilscope report` lists all runs")
        return _list_all(args)
    page = _page(args)
    if (hosts := _hosts(args)) is not None:
        return _report_hosts(args, hosts, page)
    return _report_runs(args, page)


def _page(args: argparse.Namespace) -> HtmlFile | None:
    if not (args.html or args.by):
        return None
    from gilscope.toolkit.commands.output.pages import HtmlFile

    return HtmlFile.requested(args)


def _hosts(args: argparse.Namespace) -> HostRuns | None:
    """Return the hosts of several labels or of a fleet, or None for one run or experiments."""
    from gilscope.toolkit.store import find_fleet

    if len(args.labels) == 1 and find_fleet(args.labels[0]) is None:
        return None
    from gilscope.toolkit.commands.fleet.reports import HostRuns, fleet_hosts

    return HostRuns.of_folders(args.labels) if len(args.labels) > 1 else fleet_hosts(args.labels[0])


def _report_hosts(args: argparse.Namespace, hosts: HostRuns, page: HtmlFile | None) -> int:
    from gilscope.toolkit.commands.fleet.reports import finished

    answer, whole, values = finished(hosts)
    output = ReportOutput(args)
    output.show_answer(answer, whole, full=args.full)
    output.finish(values)
    if page:
        from gilscope.toolkit.commands.report.publishing import write_hosts_page

        write_hosts_page(page, hosts, whole())
    return hosts.failed


def _report_runs(args: argparse.Namespace, page: HtmlFile | None) -> int:
    from gilscope.toolkit.commands.report.runs import answer_of, load_runs, report_of, values_of
    from gilscope.toolkit.store import find_runs

    (label,) = args.labels
    runs, failed = load_runs(find_runs(label))
    output = ReportOutput(args)
    for each in runs:
        output.show_answer(partial(answer_of, *each, str(label)), partial(report_of, *each), full=args.full)
    output.finish(lambda: values_of(runs))
    if page:
        from gilscope.toolkit.commands.report.publishing import write_page

        write_page(page, runs, str(label))
    return failed


def _list_all(args: argparse.Namespace) -> int:
    from gilscope.toolkit.report.run_list import runs_document
    from gilscope.toolkit.store import list_runs, results_folder

    found = list_runs()
    output = ReportOutput(args)
    if found or any(requested(args)):
        output.show(runs_document(found))
    else:
        print_stdout(f"no runs under {results_folder().resolve()} yet; `gilscope run --quick` makes one")

    def values() -> dict[str, Any]:
        from gilscope.toolkit.report.as_json import listed_values

        return listed_values(found)

    output.finish(values)
    return 0
