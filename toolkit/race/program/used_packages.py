"""Find the installed packages that checked code uses and whose own code is not checked, for the report to name them.

Runs at the end of the program, so nothing here may run the program's code: only namespaces of real modules are read.
"""

from __future__ import annotations

import sys
from types import BuiltinFunctionType, FunctionType, ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INSTALLED = ("/site-packages/", "/dist-packages/")
NOT_THE_PROGRAMS = {"pytest", "_pytest", "gilscope"}   # the test runner, and ourselves


def used_packages(paths: set[str], is_project: Callable[[str, str], bool]) -> list[str]:
    """Return the import names of installed packages that __main__ and the modules in `paths` refer to, sorted.

    A package that only an import inside of a function names is not found.

    Args:
        paths: Files of checked code.
        is_project: Returns True for name and source path of a module that is checked.
    """
    # A script's __main__ has lost its __file__ at the end: the interpreter takes it away again.
    checked = [names for module, each in list(sys.modules.items())
               if (names := _names(each)).get("__file__") in paths or module == "__main__"]
    tops = {top for names in checked for value in list(names.values()) if (top := _top(value))}
    return sorted(top for top in tops - NOT_THE_PROGRAMS if any(
        any(part in file for part in INSTALLED) and not is_project(top, file) for file in _files(top)))


def _names(module: object) -> dict[str, object]:
    return vars(module) if isinstance(module, ModuleType) else {}


def _top(value: object) -> str:
    """Return the top-level module that a module, class or function comes from; "" for another object."""
    if isinstance(value, ModuleType):
        name: object = vars(value).get("__name__")
    elif type(value) in {FunctionType, BuiltinFunctionType}:
        name = value.__module__
    elif isinstance(value, type):
        name = type.__dict__["__dict__"].__get__(value).get("__module__")
    else:
        return ""
    return name.partition(".")[0] if isinstance(name, str) else ""


def _files(name: str) -> Iterator[str]:
    """Yield the file of a module, or a folder of a namespace package, as the import system noted it."""
    names = _names(sys.modules.get(name))
    if isinstance(file := names.get("__file__"), str):
        yield file
    elif (path := names.get("__path__")) is not None:
        yield from (f"{folder}/" for folder in list(path) if isinstance(folder, str))   # type: ignore[call-overload]
