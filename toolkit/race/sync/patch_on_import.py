"""Patch modules when the program imports them, without importing them for it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Patch = Callable[[ModuleType], None]


class Later:
    """A finder in front of sys.meta_path that answers for a few names, with what the finders behind it found."""

    def __init__(self, patches: Mapping[str, Patch]) -> None:
        self._patches = patches

    def start(self) -> None:
        """Patch what is imported already, and watch for the rest."""
        sys.meta_path.insert(0, self)
        for name, patch in self._patches.items():
            module = sys.modules.get(name)
            # One that another thread is importing right now is patched at the end of that import.
            if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
                patch(module)

    def stop(self) -> None:
        """Watch no longer."""
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]

    def find_spec(self, name: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec that the import system would find without us, with a loader that patches afterwards."""
        patch = self._patches.get(name)
        if patch is None:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec: Any = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = Patching(spec.loader, patch)
                found: ModuleSpec = spec
                return found
        return None


class Patching:
    """The loader of a module to patch; gives way to the real one before the module's code runs."""

    def __init__(self, loader: Any, patch: Patch) -> None:
        self._loader = loader
        self._patch = patch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create as the real loader does."""
        create = getattr(self._loader, "create_module", None)
        return None if create is None else create(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with its real loader in all the places where programs look for it, then patch it."""
        spec = module.__spec__
        if spec is not None and getattr(spec, "loader", None) is self:
            spec.loader = self._loader
        if getattr(module, "__loader__", None) is self:
            module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._patch(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
