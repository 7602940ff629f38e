"""Rewrite existing functions: those of project modules that were imported before the session started.

A function keeps its identity, defaults, closure and references; only its code is replaced during the session.  A call
in progress ends with the code it began with.  Kept apart, since only `watch` needs it.
"""

from __future__ import annotations

import functools
import gc
import sys
from types import CellType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING

from gilscope.toolkit.race.loading.hook import link
from gilscope.toolkit.race.rewrite import compile_rewritten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.loading.hook import IsProject, OnLoad

    Place = tuple[int, str]     # first line and qualified name; several lambdas may share one
    Pair = tuple[CodeType, CodeType]    # a function's code as Python compiles it, and rewritten

# Types of objects that functions are reached through: classes, decorators, registries.
CONTAINERS = (type, dict, list, tuple, CellType, property, staticmethod, classmethod, functools.partial)


def attach(core: Core, is_project: IsProject, on_load: OnLoad | None = None) -> Callable[[], None]:
    """Replace the code of functions in imported project modules; return the function that restores it.

    Args:
        core: The core that makes the site objects.
        is_project: Returns True for name and source path of a module to rewrite.
        on_load: Called with the path of a module, and why it is not rewritten, or "" if it is.
    """
    rewritten: dict[str, dict[Place, list[Pair]]] = {}
    names: list[object] = []
    for module, path in _modules():
        if is_project(vars(module).get("__name__", ""), path):
            names.append(vars(module))
            if path not in rewritten:
                rewritten[path] = _codes_of(path, core, on_load)
    changed = []
    for function in _functions(names):
        old = function.__code__
        pairs = rewritten.get(old.co_filename, {}).get(_place(old), ())
        # Code that differs from the file's, such as of an older version, stays unchanged.
        new = next((new for original, new in pairs if original == old), None)
        if new is not None and _fits(old, new):
            function.__code__ = new
            changed.append((function, old, new))

    def undo() -> None:
        for function, old, new in changed:
            if function.__code__ is new:
                function.__code__ = old

    return undo


def _modules() -> Iterator[tuple[ModuleType, str]]:
    """Yield each imported module with a source, and its path."""
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            path = vars(module).get("__file__")
            if isinstance(path, str) and path.endswith(".py"):
                yield module, path


def _functions(roots: list[object]) -> Iterator[FunctionType]:
    """Yield each function once: those that the garbage collector knows, and those reachable from `roots`.

    Neither alone is sufficient: any object may refer to functions, and the collector of 3.13t loses most of them once a
    thread has ended.
    """
    # Not isinstance: it reads __class__, which runs code of the program on proxies.
    pending = [each for each in gc.get_objects() if type(each) is FunctionType] + roots
    seen: dict[int, object] = {}
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen[id(each)] = each
        if type(each) is FunctionType:
            yield each
            pending += [each.__dict__, *(each.__closure__ or ())]   # not its globals, which may be another module's
        elif issubclass(type(each), CONTAINERS):
            pending += [inner for inner in gc.get_referents(each)
                        if issubclass(type(inner), (FunctionType, *CONTAINERS))]


def _codes_of(path: str, core: Core, on_load: OnLoad | None) -> dict[Place, list[Pair]]:
    """Return the code of all functions in a file, original and rewritten, by their places."""
    try:
        with open(path, "rb") as file:
            source = file.read()
        plain = compile(source, path, "exec", dont_inherit=True)
        # Without tokens for closure variables: an existing function cannot get another cell.
        code = link(*compile_rewritten(source, path, cells=False), core)
    except Exception as error:  # noqa: BLE001  the program must run even if the rewriter has a bug
        if on_load:
            on_load(path, f"{type(error).__name__}: {error}")
        return {}
    if on_load:
        on_load(path, "")
    originals, found = _by_place(plain), _by_place(code)
    return {place: list(zip(codes, found[place], strict=True)) for place, codes in originals.items()
            if len(found.get(place, ())) == len(codes)}


def _by_place(code: CodeType) -> dict[Place, list[CodeType]]:
    places: dict[Place, list[CodeType]] = {}
    for each in _walk(code):
        places.setdefault(_place(each), []).append(each)
    return places


def _walk(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _walk(constant)


def _place(code: CodeType) -> Place:
    return code.co_firstlineno, code.co_qualname


def _fits(old: CodeType, new: CodeType) -> bool:
    """Return True if a function with the old code can run the new one: same parameters, same closure."""
    return (old.co_freevars == new.co_freevars and old.co_flags == new.co_flags
            and old.co_argcount == new.co_argcount and old.co_kwonlyargcount == new.co_kwonlyargcount
            and old.co_varnames[:old.co_argcount] == new.co_varnames[:new.co_argcount])
