"""Which colour, marker, line and hatch each series has.  Told apart by form as well: grey print has no colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.report.figure import Series

# Okabe & Ito (2008), "Color Universal Design", https://jfly.uni-koeln.de/color/; the darkest and most different first.
# Their black is left to text and frames; yellow comes last, as lines of it are hard to see on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#F0E442")
HISTORY = "#666666"
TEXT, FAINT, FRAME, GRID = "#222222", "#555555", "#888888", "#E4E4E4"
MARKERS = ("o", "s", "^", "D", "v", "P", "*", "X")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1)), (0, (4, 1, 1, 1, 1, 1)))
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "oo", "++")
HISTORY_MARKERS = ("o", "s", "^", "D", "v")


@dataclass(frozen=True, slots=True)
class Look:
    """How one series is drawn."""

    colour: str
    marker: str
    dash: Any        # what matplotlib takes as a line style
    hatch: str
    hollow: bool

    @property
    def ink(self) -> str:
        """Return what is drawn upon the colour and read there: hatches, numbers."""
        return "#FFFFFF" if luminance(self.colour) < 0.4 else TEXT  # noqa: PLR2004 -- half way for the eye


def looks(series: Iterable[Series]) -> dict[str, Look]:
    """Return one look per name: first what is measured, in the order in which the names come up, then the past."""
    series = sorted(series, key=lambda each: each.style == "history")   # a stable order
    found: dict[str, Look] = {}
    past = 0
    for each in series:
        if each.name in found:
            continue
        if each.style == "history":
            marker = HISTORY_MARKERS[past % len(HISTORY_MARKERS)]
            found[each.name] = Look(HISTORY, marker, (past * 2, (3, 2)), "", hollow=True)
            past += 1
        else:
            found[each.name] = nth_look(len(found) - past)
    return found


def nth_look(index: int) -> Look:
    """Return the look of the series number `index`, from 0; none of the first 56 looks like another."""
    return Look(COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)], DASHES[index % len(DASHES)],
                HATCHES[index % len(HATCHES)], hollow=False)


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
