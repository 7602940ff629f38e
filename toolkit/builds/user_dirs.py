"""Where builds, environments and caches live, and the lock that keeps two processes from filling one place at once.

Runs under Python 3.9 (see the package's docstring).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def data_dir() -> Path:
    """Return the folder for what is expensive to make again: $GILSCOPE_DATA, or gilscope's XDG data folder."""
    return _user_dir("GILSCOPE_DATA", "XDG_DATA_HOME", ".local/share")


def cache_dir() -> Path:
    """Return the folder for what can be thrown away: $GILSCOPE_CACHE, or gilscope's XDG cache folder."""
    return _user_dir("GILSCOPE_CACHE", "XDG_CACHE_HOME", ".cache")


def pythons_dir() -> Path:
    """Return the folder that holds one installed interpreter per subfolder."""
    return data_dir() / "pythons"


def uv_command() -> str | None:
    """Return uv: on PATH, or installed beside the running Python."""
    beside = Path(sys.executable).with_name("uv")
    return shutil.which("uv") or (str(beside) if os.access(beside, os.X_OK) else None)


@contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold an exclusive lock on the file `path`, created when missing; call `waiting` once if another holds it.

    The lock ends with the process however that ends, so no stale lock can be left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _user_dir(own: str, xdg: str, default: str) -> Path:
    if chosen := os.environ.get(own):
        return Path(chosen).expanduser().absolute()
    base = Path(os.environ.get(xdg, ""))
    # The XDG specification tells to ignore relative paths; an empty value counts as unset.
    return (base if base.is_absolute() else Path.home() / default) / "gilscope"
