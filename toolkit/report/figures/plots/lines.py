"""Values over something that varies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.report.figures.plots.frame import (
    PlotScale,
    add_rules,
    heights,
    room_for_marks,
    say_empty,
    set_title,
    thin_marks,
)
from gilscope.toolkit.report.figures.plots.legend_entries import entries, has_band
from gilscope.toolkit.report.figures.plots.marks import BAND, add_cross, handle, mark_style
from gilscope.toolkit.report.figures.plots.palette import SeriesStyle, rule_styles, series_styles
from gilscope.toolkit.report.figures.plots.sheet import Sheet, column_count, mark_count, row_height
from gilscope.toolkit.report.figures.plots.ticks import drawable, has_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gilscope.toolkit.report.figures.figure import LineFigure, LinePanel, Series


MOST_MARKED = 50   # values of a line; the marks of more would hide it


def compose(figure: LineFigure) -> Sheet:
    """Return the figure laid out."""
    x = PlotScale.over(figure.x, _xs(figure), count=8, places=[
        place for panel in figure.panels for series in panel.series for place in series.x])
    columns = column_count(len(figure.panels), [room_for_marks(x)])
    height = row_height(len(figure.panels), columns)
    y = PlotScale.over(figure.y, heights(figure.panels), count=mark_count(height), zero=True)
    sheet = Sheet(title=figure.title, note=figure.footer, panels=len(figure.panels), columns=columns, height=height)
    known = series_styles(series for panel in figure.panels for series in panel.series)
    for index, panel in enumerate(figure.panels):
        _panel(sheet, index, panel, known, x, y)
    add_rules(sheet, figure.panels)
    sheet.legend([(each.name, handle(each, known, rule_styles(figure.panels), line_style))
                  for each in entries(figure)])
    sheet.arrange()
    return sheet


def _panel(
    sheet: Sheet, index: int, panel: LinePanel, known: Mapping[str, SeriesStyle], x: PlotScale, y: PlotScale,
) -> None:
    axes = sheet.axes[index]
    x.apply(axes, "x", labelled=sheet.is_bottom(index))
    y.apply(axes, "y", labelled=sheet.is_left(index))
    crosses: dict[float, int] = {}
    if not panel.series:
        say_empty(axes)
    for each in panel.series:
        _line(axes, each, known[each.name], y)
        for place, value in zip(each.x, each.y, strict=True):
            if not drawable(value, y.axis):
                add_cross(axes, place, crosses.setdefault(place, 0), known[each.name].colour,
                          sheet.figure.dpi_scale_trans)
                crosses[place] += 1
    set_title(sheet, index, panel.title)
    if sheet.is_bottom(index):
        thin_marks(sheet, axes)


def _line(axes: Any, series: Series, look: SeriesStyle, y: PlotScale) -> None:
    # What is missing interrupts the line: NaN does so by itself, what a logarithm cannot show is made one.
    values = [value if drawable(value, y.axis) else math.nan for value in series.y]
    style = line_style(look) | ({"marker": None} if len(values) > MOST_MARKED else {})
    axes.plot(series.x, values, **style, zorder=3 if not look.hollow else 2.5)
    ends = [(x, max(lo, y.lo) if y.axis.log else lo, hi)
            for x, value, lo, hi in zip(series.x, values, series.lo, series.hi, strict=True)
            if has_interval(lo, hi) and math.isfinite(value)] if series.lo else []
    if not ends:
        return
    places, los, his = zip(*ends, strict=True)
    if has_band(series, lines=True):
        axes.fill_between(places, los, his, color=look.colour, alpha=BAND, linewidth=0, zorder=2)
    else:
        axes.vlines(places, los, his, color=look.colour, linewidth=1.2, zorder=2.8)
        for edge in (los, his):
            axes.plot(places, edge, linestyle="none", marker="_", markersize=6, markeredgewidth=1.2,
                      color=look.colour, zorder=2.8)


def line_style(look: SeriesStyle) -> dict[str, Any]:
    """Return matplotlib's settings for a line of that style."""
    return {"linestyle": look.dash, "linewidth": 1.2 if look.hollow else 1.8,
            **mark_style(look, 8 if look.hollow else 6)}


def _xs(figure: LineFigure) -> Iterator[float]:
    for panel in figure.panels:
        for series in panel.series:
            yield from series.x
        yield from (rule.value for rule in panel.rules if rule.axis == "x")
