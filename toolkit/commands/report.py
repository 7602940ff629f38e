"""`gilscope report`: the tables of a run that was made earlier, again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.publish import publish
from toolkit.report import RENDERERS
from toolkit.report.build import run_document
from toolkit.store import find_label, labels, load_run

if TYPE_CHECKING:
    import argparse


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope report`."""
    parser = commands.add_parser(
        "report",
        help="show the tables of an earlier run again",
        description="Show the tables of an earlier run again. Everything is derived anew from the "
        "values in results/LABEL, also those of a run that was interrupted.",
    )
    parser.add_argument(
        "label", nargs="?", metavar="LABEL", help="The run, by its label or folder (default: list the labels)."
    )
    parser.add_argument(
        "--format",
        choices=tuple(RENDERERS),
        default="terminal",
        help="terminal, or markdown for pasting (default: terminal).",
    )
    parser.add_argument(
        "--publish",
        metavar="FOLDER",
        type=Path,
        help="Copy the run to FOLDER without paths and host name, with its tables as report.md and "
        "report.txt. For a repository or a website.",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the report, or the labels there are."""
    if args.label is None:
        print("\n".join(labels()) or "no runs under results/ yet: gilscope run makes one")
        return 0
    path = find_label(args.label)
    if args.publish is None:
        print(RENDERERS[args.format](run_document(load_run(path))))
        return 0
    document = run_document(publish(path, args.publish))
    for name, renderer in (("report.md", "markdown"), ("report.txt", "terminal")):
        (args.publish / name).write_text(RENDERERS[renderer](document) + "\n")
    print(f"published in {args.publish}")
    return 0
