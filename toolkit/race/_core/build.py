"""Provide the C core: load it from gilscope's cache, or compile it for the running build first.

The checked program waits for this at its start, so loading a compiled core imports nothing that the program might not
import itself.
"""

from __future__ import annotations

import os
import sys

from gilscope.toolkit.race.core import NO_VALUE, CoreUnavailableError
from gilscope.toolkit.user_dirs import cache_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

CHOICE = "GILSCOPE_RACE_CORE"      # "python" or "c": what a user may insist on
NAME = "gilscope.toolkit.race._core._core"
_FOLDER = os.path.dirname(os.path.abspath(__file__))


def load(on_compile: Callable[[], object] | None = None) -> ModuleType:
    """Return the C core, compiled now if no earlier run did.

    Args:
        on_compile: Called before a compilation, which takes some seconds.

    Raises:
        CoreUnavailableError: The compiler or the headers of this Python are missing, the core does not compile or
            load, or the user insists on the core in Python.
    """
    if os.environ.get(CHOICE) == "python":
        raise CoreUnavailableError(f"{CHOICE}=python asks for the core in Python")
    loaded = sys.modules.get(NAME)
    if loaded is not None:
        return loaded
    path = os.path.join(cache_folder(), "race-core", _key(), "_core.so")
    if not os.path.exists(path):
        from gilscope.toolkit.race._core.compiling import compile_core

        compile_core(_FOLDER, path, on_compile)
    return _load(path)


def sources() -> list[str]:
    """Return the paths of the C sources, in a fixed order."""
    return sorted(os.path.join(folder, name) for folder, _, files in os.walk(_FOLDER) for name in files
                  if name.endswith((".c", ".h")))


def revive(fields: tuple[Any, ...], number: int) -> object:
    """Return the site of a pickled code object: the same site here, or a new one in a process without it."""
    from gilscope.toolkit.race.site import SiteInfo, all_sites, register_sites

    info = SiteInfo(*fields)
    if number >= len(all_sites) or all_sites[number] != info:
        info = info._replace(partners=())     # their numbers are those of other sites here
        number = register_sites([info])
    return load().site(info, number)


def _key() -> str:
    """Return a name that changes with the build and the sources, which sizes and times of files identify."""
    parts = [sys.version, sys.implementation.cache_tag or "", sys.base_prefix, getattr(sys, "abiflags", "")]
    for path in (*sources(), sys.executable):
        found = os.stat(path)
        parts.append(f"{os.path.basename(path)}:{found.st_size}:{found.st_mtime_ns}")
    return format(_fnv("\n".join(parts).encode()), "016x")


def _fnv(text: bytes) -> int:
    """Return the 64-bit FNV-1a hash, since importing hashlib takes longer than everything else here."""
    number = 0xCBF29CE484222325
    for byte in text:
        number = (number ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return number


def _load(path: str) -> ModuleType:
    from _imp import create_dynamic, exec_dynamic
    from importlib.machinery import ExtensionFileLoader, ModuleSpec

    spec = ModuleSpec(NAME, ExtensionFileLoader(NAME, path), origin=path)
    try:
        module: ModuleType = create_dynamic(spec)
        exec_dynamic(module)
    except (ImportError, OSError) as error:
        raise CoreUnavailableError(f"the compiled core cannot be loaded: {error}") from error
    module.acquaint(NO_VALUE, revive, os.path.dirname(_FOLDER) + os.sep)
    module.__spec__ = spec
    sys.modules[NAME] = module
    return module
