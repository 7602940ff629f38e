"""Find the user's own package that a build lacks, and say how to import it.  An index has no part in it.

A private project's name may be somebody else's in an index, so installing by name alone could run a stranger's code.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_BYTES = 2**24   # of a pyproject.toml
MOST_READ = 2**22    # bytes of a file whose contents are compared
_BUILT = {"build", "dist"}   # folders that building a project leaves in its root


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
    """Return advice on the options that import a module which a build lacks: --path or --with.

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
        advice += (f", or --with {shlex.quote(requirement)}, which installs a copy, anew when a file changes, and what "
                   "it needs")
    return advice


def local_requirement(found: LocalProject) -> str:
    """Return "NAME @ file:///..." for a project with a name, else ""."""
    return f"{found.name} @ {found.root.as_uri()}" if found.root and found.name else ""


def local_contents(requirements: Sequence[str]) -> dict[str, str]:
    """Return a digest of the contents of each requirement that names a file or folder here: "NAME @ file:///..."."""
    found = {text: path for text in requirements if (path := local_path(text)) is not None}
    return {text: _digest(path) for text, path in found.items()}


def local_path(requirement: str) -> Path | None:
    """Return the file or folder that a requirement names; None if it names none."""
    address = urlsplit(requirement.partition(" @ ")[2].partition(" ;")[0].strip())
    return Path(unquote(address.path)) if address.scheme == "file" else None


def _digest(path: Path) -> str:
    """Return a digest of a file, or of the files in a folder that a package may be built from."""
    summed = hashlib.sha256()
    for file in sorted(_files(path)):
        with suppress(OSError):   # a broken link, or one that has gone meanwhile
            summed.update(f"\0{file.relative_to(path)}\0{_state(file)}\0".encode(errors="surrogateescape"))
    return summed.hexdigest()[:16]


def _state(file: Path) -> str:
    """Return the digest of a file's contents; of one that takes long to read, its size and time."""
    status = file.stat()
    if status.st_size > MOST_READ:
        return f"{status.st_size} {status.st_mtime_ns}"
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _files(path: Path) -> Iterator[Path]:
    """Yield the files, without hidden folders, environments, and those that a build writes."""
    if not path.is_dir():
        yield path
        return
    for folder, inner, files in os.walk(path):
        here = Path(folder)
        inner[:] = [name for name in inner if not name.startswith(".") and not name.endswith(".egg-info")
                    and name != "__pycache__" and not (here / name / "pyvenv.cfg").exists()
                    and not (here == path and name in _BUILT)]
        yield from (here / name for name in files)


def folder_advice(folder: Path) -> str:
    """Return advice for a folder that was given as a requirement."""
    if not folder.is_dir():
        return "write a package's name, or 'NAME @ file:///FOLDER'"
    root, name = _project(folder.resolve())
    source = folder / "src" if (folder / "src").is_dir() else folder
    if root is None:
        return f"a folder without pyproject.toml is not installed; --path {shlex.quote(short(source))} imports from it"
    requirement = f"{name or 'NAME'} @ {root.as_uri()}"
    return (f"write --with {shlex.quote(requirement)}, which installs a copy, anew when a file changes; "
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
