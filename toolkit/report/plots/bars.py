"""Values of a few things that have no order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Patch

from gilscope.toolkit.report.plots.frame import Scale, fit_categories, say_empty, set_title, widest_word
from gilscope.toolkit.report.plots.lines import MISSING, add_cross, cross_handle, has_interval
from gilscope.toolkit.report.plots.palette import TEXT, Look, looks
from gilscope.toolkit.report.plots.rules import add_rules, head_room
from gilscope.toolkit.report.plots.sheet import Sheet, column_count, mark_count, row_height
from gilscope.toolkit.report.plots.style import WIDTH
from gilscope.toolkit.report.plots.ticks import drawable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gilscope.toolkit.report.figure import BarFigure, BarPanel, Series

GROUP = 0.82    # share of a category's place that its bars take
WIDEST = 64     # pixels; a wider bar is a wall
LOWEST = 0.006  # share of the axis; a lower bar would not be seen, not even its colour


def compose(figure: BarFigure) -> Sheet:
    """Return the figure laid out."""
    columns = _columns(figure)
    height = row_height(len(figure.panels), columns)
    y = Scale.over(figure.y, _ys(figure), count=mark_count(height), zero=True)
    sheet = Sheet(title=figure.title, note=figure.note, panels=len(figure.panels), columns=columns, height=height)
    head_room(sheet, [panel.rules for panel in figure.panels], y)
    known = looks(series for panel in figure.panels for series in panel.series)
    for index, panel in enumerate(figure.panels):
        _panel(sheet, index, panel, known, y)
        sheet.axes[index].set_xlabel(figure.x_title if sheet.is_bottom(index) else "")
        set_title(sheet, index, panel.title)
    entries = {name: Patch(**_bar_style(look)) for name, look in known.items() if name}
    if any(not drawable(value, figure.y) for panel in figure.panels for each in panel.series for value in each.y):
        entries[MISSING] = cross_handle()
    sheet.legend(entries)
    sheet.arrange()
    return sheet


def _columns(figure: BarFigure) -> int:
    """Return how many panels stand side by side with room for names and bars."""
    measuring = Sheet(title="", note="", panels=1, columns=1, height=100)
    needed = [len(panel.categories) * max(widest_word(measuring, panel.categories) + 8, 13 * len(panel.series))
              for panel in figure.panels]
    return column_count(len(figure.panels), needed)


def _panel(sheet: Sheet, index: int, panel: BarPanel, known: Mapping[str, Look], y: Scale) -> None:
    axes = sheet.axes[index]
    y.apply(axes, "y", labelled=sheet.is_left(index))
    axes.set_xlim(-0.5, len(panel.categories) - 0.5)
    axes.tick_params(axis="x", length=0)
    place = WIDTH / sheet.columns / max(len(panel.categories), 1)   # pixels, about
    width = min(GROUP / max(len(panel.series), 1), WIDEST / place)
    if not panel.series:
        say_empty(axes)
    for nth, each in enumerate(panel.series):
        shift = (nth - (len(panel.series) - 1) / 2) * width
        _bars(sheet, axes, each, known[each.name], y, shift, width)
    fit_categories(sheet, axes, panel.categories)
    add_rules(sheet, index, [rule for rule in panel.rules if rule.axis == "y"])


def _bars(sheet: Sheet, axes: Any, series: Series, look: Look, y: Scale, shift: float, width: float) -> None:
    lo, hi = series.lo or (math.nan,) * len(series.y), series.hi or (math.nan,) * len(series.y)
    for place, value, low, high in zip(series.x, series.y, lo, hi, strict=True):
        centre = place + shift
        if not drawable(value, y.axis):
            add_cross(axes, centre, 0, look.colour, sheet.figure.dpi_scale_trans)
            continue
        foot = y.lo if y.axis.log else 0.0
        axes.bar(centre, value - foot, width * 0.92, bottom=foot, **_bar_style(look), zorder=2)
        if abs(value - foot) < LOWEST * (y.hi - y.lo) and not y.axis.log:
            axes.plot([centre - width * 0.46, centre + width * 0.46], [value, value], color=look.colour, linewidth=2.5,
                      solid_capstyle="butt", zorder=2.5)
        if has_interval(low, high):
            start = max(low, foot) if y.axis.log else low
            axes.plot([centre, centre], [start, high], color=TEXT, linewidth=1.1, marker="_", markersize=5, zorder=3)


def _bar_style(look: Look) -> dict[str, Any]:
    if look.hollow:
        return {"facecolor": "white", "edgecolor": look.colour, "linestyle": "--", "linewidth": 1.2}
    return {"facecolor": look.colour, "edgecolor": look.ink, "hatch": look.hatch, "linewidth": 0}


def _ys(figure: BarFigure) -> Iterator[float]:
    for panel in figure.panels:
        for series in panel.series:
            yield from (*series.y, *series.lo, *series.hi)
        yield from (rule.value for rule in panel.rules if rule.axis == "y")
