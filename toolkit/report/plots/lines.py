"""Values over something that varies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation

from gilscope.toolkit.report.plots.frame import Scale, room_for_marks, say_empty, set_title, thin_marks
from gilscope.toolkit.report.plots.palette import FAINT, Look, looks
from gilscope.toolkit.report.plots.rules import add_rules, head_room
from gilscope.toolkit.report.plots.sheet import Sheet, column_count, mark_count, row_height
from gilscope.toolkit.report.plots.ticks import drawable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gilscope.toolkit.report.figure import LineFigure, LinePanel, Series

MOST_BARS = 14   # a line of more values than that has its intervals as a band
MISSING = "no value"


def compose(figure: LineFigure) -> Sheet:
    """Return the figure laid out."""
    x = Scale.over(figure.x, _xs(figure), count=8, places=[
        place for panel in figure.panels for series in panel.series for place in series.x])
    columns = column_count(len(figure.panels), [room_for_marks(x)])
    height = row_height(len(figure.panels), columns)
    y = Scale.over(figure.y, _ys(figure), count=mark_count(height), zero=True)
    sheet = Sheet(title=figure.title, note=figure.note, panels=len(figure.panels), columns=columns, height=height)
    known = looks(series for panel in figure.panels for series in panel.series)
    head_room(sheet, [panel.rules for panel in figure.panels], y)
    for index, panel in enumerate(figure.panels):
        _panel(sheet, index, panel, known, x, y)
    entries = {name: handle(look) for name, look in known.items() if name}
    if any(not drawable(value, figure.y) for panel in figure.panels for each in panel.series for value in each.y):
        entries[MISSING] = cross_handle()
    sheet.legend(entries)
    sheet.arrange()
    return sheet


def handle(look: Look) -> Any:
    """Return what stands for a line in the legend."""
    return Line2D([], [], **_line_style(look))


def cross_handle() -> Any:
    """Return what stands in the legend for values that are missing."""
    return Line2D([], [], linestyle="none", marker="x", markersize=6, markeredgewidth=1.6, color=FAINT)


def add_cross(axes: Any, x: float, nth: int, colour: str, scale: Any) -> None:
    """Mark a missing value at the foot of the axis, beside those of the series before it."""
    beside = axes.get_xaxis_transform() + ScaledTranslation(nth * 7 / 96, 0, scale)
    axes.plot([x], [0.03], linestyle="none", marker="x", markersize=6, markeredgewidth=1.6, color=colour,
              transform=beside, zorder=4, clip_on=False)


def _panel(sheet: Sheet, index: int, panel: LinePanel, known: Mapping[str, Look], x: Scale, y: Scale) -> None:
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
    add_rules(sheet, index, panel.rules)


def _line(axes: Any, series: Series, look: Look, y: Scale) -> None:
    # What is missing interrupts the line: NaN does so by itself, what a logarithm cannot show is made one.
    values = [value if drawable(value, y.axis) else math.nan for value in series.y]
    axes.plot(series.x, values, **_line_style(look), zorder=3 if not look.hollow else 2.5)
    ends = [(x, max(lo, y.lo) if y.axis.log else lo, hi)
            for x, value, lo, hi in zip(series.x, values, series.lo, series.hi, strict=True)
            if has_interval(lo, hi) and math.isfinite(value)] if series.lo else []
    if not ends:
        return
    places, los, his = zip(*ends, strict=True)
    if len(ends) > MOST_BARS:
        axes.fill_between(places, los, his, color=look.colour, alpha=0.18, linewidth=0, zorder=2)
    else:
        axes.vlines(places, los, his, color=look.colour, linewidth=1.2, zorder=2.8)
        for edge in (los, his):
            axes.plot(places, edge, linestyle="none", marker="_", markersize=6, markeredgewidth=1.2,
                      color=look.colour, zorder=2.8)


def has_interval(lo: float, hi: float) -> bool:
    """Return whether there is something to draw: both ends, and apart."""
    return math.isfinite(lo) and math.isfinite(hi) and lo != hi


def _line_style(look: Look) -> dict[str, Any]:
    return {
        "color": look.colour, "marker": look.marker, "linestyle": look.dash,
        "linewidth": 1.2 if look.hollow else 1.8, "markersize": 8 if look.hollow else 5.5,
        "markerfacecolor": "white" if look.hollow else look.colour,
        "markeredgecolor": look.colour if look.hollow else "white", "markeredgewidth": 1.2 if look.hollow else 0.5,
    }


def _xs(figure: LineFigure) -> Iterator[float]:
    for panel in figure.panels:
        for series in panel.series:
            yield from series.x
        yield from (rule.value for rule in panel.rules if rule.axis == "x")


def _ys(figure: LineFigure) -> Iterator[float]:
    for panel in figure.panels:
        for series in panel.series:
            yield from (*series.y, *series.lo, *series.hi)
        yield from (rule.value for rule in panel.rules if rule.axis == "y")
