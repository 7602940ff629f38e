"""Provide the C core to the running build."""

from __future__ import annotations

import os

from gilscope.toolkit.builds.extension import CExtension
from gilscope.toolkit.race.core import NO_VALUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def load(on_compile: Callable[[float], object] | None = None) -> ModuleType:
    """Return the core, as `CExtension.load`."""
    return CORE.load(on_compile)


def revive(fields: tuple[Any, ...], number: int) -> object:
    """Return the site of a pickled code object: the same site here, or a new one in a process without it."""
    from gilscope.toolkit.race.site import SiteInfo, all_sites, register_sites

    info = SiteInfo(*fields)
    if number >= len(all_sites) or all_sites[number] != info:
        info = info._replace(partners=(), tests=())     # their numbers are those of other sites here
        number = register_sites([info])
    return load().site(info, number)


def _configure(core: ModuleType) -> None:
    core.configure(NO_VALUE, revive, os.path.dirname(CORE.folder) + os.sep)


CORE = CExtension("gilscope.toolkit.race._core._core", __file__, "core.c", "race-core", _configure)
