"""The mark of each model, as in the figures: told apart by form, too, for print in grey."""

from __future__ import annotations

from typing import Any

from gilscope.toolkit.report.figures.plots.look.palette import MODELS, family
from gilscope.toolkit.site.look import model_class

# Around (0, 0), in pixels.
SHAPES = {
    "o": "M-4.2 0a4.2 4.2 0 1 0 8.4 0a4.2 4.2 0 1 0 -8.4 0z", "s": "M-3.8-3.8h7.6v7.6h-7.6z",
    "^": "M0-4.8L4.6 3.6H-4.6z", "v": "M0 4.8L4.6-3.6H-4.6z", "<": "M-4.8 0L3.6-4.6V4.6z", ">": "M4.8 0L-3.6-4.6V4.6z",
    "D": "M0-5.2L5.2 0L0 5.2L-5.2 0z",
    "p": "M0-4.8L4.6-1.5L2.8 3.9H-2.8L-4.6-1.5z", "h": "M0-4.8L4.2-2.4V2.4L0 4.8L-4.2 2.4V-2.4z",
    "P": "M-1.7-4.8h3.4v3.1h3.1v3.4h-3.1v3.1h-3.4v-3.1h-3.1v-3.4h3.1z",
    "*": "M0-5.4L1.3-1.8L5.1-1.7L2.1.7L3.2 4.4L0 2.2L-3.2 4.4L-2.1.7L-5.1-1.7L-1.3-1.8z",
}
_PLAIN = "o"


def mark_of(model: str) -> dict[str, str]:
    """Return the class and the shape's name of a model."""
    look = MODELS.get(family(model))
    return {"class": model_class(model), "shape": shape_name(look.marker if look else _PLAIN)}


def shape_name(marker: str) -> str:
    """Return a name that an address may have."""
    return f"s{ord(marker)}"


def shapes() -> list[dict[str, str]]:
    """Return every shape, to be written once on a page."""
    return [{"name": shape_name(marker), "path": path} for marker, path in SHAPES.items()]


def legend(models: list[str]) -> list[dict[str, Any]]:
    """Return models with their marks, in the order of the figures."""
    order = {model: place for place, model in enumerate(MODELS)}
    known = sorted(dict.fromkeys(models), key=lambda each: order.get(family(each), len(order)))
    return [{"model": each, **mark_of(each)} for each in known]
