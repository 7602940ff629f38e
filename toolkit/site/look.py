"""The style sheet and the script of all pages; colours and marks of models are those of the figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gilscope.toolkit.report.figures.plots.look.palette import MODELS, SHADES, family, luminance

ASSETS = Path(__file__).with_name("assets")
NIGHT = "#15181C"   # the dark background; site.css has it, too
CONTRAST = 3.0      # of what is drawn against what is behind it.  Source: WCAG 2.2, 1.4.11
OTHER = "other"     # the class of a model that has no colour of its own


@dataclass(frozen=True, slots=True)
class Look:
    """What pages share, as text."""

    style: str
    script: str
    files: tuple[str, str] = ("assets/site.css", "assets/site.js")   # where linked pages find them


def load_look(*scripts: str) -> Look:
    """Return the look of pages, with further scripts of `assets` after the common one."""
    parts = [(ASSETS / name).read_text(encoding="utf-8") for name in ("site.js", *scripts)]
    return Look(style=(ASSETS / "site.css").read_text(encoding="utf-8") + model_style(), script="\n".join(parts))


def model_class(model: str) -> str:
    """Return the class that gives a model its colour."""
    name = family(model)
    return f"m-{name if name in MODELS else OTHER}"


def model_style() -> str:
    """Return the rules that give each model its colour, by day and by night."""
    colours = {name: look.colour for name, look in MODELS.items()} | {OTHER: SHADES[1]}
    day = "".join(f".m-{name}{{--m:{colour}}}" for name, colour in colours.items())
    night = "".join(f".m-{name}{{--m:{by_night(colour)}}}" for name, colour in colours.items())
    return f"{day}\n@media (prefers-color-scheme:dark){{@media screen{{{night}}}}}\n"


def by_night(colour: str) -> str:
    """Return a colour, made as much lighter as it takes to be seen on the dark background."""
    for percent in range(101):
        lighter = _mixed(colour, percent / 100)
        if contrast(lighter, NIGHT) >= CONTRAST:
            return lighter
    raise AssertionError("white is seen on it")


def contrast(first: str, second: str) -> float:
    """Return how well two colours are told apart, from 1 to 21.  Source: WCAG 2.2, "contrast ratio"."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _mixed(colour: str, white: float) -> str:
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(part + (255 - part) * white):02X}" for part in parts)
