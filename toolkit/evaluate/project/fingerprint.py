"""Detect changes of a project: a hash of each file, since tests may read any of them, and environment variables.

The build and the tests get the user's environment variables.  Those that a file of the project names count.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# Folders that tools make, besides hidden ones and environments.
MADE = frozenset({"__pycache__", "node_modules", "build", "dist", "htmlcov"})
WRITTEN_BY_PEOPLE = frozenset({
    ".py", ".pyi", ".pyx", ".pxd", ".c", ".h", ".cc", ".cpp", ".hpp", ".rs", ".toml", ".cfg", ".ini", ".txt", ".lock",
    ".build"})
MOST_READ = 2**20    # bytes; larger files are identified by size and time
NAMES_VARIABLES = (".py", ".toml", ".cfg", ".ini", ".build", ".cmake", "CMakeLists.txt", ".rs")
# How code and configuration name a variable: os.environ["NAME"], env::var("NAME"), $ENV{NAME}.
_NAMED = re.compile(r"""["'{]([A-Za-z_]\w*)["'}]""")
# Variables that build tools and pytest read.
_ALWAYS = re.compile(r"CC|CXX|(C|CXX|CPP|LD|ARCH|RUST)FLAGS|LDSHARED|PYTEST_ADDOPTS|"
                     r"(CARGO|CMAKE|CYTHON|MATURIN|PKG_CONFIG|SETUPTOOLS|SKBUILD)_\w+")
# Variables of a terminal or session, which differ from window to window.
_HARMLESS = re.compile(r"_|OLDPWD|PWD|SHLVL|COLUMNS|LINES|TERM\w*|COLORTERM|NO_COLOR|FORCE_COLOR|WINDOWID|SSH_\w+|"
                       r"PYTEST_CURRENT_TEST|GILSCOPE_\w+")


def sums(
    root: Path, files: Iterable[Path] | None = None, known: dict[Path, tuple[str, str]] | None = None,
) -> dict[str, str]:
    """Return a hash of each file below `root`, or of the named ones, by relative path; missing files have none.

    Args:
        root: The project's folder.
        files: Files below it; None: all.
        known: The status and the hash of files that were read before, which are not read again; it is brought up to
            date.
    """
    found = {}
    for path in _files(root) if files is None else files:
        if (summed := _sum(path, {} if known is None else known)) is not None:
            found[str(path.relative_to(root))] = summed
    return found


def made_by_the_run(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """Return the files that a run of the project has made or changed, except for kinds of files that people edit."""
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
            and Path(name).suffix not in WRITTEN_BY_PEOPLE}


def digest(found: Mapping[str, str], *others: str) -> str:
    """Return one hash of these hashes and of the other values."""
    words = [*(f"{name}={found[name]}" for name in sorted(found)), *others]
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()


def variables(root: Path, files: Iterable[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return "NAME=value" of the variables that may affect the project's build or its tests.

    Args:
        root: The project's folder.
        files: Its files, relative to `root`.
        environment: All variables.
    """
    named = {name for name in environment if _ALWAYS.fullmatch(name)}
    for file in files:
        if file.endswith(NAMES_VARIABLES):
            try:
                text = read_text(root / file, MOST_READ)
            except (OSError, ValueError):   # missing, too long, or not text
                continue
            named.update(name for name in _NAMED.findall(text) if name in environment)
    return tuple(f"{name}={environment[name]}" for name in sorted(named) if not _HARMLESS.fullmatch(name))


def _files(root: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not _is_made(Path(folder), name)]
        for name in names:
            if not name.endswith((".pyc", ".pyo")):
                yield Path(folder, name)


def _is_made(folder: Path, name: str) -> bool:
    return (name in MADE or name.startswith(".") or name.endswith(".egg-info")
            or (folder / name / "pyvenv.cfg").exists())


def _sum(path: Path, known: dict[Path, tuple[str, str]]) -> str | None:
    try:
        status = path.lstat()
        # A change that leaves the status as it was would take a program that resets the clock.
        stamp = f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        if path in known and known[path][0] == stamp:
            return known[path][1]
        if path.is_symlink():
            return f"-> {os.readlink(path)}"  # noqa: PTH115 - as it is written
        if not path.is_file() or status.st_size > MOST_READ:
            return f"{status.st_size} {status.st_mtime_ns}"
        known[path] = stamp, hashlib.sha256(path.read_bytes()).hexdigest()
        return known[path][1]
    except OSError:
        return None
