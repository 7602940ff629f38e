"""By which a changed file of a project is known: a sum of each file, as tests may read any of them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# Folders that tools make; hidden ones and environments beside.
MADE = frozenset({"__pycache__", "node_modules", "build", "dist", "htmlcov"})
WRITTEN_BY_PEOPLE = frozenset({
    ".py", ".pyi", ".pyx", ".pxd", ".c", ".h", ".cc", ".cpp", ".hpp", ".rs", ".toml", ".cfg", ".ini", ".txt", ".lock",
    ".build"})
MOST_READ = 2**20    # bytes; a larger file is known by its size and time


def sums(root: Path, files: Iterable[Path] | None = None) -> dict[str, str]:
    """Return a sum of each file below `root`, or of those alone, by its path from there; one that is gone has none."""
    found = {}
    for path in _files(root) if files is None else files:
        if (summed := _sum(path)) is not None:
            found[str(path.relative_to(root))] = summed
    return found


def made_by_the_run(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """Return which files a run of the project has made or changed: not those that people write, who may just do so."""
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
            and Path(name).suffix not in WRITTEN_BY_PEOPLE}


def digest(found: Mapping[str, str], *others: str) -> str:
    """Return one sum of those sums and of whatever else matters."""
    words = [*(f"{name}={found[name]}" for name in sorted(found)), *others]
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()


def _files(root: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not _is_made(Path(folder), name)]
        for name in names:
            if not name.endswith((".pyc", ".pyo")):
                yield Path(folder, name)


def _is_made(folder: Path, name: str) -> bool:
    return (name in MADE or name.startswith(".") or name.endswith(".egg-info")
            or (folder / name / "pyvenv.cfg").exists())


def _sum(path: Path) -> str | None:
    try:
        status = path.lstat()
        if path.is_symlink():
            return f"-> {os.readlink(path)}"  # noqa: PTH115 - as it is written
        if not path.is_file() or status.st_size > MOST_READ:
            return f"{status.st_size} {status.st_mtime_ns}"
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
