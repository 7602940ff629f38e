"""Distributions: how often values fell between two edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.lines import Line2D

from gilscope.toolkit.report.figures.plots.frame import (
    PlotScale,
    add_rules,
    room_for_marks,
    say_empty,
    set_title,
    thin_marks,
)
from gilscope.toolkit.report.figures.plots.palette import SHADES, model_style, rule_styles
from gilscope.toolkit.report.figures.plots.sheet import Sheet, column_count, mark_count, row_height

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.report.figures.figure import HistogramFigure, HistogramPanel


def compose(figure: HistogramFigure) -> Sheet:
    """Return the figure laid out."""
    x = PlotScale.over(figure.x, _edges(figure), count=8)
    counts = [count for panel in figure.panels for count in panel.counts if count > 0]
    counts += [rule.value for panel in figure.panels for rule in panel.rules if rule.axis == "y"]
    columns = column_count(len(figure.panels), [room_for_marks(x)])
    height = row_height(len(figure.panels), columns)
    y = PlotScale.over(figure.y, counts, count=mark_count(height), zero=True)
    sheet = Sheet(title=figure.title, note=figure.footer, panels=len(figure.panels), columns=columns, height=height)
    for index, panel in enumerate(figure.panels):
        _panel(sheet, index, panel, x, y)
    add_rules(sheet, figure.panels)
    sheet.legend([(label, Line2D([], [], **style)) for label, style in rule_styles(figure.panels).items()])
    sheet.arrange()
    return sheet


def _panel(sheet: Sheet, index: int, panel: HistogramPanel, x: PlotScale, y: PlotScale) -> None:
    axes = sheet.axes[index]
    x.apply(axes, "x", labelled=sheet.is_bottom(index))
    y.apply(axes, "y", labelled=sheet.is_left(index))
    if sum(panel.counts) > 0:
        colour = model_style(panel.model).colour if panel.model else SHADES[0]
        axes.stairs(panel.counts, panel.edges, fill=True, facecolor=colour, edgecolor=colour, linewidth=0.8, zorder=2)
    else:
        say_empty(axes)
    set_title(sheet, index, panel.title)
    if sheet.is_bottom(index):
        thin_marks(sheet, axes)


def _edges(figure: HistogramFigure) -> Iterator[float]:
    """Return the edges around what was counted, of all panels, and the rules."""
    for panel in figure.panels:
        counted = [i for i, count in enumerate(panel.counts) if count > 0]
        if counted:
            yield from (panel.edges[counted[0]], panel.edges[counted[-1] + 1])
        yield from (rule.value for rule in panel.rules if rule.axis == "x")
