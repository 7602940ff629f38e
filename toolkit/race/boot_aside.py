"""Our package under another name, for a program that has a `toolkit` of its own.

Our modules import each other as `toolkit.something`.  Here they get builtins of their own, in which `__import__` says
the other name, so that both packages live in one process.
"""

from __future__ import annotations

import builtins
import sys
from importlib.machinery import PathFinder, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

OURS = "toolkit"


class Loader(SourceFileLoader):
    """Executes a module with the builtins in which `toolkit` is ours."""

    names: Mapping[str, Any]

    def exec_module(self, module: ModuleType) -> None:
        """Execute `module`."""
        module.__dict__["__builtins__"] = dict(self.names)
        super().exec_module(module)


class Finder:
    """Finds the modules of our package by its other name."""

    def __init__(self, name: str) -> None:
        self.prefix = name + "."
        self.names = {**vars(builtins), "__import__": self.import_}
        self.name = name

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None,
                  ) -> ModuleSpec | None:
        """Return the spec of one of our modules, None for all others."""
        if not name.startswith(self.prefix):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = loader = Loader(name, spec.loader.path)
            loader.names = self.names
        return spec

    def import_(self, name: str, globals: Any = None, locals: Any = None,  # noqa: A002  the builtin's names
                fromlist: Sequence[str] = (), level: int = 0) -> ModuleType:
        """Import as `__import__` does, except that `toolkit` is ours."""
        if level == 0 and (name == OURS or name.startswith(OURS + ".")):
            name = self.name + name[len(OURS):]
        return builtins.__import__(name, globals, locals, fromlist, level)


def install(name: str) -> None:
    """Let our package be imported as `name`."""
    sys.meta_path.insert(0, Finder(name))
