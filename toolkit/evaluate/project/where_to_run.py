"""The place where a project's code runs on a build, and the names of its files there."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.project.discovery import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSite:
    """The place where a project's code runs on one build."""

    build: str                  # label
    python: Path                # interpreter of the scratch environment
    folders: tuple[Path, ...]   # folders that the project's modules are imported from
    lacking: tuple[str, ...] = ()   # packages that could not be installed
    compiled: Path | None = None    # folder for bytecode, so that none is written beside the user's files
    root: Path | None = None        # copy of the project with its extension modules; None if it has none
    uncompiled: bool = False        # run the Python sources of the extension modules instead

    def without_compiled(self, project: Project) -> RunSite:
        """Return the site that runs the Python sources of the project's extension modules."""
        folders = dict.fromkeys((*project.sources, *self.folders))   # installed metadata stays reachable
        return replace(self, folders=tuple(folders), root=None, uncompiled=True)

    def placed(self, project: Project) -> Project:
        """Return the project at the place where its code runs on this build."""
        if self.root is None:
            return project
        sources = tuple(self.root / each.relative_to(project.root) for each in project.sources)
        return replace(project, root=self.root, sources=sources)

    def placed_file(self, project: Project, file: str) -> str:
        """Return the path of a file of the project at this place; other paths stay as they are."""
        path = Path(file)
        if self.root is None or not path.is_relative_to(project.root):
            return file
        return str(self.root / path.relative_to(project.root))


@dataclass(frozen=True, slots=True)
class ProjectPaths:
    """Tells the project's files from others and names them relative to the project, wherever a copy ran."""

    project: Project
    run_site: RunSite

    def path(self, file: str) -> str | None:
        """Return the name of a file of the project; None for other files."""
        for folder in self.run_site.folders:
            if (inside := _below(file, folder)) is not None:
                source = next((each for each in self.project.sources if (each / inside).exists()), None)
                return inside if source is None else (_below(str(source / inside), self.project.root) or inside)
        if self.run_site.root is not None and (inside := _below(file, self.run_site.root)) is not None:
            return inside
        return _below(file, self.project.root)


def short(file: str) -> str:
    """Shorten the path of a library's file to start at site-packages, or at lib/ for the standard library."""
    _, libraries, inside = file.rpartition("/site-packages/")
    if libraries:
        return f"site-packages/{inside}"
    found = re.search(r"/(lib/python3\.\d+t?/.*)", file)
    return found[1] if found else file


def _below(file: str, folder: Path) -> str | None:
    try:
        return str(Path(file).relative_to(folder))
    except ValueError:
        return None


def compiled_into(folder: Path) -> dict[str, str]:
    """Return the variables that make a process write bytecode into `folder` rather than beside the user's files."""
    return {"PYTHONPYCACHEPREFIX": str(folder)}
