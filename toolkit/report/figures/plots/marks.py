"""Marks of values, crosses for missing values, and their symbols in the legend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.path import Path
from matplotlib.transforms import ScaledTranslation

from gilscope.toolkit.report.figures.plots.palette import FAINT, SeriesStyle
from gilscope.toolkit.report.figures.plots.style import DPI

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gilscope.toolkit.report.figures.plots.legend_entries import LegendEntry

CROSS: dict[str, Any] = {"linestyle": "none", "marker": "x", "markersize": 6, "markeredgewidth": 1.6}
BAND = 0.18   # opacity of a band
LARGER = {"*": 1.6, "P": 1.25, "<": 1.15, ">": 1.15, "^": 1.15, "v": 1.15}   # marks that look smaller than they are
WHISKER = Path([(-0.3, -1), (0.3, -1), (0, -1), (0, 1), (-0.3, 1), (0.3, 1)], [Path.MOVETO, Path.LINETO] * 3)


def mark_style(look: SeriesStyle, size: float) -> dict[str, Any]:
    """Return matplotlib's settings for the marks of a series."""
    empty = look.hollow or look.fill == "none"
    edged = empty or look.fill != "full"   # unfilled marks need a coloured edge; filled ones a white one between them
    return {
        "color": look.colour, "marker": look.marker, "markersize": size * LARGER.get(look.marker, 1),
        "fillstyle": "full" if empty else look.fill, "markerfacecolor": "white" if empty else look.colour,
        "markerfacecoloralt": "white", "markeredgecolor": look.colour if edged else "white",
        "markeredgewidth": 1.2 if edged else 0.5,
    }


def handle(
    entry: LegendEntry, known: Mapping[str, SeriesStyle], rules: Mapping[str, dict[str, Any]],
    style: Callable[[SeriesStyle], dict[str, Any]],
) -> Any:
    """Return the symbol of an entry in the legend of lines or dots; `style` gives the settings of a series."""
    match entry.mark:
        case "series":
            return Line2D([], [], **style(known[entry.name]))
        case "rule":
            return Line2D([], [], **rules[entry.name])
        case "crosses":
            return Line2D([], [], **CROSS, color=known[entry.name].colour)
        case "whiskers":
            return Line2D([], [], linestyle="none", marker=WHISKER, markersize=12, markerfacecolor="none",
                          markeredgecolor=FAINT, markeredgewidth=1.2)
        case "band":
            return Patch(facecolor=FAINT, alpha=2 * BAND, linewidth=0)
        case _:
            return Line2D([], [], **CROSS, color=FAINT)


def add_cross(axes: Any, x: float, nth: int, colour: str, scale: Any) -> None:
    """Mark a missing value at the foot of the axis, beside those of the series before it."""
    beside = axes.get_xaxis_transform() + ScaledTranslation(nth * 7 / DPI, 0, scale)
    axes.plot([x], [0.03], **CROSS, color=colour, transform=beside, zorder=4, clip_on=False)
