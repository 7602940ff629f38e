"""Reference lines across panels, with labels that lie upon nothing else."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.report.figures.plots.palette import FAINT
from gilscope.toolkit.report.figures.plots.style import DPI, NOTE, points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.report.figures.figure import Rule
    from gilscope.toolkit.report.figures.plots.frame import PlotScale
    from gilscope.toolkit.report.figures.plots.sheet import Sheet

LINE = {"color": FAINT, "linewidth": 1.1, "linestyle": (0, (4, 2)), "zorder": 1.5, "gid": "rule"}
LABEL = {"fontsize": points(NOTE), "color": FAINT, "zorder": 5,
         "bbox": {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.6}}
ROW = 15   # pixels from one label's line to the next
PLACES = 20   # along a level line, where its label may stand
MANY = 10**6


def add_rules(sheet: Sheet, index: int, rules: Sequence[Rule]) -> None:
    """Draw the lines; labels of upright ones stand above the values, which make room for them."""
    axes = sheet.axes[index]
    upright = [(rule, axes.axvline(rule.value, **LINE), _label(axes, rule)) for rule in rules if rule.axis == "x"]
    level = [(rule, _label(axes, rule)) for rule in rules if rule.axis == "y"]
    for rule, _ in level:
        axes.axhline(rule.value, **LINE)

    def fit() -> None:
        height = axes.get_window_extent().height
        rows = _stack(sheet, axes, [(rule, label) for rule, _, label in upright])
        for (_, line, label), row in zip(upright, rows, strict=True):
            line.set_ydata([0, 1 - row * ROW / height])
            label.xy = (label.xy[0], 1 - row * ROW / height)
        taken = [label.get_window_extent(sheet.renderer()) for _, _, label in upright]
        for rule, label in level:
            _put_level(sheet, axes, rule, label, taken)
            taken.append(label.get_window_extent(sheet.renderer()))

    sheet.on_fit(fit)


def _label(axes: Any, rule: Rule) -> Any:
    upright = rule.axis == "x"
    label = axes.annotate(
        rule.label, (rule.value, 1) if upright else (1, rule.value), xytext=(0, 0), textcoords="offset points",
        xycoords=axes.get_xaxis_transform() if upright else axes.get_yaxis_transform(), va="top", **LABEL,
    )
    label.set_in_layout(False)   # it stays in the frame
    return label


def head_room(sheet: Sheet, rules: Sequence[Sequence[Rule]], y: PlotScale) -> None:
    """Lengthen the y axis of all panels so that the labels of lines, the upright ones above all values, have room."""
    most = max((sum(rule.axis == "x" for rule in each) for each in rules), default=0)
    top = max((rule.value for each in rules for rule in each if rule.axis == "y"), default=y.lo)

    def fit() -> None:
        for axes in sheet.axes:
            height = axes.get_window_extent().height
            wanted = most * ROW + 6 if most else max(ROW + 3 - (1 - _share(y, top)) * height, 0)
            share = 1 - wanted / height
            if y.axis.log:
                axes.set_ylim(y.lo, y.lo * (y.hi / y.lo) ** (1 / share))
            else:
                axes.set_ylim(y.lo, y.lo + (y.hi - y.lo) / share)

    sheet.on_fit(fit)


def _share(y: PlotScale, value: float) -> float:
    """Return the position of a value on the axis, from 0 at its start to 1 at its end."""
    if y.axis.log:
        return math.log(value / y.lo) / math.log(y.hi / y.lo) if value > 0 else 0.0
    return (value - y.lo) / (y.hi - y.lo)


def _stack(sheet: Sheet, axes: Any, labelled: Sequence[tuple[Rule, Any]]) -> list[int]:
    """Put each label right of its line, or left where it would leave the frame; return its row from the top."""
    box = axes.get_window_extent()
    taken: list[list[tuple[float, float]]] = []
    rows = []
    for rule, label in labelled:
        place = axes.transData.transform((rule.value, 1))[0]
        width = sheet.width_of(rule.label, NOTE) + 8
        right = place + width <= box.x1 or place - width < box.x0
        # Where it fits on neither side it is moved along, over its line.
        start = max(min(place, box.x1 - width), box.x0) if right else place - width
        row = next((i for i, spans in enumerate(taken) if all(start + width <= a or b <= start for a, b in spans)),
                   len(taken))
        taken += [[]] * (row == len(taken))
        taken[row] = [*taken[row], (start, start + width)]
        rows.append(row)
        label.set(ha="left", x=(start - place + 4) * 72 / DPI)
    return rows


def _put_level(sheet: Sheet, axes: Any, rule: Rule, label: Any, taken: Sequence[Any]) -> None:
    """Put a label of a level line above or below it, where no other label and the fewest values lie."""
    box = axes.get_window_extent()
    level = axes.transData.transform((axes.get_xlim()[0], rule.value))[1]
    width = sheet.width_of(rule.label, NOTE) + 8
    spots = _drawn(axes)

    def crowd(place: tuple[float, str]) -> float:
        share, side = place
        left: float = box.x0 + share * (box.width - width)
        foot = level + 1 if side == "bottom" else level - ROW
        outside: bool = foot < box.y0 or foot + ROW > box.y1
        upon: bool = any(left < other.x1 and other.x0 < left + width and foot < other.y1 and other.y0 < foot + ROW
                         for other in taken)
        values: int = sum(left - 4 <= x <= left + width + 4 and foot < y < foot + ROW - 1 for x, y in spots)
        # Among places without values the ends are taken, the right one first.
        return values + MANY * outside + MANY * upon + min(0.5, 1 - share, 0.1 + share)

    share, side = min(((i / PLACES, side) for i in range(PLACES + 1) for side in ("bottom", "top")), key=crowd)
    label.xy = ((share * (box.width - width) + 4) / box.width, rule.value)
    label.set(ha="left", va=side, y=2 if side == "bottom" else -2)


def _drawn(axes: Any) -> list[tuple[float, float]]:
    """Return places in pixels along the lines and on the bars of a panel."""
    found: list[tuple[float, float]] = []
    for line in axes.get_lines():
        if line.get_gid() == LINE["gid"]:
            continue
        spots = [spot for spot in line.get_transform().transform(line.get_xydata()) if all(map(math.isfinite, spot))]
        for (x0, y0), (x1, y1) in pairwise(spots):
            found += [(x0 + (x1 - x0) * i / 20, y0 + (y1 - y0) * i / 20) for i in range(21)]
        found += [(x, y) for x, y in spots]
    for collection in axes.collections:
        for segment in collection.get_segments() if hasattr(collection, "get_segments") else ():
            (x0, y0), (x1, y1) = axes.transData.transform(segment)
            found += [(x0 + (x1 - x0) * i / 20, y0 + (y1 - y0) * i / 20) for i in range(21)]
    for bar in axes.patches:
        box = bar.get_window_extent()
        found += [(box.x0 + box.width * i / 8, box.y0 + box.height * j / 20) for i in range(9) for j in range(21)]
    return found
