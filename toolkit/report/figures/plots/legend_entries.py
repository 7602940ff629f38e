"""The entries of a figure's legend, one for each mark that occurs in it.  It works without matplotlib, for tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.report.figures.figure import CategoryFigure, LineFigure, TimelineFigure
from gilscope.toolkit.report.figures.plots.palette import rule_styles, series_styles
from gilscope.toolkit.report.figures.plots.ticks import drawable, has_interval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.report.figures.figure import Figure, Series

MOST_WHISKERS = 14   # a line with more values shows its intervals as a band


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A mark and its meaning."""

    # "crosses": of a series alone.
    mark: Literal["series", "crosses", "whiskers", "band", "cross", "rule", "state", "moment"]
    name: str


def entries(figure: Figure) -> list[LegendEntry]:
    """Return the entries of the legend in their order; empty if nothing needs an explanation."""
    match figure:
        case LineFigure() | CategoryFigure():
            rules = (LegendEntry("rule", label) for label in rule_styles(figure.panels))
            return [*_of_series(figure), *rules]
        case TimelineFigure():
            lanes = [lane for panel in figure.panels for lane in panel.lanes]
            used = {state for lane in lanes for _, _, state in lane.spans}
            moments = dict.fromkeys(what for lane in lanes for _, what in lane.points)
            return [*(LegendEntry("state", state) for state in figure.states if state in used),
                    *(LegendEntry("moment", what) for what in moments)]


def _of_series(figure: LineFigure | CategoryFigure) -> Iterator[LegendEntry]:
    series = [each for panel in figure.panels for each in panel.series]
    for name in series_styles(series):
        values = [value for each in series if each.name == name for value in each.y]
        if name and values:
            yield LegendEntry("series" if any(drawable(value, figure.y) for value in values) else "crosses", name)
    lines = isinstance(figure, LineFigure)
    for mark in ("whiskers", "band"):
        if any(has_band(each, lines=lines) is (mark == "band") for each in series if _intervals(each, figure)):
            yield LegendEntry(mark, figure.whiskers)
    if any(not drawable(value, figure.y) for each in series for value in each.y):
        yield LegendEntry("cross", figure.missing)


def has_band(series: Series, *, lines: bool) -> bool:
    """Return True if the intervals of a series are drawn as a band."""
    return lines and sum(map(has_interval, series.lo, series.hi)) > MOST_WHISKERS


def _intervals(series: Series, figure: LineFigure | CategoryFigure) -> bool:
    return any(has_interval(lo, hi) and drawable(value, figure.y)
               for value, lo, hi in zip(series.y, series.lo, series.hi, strict=False))
