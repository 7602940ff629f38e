"""The one place that knows where interpreters come from.

`concurrent.interpreters` on 3.14 and newer; on 3.12 and 3.13 the package backports-interpreters, which has
the same interface.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, Protocol, cast

# Their C parts keep process-wide state.  3.12 aborts when a second interpreter imports one of these that the main
# one never did, 3.13 crashes when two interpreters import `datetime` (as sqlite3 does) at once.  Goes with 3.13.
MAIN_FIRST = {
    (3, 12): ("asyncio", "datetime", "decimal", "hashlib", "sqlite3", "ssl"),
    (3, 13): ("datetime",),
}

# 3.12's _asyncio keeps a tuple in a static variable, so a tuple of one interpreter ends in another's free list and
# the process aborts, at exit at the latest.  asyncio falls back to its Python half without it.  Goes with 3.12.
PRELUDE = "" if sys.version_info >= (3, 13) else "sys.modules['_asyncio'] = None\n"

# 3.12 now and then crashes when one interpreter is made or destroyed while other threads work.  Goes with 3.12.
ONE_AT_A_TIME = sys.version_info < (3, 13)


class Interpreter(Protocol):
    """An interpreter with a GIL of its own."""

    def exec(self, code: str, /) -> None:
        """Run source code in it on the calling thread; raise an exception that shows what it raised."""

    def close(self) -> None:
        """Destroy it; waits for the non-daemon threads that were started in it."""


def unavailable() -> str | None:
    """Return why this process cannot create interpreters, or None."""
    try:
        _module()
    except ModuleNotFoundError:
        if sys.version_info >= (3, 14):
            return "this Python has no interpreters: concurrent.interpreters cannot be imported"
        return "needs the package backports-interpreters"
    return None


def prepare_main() -> None:
    """Import in the main interpreter what others could not import safely otherwise (3.12 and 3.13)."""
    for name in MAIN_FIRST.get(sys.version_info[:2], ()):
        try:
            importlib.import_module(name)
        except ImportError:
            continue  # this build was made without it, so no worker can import it either


def create() -> Interpreter:
    """Return a new isolated interpreter.  Call it on the thread that will enter it, never on the main one."""
    return cast("Interpreter", _module().create())


def _module() -> Any:
    # By name: a type checker sees one version of Python, and finds the backport in none of them.
    return importlib.import_module(
        "concurrent.interpreters" if sys.version_info >= (3, 14) else "backports.interpreters")
