"""The style sheet and the script of all pages, and the colour and mark of each model: those of the figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gilscope.toolkit.concurrency_models import APPEARANCES, family, in_table_order
from gilscope.toolkit.report.figures.plots.palette import SHADES

ASSETS = Path(__file__).with_name("assets")
WHITE = 30          # percent in a model's colour by night: so much gives each a contrast of 3, as WCAG 2.2, 1.4.11 asks
OTHER = "other"     # the class of a model that has no colour of its own
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


@dataclass(frozen=True, slots=True)
class PageAssets:
    """The style sheet and the script of pages, as text."""

    style: str
    script: str
    files: tuple[str, str] = ("assets/site.css", "assets/site.js")   # where linked pages find them


def load_assets() -> PageAssets:
    """Return the look of pages."""
    style, script = ((ASSETS / name).read_text(encoding="utf-8") for name in ("site.css", "site.js"))
    return PageAssets(style=style + model_style(), script=script)


def model_class(model: str) -> str:
    """Return the class that gives a model its colour."""
    name = family(model)
    return f"m-{name if name in APPEARANCES else OTHER}"


def model_style() -> str:
    """Return the rules that give each model its colour, by day and by night."""
    colours = {name: appearance.colour for name, appearance in APPEARANCES.items()} | {OTHER: SHADES[1]}
    day = "".join(f".m-{name}{{--m:{colour}}}" for name, colour in colours.items())
    night = "".join(f".m-{name}{{--m:color-mix(in srgb,{colour},#FFF {WHITE}%)}}" for name, colour in colours.items())
    return f"{day}\n@media (prefers-color-scheme:dark){{@media screen{{{night}}}}}\n"


def mark_of(model: str) -> dict[str, str]:
    """Return the class and the shape's name of a model."""
    appearance = APPEARANCES.get(family(model))
    marker = appearance.marker if appearance else _PLAIN
    return {"class": model_class(model), "shape": shape_name(marker if marker in SHAPES else _PLAIN)}


def shape_name(marker: str) -> str:
    """Return a name that an address may have."""
    return f"s{ord(marker)}"


def shapes() -> list[dict[str, str]]:
    """Return every shape, to be written once on a page."""
    return [{"name": shape_name(marker), "path": path} for marker, path in SHAPES.items()]


def legend(models: list[str]) -> list[dict[str, Any]]:
    """Return models with their marks, in the order of tables and figures."""
    return [{"model": each, **mark_of(each)} for each in in_table_order(models)]
