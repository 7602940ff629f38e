"""Make a copy of the project that has the built extension modules beside its sources.

A test runner puts the project's root and the folders of its tests first on `sys.path`: there are the sources, without
the built modules.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.installing import copy_project
from gilscope.toolkit.own_files import SOURCE_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.project.discovery import Project


def stage(project: Project, target: Path, folder: Path) -> str | None:
    """Copy the project into `folder`, overlaid with the installed files in `target`; return an error message or None.

    Each installed package or module goes where the project has its source.  One without a source is generated, and is
    imported from `target`.
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
    """Yield each installed package or module with the place of its source in the copy."""
    inside = {Path(), *map(Path, SOURCE_FOLDERS), *(each.relative_to(project.root) for each in project.sources)}
    for built in sorted(target.iterdir()):
        if built.name in {"bin", "__pycache__"} or built.name.endswith(".dist-info"):
            continue
        for place in sorted(folder / each for each in inside):
            # A folder of the same name without any module is not the package.
            has_it = _is_package if built.is_dir() else _has_module
            if has_it(place / built.name):
                yield built, place / built.name


def _is_package(place: Path) -> bool:
    return place.is_dir() and any(name.endswith((".py", ".pyx", ".pyi")) for _, _, names in os.walk(place)
                                  for name in names)


def _has_module(place: Path) -> bool:
    """Return True if the folder has a Python module of that name: an extension module beside it takes precedence."""
    name = place.name.partition(".")[0]
    return place.with_name(f"{name}.py").is_file() or place.with_name(f"{name}.pyx").is_file()
