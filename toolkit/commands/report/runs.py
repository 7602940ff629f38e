"""Read the runs that `gilscope report` names, and return their report and JSON values.

Modules that only reports of experiments need are imported there.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.errors import BadFileError, UnknownNameError
from gilscope.toolkit.report.answer import answer_document
from gilscope.toolkit.report.run_document import run_document
from gilscope.toolkit.store import load_run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.document import Document, Picture


def is_experiment(run: Run) -> bool:
    """Return True if an experiment made the run."""
    return "experiment" in run.options


def load_runs(paths: Sequence[Path]) -> tuple[list[tuple[Run, Path]], int]:
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
    if len(paths) > 1 and not all(is_experiment(run) for run, _ in runs):
        # Unrelated runs in one folder make no report.
        raise UnknownNameError(f"{paths[0].parent} contains several runs: name one of {', '.join(map(str, paths))}, "
                               "or, if each is of a machine of its own, all of them")
    return runs, failed


def answer_of(run: Run, path: Path, asked: str) -> Document:
    """Return the answer of a run on one screen, called as it was `asked` for; of an experiment its report."""
    return report_of(run, path) if is_experiment(run) else answer_document(dataclasses.replace(run, label=asked))


def report_of(run: Run, path: Path, pictures: Sequence[Picture] = ()) -> Document:
    """Return the report of a run in the folder `path`, that of an experiment with `pictures`."""
    if not is_experiment(run):
        return run_document(run)
    from gilscope.toolkit.experiments.report import document, experiment_of

    return document(experiment_of(run), run, path, pictures)


def values_of(runs: Sequence[tuple[Run, Path]]) -> dict[str, Any]:
    """Return the JSON values of a run, or of experiments."""
    if len(runs) == 1 and not is_experiment(runs[0][0]):
        from gilscope.toolkit.report.as_json import run_values

        return run_values(runs[0][0])
    from gilscope.toolkit.experiments.report import experiments_values

    return experiments_values([each for each in runs if is_experiment(each[0])])
