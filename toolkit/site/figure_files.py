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
