"""Figures into SVG and PNG files, 800 pixels wide.  This package alone imports matplotlib, when it draws.

Matplotlib's objects are used directly, never pyplot, which keeps figures and a window system for the whole process.
The same figure gives the same SVG: text stays text in it, and neither a date nor chance goes into its names.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gilscope.toolkit.report.figures.figure import (
    CategoryFigure,
    LineFigure,
    TimelineFigure,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gilscope.toolkit.report.figures.figure import Figure
    from gilscope.toolkit.report.figures.plots.sheet import Sheet


def draw(figure: Figure, folder: Path) -> tuple[Path, Path]:
    """Write `figure` as SVG and PNG into `folder`, in place of what an earlier run left there.

    Returns:
        `folder`/<name>.svg and `folder`/<name>.png.

    Raises:
        ImportError: matplotlib is missing; `report.drawing` runs this where it is not.
        ValueError: `figure` has no panels.
    """
    from gilscope.toolkit.report.figures.plots import style

    folder.mkdir(parents=True, exist_ok=True)
    with style.settings(figure.name):
        sheet = compose(figure)
        svg, png = (folder / f"{figure.name}.{kind}" for kind in ("svg", "png"))
        # Creator and Date would differ by version and by run.
        _replace(svg, lambda path: sheet.save(path, "svg", {"Title": figure.title, "Date": None, "Creator": None}))
        _replace(png, lambda path: sheet.save(path, "png", {"Title": figure.title, "Software": None}))
    return svg, png


def compose(figure: Figure) -> Sheet:
    """Return `figure` laid out; call it within `style.settings`.

    Raises:
        ValueError: `figure` has no panels.
    """
    from gilscope.toolkit.report.figures.plots import categories, lines, timelines

    if not figure.panels:
        raise ValueError(f"figure {figure.name!r} has no panels")
    match figure:
        case LineFigure():
            return lines.compose(figure)
        case CategoryFigure():
            return categories.compose(figure)
        case TimelineFigure():
            return timelines.compose(figure)


def _replace(path: Path, write: Callable[[Path], None]) -> None:
    """Replace a file atomically: a reader gets the old or the new one, never a part."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
