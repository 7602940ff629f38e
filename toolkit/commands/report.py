"""`gilscope report`: what runs there are, and the tables of one that was made earlier, again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.commands.printing import say
from gilscope.toolkit.errors import BadFileError, ToolkitError
from gilscope.toolkit.experiments.report import beside, document, draw, experiment_of
from gilscope.toolkit.publish import publish
from gilscope.toolkit.report import RENDERERS, plots
from gilscope.toolkit.report.build import run_document
from gilscope.toolkit.report.listing import runs_document
from gilscope.toolkit.store import RESULTS, find_runs, list_runs, load_run

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
        "values in results/LABEL, also those of a run that was interrupted. Without LABEL: what runs there are.",
    )
    parser.add_argument(
        "label", nargs="?", metavar="LABEL", help="The run, or experiments made together, by label or folder "
        "(default: list what there is)."
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
    """Print the report, or what runs there are."""
    if args.label is None:
        return _list_all(args)
    paths = find_runs(args.label)
    failed = 0
    for path in paths:
        try:
            _show_or_publish(path, args.publish / path.name if args.publish and len(paths) > 1 else args.publish, args)
        except BadFileError as error:
            if len(paths) == 1:
                raise
            say(f"gilscope: {error}")   # one that is damaged costs only itself
            failed = error.exit_code
    return failed


def _show_or_publish(path: Path, target: Path | None, args: argparse.Namespace) -> None:
    if target is None:
        print(RENDERERS[args.format](_document(load_run(path), path)))
    else:
        _publish(path, target)


def _list_all(args: argparse.Namespace) -> int:
    if args.publish is not None:
        raise ToolkitError(
            "--publish copies one run: name it, as in `gilscope report LABEL --publish FOLDER`; `gilscope report` "
            "lists what there is"
        )
    found = list_runs()
    print(RENDERERS[args.format](runs_document(found)) if found else
          f"no runs under {RESULTS.resolve()} yet: `gilscope run --quick` makes one")
    return 0


def _publish(path: Path, target: Path) -> None:
    published = publish(path, target)
    pictures: list[Picture] = []
    if "experiment" in published.options and plots.unavailable() is None:
        # What trials left, such as timelines, is not published, since it holds paths; what is drawn of it is.
        pictures = beside(draw(experiment_of(published), published, path, into=target))
    report = _document(published, target, pictures)
    for name, renderer in (("report.md", "markdown"), ("report.txt", "terminal")):
        (target / name).write_text(RENDERERS[renderer](report) + "\n")
    print(f"published in {target}")


def _document(run: Run, path: Path, pictures: Sequence[Picture] = ()) -> Document:
    return document(experiment_of(run), run, path, pictures) if "experiment" in run.options else run_document(run)
