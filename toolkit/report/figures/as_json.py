"""Figures as JSON and back: what draws them is another process.

NaN and infinities are written as Python's JSON writes them; both sides are Python.
"""

from __future__ import annotations

import dataclasses
import json
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from gilscope.toolkit.escaping import visible_all, visible_lines
from gilscope.toolkit.report.figures.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS: dict[str, type] = {kind.__name__: kind for kind in get_args(Figure)}


def dump(figures: Sequence[Figure]) -> str:
    """Return the figures as JSON, with texts in which every character shows: what draws them obeys what it is given."""
    return json.dumps([{"kind": type(figure).__name__, **dataclasses.asdict(visible_all(figure, visible_lines))}
                       for figure in figures])


def load(text: str) -> list[Figure]:
    """Return what `dump` was given."""
    return [_value(KINDS[fields.pop("kind")], fields) for fields in json.loads(text)]


def _value(kind: Any, plain: Any) -> Any:
    """Return a value of the type `kind`, as it stands in the annotation, from what JSON left of it."""
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: _value(hints[name], value) for name, value in plain.items()})  # type: ignore[operator]  # a class
    if get_origin(kind) is UnionType:   # of the kinds here: a type, or None
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
        return None if plain is None else _value(kind, plain)
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        many = kinds[:1] * len(plain) if kinds[-1] is Ellipsis else kinds
        return tuple(_value(each, value) for each, value in zip(many, plain, strict=True))
    return plain if get_origin(kind) is Literal else kind(plain)
