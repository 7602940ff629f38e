"""Create interpreters: the only module that knows where they come from.

`concurrent.interpreters` on 3.14 and newer; on 3.12 and 3.13 the package backports-interpreters, which has
the same interface.
"""

from __future__ import annotations

import importlib
import sys
from _pickle import dumps, loads
from typing import Any, Protocol, cast

# Their C parts have process-wide state.  3.12 aborts if a second interpreter imports one of these before the main one
# did; 3.13 crashes if two interpreters import `datetime` (as sqlite3 does) at once.  Delete with 3.13 support.
MAIN_FIRST = {
    (3, 12): ("asyncio", "datetime", "decimal", "hashlib", "sqlite3", "ssl"),
    (3, 13): ("datetime",),
}

# 3.12's _asyncio has a tuple in a static variable, so a tuple of one interpreter gets into the free list of another and
# the process aborts, at exit at the latest.  asyncio works without it, in pure Python.  Delete with 3.12 support.
PRELUDE = "" if sys.version_info >= (3, 13) else "sys.modules['_asyncio'] = None\n"

# 3.12 sometimes crashes if an interpreter is created or destroyed while other threads run.  Delete with 3.12 support.
ONE_AT_A_TIME = sys.version_info < (3, 13)


class Interpreter(Protocol):
    """An interpreter with a GIL of its own."""

    def exec(self, code: str, /) -> None:
        """Run source code in it on the calling thread; raise an exception that describes one that it raised."""

    def close(self) -> None:
        """Destroy it; waits for the non-daemon threads that were started in it."""


def unavailable() -> str | None:
    """Return the reason why this process cannot create interpreters, or None."""
    try:
        _module()
    except ModuleNotFoundError:
        if sys.version_info >= (3, 14):
            return "this Python has no interpreters: concurrent.interpreters cannot be imported"
        return "needs the package backports-interpreters"
    return None


def prepare_main() -> None:
    """Import modules in the main interpreter that others could not import safely otherwise (3.12 and 3.13)."""
    for name in MAIN_FIRST.get(sys.version_info[:2], ()):
        try:
            importlib.import_module(name)
        except ImportError:
            continue  # this build lacks it, so no worker can import it
    if sys.version_info < (3, 13):
        # Who first calls a C function with keywords allocates their names, and the main interpreter frees them at exit,
        # which aborts the process if it was another.  Delete with 3.12 support.
        loads(dumps(None), buffers=())


def create() -> Interpreter:
    """Return a new isolated interpreter.  Call it on the thread that will enter it, never on the main one."""
    return cast("Interpreter", _module().create())


def _module() -> Any:
    # By name: a type checker sees one version of Python, and finds the backport in none of them.
    return importlib.import_module(
        "concurrent.interpreters" if sys.version_info >= (3, 14) else "backports.interpreters")
