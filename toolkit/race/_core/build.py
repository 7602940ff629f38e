"""Have the C core: compile it for the running build into gilscope's cache, or load what an earlier run compiled.

The checked program waits for this at its start, so that what is already compiled is loaded without importing anything
that the program might not import itself.
"""

from __future__ import annotations

import os
import sys

from gilscope.toolkit.race.core import NO_VALUE, UnavailableError

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
        UnavailableError: There is no compiler, or no header of this Python, or the core does not compile or load; or
            the user insists on the core in Python.
    """
    if os.environ.get(CHOICE) == "python":
        raise UnavailableError(f"{CHOICE}=python asks for the core in Python")
    loaded = sys.modules.get(NAME)
    if loaded is not None:
        return loaded
    path = os.path.join(_cache_dir(), "race-core", _key(), "_core.so")
    if not os.path.exists(path):
        from gilscope.toolkit.race._core.compiling import compile_core

        compile_core(_FOLDER, path, on_compile)
    return _load(path)


def sources() -> list[str]:
    """Return the paths of the C sources, in a fixed order."""
    return sorted(os.path.join(folder, name) for folder, _, files in os.walk(_FOLDER) for name in files
                  if name.endswith((".c", ".h")))


def revive(fields: tuple[Any, ...], number: int) -> object:
    """Return the site of a pickled code object: the same one here, or a new one where the process knows it not."""
    from gilscope.toolkit.race import site_registry
    from gilscope.toolkit.race.site import SiteInfo

    info = SiteInfo(*fields)
    if number >= len(site_registry.sites) or site_registry.sites[number] != info:
        info = info._replace(partners=())     # their numbers mean other places here
        number = site_registry.add([info])
    return load().site(info, number)


def _key() -> str:
    """Return a name that changes with the sources and with the build: its files' sizes and times stand for them."""
    parts = [sys.version, sys.implementation.cache_tag or "", sys.base_prefix, getattr(sys, "abiflags", "")]
    for path in (*sources(), sys.executable):
        found = os.stat(path)
        parts.append(f"{os.path.basename(path)}:{found.st_size}:{found.st_mtime_ns}")
    return format(_fnv("\n".join(parts).encode()), "016x")


def _fnv(text: bytes) -> int:
    """Return the 64-bit FNV-1a hash: hashlib would cost more to import than all the rest."""
    number = 0xCBF29CE484222325
    for byte in text:
        number = (number ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return number


def _cache_dir() -> str:
    """Return what gilscope.toolkit.builds.user_dirs.cache_dir does, without pathlib."""
    if chosen := os.environ.get("GILSCOPE_CACHE"):
        return os.path.abspath(os.path.expanduser(chosen))
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(xdg if os.path.isabs(xdg) else os.path.expanduser("~/.cache"), "gilscope")


def _load(path: str) -> ModuleType:
    from _imp import create_dynamic, exec_dynamic
    from importlib.machinery import ExtensionFileLoader, ModuleSpec

    spec = ModuleSpec(NAME, ExtensionFileLoader(NAME, path), origin=path)
    try:
        module: ModuleType = create_dynamic(spec)
        exec_dynamic(module)
    except (ImportError, OSError) as error:
        raise UnavailableError(f"the compiled core cannot be loaded: {error}") from error
    module.acquaint(NO_VALUE, revive, os.path.dirname(_FOLDER) + os.sep)
    module.__spec__ = spec
    sys.modules[NAME] = module
    return module
