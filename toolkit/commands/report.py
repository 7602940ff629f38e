"""`gilscope report`: the tables of a run that was made earlier, again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.commands.figures import draw_pictures, python_that_draws
from gilscope.toolkit.experiments.report import beside, document, experiment_of
from gilscope.toolkit.publish import publish
from gilscope.toolkit.report import RENDERERS
from gilscope.toolkit.report.build import run_document
from gilscope.toolkit.store import find_label, labels, load_run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.document import Document, Picture


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
        print(RENDERERS[args.format](_document(load_run(path), path)))
        return 0
    published = publish(path, args.publish)
    pictures: list[Picture] = []
    if "experiment" in published.options:
        # What trials left, such as timelines, is not published, since it holds paths; what is drawn of it is.
        python = python_that_draws(f"gilscope report {args.label} --publish {args.publish}")
        pictures = beside(draw_pictures(published, path, python, into=args.publish))
    report = _document(published, args.publish, pictures)
    for name, renderer in (("report.md", "markdown"), ("report.txt", "terminal")):
        (args.publish / name).write_text(RENDERERS[renderer](report) + "\n")
    print(f"published in {args.publish}")
    return 0


def _document(run: Run, path: Path, pictures: Sequence[Picture] = ()) -> Document:
    return document(experiment_of(run), run, path, pictures) if "experiment" in run.options else run_document(run)
