"""Patch modules when the program imports them, without importing them earlier."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Patch = Callable[[ModuleType], None]


class ImportPatcher:
    """A finder at the front of sys.meta_path that adds a patch to the specs of a few modules."""

    def __init__(self, patches: Mapping[str, Patch]) -> None:
        self._patches = patches

    def start(self) -> None:
        """Patch modules that are imported already, and watch for the others."""
        sys.meta_path.insert(0, self)
        for name, patch in self._patches.items():
            module = sys.modules.get(name)
            # A module that another thread is importing right now is patched at the end of that import.
            if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
                patch(module)

    def stop(self) -> None:
        """Stop watching imports."""
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]

    def find_spec(self, name: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of the other finders, with a loader that patches the module, None for other modules."""
        patch = self._patches.get(name)
        if patch is None:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec: Any = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = PatchingLoader(spec.loader, patch)
                found: ModuleSpec = spec
                return found
        return None


class PatchingLoader:
    """The loader of a module to patch; the real loader replaces it before the module's code runs."""

    def __init__(self, loader: Any, patch: Patch) -> None:
        self._loader = loader
        self._patch = patch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module with the real loader."""
        create = getattr(self._loader, "create_module", None)
        return None if create is None else create(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Restore the real loader in the module's attributes, run the module with it, then patch it."""
        spec = module.__spec__
        if spec is not None and getattr(spec, "loader", None) is self:
            spec.loader = self._loader
        if getattr(module, "__loader__", None) is self:
            module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._patch(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
