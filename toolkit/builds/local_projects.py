"""Find the user's own package that a build lacks, and say how to import it.  An index has no part in it.

A private project's name may be somebody else's in an index, so installing by name alone could run a stranger's code.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import tomllib
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_BYTES = 2**24   # of a pyproject.toml


class LocalProject(NamedTuple):
    """A folder on this machine that has a module, and the project that it belongs to."""

    imports: Path          # the folder to import from
    root: Path | None      # the project's folder; None: it has no pyproject.toml and is not installed
    name: str = ""         # of the distribution


def find_local_project(module: str) -> LocalProject | None:
    """Return where a module is in the current folder, its `src`, or a folder that the active environment installed."""
    top = module.partition(".")[0]
    here = Path.cwd()
    for folder in (here, here / "src"):
        if _has(folder, top):
            return LocalProject(folder, *_project(here))
    for root, name in _installed_folders():
        for folder in (root, root / "src"):
            if _has(folder, top):
                return LocalProject(folder, root, name)
    return None


def missing_import_advice(module: str, paths: Sequence[Path]) -> str:
    """Return what to add to a command that has --path and --with, and lacks `module` in a build.

    Args:
        module: The missing module.
        paths: The folders that modules are imported from now; --path replaces them.
    """
    found = find_local_project(module)
    if found is None:
        return f"add it with --with {module}"
    folders = list(dict.fromkeys([*paths, found.imports]))
    options = " ".join(f"--path {shlex.quote(short(each))}" for each in folders)
    advice = f"it is yours, in {short(found.imports)}: use {options} (--path replaces the current folder)"
    if requirement := local_requirement(found):
        advice += f", or --with {shlex.quote(requirement)}, which installs a copy, once, and what it needs"
    return advice


def local_requirement(found: LocalProject) -> str:
    """Return "NAME @ file:///..." for a project with a name, else ""."""
    return f"{found.name} @ {found.root.as_uri()}" if found.root and found.name else ""


def folder_advice(folder: Path) -> str:
    """Return what to write instead of a folder as a requirement."""
    if not folder.is_dir():
        return "write a package's name, or 'NAME @ file:///FOLDER'"
    root, name = _project(folder.resolve())
    source = folder / "src" if (folder / "src").is_dir() else folder
    if root is None:
        return f"a folder without pyproject.toml is not installed; --path {shlex.quote(short(source))} imports from it"
    requirement = f"{name or 'NAME'} @ {root.as_uri()}"
    return (f"write --with {shlex.quote(requirement)}, which installs a copy, once; "
            f"--path {shlex.quote(short(source))} imports from the folder itself")


def short(path: Path) -> str:
    """Return a path relative to the current folder if it is in it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _has(folder: Path, module: str) -> bool:
    return (folder / module / "__init__.py").is_file() or (folder / f"{module}.py").is_file()


def _project(folder: Path) -> tuple[Path | None, str]:
    """Return the folder and the project's name if it has a pyproject.toml; the name is "" if that does not say it."""
    try:
        with (folder / "pyproject.toml").open("rb") as file:
            name = tomllib.loads(file.read(MOST_BYTES).decode()).get("project", {}).get("name", "")
    except OSError:
        return None, ""
    except (ValueError, AttributeError):
        return folder, ""
    return folder, name if isinstance(name, str) else ""


def _installed_folders() -> Iterator[tuple[Path, str]]:
    """Yield the folder and the name of each distribution that was installed from a folder of this machine."""
    active = os.environ.get("VIRTUAL_ENV")
    beside = map(str, Path(active).glob("lib/python3.*/site-packages")) if active else ()
    for each in distributions(path=list(dict.fromkeys([*beside, *sys.path]))):
        try:
            origin = json.loads(each.read_text("direct_url.json") or "{}")
            address = urlsplit(origin["url"]) if "dir_info" in origin else None
        except (ValueError, KeyError, TypeError):
            continue
        if address is not None and address.scheme == "file":
            yield Path(unquote(address.path)), each.metadata["Name"]
