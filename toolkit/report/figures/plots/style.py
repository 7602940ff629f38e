"""Matplotlib's settings for our figures: sizes and fonts; a user's own matplotlib settings have no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib import style

from gilscope.toolkit.report.figures.plots.palette import FRAME, GRID, TEXT

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

DPI = 96      # an SVG counts in points of 1/72 inch, a browser in pixels of 1/96: so both come out the same size
WIDTH = 800   # pixels
# Pixels; even the smallest is readable on a screen that shows the figure at its size.
TITLE, PANEL, AXIS, TICK, LEGEND, NOTE = 16, 13, 12, 11, 12, 10.5
# The layout is computed with the first, which comes with matplotlib; the others are no wider.
FONTS = ["DejaVu Sans", "Verdana", "Arial", "Helvetica", "sans-serif"]


def settings(salt: str) -> AbstractContextManager[None]:
    """Return a context in which figures are made and saved; `salt` goes into names inside of SVG files."""
    context: AbstractContextManager[None] = style.context(["default", {
        "font.family": "sans-serif", "font.sans-serif": FONTS, "figure.dpi": DPI, "savefig.dpi": DPI,
        "svg.fonttype": "none", "svg.hashsalt": salt, "text.color": TEXT, "text.parse_math": False,
        "axes.edgecolor": FRAME, "axes.labelcolor": TEXT, "axes.titlelocation": "left", "axes.axisbelow": True,
        "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8, "axes.unicode_minus": False,
        "axes.titlesize": points(PANEL), "axes.titleweight": "bold", "axes.labelsize": points(AXIS),
        "axes.titlepad": 5, "axes.labelpad": 3, "grid.color": GRID, "grid.linewidth": 0.7,
        "xtick.labelsize": points(TICK), "ytick.labelsize": points(TICK), "xtick.color": FRAME, "ytick.color": FRAME,
        "xtick.labelcolor": TEXT, "ytick.labelcolor": TEXT, "legend.fontsize": points(LEGEND),
        "hatch.linewidth": 0.8, "lines.linewidth": 1.7, "lines.markersize": 5.5,
    }])
    return context


def points(pixels: float) -> float:
    """Return a size in pixels as matplotlib's points."""
    return pixels * 72 / DPI
