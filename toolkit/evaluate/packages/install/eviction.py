"""Keep what doctor and evaluate install within bounds: what nobody used lately goes first, what somebody uses stays."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.user_dirs import cache_dir
from gilscope.toolkit.errors import ToolkitError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STAMP = "gilscope-scratch.json"   # in a folder that is whole; its time is that of the last use
KEPT_SECONDS = 7 * 24 * 3600.0   # of what nobody asks for
WHEELS, EVALUATIONS, SURVEYS = "wheels", "evaluations", "surveys"   # in the cache folder, beside the environments
VARIABLE = "GILSCOPE_CACHE_GIB"
USUAL_GIB = 8.0
# What imports compile comes on top of what was installed.
GROWTH = 1.4
_GIB = 2.0**30

_HELD: dict[Path, int] = {}   # descriptors, open until the process ends


def limit() -> float:
    """Return how many bytes of environments may be kept.

    Raises:
        ToolkitError: The variable holds no number.
    """
    text = os.environ.get(VARIABLE) or str(USUAL_GIB)
    try:
        return float(text) * _GIB
    except ValueError as error:
        raise ToolkitError(f"{VARIABLE}={text!r} is no number of GiB") from error


def hold(folder: Path) -> None:
    """Keep an environment from being removed as long as this process lives, and note that it was used."""
    if folder not in _HELD:
        _HELD[folder] = os.open(_used(folder), os.O_WRONLY | os.O_CREAT, 0o600)
        fcntl.flock(_HELD[folder], fcntl.LOCK_SH)
    with contextlib.suppress(OSError):
        os.utime(folder / STAMP)


def make_room(most: float | None = None) -> tuple[int, float]:
    """Remove what nobody used in a week, and more while there are over `most` bytes, the longest unused first.

    Returns:
        How many environments went, and their bytes.
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
    """Remove every environment that nobody uses just now, all wheels and what evaluations and surveys keep.

    Returns:
        How many environments went, and their bytes.
    """
    removed = make_room(0)
    for name in (WHEELS, EVALUATIONS, SURVEYS):
        shutil.rmtree(cache_dir() / name, ignore_errors=True)
    return removed


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(entry.stat(follow_symlinks=False).st_size for entry in _files(str(folder)))


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
            else:
                yield entry


def _environments() -> Iterator[tuple[float, float, Path]]:
    """Yield when each was last used, its bytes, and its folder."""
    for stamp in (cache_dir() / "scratch").glob(f"*/{STAMP}"):
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):   # going just now, or damaged
            size = float(json.loads(stamp.read_text()).get("bytes", 0)) * GROWTH
            yield stamp.stat().st_mtime, size, stamp.parent


def _remove(folder: Path) -> bool:
    """Remove an environment; return False when a process uses it."""
    with _used(folder).open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        (folder / STAMP).unlink(missing_ok=True)   # first: what is cut off here is not whole any more
        shutil.rmtree(folder, ignore_errors=True)
        for name in (_used(folder), folder.with_name(f"{folder.name}.lock")):
            name.unlink(missing_ok=True)
    return True


def _used(folder: Path) -> Path:
    # Not with_suffix: what follows the last dot of "3.14.7-0123" is a part of the name.
    return folder.with_name(f"{folder.name}.used")
