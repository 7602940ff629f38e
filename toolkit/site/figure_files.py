"""Figures that were drawn with results: only plain drawings go out, as a page may lead to them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from gilscope.toolkit.bounded_reading import read_bytes

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 2 * 1024 * 1024
_SVG = "{http://www.w3.org/2000/svg}"
# What matplotlib writes: nothing that runs, moves, or asks for something elsewhere.
_ELEMENTS = frozenset(f"{_SVG}{name}" for name in (
    "svg", "title", "desc", "metadata", "defs", "style", "g", "path", "text", "tspan", "use", "clipPath", "rect",
    "line", "circle", "ellipse", "polygon", "polyline", "pattern", "marker"))
_METADATA = ("{http://www.w3.org/1999/02/22-rdf-syntax-ns#}", "{http://purl.org/dc/elements/1.1/}",
             "{http://creativecommons.org/ns#}")
_TAG = re.compile("<[a-zA-Z][^>]*>")
_PLACES = re.compile(r"""\s(?:d|x|y|points)="[^"]*"|translate\([^)]*\)""")   # and no scale: 0.015625 is one
_DIGITS = re.compile(r"(\.\d\d)\d+")
_UNTURNED = re.compile(r"""\stransform="rotate\(-0 [^)]*\)\"""")
_STYLE = re.compile(r"""\sstyle="([^"]*)\"""")


def is_drawing(path: Path) -> bool:
    """Return True if a file is an SVG of shapes and words alone, which can do nothing when it is opened."""
    try:
        text = read_bytes(path, MOST_BYTES)
        if b"<!ENTITY" in text or b"<?xml-stylesheet" in text:
            return False
        root = ElementTree.fromstring(text)  # noqa: S314 - without entities of its own nothing in it grows
    except (OSError, ElementTree.ParseError):
        return False
    return root.tag == f"{_SVG}svg" and all(map(_is_harmless, root.iter()))


def lean(path: Path) -> str:
    """Return a drawing with each style once, no blanks before lines, places to a hundredth of a point."""
    text = "".join(f"{line.strip()}\n" for line in path.read_text(encoding="utf-8").splitlines())
    text = _TAG.sub(lambda tag: _PLACES.sub(lambda found: _DIGITS.sub(r"\1", found[0]), _UNTURNED.sub("", tag[0])),
                    text)
    if "</style>" not in text or "class=" in text:   # another hand than matplotlib's
        return text
    names = {style: f"s{number}" for number, style in enumerate(dict.fromkeys(_STYLE.findall(text)))}
    text = _TAG.sub(lambda tag: _STYLE.sub(lambda found: f' class="{names[found[1]]}"', tag[0]), text)
    classes = "".join(f".{name}{{{style}}}\n" for style, name in names.items())
    return text.replace("</style>", f"\n{classes}</style>", 1)


def _is_harmless(element: ElementTree.Element) -> bool:
    if not isinstance(element.tag, str):   # a comment, an instruction
        return True
    if element.tag not in _ELEMENTS and not element.tag.startswith(_METADATA):
        return False
    for name, value in element.attrib.items():
        plain = name.rpartition("}")[2].lower()
        if plain.startswith("on") or (plain == "href" and not value.startswith("#")) or not _is_local(value):
            return False
    return _is_local(element.text or "")


def _is_local(style: str) -> bool:
    """Return True if a style refers to nothing outside of its drawing."""
    return not re.search(r"url\((?!\s*['\"]?#)|@import", style, re.IGNORECASE)
