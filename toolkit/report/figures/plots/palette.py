"""The colour, marker, line and hatch of each series: distinct in form too, for print without colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.concurrency_models import APPEARANCES, family, in_table_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.runners.base import Dash
    from gilscope.toolkit.report.figures.figure import RuledPanel, Series

HISTORY = "#666666"
TEXT, FAINT, FRAME, GRID = "#222222", "#555555", "#888888", "#E4E4E4"
HISTORY_MARKERS = ("o", "s", "^", "D", "v")
DASHES: dict[Dash, Any] = {
    "solid": "-", "dashes": (0, (5, 1.5)), "dots": (0, (1, 1)), "dash-dot": (0, (6, 1.5, 1, 1.5)),
    "short dashes": (0, (3, 1)), "dash-dots": (0, (4, 1, 1, 1, 1, 1)),
}
# How series of one model differ, as those of several builds: each two in the fill of one mark, the next two in another
# mark: those of the models on dask, which no experiment measures.  Dashes and hatches differ, too.
FILLS = ("full", "none")
MORE_MARKERS = ("X", "d")
OVER = ("", "-", "|", "+", "O", ".")


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """The colour and the form in which one series is drawn."""

    colour: str
    marker: str
    dash: Any        # what matplotlib takes as a line style
    hatch: str
    hollow: bool = False   # as the past is
    fill: str = "full"     # what of the marker is filled, in matplotlib's words

    @property
    def ink(self) -> str:
        """The colour of hatches and numbers that are drawn upon the colour."""
        return "#FFFFFF" if luminance(self.colour) < 0.4 else TEXT  # half way for the eye


# For series that are no models: shades of one hue that no model has, distinct by their darkness.
SHADES = ("#35106B", "#7B52C0", "#A77FE3")
SHADE_MARKERS = ("o", "s", "^", "D", "v", "P", "*", "p")
SHADE_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "oo", "++")


def series_styles(series: Iterable[Series]) -> dict[str, SeriesStyle]:
    """Return one style for each name, in the order of the legend: models as in tables, other things, history."""
    series = list(series)
    models = in_table_order(family(each.model) for each in series if each.model)
    places = {model: place for place, model in enumerate(models)}
    ranked = sorted(series, key=lambda each: (
        each.style == "history", places[family(each.model)] if each.model else len(places)))
    found: dict[str, SeriesStyle] = {}
    past, plain = 0, 0
    of_model: dict[str, int] = {}
    for each in ranked:
        if each.name in found:
            continue
        kind = family(each.model)
        if each.style == "history":
            marker = HISTORY_MARKERS[past % len(HISTORY_MARKERS)]
            found[each.name] = SeriesStyle(HISTORY, marker, (past * 2, (3, 2)), "", hollow=True)
            past += 1
        elif kind in APPEARANCES:
            found[each.name] = model_style(each.model, of_model.get(kind, 0))
            of_model[kind] = of_model.get(kind, 0) + 1
        else:
            found[each.name] = nth_style(plain)
            plain += 1
    return found


def model_style(model: str, nth: int = 0) -> SeriesStyle:
    """Return the style of the series number `nth`, from 0, of those of one model in a figure."""
    appearance = APPEARANCES.get(family(model))
    if appearance is None:
        return nth_style(nth)
    dashes = list(DASHES)
    dash = dashes[(dashes.index(appearance.dash) + nth) % len(dashes)]
    markers = (appearance.marker, *MORE_MARKERS)
    return SeriesStyle(appearance.colour, markers[nth // len(FILLS) % len(markers)], DASHES[dash],
                       appearance.hatch + 2 * OVER[nth % len(OVER)], fill=FILLS[nth % len(FILLS)])


def nth_style(index: int) -> SeriesStyle:
    """Return the style of the series number `index`, from 0, of those without a colour of their own."""
    dashes = list(DASHES.values())
    return SeriesStyle(SHADES[index % len(SHADES)], SHADE_MARKERS[index % len(SHADE_MARKERS)],
                       dashes[index % len(dashes)], SHADE_HATCHES[index % len(SHADE_HATCHES)])


def rule_styles(panels: Iterable[RuledPanel]) -> dict[str, dict[str, Any]]:
    """Return matplotlib's settings of each reference line in the panels, by its label; no two have the same dashes."""
    labels = dict.fromkeys(rule.label for panel in panels for rule in panel.rules)
    return {label: {"color": FAINT, "linewidth": 1.1, "linestyle": (0, (4, 2) + (1, 2) * place), "zorder": 1.5}
            for place, label in enumerate(labels)}


def luminance(colour: str) -> float:
    """Return the luminance of "#RRGGBB", 0 to 1.  Source: WCAG 2.2, "relative luminance"."""
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def linear(colour: str) -> tuple[float, float, float]:
    """Return the light that "#RRGGBB" gives in red, green and blue, 0 to 1.  Source: IEC 61966-2-1 (sRGB)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
                        for part in parts)
    return red, green, blue
