"""Provide the C core: from the installed wheel, from gilscope's cache, or made for the running build first.

The checked program waits for this at its start, so loading a core imports nothing that the program might not import
itself.
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

NAME = "gilscope.toolkit.race._core._core"
KEY = 0x67696C73                   # of the hash of the sources: any number
_FOLDER = os.path.dirname(os.path.abspath(__file__))


def load(on_compile: Callable[[float], object] | None = None) -> ModuleType:
    """Return the core: the one that this process has loaded, or else the first of these that works.

    1. The file for this build in the installed wheel.
    2. The one that an earlier run put into the cache.
    3. The one in gilscope's wheel for this build, which the installer gets; not in a checkout, which has no wheel.
    4. A compiled one.

    Args:
        on_compile: Called with the seconds that a compilation has taken so far: 0 before it, 10, 20, 40, ...

    Raises:
        CoreUnavailableError: None works.
    """
    loaded = sys.modules.get(NAME)
    if loaded is not None:
        return loaded
    refused = ""
    installed = os.path.join(_FOLDER, file_name())
    if os.path.exists(installed):
        try:
            return load_file(installed)
        except CoreUnavailableError as error:
            refused = str(error)
    path = os.path.join(cache_folder(), "race-core", _key(), "_core.so")
    if not os.path.exists(path):
        from gilscope.toolkit.race._core.making import make_core

        make_core(_FOLDER, path, refused, file_name(), None if is_checkout() else load_file, on_compile)
    return sys.modules.get(NAME) or load_file(path)     # one from a wheel was loaded to see whether it works


def file_name() -> str:
    """Return the name of the core's file in a wheel, with the full suffix: others list `.so` among theirs, too."""
    from _imp import extension_suffixes

    return f"_core{extension_suffixes()[0]}"


def is_checkout() -> bool:
    """Return True if this gilscope is a checkout: its `toolkit` lies outside of the package."""
    toolkit = os.path.dirname(os.path.dirname(os.path.realpath(_FOLDER)))
    return not os.path.exists(os.path.join(os.path.dirname(toolkit), "__init__.py"))


def sources() -> list[str]:
    """Return the paths of the C sources, in a fixed order."""
    return sorted(os.path.join(folder, name) for folder, _, files in os.walk(_FOLDER) for name in files
                  if name.endswith((".c", ".h")))


def sources_digest() -> str:
    """Return a hash of the C sources, by a function that costs no import and is the same in one version of Python."""
    from _imp import source_hash

    parts = []
    for path in sources():
        with open(path, "rb") as file:
            parts += [os.path.basename(path).encode(), b"\0", file.read()]
    return source_hash(KEY, b"".join(parts)).hex()


def revive(fields: tuple[Any, ...], number: int) -> object:
    """Return the site of a pickled code object: the same site here, or a new one in a process without it."""
    from gilscope.toolkit.race.site import SiteInfo, all_sites, register_sites

    info = SiteInfo(*fields)
    if number >= len(all_sites) or all_sites[number] != info:
        info = info._replace(partners=(), tests=())     # their numbers are those of other sites here
        number = register_sites([info])
    return load().site(info, number)


def load_file(path: str) -> ModuleType:
    """Load the core in a file.

    Raises:
        CoreUnavailableError: It cannot be loaded, or was made for another build or from other sources.
    """
    from _imp import create_dynamic, exec_dynamic
    from importlib.machinery import ExtensionFileLoader, ModuleSpec

    spec = ModuleSpec(NAME, ExtensionFileLoader(NAME, path), origin=path)
    try:
        module: ModuleType = create_dynamic(spec)
        # Its own check of the build comes first, in C: what follows would read memory in another build's layout.
        made_from = module.made_from()      # "" of one that was compiled into the cache: its path names its sources
        if made_from and made_from != sources_digest():
            raise CoreUnavailableError(f"the compiled core {path} was made from other sources than this gilscope's")
        exec_dynamic(module)
    except (ImportError, AttributeError, OSError) as error:
        raise CoreUnavailableError(f"the compiled core cannot be loaded: {error}") from error
    module.configure(NO_VALUE, revive, os.path.dirname(_FOLDER) + os.sep)
    module.__spec__ = spec
    sys.modules[NAME] = module
    return module


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
