"""Figures of commands: find the Python that draws them once, and report its absence once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.experiments.report import draw, experiment_of
from gilscope.toolkit.report.figures.drawing import CannotDrawError, drawing_python

if TYPE_CHECKING:
    from pathlib import Path

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.document import Picture


def python_that_draws(later: str) -> Path | None:
    """Return the Python that draws figures, or None after printing why there is none.

    Args:
        later: The command that would draw them later.
    """
    try:
        return drawing_python(print_stderr)
    except CannotDrawError as error:
        print_stderr(f"{error}, `{later}` draws them")
        return None


def draw_pictures(run: Run, folder: Path, python: Path | None, into: Path | None = None) -> list[Picture]:
    """Return the pictures of an experiment's run, drawn by `python`; none without it, or after printing why not."""
    if python is None:
        return []
    try:
        return draw(experiment_of(run), run, folder, python, into)
    except CannotDrawError as error:
        print_stderr(str(error))
        return []
