"""Locks between processes, by files: each ends with its process, however that ends, so none is ever stale.

The callers open the files, since that is where they differ: one file must be lockable by every user of the machine,
another must not be created by a reader.  filelock would replace none of this: it has no shared lock by `flock`, does
not say that it waits, and `toolkit/make_venv.py` runs before it could be installed.  Runs under Python 3.9.
"""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import IO


def try_lock(file: IO[str] | int, *, shared: bool = False) -> bool:
    """Lock an open file without waiting, and return True; return False if another process holds it.

    Args:
        file: The lock lasts until it is closed.
        shared: Allow others that are shared, too.

    Raises:
        OSError: There are no locks in this file system.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock(file: IO[str] | int, waiting: Callable[[], None], *, shared: bool = False) -> None:
    """Lock an open file as `try_lock` does; if another process holds it, call `waiting` once, and wait.

    Raises:
        OSError: There are no locks in this file system.
    """
    if not try_lock(file, shared=shared):
        waiting()
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


@contextmanager
def locked(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold an exclusive lock on the file `path`, which is created if missing; call `waiting` once before waiting."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        lock(handle, waiting)
        yield
