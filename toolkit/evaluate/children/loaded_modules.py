"""Which modules stand in a process of a build: ours must not, and the standard library's are noted.  Imports little."""

from __future__ import annotations

import sys


def forget_toolkit() -> None:
    """Take our own modules out of `sys.modules`: a package under test may have one of that name."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "gilscope"]:
        del sys.modules[name]


def stdlib_modules() -> set[str]:
    """Return the standard library's modules that are loaded now: what a control run imports."""
    return {name for name in list(sys.modules)
            if name.partition(".")[0] in sys.stdlib_module_names and name.partition(".")[0] not in {"__main__", "this"}}
