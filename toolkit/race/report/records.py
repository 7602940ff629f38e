"""What a checked process writes of itself, by kind of record: anything else in its file the program has put there."""

from __future__ import annotations

from typing import Any

from gilscope.toolkit.race.report.model import ORDER
from gilscope.toolkit.race.report.sentences import RULES
from gilscope.toolkit.race.verdicts import KINDS

_LARGEST = 2**63       # of a number: what has thousands of digits cannot even be printed
_PLACE = (str, int, str)                                  # path, line, function
_FRAME = (*_PLACE, str)                                   # and the line's text
_ENTRY = (frozenset({str, None}), (_PLACE, _PLACE), str, frozenset(KINDS))   # section, places, base, kind
_SIDE = {
    "thread": str, "verb": str, "place": _FRAME, "stack": [_FRAME], "started": [_FRAME], "text": str, "op": str,
    "locks": [{"uid": int, "name": str, "at": [_PLACE]}], "column": int, "augmented": bool,
    "partner": frozenset({(str, int, int, str, str), None}),
}
_RECORDS: dict[str, dict[str, Any]] = {
    "process": {"core": str, "root": str},
    "race": {
        "section": frozenset({str, None}), "variable": str, "base": str, "kind": frozenset(KINDS),
        "severity": frozenset(ORDER), "rule": frozenset({*RULES, None}), "sort": str, "part": str, "places": [_PLACE],
        "first": _SIDE, "second": _SIDE, "reasons": [_PLACE],
    },
    "shared": {"base": str, "write": _FRAME, "verb": str, "other": _FRAME, "other_verb": str,
               "alike": frozenset({bool, None})},
    "finish": {"counts": [(_ENTRY, int)], "noted": [_PLACE], "used": [(str, int)], "unrewritten": [(str, str)],
               "watched": frozenset({int, None})},
}


def as_record(value: Any) -> dict[str, Any] | None:
    """Return what a line says when it is a record of the checker, with all that is read of it; None: it is none."""
    kind = value.get("t") if type(value) is dict else None
    return value if type(kind) is str and kind in _RECORDS and _fits(value, _RECORDS[kind]) else None


def _fits(value: Any, shape: Any) -> bool:
    """Return whether `value` is as `shape` says.

    A shape is a type, a constant, a dict of shapes by name, a list of one shape, a tuple of the shapes of a list's
    entries, or a set of shapes of which one will do.
    """
    match shape:
        case dict():
            return type(value) is dict and all(name in value and _fits(value[name], each)
                                               for name, each in shape.items())
        case list():
            return type(value) is list and all(_fits(each, shape[0]) for each in value)
        case tuple():
            return type(value) is list and len(value) == len(shape) and all(map(_fits, value, shape))
        case frozenset():
            return any(_fits(value, each) for each in shape)
        case type():
            return type(value) is shape and (type(value) is not int or abs(value) < _LARGEST)
        case _:
            return type(value) is type(shape) and bool(value == shape)
