"""Who did what when: one lane per thread, time from left to right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D

from gilscope.toolkit.report.plots.frame import Scale, say_empty, set_title, thin_marks
from gilscope.toolkit.report.plots.palette import FRAME, TEXT, Look, nth_look
from gilscope.toolkit.report.plots.sheet import Sheet
from gilscope.toolkit.report.plots.style import LEGEND, TICK, points

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gilscope.toolkit.report.figure import Lane, TimelineFigure, TimelinePanel

LANE = 34           # pixels
NAMES = 150         # pixels that the lanes' names may take
MOST_VECTORS = 4000  # spans of one state in one lane; more are a picture inside of the SVG, which would grow beyond use
# Of a lane's height, by the number of the state: forms differ where colours do not.
HEIGHTS = (0.84, 0.5, 0.28, 0.64, 0.38)
POINTS = ("v", "*", "D", "P")


def compose(figure: TimelineFigure) -> Sheet:
    """Return the figure laid out."""
    ends = [end for panel in figure.panels for lane in panel.lanes for start, stop, _ in lane.spans
            for end in (start, stop)]
    moments = [when for panel in figure.panels for lane in panel.lanes for when, _ in lane.points]
    x = Scale.over(figure.x, [*ends, *moments], count=9, zero=True)
    sheet = Sheet(title=figure.title, note=figure.note, panels=len(figure.panels), columns=1, height=100)
    known = {state: nth_look(i) for i, state in enumerate(figure.states)}
    kinds = dict.fromkeys(what for panel in figure.panels for lane in panel.lanes for _, what in lane.points)
    markers = {what: POINTS[i % len(POINTS)] for i, what in enumerate(kinds)}
    for index, panel in enumerate(figure.panels):
        sheet.set_height(index, LANE * max(len(panel.lanes), 1) + 8)
        _panel(sheet, index, panel, known, markers, x)
    sheet.legend({
        **{state: Line2D([], [], color=look.colour, linewidth=points(LEGEND) * HEIGHTS[nth % len(HEIGHTS)],
                         solid_capstyle="butt") for nth, (state, look) in enumerate(known.items())},
        **{what: Line2D([], [], **_point(marker)) for what, marker in markers.items()},
    })
    sheet.arrange()
    return sheet


def _panel(
    sheet: Sheet, index: int, panel: TimelinePanel, known: Mapping[str, Look], markers: Mapping[str, str], x: Scale,
) -> None:
    axes = sheet.axes[index]
    x.apply(axes, "x", labelled=sheet.is_bottom(index))
    axes.set_ylim(len(panel.lanes) - 0.5 if panel.lanes else 0.5, -0.5)
    names = [sheet.wrapped(lane.name, NAMES, TICK) for lane in panel.lanes]
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
    set_title(sheet, index, panel.title)
    if sheet.is_bottom(index):
        thin_marks(sheet, axes)


def _lane(axes: Any, row: int, lane: Lane, known: Mapping[str, Look]) -> None:
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


def _point(marker: str) -> dict[str, Any]:
    return {"linestyle": "none", "marker": marker, "markersize": 6, "color": TEXT, "markeredgecolor": "white",
            "markeredgewidth": 0.5}
