"""Which colour, marker, line and hatch each series has.  Told apart by form as well: grey print has no colours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.report.figures.figure import Series

HISTORY = "#666666"
TEXT, FAINT, FRAME, GRID = "#222222", "#555555", "#888888", "#E4E4E4"
HISTORY_MARKERS = ("o", "s", "^", "D", "v")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1)), (0, (4, 1, 1, 1, 1, 1)))
# How series of one model differ, as those of several builds: in what of the mark is filled, the dashes, and the hatch.
FILLS = ("full", "none", "left", "right", "bottom", "top")
OVER = ("", "-", "|", "+", "O", ".")


@dataclass(frozen=True, slots=True)
class Look:
    """How one series is drawn."""

    colour: str
    marker: str
    dash: Any        # what matplotlib takes as a line style
    hatch: str
    hollow: bool = False   # as the past is
    fill: str = "full"     # what of the marker is filled, in matplotlib's words

    @property
    def ink(self) -> str:
        """Return what is drawn upon the colour and read there: hatches, numbers."""
        return "#FFFFFF" if luminance(self.colour) < 0.4 else TEXT  # noqa: PLR2004 -- half way for the eye


# A model has one colour and one mark in all figures, and the place in their legends that it has here.  Colours are of
# Okabe & Ito (2008), "Color Universal Design", https://jfly.uni-koeln.de/color/; relatives share one, not the mark.
MODELS = {
    "serial": Look("#222222", "p", DASHES[0], "||||"),
    "sync": Look("#222222", "h", DASHES[4], "----"),
    "threads": Look("#0072B2", "o", DASHES[0], ""),
    "free-threaded": Look("#D55E00", "s", DASHES[1], "////"),
    "subinterpreters": Look("#009E73", "^", DASHES[2], "...."),
    "interpreter-pool": Look("#009E73", "<", DASHES[4], "**"),
    "processes": Look("#CC79A7", "D", DASHES[3], "xxxx"),
    "dask": Look("#CC79A7", "X", DASHES[1], "--"),
    "dask-threads": Look("#D55E00", "d", DASHES[4], "||"),
    "asyncio": Look("#E69F00", "v", DASHES[5], "\\\\\\\\"),
    "loops": Look("#E69F00", ">", DASHES[2], "\\\\"),
    "tornado": Look("#E69F00", "P", DASHES[4], "++"),
    "gevent": Look("#56B4E9", "*", DASHES[1], "oo"),
}
# What varies is no model: shades of one hue that no model has, told apart by how dark they are.
SHADES = ("#35106B", "#7B52C0", "#A77FE3")
SHADE_MARKERS = ("o", "s", "^", "D", "v", "P", "*", "p")
SHADE_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "oo", "++")


def looks(series: Iterable[Series]) -> dict[str, Look]:
    """Return one look per name, in the order of the legend: models in that of their table, other things, the past.

    Raises:
        KeyError: A series is of a model that is not in `MODELS`.
    """
    order = {model: place for place, model in enumerate(MODELS)}
    ranked = sorted(series, key=lambda each: (
        each.style == "history", order[family(each.model)] if each.model else len(order)))
    found: dict[str, Look] = {}
    past, plain, of_model = 0, 0, dict.fromkeys(MODELS, 0)
    for each in ranked:
        if each.name in found:
            continue
        if each.style == "history":
            marker = HISTORY_MARKERS[past % len(HISTORY_MARKERS)]
            found[each.name] = Look(HISTORY, marker, (past * 2, (3, 2)), "", hollow=True)
            past += 1
        elif each.model:
            found[each.name] = model_look(each.model, of_model[family(each.model)])
            of_model[family(each.model)] += 1
        else:
            found[each.name] = nth_look(plain)
            plain += 1
    return found


def model_look(model: str, nth: int = 0) -> Look:
    """Return the look of the series number `nth` of those of one model in a figure, from 0."""
    look = MODELS[family(model)]
    dash = DASHES[(DASHES.index(look.dash) + nth) % len(DASHES)]
    return replace(look, dash=dash, fill=FILLS[nth % len(FILLS)], hatch=look.hatch + 2 * OVER[nth % len(OVER)])


def family(model: str) -> str:
    """Return what a model is in `MODELS`: how processes are started makes them no other model."""
    return "processes" if model.startswith("processes-") else model


def nth_look(index: int) -> Look:
    """Return the look of the series number `index`, from 0, of a figure whose series are no models."""
    return Look(SHADES[index % len(SHADES)], SHADE_MARKERS[index % len(SHADE_MARKERS)], DASHES[index % len(DASHES)],
                SHADE_HATCHES[index % len(SHADE_HATCHES)])


def luminance(colour: str) -> float:
    """Return how bright "#RRGGBB" is, 0 to 1.  Source: WCAG 2.2, "relative luminance"."""
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def linear(colour: str) -> tuple[float, float, float]:
    """Return the light that "#RRGGBB" gives in red, green and blue, 0 to 1.  Source: IEC 61966-2-1 (sRGB)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4  # noqa: PLR2004
                        for part in parts)
    return red, green, blue
