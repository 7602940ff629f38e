"""`gilscope experiment`: the classic measurements about the GIL, repeated on the builds at hand."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.commands.experiment import run as experiment_run
from gilscope.toolkit.commands.options.common import add_build, duration, positive
from gilscope.toolkit.commands.options.files import add_output
from gilscope.toolkit.commands.streams import put
from gilscope.toolkit.experiments import catalog
from gilscope.toolkit.experiments.base import Effort
from gilscope.toolkit.report import RENDERERS
from gilscope.toolkit.report.document import Column, Document, Entry, Lines, Table
from gilscope.toolkit.units import format_minutes

if TYPE_CHECKING:
    from gilscope.toolkit.experiments.base import Experiment


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope experiment`."""
    parser = commands.add_parser(
        "experiment",
        help="repeat the classic measurements about the GIL",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Repeat the well-known measurements about the GIL on the builds at hand, and show what became\n"
        "of each since it was published: a table with the historical numbers beside, figures, pyperf results.",
        epilog="examples:\n"
        "  gilscope experiment list\n"
        "  gilscope experiment run convoy --quick\n"
        "  gilscope experiment run all --quick --builds 3.14,3.14t --label today\n"
        "  gilscope experiment run --resume today\n"
        "  gilscope experiment show today/convoy",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="what each experiment is, its source, how long it takes")
    listing.add_argument("--json", action="store_true", help="Print it for programs.")
    listing.set_defaults(run=show_list)
    _add_run(actions.add_parser(
        "run", help="measure experiments and show their tables",
        description="Measure one, several or all experiments, print their tables and draw their figures. Results are "
        "kept in results/LABEL/EXPERIMENT, saved after each round.",
    ))
    show = actions.add_parser("show", help="show tables and figures of an earlier run again")
    show.add_argument("label", metavar="LABEL", help="LABEL for all its experiments, LABEL/EXPERIMENT for one.")
    _add_output(show)
    show.set_defaults(run=experiment_run.show_again)


def _add_run(parser: Any) -> None:
    parser.add_argument(
        "name", nargs="*", metavar="NAME",
        help="Experiments (see `gilscope experiment list`), or all.",
    )
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument(
        "--quick", action="store_const", const=Effort.QUICK, dest="effort",
        help="Smaller grids and sizes, few rounds: all experiments on two builds in about ten minutes.",
    )
    effort.add_argument(
        "--smoke", action="store_const", const=Effort.SMOKE, dest="effort",
        help="Everything tiny, once: shows whether each experiment works here. Its numbers mean nothing.",
    )
    parser.add_argument(
        "--builds", metavar="LABELS",
        help="Builds to measure, e.g. 3.14,3.14t (default: the newest fair pair); `gilscope builds` shows them.",
    )
    add_build(parser, "For one that `gilscope builds` does not find.")
    parser.add_argument(
        "--rounds", metavar="N", type=positive,
        help="Rounds, each with one fresh process per cell. More narrow the intervals; overrides the preset's budget.",
    )
    parser.add_argument(
        "--budget", metavar="TIME", type=duration,
        help="Stop each experiment before this time is over, e.g. 5m; intervals are then as wide as the rounds allow.",
    )
    parser.add_argument(
        "--timeout", metavar="TIME", type=duration,
        help="Kill a measured process that is silent for this long (default: each experiment's own).",
    )
    parser.add_argument("--seed", metavar="N", type=int, help="Seed of the order of the cells (default: random).")
    parser.add_argument("--label", help="Name: results are kept in results/LABEL/EXPERIMENT (default: date and time).")
    parser.add_argument(
        "--resume", metavar="LABEL",
        help="Go on with experiments that were interrupted or killed, as they were asked for; with --budget also with "
        "those that their budget ended, for so much longer. Without NAME.",
    )
    parser.add_argument("--dry-run", action="store_true", help="Only show what would be measured, what not and why.")
    _add_output(parser)
    parser.set_defaults(run=experiment_run.run)


def _add_output(parser: Any) -> None:
    parser.add_argument("--no-figures", action="store_true", help="Print the tables, draw nothing. What draws figures "
                        "is installed into gilscope's cache the first time: for machines without a network.")
    add_output(parser, "the reports")


def show_list(args: argparse.Namespace) -> int:
    """Print what experiments there are."""
    found = [catalog.find(name) for name in catalog.EXPERIMENTS]
    if args.json:
        put(json.dumps([_described(each) for each in found], indent=1))
        return 0
    columns = (Column(title="experiment", key=True, align="left"), Column(title="--quick"), Column(title="in full"),
               Column(title="what", align="left"))
    rows = [
        (Entry(each.name), Entry(_time(each, Effort.QUICK)), Entry(_time(each, Effort.FULL)), Entry(each.summary))
        for each in found
    ]
    sources = [
        f"{each.name}: {source.cited()}: {source.headline}"
        for each in found for source in each.sources
    ]
    put(RENDERERS["terminal"](Document((
        Table(title="", columns=columns, rows=tuple(rows)), Lines("Sources, and what they measured", tuple(sources)),
    ))))
    return 0


def _time(experiment: Experiment, effort: Effort) -> str:
    return format_minutes(experiment.levels[effort].seconds)


def _described(experiment: Experiment) -> dict[str, Any]:
    return {
        "name": experiment.name, "title": experiment.title, "summary": experiment.summary, "claim": experiment.claim,
        "sources": [dataclasses.asdict(source) for source in experiment.sources],
        "packages": [package.requirement for package in experiment.packages],
        "seconds": {str(effort): level.seconds for effort, level in experiment.levels.items()},
    }
