"""Values over two things that vary: a colour and a number per cell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize, to_hex
from matplotlib.patches import Rectangle

from gilscope.toolkit.report.figures.figure import Axis
from gilscope.toolkit.report.figures.plots.frame import fit_categories, set_title, thin_marks, widest_word
from gilscope.toolkit.report.figures.plots.palette import FRAME, TEXT, luminance
from gilscope.toolkit.report.figures.plots.sheet import PAD, Sheet, column_count
from gilscope.toolkit.report.figures.plots.style import AXIS, TICK, WIDTH, points
from gilscope.toolkit.report.figures.plots.ticks import marks

if TYPE_CHECKING:
    from gilscope.toolkit.report.figures.figure import HeatFigure, HeatPanel

# Nunez, Anderton & Renslow (2018): even steps for the eye, also a colour-blind one; its brightness rises throughout.
COLOURS = "cividis"
ROW = 30   # pixels per row
HALF = 0.3   # brightness from which dark text is read more easily than white


def compose(figure: HeatFigure) -> Sheet:
    """Return the figure laid out."""
    columns = column_count(len(figure.panels), [_needed(figure)])
    sheet = Sheet(title=figure.title, note=figure.footer, panels=len(figure.panels), columns=columns,
                  height=ROW * len(figure.rows))
    norm = _norm(figure)
    for index, panel in enumerate(figure.panels):
        _panel(sheet, index, figure, panel, norm)
    _scale_of_colours(sheet, figure, norm)
    sheet.arrange()
    return sheet


def _needed(figure: HeatFigure) -> float:
    """Return the width of a panel in pixels: its cells, and names of rows beyond the usual width of marks."""
    measuring = Sheet(title="", note="", panels=1, columns=1, height=100)
    shown = [text for panel in figure.panels for row in panel.shown for text in row]
    cell = max((measuring.width_of(text, TICK) for text in shown), default=0.0)
    names = max((measuring.width_of(name, TICK) for name in figure.rows), default=0.0)
    return (max(cell, widest_word(measuring, figure.columns)) + 10) * len(figure.columns) + max(names - 60, 0)


def _norm(figure: HeatFigure) -> Any:
    values = [value for panel in figure.panels for row in panel.values for value in row
              if math.isfinite(value) and (value > 0 or not figure.log)]
    lo, hi = (min(values), max(values)) if values else (1.0, 10.0)
    if lo == hi:
        lo, hi = (lo / 2, hi * 2) if figure.log else (lo - 0.5, hi + 0.5)
    return (LogNorm if figure.log else Normalize)(lo, hi)


def _panel(sheet: Sheet, index: int, figure: HeatFigure, panel: HeatPanel, norm: Any) -> None:
    axes = sheet.axes[index]
    axes.set_xlim(-0.5, len(figure.columns) - 0.5)
    axes.set_ylim(len(figure.rows) - 0.5, -0.5)
    for row, (values, shown) in enumerate(zip(panel.values, panel.shown, strict=True)):
        for column, (value, text) in enumerate(zip(values, shown, strict=True)):
            _cell(axes, (column, row), value, text, norm)
    axes.set_yticks(range(len(figure.rows)), figure.rows if sheet.is_left(index) else [""] * len(figure.rows))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(figure.x_title if sheet.is_bottom(index) else "")
    axes.set_ylabel(figure.y_title if sheet.is_left(index) else "")
    set_title(sheet, index, panel.title)
    fit_categories(sheet, axes, figure.columns)


def _cell(axes: Any, place: tuple[int, int], value: float, text: str, norm: Any) -> None:
    column, row = place
    known = math.isfinite(value) and (value > 0 or not isinstance(norm, LogNorm))
    colour = to_hex(colormaps[COLOURS](norm(value))) if known else "#FFFFFF"
    axes.add_patch(Rectangle(
        (column - 0.5, row - 0.5), 1, 1, facecolor=colour, edgecolor="white" if known else "#C4C4C4",
        linewidth=1.5 if known else 0, hatch=None if known else "////", zorder=2 if known else 1,
    ))
    box = None if known else {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    axes.text(column, row, text, ha="center", va="center", fontsize=points(TICK), zorder=3, bbox=box,
              color="white" if luminance(colour) < HALF else TEXT)


def _scale_of_colours(sheet: Sheet, figure: HeatFigure, norm: Any) -> None:
    """Draw what the colours mean, between title and panels."""
    sheet.strip = sheet.figure.add_axes((0.1, 0.9, 0.4, 0.02), label="scale")
    bar = sheet.figure.colorbar(ScalarMappable(norm, colormaps[COLOURS]), cax=sheet.strip, orientation="horizontal")
    found = marks(Axis(figure.unit, log=figure.log), norm.vmin, norm.vmax, 6)
    bar.set_ticks([value for value, _ in found], labels=[text for _, text in found])
    bar.ax.minorticks_off()
    bar.outline.set(edgecolor=FRAME, linewidth=0.6)
    sheet.strip.set_title(sheet.wrapped(figure.unit, WIDTH - 2 * PAD, AXIS), fontsize=points(AXIS),
                          fontweight="normal", loc="left")
    thin_marks(sheet, sheet.strip)
