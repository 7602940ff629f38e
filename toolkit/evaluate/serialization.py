"""Values of gilscope's own classes as JSON and back, whole: reading runs no code but the classes' own.

Where a class is not needed again `report.json_` writes what people and other programs read.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import Any

from gilscope.toolkit.bounded_reading import parse_json

OURS = "gilscope.toolkit."
# What a text of another kind than JSON's own is marked by.
_BACK = {"tuple": tuple, "frozenset": frozenset, "float": float, "path": Path}


def dumps(value: Any) -> str:
    """Return `value`: nouns of ours, enumerations, plain values, paths, and lists, tuples, sets and dicts of those."""
    return json.dumps(_plain(value))


def loads(text: str) -> Any:
    """Return what `dumps` was given.

    Raises:
        ValueError: the text is damaged, or has a class that is none of ours or has changed.
    """
    try:
        return _value(parse_json(text))
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is not what was written: {error}") from error


def _plain(value: Any) -> Any:  # noqa: PLR0911 - one answer per kind of value
    match value:
        case Enum():
            return {"enum": _name(type(value)), "member": value.name}
        case None | bool() | int() | str():
            return value
        case float():
            return value if isfinite(value) else {"float": repr(value)}
        case Path():
            return {"path": str(value)}
        case list():
            return [_plain(each) for each in value]
        case dict():
            return {"dict": [[_plain(key), _plain(each)] for key, each in value.items()]}
        case frozenset():
            return {"frozenset": [_plain(each) for each in value]}
        case tuple() if type(value) is tuple:
            return {"tuple": [_plain(each) for each in value]}
        case _ if dataclasses.is_dataclass(value):
            fields = {each.name: _plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
            return {"class": _name(type(value)), "fields": fields}
    raise AssertionError(f"no noun of ours: {type(value)}")


def _value(plain: Any) -> Any:
    match plain:
        case list():
            return [_value(each) for each in plain]
        case {"dict": items}:
            return {_value(key): _value(each) for key, each in items}
        case {"enum": name, "member": member}:
            return _class(name, Enum)[member]
        case {"class": name, "fields": fields}:
            return _class(name, object)(**{key: _value(each) for key, each in fields.items()})
        case dict():
            ((kind, inner),) = plain.items()
            return _BACK[kind](_value(inner))
    return plain


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class(name: str, kind: type) -> Any:
    """Return a class by its name: an enumeration or a dataclass that a module of ours, imported already, defines."""
    module, _, attribute = name.partition(":")
    found = getattr(sys.modules.get(module), attribute, None)
    if (not module.startswith(OURS) or not isinstance(found, type) or found.__module__ != module
            or not (issubclass(found, kind) if kind is Enum else dataclasses.is_dataclass(found))):
        raise ValueError(f"{name} is no noun of ours")
    return found
