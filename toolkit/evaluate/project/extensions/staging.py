"""A copy of the project in which what was built stands where its sources are imported from.

A test runner begins `sys.path` with the project's root, and with the folders of its tests: there lie the sources, with
no extension module beside them.  Whoever has installed the project has the built one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.installing import copy_project

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.project.discovery import Project

USUAL = ("src", "python", "lib")   # folders of packages, beside the root


def stage(project: Project, target: Path, folder: Path) -> str | None:
    """Copy the project into `folder` with what was installed into `target` over its sources; return why not.

    Each package or module that was installed is put where the project has it, wherever that is; one that it does not
    have (it is generated) is imported from `target`.
    """
    try:
        copy_project(project.root, folder)
        for built, place in _places(project, target, folder):
            if built.is_dir():
                shutil.copytree(built, place, dirs_exist_ok=True)
            else:
                shutil.copy2(built, place)
    except (OSError, shutil.Error) as error:
        return str(error)
    return None


def _places(project: Project, target: Path, folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield what was installed, and where the copy has its source."""
    inside = {Path(), *map(Path, USUAL), *(each.relative_to(project.root) for each in project.sources)}
    for built in sorted(target.iterdir()):
        if built.name in {"bin", "__pycache__"} or built.name.endswith(".dist-info"):
            continue
        for place in sorted(folder / each for each in inside):
            # A package of that name without any module is a folder of something else.
            has_it = _is_package if built.is_dir() else _has_module
            if has_it(place / built.name):
                yield built, place / built.name


def _is_package(place: Path) -> bool:
    return place.is_dir() and any(name.endswith((".py", ".pyx", ".pyi")) for _, _, names in os.walk(place)
                                  for name in names)


def _has_module(place: Path) -> bool:
    """Return whether a module of that name lies in the same folder: Python takes an extension module first."""
    name = place.name.partition(".")[0]
    return place.with_name(f"{name}.py").is_file() or place.with_name(f"{name}.pyx").is_file()
