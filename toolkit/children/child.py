"""The base of every child process of a build: job, journal, limits, interpreters, and a clean `sys.modules`.

Runs inside the build under test, where other people's packages are imported.  Modules are imported inside of functions
because whatever is in `sys.modules` cannot be observed being imported by a package.
"""

from __future__ import annotations

import os
import sys

from gilscope.toolkit.processes.sealed_answers import Seal, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGEST_FILE = 2**30   # bytes; more than any package writes when it is imported
_open, _close = os.open, os.close   # bound before other people's code runs


def begin() -> dict[str, Any]:
    """Set the process up and return its job, whose file the command line names."""
    import faulthandler
    import json

    from gilscope.toolkit.processes import lifeline

    lifeline.restore_defaults()       # before any package can close the descriptor
    faulthandler.enable()   # prints the Python stack on a crash, and on the signal that ends a hang
    bound_files()
    with open(sys.argv[1], encoding="utf-8") as source:
        job: dict[str, Any] = json.load(source)
    job["file"] = sys.argv[1]
    sys.argv[1:] = []       # some packages read the command line when they are imported
    sys.path.extend(path for path in job["path"] if path not in sys.path)
    return job


def bound_files() -> None:
    """Forbid core files, and limit the size of files: some packages print in an endless loop."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    bound = LARGEST_FILE if most == resource.RLIM_INFINITY else min(LARGEST_FILE, most)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bound, most))


class Journal:
    """Sealed lines that are in the file even if the next statement kills the process."""

    def __init__(self, job: dict[str, Any], cycle: int) -> None:
        """Append to the file of answers of `job`; `cycle` is the number of the interpreter that writes."""
        self._path: str = job["answers"]
        self._seal = Seal(job["secret"])
        self._cycle = cycle

    def write(self, event: str, **fields: Any) -> None:
        """Append one event.

        The file is open only here: some packages write to every open descriptor, or close them all.
        """
        handle = _open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        write_all(handle, self._seal.line({"event": event, "cycle": self._cycle, **fields}))
        _close(handle)


def forget_toolkit() -> None:
    """Remove our modules from `sys.modules`: a package under test may contain modules with the same names."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "gilscope"]:
        del sys.modules[name]


def stdlib_modules() -> set[str]:
    """Return the loaded modules of the standard library, which a control run imports."""
    return {name for name in list(sys.modules)
            if name.partition(".")[0] in sys.stdlib_module_names and name.partition(".")[0] not in {"__main__", "this"}}


def interpreters_module() -> Any:
    """Return the module that creates interpreters with their own GIL; None if the build has none."""
    # 3.13 and later; before 3.14 there is no public module for them.
    try:
        import _interpreters  # type: ignore[import-not-found]  # private, without stubs
    except ImportError:
        pass
    else:
        return _interpreters
    try:
        import _xxsubinterpreters  # type: ignore[import-not-found]  # the same in 3.12
    except ImportError:
        return None
    return _xxsubinterpreters


def run_in(interpreters: Any, ident: Any, script: str) -> str | None:
    """Run `script` in an interpreter; return the message of the exception that it raised, or None."""
    try:
        problem = interpreters.run_string(ident, script)
    except Exception as error:  # noqa: BLE001  3.12 raises where 3.13 returns
        return str(error)
    return None if problem is None else str(getattr(problem, "formatted", problem))
