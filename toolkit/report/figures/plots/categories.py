"""Values of a few things that have no order: bars from 0, or dots on a logarithmic axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Patch

from gilscope.toolkit.report.figures.plots.frame import (
    PlotScale,
    add_rules,
    fit_categories,
    heights,
    say_empty,
    set_title,
    widest_word,
)
from gilscope.toolkit.report.figures.plots.legend_entries import entries
from gilscope.toolkit.report.figures.plots.marks import add_cross, handle, mark_style
from gilscope.toolkit.report.figures.plots.palette import GRID, TEXT, SeriesStyle, rule_styles, series_styles
from gilscope.toolkit.report.figures.plots.sheet import Sheet, column_count, mark_count, row_height
from gilscope.toolkit.report.figures.plots.style import WIDTH
from gilscope.toolkit.report.figures.plots.ticks import drawable, has_interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gilscope.toolkit.report.figures.figure import CategoryFigure, CategoryPanel, Series
    from gilscope.toolkit.report.figures.plots.legend_entries import LegendEntry

GROUP = 0.82    # share of a category's place that its bars take
WIDEST = 64     # pixels; a wider bar is a wall
APART = 34      # pixels between dots of one category
DOT = 7.5       # size of a dot
LOWEST = 0.006  # share of the axis; a lower bar would not be seen, not even its colour


def compose(figure: CategoryFigure) -> Sheet:
    """Return the figure laid out."""
    columns = _columns(figure)
    height = row_height(len(figure.panels), columns)
    y = PlotScale.over(figure.y, heights(figure.panels), count=mark_count(height), zero=True)
    sheet = Sheet(title=figure.title, note=figure.footer, panels=len(figure.panels), columns=columns, height=height)
    known = series_styles(series for panel in figure.panels for series in panel.series)
    for index, panel in enumerate(figure.panels):
        _panel(sheet, index, panel, known, y)
        sheet.axes[index].set_xlabel(figure.x_title if sheet.is_bottom(index) else "")
        set_title(sheet, index, panel.title)
    add_rules(sheet, figure.panels)
    if sheet.columns > 1:
        sheet.on_fit(lambda: _even(sheet))
    rules = rule_styles(figure.panels)
    sheet.legend([(each.name, _handle(each, known, rules, dots=figure.y.log)) for each in entries(figure)])
    sheet.arrange()
    return sheet


def _columns(figure: CategoryFigure) -> int:
    """Return the number of panels side by side that leaves room for names and bars."""
    measuring = Sheet(title="", note="", panels=1, columns=1, height=100)
    needed = [len(panel.categories) * max(widest_word(measuring, panel.categories) + 8, 13 * len(panel.series))
              for panel in figure.panels]
    return column_count(len(figure.panels), needed)


def _panel(sheet: Sheet, index: int, panel: CategoryPanel, known: Mapping[str, SeriesStyle], y: PlotScale) -> None:
    axes = sheet.axes[index]
    y.apply(axes, "y", labelled=sheet.is_left(index))
    axes.set_xlim(-0.5, len(panel.categories) - 0.5)
    axes.tick_params(axis="x", length=0)
    if not panel.series:
        say_empty(axes)
    present = [[each for each in panel.series if place in each.x] for place in range(len(panel.categories))]
    place = WIDTH / sheet.columns / max(len(panel.categories), 1)   # pixels, about
    width = min(GROUP / max(map(len, present), default=1), (APART if y.axis.log else WIDEST) / place)
    for number, group in enumerate(present):
        for nth, each in enumerate(group):
            _value(sheet, axes, each, known[each.name], y, (number, (nth - (len(group) - 1) / 2) * width, width))
    if y.axis.log:
        for edge in range(1, len(panel.categories)):
            axes.axvline(edge - 0.5, color=GRID, linewidth=0.7, zorder=0.5)
    fit_categories(sheet, axes, panel.categories)


def _even(sheet: Sheet) -> None:
    """Give the categories' names of all panels as many lines, so that the titles below them stand side by side."""
    named = [(axes, [label.get_text() for label in axes.get_xticklabels()]) for axes in sheet.axes]
    most = max((name.count("\n") for _, names in named for name in names), default=0)
    for axes, names in named:
        if all(label.get_rotation() == 0 for label in axes.get_xticklabels()):
            axes.set_xticks(range(len(names)), [name + "\n" * (most - name.count("\n")) for name in names])


def _value(
    sheet: Sheet, axes: Any, series: Series, look: SeriesStyle, y: PlotScale, place: tuple[int, float, float],
) -> None:
    """Draw the value of one series in one category: `place` is its number, how far beside its middle, how wide."""
    number, shift, width = place
    index, centre = series.x.index(number), number + shift
    value = series.y[index]
    low, high = (series.lo[index], series.hi[index]) if series.lo else (math.nan, math.nan)
    if not drawable(value, y.axis):
        add_cross(axes, centre, 0, look.colour, sheet.figure.dpi_scale_trans)
        return
    if y.axis.log:
        axes.plot([centre], [value], linestyle="none", **mark_style(look, DOT), zorder=4)
    else:
        axes.bar(centre, value, width * 0.92, **_bar_style(look), zorder=2)
        if abs(value) < LOWEST * (y.hi - y.lo):
            axes.plot([centre - width * 0.46, centre + width * 0.46], [value, value], color=look.colour, linewidth=2.5,
                      solid_capstyle="butt", zorder=2.5)
    if has_interval(low, high):
        ends = [max(low, y.lo) if y.axis.log else low, high]
        axes.plot([centre, centre], ends, color=look.colour if y.axis.log else TEXT, linewidth=1.1 + 0.3 * y.axis.log,
                  marker="_", markersize=6, markeredgewidth=1.1, zorder=3)


def _handle(
    entry: LegendEntry, known: Mapping[str, SeriesStyle], rules: Mapping[str, dict[str, Any]], *, dots: bool,
) -> Any:
    if entry.mark == "series" and not dots:
        return Patch(**_bar_style(known[entry.name]))
    return handle(entry, known, rules, lambda look: {"linestyle": "none", **mark_style(look, DOT)})


def _bar_style(look: SeriesStyle) -> dict[str, Any]:
    if look.hollow:
        return {"facecolor": "white", "edgecolor": look.colour, "linestyle": "--", "linewidth": 1.2}
    return {"facecolor": look.colour, "edgecolor": look.ink, "hatch": look.hatch, "linewidth": 0}
