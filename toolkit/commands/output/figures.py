"""How commands get figures drawn: what draws them is found once, and what is in its way is said once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.commands.output.printing import say
from gilscope.toolkit.experiments.report import draw, experiment_of
from gilscope.toolkit.report.figures.drawing import CannotDrawError, drawing_python

if TYPE_CHECKING:
    from pathlib import Path

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.document import Picture


def python_that_draws(later: str) -> Path | None:
    """Return what draws figures, or None after having said why nothing can; `later`: the command to draw them then."""
    try:
        return drawing_python(say)
    except CannotDrawError as error:
        say(f"{error}, `{later}` draws them")
        return None


def draw_pictures(run: Run, folder: Path, python: Path | None, into: Path | None = None) -> list[Picture]:
    """Return the pictures of an experiment's run, drawn by `python`; none without one, or after having said why."""
    if python is None:
        return []
    try:
        return draw(experiment_of(run), run, folder, python, into)
    except CannotDrawError as error:
        say(str(error))
        return []
