"""Rewrite functions that exist already: those of project modules that were imported before the checking began.

A function keeps its identity, its defaults, its closure and everything that refers to it; only its code is another one,
for as long as the checking lasts.  A call that is in progress ends with the code it began with.
"""

from __future__ import annotations

import functools
import gc
import sys
from types import CellType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING

from gilscope.toolkit.race.loading.link import link
from gilscope.toolkit.race.rewrite import compile_rewritten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.loading.hook import IsProject, Report

    Place = tuple[int, str]     # first line and qualified name; several lambdas may share one
    Pair = tuple[CodeType, CodeType]    # a function's code as Python compiles it, and rewritten

# What functions are reached through: classes, decorators, registries.
CONTAINERS = (type, dict, list, tuple, CellType, property, staticmethod, classmethod, functools.partial)


def attach(core: Core, is_project: IsProject, on_unrewritable: Report | None = None) -> Callable[[], None]:
    """Give the functions of imported project modules rewritten code; return what gives the old one back.

    Args:
        core: What the sites are linked with.
        is_project: Whether the module of this name and source path is rewritten.
        on_unrewritable: Called with the path and the reason for a module, or functions of it, left as they are.
    """
    rewritten: dict[str, dict[Place, list[Pair]]] = {}
    names: list[object] = []
    for module, path in _modules():
        if is_project(vars(module).get("__name__", ""), path):
            names.append(vars(module))
            if path not in rewritten:
                rewritten[path] = _codes_of(path, core, on_unrewritable)
    changed = []
    for function in _functions(names):
        old = function.__code__
        pairs = rewritten.get(old.co_filename, {}).get(_place(old), ())
        # What was compiled from another text, or changed since, is not what the file says: it stays.
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
    """Yield every imported module that has a source, and its path."""
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            path = vars(module).get("__file__")
            if isinstance(path, str) and path.endswith(".py"):
                yield module, path


def _functions(roots: list[object]) -> Iterator[FunctionType]:
    """Yield every function once: those that the collector knows, and those that are found from `roots`.

    Either alone is not enough.  Functions may hide in any object; and 3.13t's collector forgets most of them once a
    thread has ended.
    """
    # Not isinstance: it asks objects for their __class__, which proxies answer with code of the program.
    pending = [each for each in gc.get_objects() if type(each) is FunctionType] + roots
    seen: dict[int, object] = {}
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen[id(each)] = each
        if type(each) is FunctionType:
            yield each
            pending += [each.__dict__, *(each.__closure__ or ())]   # not its globals: they are another module's
        elif issubclass(type(each), CONTAINERS):
            pending += [inner for inner in gc.get_referents(each)
                        if issubclass(type(inner), (FunctionType, *CONTAINERS))]


def _codes_of(path: str, core: Core, on_unrewritable: Report | None) -> dict[Place, list[Pair]]:
    """Return the code of all functions in a file, with its rewritten and linked form, by their places."""
    try:
        with open(path, "rb") as file:
            source = file.read()
        plain = compile(source, path, "exec", dont_inherit=True)
        # Without the cells that tell activations apart: a function that exists cannot get another one.
        code = link(*compile_rewritten(source, path, cells=False), core)
    except Exception as error:  # noqa: BLE001  the program must run, whatever is wrong with a file or our rewriting
        if on_unrewritable:
            on_unrewritable(path, f"{type(error).__name__}: {error}")
        return {}
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
    """Tell whether a function with the old code can run the new one: same parameters, same closure."""
    return (old.co_freevars == new.co_freevars and old.co_flags == new.co_flags
            and old.co_argcount == new.co_argcount and old.co_kwonlyargcount == new.co_kwonlyargcount
            and old.co_varnames[:old.co_argcount] == new.co_varnames[:new.co_argcount])
