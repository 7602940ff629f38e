"""Values of calls: new equal objects, variations of an argument, and texts by which results are compared.

Runs in the build under test: imports little.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LONGEST = 300      # characters of a compared text
ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
BIG = 2**70
SMALL = 1024         # up to which integers may be immortal


def fresh(value: Any) -> Any:
    """Return an equal object that nobody else has, where the type is known and such objects exist.

    Constants of a program are immortal or shared: a missing INCREF on one of them would go unnoticed.
    """
    kind = type(value)
    if kind is str or kind is bytes:
        return value[:1] + value[1:] if len(value) > 1 else value   # short ones exist once
    if kind is int:
        return value + BIG - BIG
    if kind is float:
        return value * 1.0
    if kind in {list, tuple, set, frozenset}:
        return kind(fresh(each) for each in value)
    if kind is dict:
        return {fresh(key): fresh(each) for key, each in value.items()}
    return bytearray(value) if kind is bytearray else value


def with_fresh_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
                         ) -> Callable[[], Any]:
    """Return a call whose arguments are new objects each time, made by code as short as can be.

    The shorter the rest of a loop is, the larger is the share of the called function in it.
    """
    names: dict[str, Any] = {"function": function}
    words = [_expression(each, names) for each in args]
    words += [f"{name}={_expression(value, names)}" for name, value in kwargs.items()]
    made: Callable[[], Any] = eval(f"lambda: function({', '.join(words)})", names)  # noqa: S307  made here
    return made


def _expression(value: Any, names: dict[str, Any]) -> str:
    """Return source that makes an equal object, with what it needs in `names`."""
    def name(one: Any) -> str:
        names[f"value{len(names)}"] = one
        return f"value{len(names) - 1}"

    kind = type(value)
    if (kind is str or kind is bytes) and len(value) > 1:
        return f"{name(value[:-1])} + {name(value[-1:])}"
    if kind is float:
        return f"{name(value)} * 1.0"
    if kind is int and abs(value) > SMALL:
        return f"{name(value - 1)} + 1"
    if kind is tuple and value:
        return f"({''.join(f'{_expression(each, names)}, ' for each in value)})"
    if kind in {list, set, dict, frozenset, bytearray}:
        names["fresh"] = fresh
        return f"fresh({name(value)})"
    return name(value)


def varied(value: Any, number: int) -> Any:
    """Return a value of the same kind, different for each number; the value itself for number 0."""
    kind = type(value)
    if not number:
        return fresh(value)
    if kind is str:
        return f"{value}{number}"
    if kind is bytes:
        return value + b"%d" % number
    if kind is int or kind is float:
        return value + number
    if kind is tuple and value:
        return (varied(value[0], number), *value[1:])
    return fresh(value)


def can_vary(value: Any) -> bool:
    """Return True if `varied` makes a different value."""
    kind = type(value)
    return kind in {str, bytes, int, float} or (kind is tuple and bool(value) and can_vary(value[0]))


def as_text(value: Any, depth: int = 4) -> str:
    """Return a text that equal results share, whatever their addresses, and the order of sets."""
    kind = type(value)
    if value is None or kind in {bool, int, float, complex, str, bytes, bytearray, range}:
        return _cut(repr(value))
    if depth and kind in {list, tuple}:
        return _cut(f"{kind.__name__}({', '.join(as_text(each, depth - 1) for each in value[:100])}; {len(value)})")
    if depth and kind in {set, frozenset}:
        return _cut(f"{kind.__name__}({', '.join(sorted(as_text(each, depth - 1) for each in value))})")
    if depth and kind is dict:
        parts = sorted(f"{as_text(key, depth - 1)}: {as_text(each, depth - 1)}" for key, each in value.items())
        return _cut(f"dict({', '.join(parts)})")
    return f"{kind.__module__}.{kind.__qualname__}{_own_text(value, kind)}"


def _own_text(value: Any, kind: type) -> str:
    """Return the repr of an object of another type; "" if it only has the object's address."""
    if getattr(kind, "__repr__", None) is object.__repr__:
        return ""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  of the project's code
        return f" without repr ({type(error).__name__})"
    return "" if ADDRESS.search(text) else f" {_cut(text)}"


def _cut(text: str) -> str:
    # The hash of a text differs between processes; its length does not.
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... {len(text)} characters"
