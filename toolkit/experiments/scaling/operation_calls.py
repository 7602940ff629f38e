"""Make the function of an operation in the process that measures it: its statement, many times.

Code is loaded as from a `.pyc`, whose constants nobody counts references to: a program's modules are, from their second
run on.  It runs in a module of its own, `operation`, so that objects in the way are named like those of a program.
"""

from __future__ import annotations

import marshal
import sys
import textwrap
import time
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

MODULE = "operation"
LASTS = 3e-5       # seconds of a call: binding its local names, which counts references, costs little beside
SIDE_BY_SIDE = 10  # statements in one pass of the loop, which costs as much as a short statement
MOST_PASSES = 1024
TRIES = 3          # the shortest counts: the first calls are slow, and other programs run, too


def maker(preparation: str, own: str, statement: str, way: str) -> tuple[Callable[[], Callable[[], None]], int]:
    """Return a factory of the function that a thread calls, and the number of statements that a call runs.

    Args:
        preparation: Lines that make the data.
        own: Lines that run in each thread after them.
        statement: Lines to repeat.
        way: "shared": all threads get one function with one set of data; "private": each gets its own.
    """
    setup, after = _compiled(preparation), _compiled(own)
    first = _prepared(setup, after)
    once = _function(first, _compiled(_source(first, statement, 1, 1)))
    beside = SIDE_BY_SIDE if _timed(once) * SIDE_BY_SIDE < LASTS else 1
    passes = 1
    while True:      # until a warm call lasts long enough
        call = _compiled(_source(first, statement, beside, passes))
        seconds = _timed(_function(first, call))
        if seconds * 2 > LASTS or passes >= MOST_PASSES:
            break
        passes = min(MOST_PASSES, passes * max(2, int(LASTS / seconds / 2)))
    if way != "shared":
        return lambda: _function(_prepared(setup, after), call), beside * passes
    if own:
        return lambda: _function(_prepared(after, b"", vars(first)), call), beside * passes
    function = _function(first, call)
    return lambda: function, beside * passes


def _compiled(source: str) -> bytes:
    """Return code in the form of a `.pyc`."""
    return marshal.dumps(compile(source, f"<{MODULE}>", "exec"))


def _prepared(setup: bytes, after: bytes, shared: Mapping[str, Any] | None = None) -> types.ModuleType:
    """Return a module in which both have run, with `shared` names; the last one without is that of its name."""
    module = types.ModuleType(MODULE)
    if shared is None:
        sys.modules[MODULE] = module     # for pickle, dataclasses and names
    vars(module).update(shared or {})
    for code in filter(None, (setup, after)):
        exec(marshal.loads(code), vars(module))  # noqa: S302, S102 - our own operations
    return module


def _function(module: types.ModuleType, call: bytes) -> Callable[[], None]:
    exec(marshal.loads(call), vars(module))  # noqa: S302, S102 - our own operations
    function: Callable[[], None] = vars(module)["call"]
    return function


def _source(module: types.ModuleType, statement: str, beside: int, passes: int) -> str:
    """Return the source of the function; local names are arguments, which stand for objects of the module."""
    local = [name for name, value in vars(module).items() if _is_local(name, value)]
    body = textwrap.indent("\n".join([statement] * beside), " " * 8)
    arguments = ", ".join(f"{name}={name}" for name in local)
    return f"def call({arguments}):\n    for _pass in range({passes}):\n{body}\n"


def _is_local(name: str, value: Any) -> bool:
    return name.islower() and not name.startswith("_") and not isinstance(
        value, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)) and not hasattr(
        value, "cache_info")


def _timed(function: Callable[[], None]) -> float:
    """Return the seconds of the shortest of a few calls."""
    tries = []
    for _ in range(TRIES):
        began = time.perf_counter()
        function()
        tries.append(time.perf_counter() - began)
    return max(min(tries), 1e-9)
