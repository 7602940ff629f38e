"""What several kinds of configuration files have in common: calls with arguments, and sources that show a binding."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.extensions.facts import Binding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.evaluate.project.extensions.discover.files import Files

_SHOWS = ((Binding.PYBIND11, re.compile(r"\bPYBIND11_MODULE\b|<pybind11/")),
          (Binding.NANOBIND, re.compile(r"\bNB_MODULE\b|<nanobind/")))


def arguments(text: str, opening: int) -> str:
    """Return what stands between the parenthesis at `opening` and its partner; to the end where there is none."""
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if not depth:
            return text[opening + 1:place]
    return text[opening + 1:]


def line_of(text: str, place: int) -> int:
    """Return the number of the line that holds a place in a text."""
    return text.count("\n", 0, place) + 1


def binding_of(files: Files, sources: Iterable[str]) -> Binding:
    """Return how sources are written, by their names and by what those of C++ include."""
    names = tuple(sources)
    if any(name.endswith((".pyx", ".py")) for name in names):
        return Binding.CYTHON
    for name in names:
        text = files.text(name) or ""
        for binding, shows in _SHOWS:
            if shows.search(text):
                return binding
    return Binding.C_API if names else Binding.UNKNOWN
