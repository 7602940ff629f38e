"""Where a project's code is run on a build, and how its files are named there."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.project.discovery import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where a project's code is run on one build."""

    build: str                  # label
    python: Path                # of the scratch environment
    folders: tuple[Path, ...]   # that the project's modules are imported from
    lacking: tuple[str, ...] = ()   # packages that could not be installed
    compiled: Path | None = None    # where compiled modules go, so that none is left beside the user's files
    root: Path | None = None        # a copy of the project with its extension modules in it; None: it has none
    uncompiled: bool = False        # in place of extension modules of its own runs the Python that they are made of

    def without_compiled(self, project: Project) -> Bench:
        """Return the bench on which the Python is run that the project's extension modules are made of."""
        folders = dict.fromkeys((*project.sources, *self.folders))   # the metadata is with the installed ones
        return replace(self, folders=tuple(folders), root=None, uncompiled=True)

    def placed(self, project: Project) -> Project:
        """Return the project as it lies where its code is run on this build."""
        if self.root is None:
            return project
        sources = tuple(self.root / each.relative_to(project.root) for each in project.sources)
        return replace(project, root=self.root, sources=sources)

    def placed_file(self, project: Project, file: str) -> str:
        """Return the path of a file of the project as it lies there, any other as it is."""
        path = Path(file)
        if self.root is None or not path.is_relative_to(project.root):
            return file
        return str(self.root / path.relative_to(project.root))


@dataclass(frozen=True, slots=True)
class Shown:
    """Says which files are the project's, and how they are named: by their place in it, not where a copy was run."""

    project: Project
    bench: Bench

    def path(self, file: str) -> str | None:
        """Return the name of a file of the project's; None of another's."""
        for folder in self.bench.folders:
            if (inside := _below(file, folder)) is not None:
                source = next((each for each in self.project.sources if (each / inside).exists()), None)
                return inside if source is None else (_below(str(source / inside), self.project.root) or inside)
        if self.bench.root is not None and (inside := _below(file, self.bench.root)) is not None:
            return inside
        return _below(file, self.project.root)


def short(file: str) -> str:
    """Return the file of a library from its site-packages on, one of the standard library from lib/ on."""
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
    """Return the variables of a process that imports the user's files and leaves no compiled module beside them."""
    return {"PYTHONPYCACHEPREFIX": str(folder)}
