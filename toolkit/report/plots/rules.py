"""Reference lines across panels, with labels that lie upon nothing else."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from toolkit.report.plots.palette import FAINT
from toolkit.report.plots.style import NOTE, points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.report.figure import Rule
    from toolkit.report.plots.frame import Scale
    from toolkit.report.plots.sheet import Sheet

LINE = {"color": FAINT, "linewidth": 1.1, "linestyle": (0, (4, 2)), "zorder": 1.5, "gid": "rule"}
LABEL = {"fontsize": points(NOTE), "color": FAINT, "zorder": 5,
         "bbox": {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.6}}
ROW = 15   # pixels from one label's line to the next
SHARES = (1, 0, 0.75, 0.25, 0.5)   # where along a level line its label may stand; the best first
MANY = 10**6


def add_rules(sheet: Sheet, index: int, rules: Sequence[Rule]) -> None:
    """Draw the lines; labels of upright ones stand above the values, which make room for them."""
    axes = sheet.axes[index]
    upright = [rule for rule in rules if rule.axis == "x"]
    lines = [axes.axvline(rule.value, **LINE) for rule in upright]
    labels = [axes.annotate(rule.label, (rule.value, 1), xycoords=axes.get_xaxis_transform(), xytext=(0, 0),
                            textcoords="offset points", va="top", **LABEL) for rule in upright]
    for label in labels:
        label.set_in_layout(False)   # they stay in the frame
    for rule in rules:
        if rule.axis == "y":
            axes.axhline(rule.value, **LINE)
            _label_level(sheet, axes, rule)

    def fit() -> None:
        box = axes.get_window_extent()
        rows = _stack(sheet, axes, upright, labels)
        for line, label, row in zip(lines, labels, rows, strict=True):
            line.set_ydata([0, 1 - row * ROW / box.height])
            label.xy = (label.xy[0], 1 - row * ROW / box.height)

    sheet.on_fit(fit)


def head_room(sheet: Sheet, rules: Sequence[Sequence[Rule]], y: Scale) -> None:
    """Lengthen the y axis of all panels so that the labels of upright lines stand above the values."""
    most = max((sum(rule.axis == "x" for rule in each) for each in rules), default=0)
    if not most:
        return

    def fit() -> None:
        for axes in sheet.axes:
            share = 1 - (most * ROW + 6) / axes.get_window_extent().height
            if y.axis.log:
                axes.set_ylim(y.lo, y.lo * (y.hi / y.lo) ** (1 / share))
            else:
                axes.set_ylim(y.lo, y.lo + (y.hi - y.lo) / share)

    sheet.on_fit(fit)


def _stack(sheet: Sheet, axes: Any, rules: Sequence[Rule], labels: Sequence[Any]) -> list[int]:
    """Put each label right of its line, or left where it would leave the frame; return its row from the top."""
    box = axes.get_window_extent()
    taken: list[list[tuple[float, float]]] = []
    rows = []
    for rule, label in zip(rules, labels, strict=True):
        place = axes.transData.transform((rule.value, 1))[0]
        width = sheet.width_of(rule.label, NOTE) + 8
        right = place + width <= box.x1 or place - width < box.x0
        start = place if right else place - width
        row = next((i for i, spans in enumerate(taken) if all(start + width <= a or b <= start for a, b in spans)),
                   len(taken))
        taken += [[]] * (row == len(taken))
        taken[row] = [*taken[row], (start, start + width)]
        rows.append(row)
        label.set(ha="left" if right else "right", x=3 if right else -3)
    return rows


def _label_level(sheet: Sheet, axes: Any, rule: Rule) -> None:
    """Label a level line where the fewest values lie, above or below it."""
    label = axes.annotate(rule.label, (1, rule.value), xycoords=axes.get_yaxis_transform(), xytext=(0, 0),
                          textcoords="offset points", **LABEL)
    label.set_in_layout(False)
    width = sheet.width_of(rule.label, NOTE) + 8

    def fit() -> None:
        box = axes.get_window_extent()
        level = axes.transData.transform((axes.get_xlim()[0], rule.value))[1]
        spots = _drawn(axes)

        def crowd(place: tuple[float, str]) -> int:
            share, side = place
            left = box.x0 + share * (box.width - width)
            foot = level + 1 if side == "bottom" else level - ROW
            if foot < box.y0 or foot + ROW > box.y1:
                return MANY
            return sum(left - 4 <= x <= left + width + 4 and foot - 2 <= y <= foot + ROW for x, y in spots)

        share, side = min(((share, side) for share in SHARES for side in ("bottom", "top")), key=crowd)
        label.xy = ((share * (box.width - width) + 4) / box.width, rule.value)
        label.set(ha="left", va=side, y=2 if side == "bottom" else -2)

    sheet.on_fit(fit)


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
    for bar in axes.patches:
        box = bar.get_window_extent()
        found += [(box.x0 + box.width * i / 4, box.y0 + box.height * j / 20) for i in range(5) for j in range(21)]
    return found
