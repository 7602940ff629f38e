"""What several kinds of configuration files have in common: calls with arguments, and sources that show a binding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.extensions.facts import Binding
from gilscope.toolkit.evaluate.project.extensions.scan import c

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.evaluate.project.extensions.discover.files import Files


def arguments(text: str, opening: int) -> str:
    """Return what stands between the parenthesis at `opening` and its partner; to the end where there is none."""
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if not depth:
            return text[opening + 1:place]
    return text[opening + 1:]


def binding_of(files: Files, sources: Iterable[str]) -> Binding:
    """Return how sources are written, by their names and by the first one that shows more than the C API."""
    names = tuple(sources)
    if any(name.endswith((".pyx", ".py")) for name in names):
        return Binding.CYTHON
    shown = (c.binding_of(files.text(name) or "") for name in names)
    usual = Binding.C_API if names else Binding.UNKNOWN
    return next((binding for binding in shown if binding is not Binding.C_API), usual)
