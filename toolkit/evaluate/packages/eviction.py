"""Keep the installed environments within a size limit: remove the least recently used, never one in use."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.file_locks import lock, try_lock
from gilscope.toolkit.gil_guard import package_answers
from gilscope.toolkit.user_dirs import cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STAMP = "gilscope-scratch.json"   # marks a complete environment; its modification time is that of the last use
KEPT_SECONDS = 7 * 24 * 3600.0   # unused environments are removed after this time
WHEELS, EVALUATIONS = "wheels", "evaluations"   # folders in the cache, beside the environments
VARIABLE = "GILSCOPE_CACHE_GIB"
USUAL_GIB = 8.0
# Compiled modules are added to an environment as packages are imported.
GROWTH = 1.4
_GIB = 2.0**30

_HELD: dict[Path, int] = {}   # descriptors, open until the process ends


def limit() -> float:
    """Return the size limit for environments in bytes.

    Raises:
        ToolkitError: The variable is not a number.
    """
    text = os.environ.get(VARIABLE) or str(USUAL_GIB)
    try:
        return float(text) * _GIB
    except ValueError as error:
        raise ToolkitError(f"{VARIABLE}={text!r} is no number of GiB") from error


def hold(folder: Path) -> None:
    """Lock an environment against removal as long as this process lives, and record its use."""
    if folder not in _HELD:
        _HELD[folder] = os.open(_used(folder), os.O_WRONLY | os.O_CREAT, 0o600)
        lock(_HELD[folder], lambda: None, shared=True)
    with contextlib.suppress(OSError):
        os.utime(folder / STAMP)


def make_room(most: float | None = None) -> tuple[int, float]:
    """Remove environments unused for a week, and further ones above `most` bytes, least recently used first.

    Returns:
        The number of removed environments, and their bytes.
    """
    bound = limit() if most is None else most
    found = sorted(_environments())
    total = sum(size for _, size, _ in found)
    count, gone = 0, 0.0
    for used, size, folder in found:
        if (used < time.time() - KEPT_SECONDS or total - gone > bound or bound == 0) and _remove(folder):
            count, gone = count + 1, gone + size
    return count, gone


def clear() -> tuple[int, float]:
    """Remove every environment that is not in use, all wheels, and all stored evaluations.

    Returns:
        The number of removed environments, and their bytes.
    """
    removed = make_room(0)
    for name in (WHEELS, EVALUATIONS, package_answers.FOLDER):
        shutil.rmtree(cache_dir() / name, ignore_errors=True)
    return removed


def size_of(folder: Path) -> int:
    """Return the total size of the files below a folder, in bytes."""
    return sum(entry.stat(follow_symlinks=False).st_size for entry in _files(str(folder)))


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
            else:
                yield entry


def _environments() -> Iterator[tuple[float, float, Path]]:
    """Yield time of last use, bytes and folder of each environment."""
    for stamp in (cache_dir() / "scratch").glob(f"*/{STAMP}"):
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):   # being removed, or damaged
            size = float(json.loads(stamp.read_text()).get("bytes", 0)) * GROWTH
            yield stamp.stat().st_mtime, size, stamp.parent


def _remove(folder: Path) -> bool:
    """Remove an environment; return False if a process uses it."""
    with _used(folder).open("a") as handle:
        if not try_lock(handle):
            return False
        (folder / STAMP).unlink(missing_ok=True)   # First: an interrupted removal must not look complete.
        shutil.rmtree(folder, ignore_errors=True)
        for name in (_used(folder), folder.with_name(f"{folder.name}.lock")):
            name.unlink(missing_ok=True)
    return True


def _used(folder: Path) -> Path:
    # Not with_suffix: the name "3.14.7-0123" contains dots.
    return folder.with_name(f"{folder.name}.used")
