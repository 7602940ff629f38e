"""Timelines: one lane for each thread, time from left to right."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D

from gilscope.toolkit.report.figures.plots.frame import PlotScale, say_empty, set_title, thin_marks
from gilscope.toolkit.report.figures.plots.legend_entries import entries
from gilscope.toolkit.report.figures.plots.palette import FRAME, TEXT, SeriesStyle, nth_style
from gilscope.toolkit.report.figures.plots.sheet import Sheet
from gilscope.toolkit.report.figures.plots.style import LEGEND, TICK, points

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.report.figures.figure import Lane, TimelineFigure, TimelinePanel
    from gilscope.toolkit.report.figures.plots.legend_entries import LegendEntry

LANE = 34           # pixels
NAMES = 150         # pixels that the lanes' names may take
MOST_VECTORS = 4000  # spans of one state in one lane; more are a picture inside of the SVG, which would grow beyond use
# Of a lane's height, by the number of the state: forms differ where colours do not.
HEIGHTS = (0.84, 0.5, 0.28, 0.64, 0.38)
STRIP = 0.7   # of a lane's height: that of the strip for all of them
POINTS = ("v", "*", "D", "P")


def compose(figure: TimelineFigure) -> Sheet:
    """Return the figure laid out."""
    ends = [end for panel in figure.panels for lane in panel.lanes for start, stop, _ in lane.spans
            for end in (start, stop)]
    moments = [when for panel in figure.panels for lane in panel.lanes for when, _ in lane.points]
    x = PlotScale.over(figure.x, [*ends, *moments], count=9, zero=True)
    sheet = Sheet(title=figure.title, note=figure.footer, panels=len(figure.panels), columns=1, height=100)
    known = {state: nth_style(i) for i, state in enumerate(figure.states)}
    kinds = dict.fromkeys(what for panel in figure.panels for lane in panel.lanes for _, what in lane.points)
    markers = {what: POINTS[i % len(POINTS)] for i, what in enumerate(kinds)}
    for index, panel in enumerate(figure.panels):
        sheet.set_height(index, LANE * (len(panel.lanes) + 1) + 8)
        _panel(sheet, index, figure, panel, known=known, markers=markers, x=x)
    sheet.legend([(each.name, _handle(each, known, markers, list(known))) for each in entries(figure)])
    sheet.arrange()
    return sheet


def _panel(
    sheet: Sheet, index: int, figure: TimelineFigure, panel: TimelinePanel, *,
    known: Mapping[str, SeriesStyle], markers: Mapping[str, str], x: PlotScale,
) -> None:
    axes = sheet.axes[index]
    x.apply(axes, "x", labelled=sheet.is_bottom(index))
    axes.set_ylim(len(panel.lanes) + 0.5 if panel.lanes else 0.5, -0.5)
    names = [sheet.wrapped(lane.name, NAMES, TICK) for lane in panel.lanes]
    names += [sheet.wrapped(figure.strip, NAMES, TICK)] if panel.lanes else []
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    if not panel.lanes:
        say_empty(axes)
    for row, lane in enumerate(panel.lanes):
        axes.axhline(row, color=FRAME, linewidth=0.5, zorder=1)
        _lane(axes, row, lane, known)
        for when, what in lane.points:
            axes.plot([when], [row - 0.42], **_point(markers[what]), zorder=5, clip_on=False)
    if panel.lanes:
        axes.set_ylabel("threads, not cores")
        axes.axhline(len(panel.lanes) - 0.5, color=FRAME, linewidth=0.8, zorder=1)
        _strip(axes, panel, figure.counted, known[figure.counted])
    set_title(sheet, index, panel.title)
    if sheet.is_bottom(index):
        thin_marks(sheet, axes)


def _lane(axes: Any, row: int, lane: Lane, known: Mapping[str, SeriesStyle]) -> None:
    for nth, (state, look) in enumerate(known.items()):
        half = HEIGHTS[nth % len(HEIGHTS)] / 2
        boxes = [[(start, row - half), (stop, row - half), (stop, row + half), (start, row + half)]
                 for start, stop, name in lane.spans if name == state]
        if boxes:
            # A thin edge of its own colour: a span shorter than a pixel is still seen.
            axes.add_collection(PolyCollection(
                boxes, facecolor=look.colour, edgecolor=look.colour, linewidth=0.4, zorder=2 + nth / 10,
                rasterized=len(boxes) > MOST_VECTORS,
            ), autolim=False)


def _strip(axes: Any, panel: TimelinePanel, counted: str, look: SeriesStyle) -> None:
    """Draw below the lanes how many of them are in the state `counted` at once."""
    foot, step = len(panel.lanes) + STRIP / 2, STRIP / len(panel.lanes)
    edges, counts = at_once(panel, counted)
    heights = [foot - step * count for count in counts]
    axes.stairs(heights, edges, baseline=foot, fill=True, facecolor=look.colour, edgecolor=look.colour, linewidth=0.4,
                zorder=2, rasterized=len(counts) > MOST_VECTORS)
    for count in range(len(panel.lanes) + 1):
        axes.axhline(foot - step * count, color=FRAME, linewidth=0.4, zorder=1)
    for count in (0, len(panel.lanes)):
        axes.text(1.01, foot - step * count, str(count), transform=axes.get_yaxis_transform(), fontsize=points(TICK),
                  va="center")


def at_once(panel: TimelinePanel, state: str) -> tuple[list[float], list[int]]:
    """Return moments in order, and between each two how many lanes are in `state`; one moment more than counts."""
    changes: dict[float, int] = {}
    for lane in panel.lanes:
        for start, stop, name in lane.spans:
            if name == state:
                changes[start] = changes.get(start, 0) + 1
                changes[stop] = changes.get(stop, 0) - 1
    edges = sorted(changes) or [0.0]
    return edges, list(accumulate(changes[edge] for edge in edges[:-1]))


def _handle(
    entry: LegendEntry, known: Mapping[str, SeriesStyle], markers: Mapping[str, str], states: Sequence[str],
) -> Any:
    if entry.mark == "moment":
        return Line2D([], [], **_point(markers[entry.name]))
    height = HEIGHTS[states.index(entry.name) % len(HEIGHTS)]
    return Line2D([], [], color=known[entry.name].colour, linewidth=points(LEGEND) * height, solid_capstyle="butt")


def _point(marker: str) -> dict[str, Any]:
    return {"linestyle": "none", "marker": marker, "markersize": 6, "color": TEXT, "markeredgecolor": "white",
            "markeredgewidth": 0.5}
