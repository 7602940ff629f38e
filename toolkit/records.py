"""Dataclasses as JSON and back, checked on reading against their type hints.

Each file, message and journal of ours whose form is a dataclass goes through `to_plain` and `from_plain`.  The JSON may
be damaged or edited: a `DamagedError` names the field by its path and shows the value; the caller adds the file's name.
Hints may be plain types, paths, enumerations, `Literal`, dataclasses, tuples, lists, mappings, and unions in which at
most one member is a mapping, at most one is a list, and no two dataclasses have the same fields.  A mapping whose keys
are numbers or tuples is a list of pairs in JSON.

Runs under Python 3.9 where the hints do, and in measured processes: imports little.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import types
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeGuard

    from _typeshed import DataclassInstance

T = TypeVar("T")

LARGEST = 2**63        # no count of ours comes near it, and Python refuses to print a number of thousands of digits
_LONGEST_SHOWN = 60    # characters
_UNIONS = (Union, getattr(types, "UnionType", Union))   # Python 3.9 has no `int | None`


class DamagedError(ValueError):
    """A field that does not hold what gilscope writes there; the message names it and shows the value."""


def to_plain(record: DataclassInstance) -> dict[str, Any]:
    """Return a dataclass as JSON holds it: objects, lists, text, numbers and null."""
    return {field.name: plain_value(getattr(record, field.name)) for field in dataclasses.fields(record)}


def plain_value(value: Any) -> Any:
    """Return any value that a field may have as JSON holds it."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [plain_value(each) for each in value]
    if isinstance(value, Mapping):
        items = [(plain_value(key), plain_value(each)) for key, each in value.items()]
        return dict(items) if all(isinstance(key, str) for key, _ in items) else [[*item] for item in items]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return to_plain(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


def from_plain(kind: type[T], plain: object, path: str = "", *, finite: bool = True) -> T:  # noqa: UP047  for 3.9
    """Return the object that `to_plain` or `plain_value` was given.

    Args:
        kind: The dataclass, or another type that a field may have.
        plain: Parsed JSON.
        path: The record's place in its file, in front of the names of its fields; "": it is the file.
        finite: Refuse NaN and infinities.

    Raises:
        DamagedError: A field is missing, unknown, or of another type.
    """
    try:
        record: T = _form(cast("Any", kind), finite=finite).read(plain)
    except _MismatchError as error:
        where = path + error.path if path else error.path.removeprefix(".")
        raise DamagedError(f"{where or 'it'} {error.problem}") from error.__cause__
    return record


def is_number(value: object) -> TypeGuard[float]:
    """Return True if `value` is a finite number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def is_count(value: object) -> TypeGuard[int]:
    """Return True if `value` is a whole number of a size that can be printed."""
    return isinstance(value, int) and not isinstance(value, bool) and -LARGEST < value < LARGEST


def shown(value: object) -> str:
    """Return a value as a message shows it: on one line, a long one cut off."""
    try:
        text = ascii(value)
    except (ValueError, RecursionError):   # a number of more digits than Python prints, or lists nested too deeply
        return f"a {type(value).__name__} too large to show"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}... ({len(text)} characters)"


class _MismatchError(Exception):
    """A value that does not fit its hint; whatever it is part of puts its own path in front."""

    def __init__(self, problem: str) -> None:
        self.problem, self.path = problem, ""


@dataclasses.dataclass(frozen=True)
class _Form:
    """The form of one type's values in JSON."""

    words: str
    fits: Callable[[Any], bool]                       # does not look at what a list or an object contains
    make: Callable[[Any], Any] = lambda plain: plain  # raises _MismatchError for what it contains
    fields: frozenset[str] | None = None              # of a dataclass

    def read(self, plain: Any) -> Any:
        """Return the value that stands there."""
        if self.fits(plain):
            return self.make(plain)
        raise _MismatchError(f"is {shown(plain)}, not {self.words}")


@functools.cache
def _form(hint: Any, *, finite: bool) -> _Form:  # noqa: PLR0911 - one answer per kind of hint
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in _UNIONS:
        return _union_form([_form(each, finite=finite) for each in inner])
    if kind is Literal:
        return _Form(" or ".join(map(str, inner)), inner.__contains__)
    if kind in {tuple, list}:
        return _list_form(kind, [_form(each, finite=finite) for each in inner if each is not Ellipsis],
                          any_length=kind is list or Ellipsis in inner)
    if dataclasses.is_dataclass(kind):
        return _Form("an object", _is_object, functools.partial(_make_record, kind, finite),
                     frozenset(field.name for field in dataclasses.fields(kind)))
    if _is_class(kind, Mapping):
        return _mapping_form(*(inner or (str, Any)), finite=finite)
    if _is_class(kind, Enum):
        values = [each.value for each in kind]
        return _Form(" or ".join(map(str, values)), values.__contains__, kind)
    if _is_class(kind, os.PathLike):
        return _Form("a path", lambda plain: isinstance(plain, str), kind)
    return _plain_form(kind, finite=finite)


def _mapping_form(key: Any, value: Any, *, finite: bool) -> _Form:
    form = _form(value, finite=finite)
    if key is not int and get_origin(key) is not tuple:
        return _Form("an object", _is_object, lambda plain: dict(_read_fields(plain, dict.fromkeys(plain, form))))
    pair = _list_form(tuple, [_form(key, finite=finite), form], any_length=False)
    pairs = _list_form(dict, [pair], any_length=True)
    # An empty mapping is written as an object: nothing says what its keys would be.
    return dataclasses.replace(pairs, fits=lambda plain: pairs.fits(plain) or plain == {})


def _union_form(forms: Sequence[_Form]) -> _Form:
    records = [each.fields for each in forms if each.fields is not None]
    assert len({*records}) == len(records), "two dataclasses of a union have the same fields"

    def make(plain: Any) -> Any:
        fitting = {each.fields: each for each in reversed(forms) if each.fits(plain)}
        # A dataclass is written with all of its fields, so their names tell which of several it is.
        named = fitting.get(frozenset(plain)) if _is_object(plain) else None
        return (named or fitting.get(None) or next(reversed(fitting.values()))).make(plain)

    return _Form(" or ".join(each.words for each in forms), lambda plain: any(each.fits(plain) for each in forms), make)


def _plain_form(kind: Any, *, finite: bool) -> _Form:
    forms: dict[Any, _Form] = {
        str: _Form("text", lambda plain: isinstance(plain, str)),
        int: _Form("a whole number", is_count),
        float: _Form("a finite number" if finite else "a number",
                     lambda plain: is_number(plain) or (not finite and isinstance(plain, float))),
        bool: _Form("true or false", lambda plain: isinstance(plain, bool)),
        type(None): _Form("null", lambda plain: plain is None),
        Any: _Form("anything", lambda _: True),
    }
    return forms[kind]


def _list_form(kind: type, forms: Sequence[_Form], *, any_length: bool) -> _Form:
    def make(plain: Sequence[Any]) -> Any:
        each = [*forms] * len(plain) if any_length else forms
        if len(each) != len(plain):
            raise _MismatchError(f"is {shown(plain)}, not a list of {len(each)}")
        return kind(_read_entries(plain, each))

    return _Form("a list", lambda plain: isinstance(plain, (list, tuple)), make)


def _read_entries(plain: Sequence[Any], forms: Iterable[_Form]) -> Iterator[Any]:
    for number, (entry, form) in enumerate(zip(plain, forms)):  # noqa: B905  Python 3.9 has no `strict`
        try:
            yield form.read(entry)
        except _MismatchError as error:
            error.path = f"[{number}]{error.path}"
            raise


def _read_fields(plain: Mapping[str, Any], forms: Mapping[str, _Form]) -> Iterator[tuple[str, Any]]:
    for name, value in plain.items():
        try:
            yield name, forms[name].read(value)
        except _MismatchError as error:
            error.path = f".{name}{error.path}"
            raise


def _make_record(kind: Any, finite: bool, plain: dict[str, Any]) -> Any:  # noqa: FBT001 - of a `partial`
    forms, needed = _fields(kind, finite=finite)
    if unknown := [name for name in plain if name not in forms]:
        raise _MismatchError(f"has an unknown field {shown(unknown[0])}")
    if missing := [name for name in needed if name not in plain]:
        raise _MismatchError(f"lacks {missing[0]}")
    values = dict(_read_fields(plain, forms))
    try:
        return kind(**values)
    except ValueError as error:   # of its own checks
        raise _MismatchError(f"is not possible: {error}") from error


@functools.cache
def _fields(kind: Any, *, finite: bool) -> tuple[dict[str, _Form], tuple[str, ...]]:
    """Return the forms of the fields of a dataclass, and the names of those without a default."""
    hints, fields = get_type_hints(kind), dataclasses.fields(kind)
    needed = [field.name for field in fields
              if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING]
    return {field.name: _form(hints[field.name], finite=finite) for field in fields}, tuple(needed)


def _is_object(plain: Any) -> bool:
    return isinstance(plain, dict)


def _is_class(kind: Any, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)
