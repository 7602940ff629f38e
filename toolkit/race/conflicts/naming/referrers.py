"""Who refers to an object: an attribute, a module's global or a closure variable.  Bounded in number and time."""

from __future__ import annotations

import gc
import sys
import time
from types import CellType, FunctionType, ModuleType
from typing import TYPE_CHECKING

from gilscope.toolkit.race.conflicts import safe_inspection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

SECONDS = 0.5     # all searches of a process together; one looks at every object there is
SEARCHES = 40
_clock = time.perf_counter
_code = FunctionType.__dict__["__code__"].__get__
_closure = FunctionType.__dict__["__closure__"].__get__
_cell = CellType.__dict__["cell_contents"].__get__


class Referrers:
    """Finds names for objects, as long as its time lasts.

    Args:
        files: Returns the paths of the modules whose classes and globals may lend a name: what a test runner or the
            standard library keeps of an object says nothing to its author.  None for all.
        seconds: For all searches together.
        searches: At most so many.
    """

    def __init__(self, files: Callable[[], set[str]] | None = None, seconds: float = SECONDS,
                 searches: int = SEARCHES) -> None:
        self._files = files
        self._seconds = seconds
        self._searches = searches

    def name(self, value: Any, paths: tuple[str, ...] = ()) -> str | None:
        """Return a name of the object, the same in every run where possible, or None when there is none.

        First a global of the files at `paths`, then an attribute of a class or instance, another module's global, a
        closure variable.
        """
        files = None if self._files is None else self._files()
        namespaces = {name: module for name, module in _modules() if files is None or module.get("__file__") in files}
        for path in paths:
            for module, namespace in namespaces.items():
                if namespace.get("__file__") == path and (found := _key_of(namespace, value)):
                    return found if module == "__main__" or len(paths) == 1 else f"{found} of {module}"
        return self._search(value, namespaces)

    def _search(self, value: Any, namespaces: dict[str, dict[str, Any]]) -> str | None:
        if self._seconds <= 0 or self._searches <= 0:
            return None
        self._searches -= 1
        started = _clock()
        try:
            # On a free-threaded build this stops the other threads for as long.
            files = None if self._files is None else self._files()
            found = list(_names(gc.get_referrers(value), value, namespaces, files))
            return min(found)[1] if found else None
        finally:
            self._seconds -= _clock() - started


def _modules() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, module in safe_inspection.snapshot(sys.modules):
        if type(name) is str and issubclass(type(module), ModuleType):
            namespace = safe_inspection.instance_dict(module)
            if namespace is not None:
                yield name, namespace


def _names(referrers: list[Any], value: Any, namespaces: dict[str, dict[str, Any]],
           files: set[str] | None) -> Iterator[tuple[int, str]]:
    """Yield rank and text of what refers to the object; the lowest rank is what its author would say first."""
    of_modules = {id(namespace): name for name, namespace in namespaces.items()}
    for referrer in referrers:
        kind = type(referrer)
        if kind is dict:
            if id(referrer) in of_modules:
                if found := _key_of(referrer, value):
                    yield 2, f"{found} of {of_modules[id(referrer)]}"
            elif found := _key_of(referrer, value):
                owner = type(_instance_with(referrer))
                if files is None or _module_of(owner) in namespaces:
                    yield 1, f"{safe_inspection.class_name(owner)}.{found}"
        elif kind is CellType:
            yield from _of_cell(referrer, files)
        else:
            owner = referrer if safe_inspection.is_class(referrer) else kind
            if files is None or _module_of(owner) in namespaces:
                found_in = [name for name, item in safe_inspection.attributes(referrer) if item is value]
                yield from ((1, f"{safe_inspection.class_name(owner)}.{name}") for name in found_in)


def _module_of(cls: Any) -> str:
    name = safe_inspection.class_members(cls).get("__module__")
    return name if type(name) is str else ""


def _instance_with(namespace: dict[str, Any]) -> Any:
    """Return the instance that keeps its attributes in this dict, or None."""
    owners = (owner for owner in gc.get_referrers(namespace) if type(owner) is not dict)
    return next((owner for owner in owners if safe_inspection.instance_dict(owner) is namespace), None)


def _of_cell(cell: Any, files: set[str] | None) -> Iterator[tuple[int, str]]:
    for function in gc.get_referrers(cell):
        for owner in [function] if type(function) is FunctionType else _functions(function):
            for name, each in zip(_code(owner).co_freevars, _closure(owner) or (), strict=False):
                if each is cell and (files is None or _code(owner).co_filename in files):
                    outer = _code(owner).co_qualname.rpartition(".<locals>.")[0]
                    yield 3, f"{name} of {safe_inspection.short_function(outer)}"
                    return


def _functions(closure: Any) -> list[Any]:
    """Return the functions whose closure this tuple is."""
    if type(closure) is not tuple:
        return []
    return [each for each in gc.get_referrers(closure) if type(each) is FunctionType]


def _key_of(namespace: dict[str, Any], value: Any) -> str | None:
    found = [name for name, item in safe_inspection.snapshot(namespace) if item is value and type(name) is str]
    return min(found) if found else None
