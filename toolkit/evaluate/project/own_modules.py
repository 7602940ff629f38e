"""Determine a project's own modules, its tests, and the packages that they import.  Files are only read."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from gilscope.toolkit.bounded_reading import read_text
from gilscope.toolkit.evaluate.project.discovery import NO_MODULES, path_of, said_modules
from gilscope.toolkit.own_files import SOURCE_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from gilscope.toolkit.evaluate.project.discovery import Project

_NAME = re.compile(r"[\w.-]+")


def without_measuring(project: Project, workload: str | None, *, builds: bool) -> Project:
    """Return the project without a file that somebody added to its root to measure it.

    If the project has packages, or the build has made extension modules, a single file beside them that contains the
    workload and that the build does not name is not part of what users get.
    """
    name = (workload or "").partition(":")[0].partition(".")[0]
    file = f"{name}.py"
    if (name not in project.modules or not (project.root / file).is_file() or _named_by_build(project, name)
            or not (builds or any((path_of(folder, each) / "__init__.py").is_file() for folder in project.sources
                                  for each in project.modules))):
        return project
    modules = tuple(each for each in project.modules if each != name)
    about = said_modules(modules) if modules else NO_MODULES
    return replace(project, modules=modules, about_modules=about, measuring=file)


def _named_by_build(project: Project, name: str) -> bool:
    """Return True if a top-level module has the project's name, or if its build configuration lists it."""
    if canonicalize_name(project.name) == canonicalize_name(name):
        return True
    for file in ("pyproject.toml", "setup.cfg", "setup.py"):
        try:
            text = read_text(project.root / file)
        except (OSError, UnicodeDecodeError):
            continue
        if re.search(rf"py[-_]modules\b[^\]]*?\b{re.escape(name)}\b", text):
            return True
    return False


def with_built(project: Project, names: Iterable[str]) -> Project:
    """Return the project with the top-level modules that its build makes.

    If it has others, only extension modules outside of packages are added to them.  In place of a namespace package,
    those are packages inside of it.
    """
    if project.modules:
        alone = tuple(sorted({each for each in names if each and "." not in each} - {*project.modules}))
        return replace(project, modules=(*project.modules, *alone), about_modules=project.about_modules + (
            f", {_made_by_build(alone)}" if alone else ""))
    usual = (*project.sources, *(project.root / name for name in SOURCE_FOLDERS))
    found = [_package_with(name, usual) for name in names if name]
    built = tuple(sorted({name for name, _ in found}))
    if not built:
        return project
    sources = tuple(dict.fromkeys(folder for _, folder in found if folder)) or project.sources
    return replace(project, modules=built, sources=sources, about_modules=f"modules: {_made_by_build(built)}")


def _made_by_build(names: Sequence[str]) -> str:
    return f"{', '.join(names)} (its build makes {'it' if len(names) == 1 else 'them'})"


def _package_with(module: str, folders: Iterable[Path]) -> tuple[str, Path | None]:
    """Return the package inside of a namespace package that has a module, and its folder; else the top-level name."""
    parts = tuple(accumulate(module.split("."), "{}.{}".format))
    for folder in folders:
        name = next((each for each in parts if (path_of(folder, each) / "__init__.py").is_file()), parts[0])
        if name != parts[0]:
            return name, folder
    return parts[0], None


def needed_to_run(project: Project) -> frozenset[str]:
    """Return the normalized names of the packages that the program needs: declared ones, and those that it imports.

    A package whose module has another name is known by its requirement alone.
    """
    declared = {canonicalize_name(match[0]) for text in project.requirements if (match := _NAME.match(text))}
    paths = [path_of(folder, name) for folder in project.sources for name in project.modules]
    files = [file for path in paths for file in (path.with_name(f"{path.name}.py"), *path.rglob("*.py"))]
    return frozenset(declared | {canonicalize_name(name) for file in files for name in _imports(file)})


def _imports(file: Path) -> Iterator[str]:
    """Yield the modules that a file imports, with the packages that these are in; none if it cannot be read.

    Those in a namespace package have the name of their project: zope.event.
    """
    try:
        tree = ast.parse(read_text(file))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name for alias in node.names for name in _prefixes(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (name for alias in node.names for name in _prefixes(f"{node.module}.{alias.name}"))


def _prefixes(name: str) -> Iterator[str]:
    return accumulate(name.split("."), "{}.{}".format)
