"""Found on PYTHONPATH by every Python of a test run: writes down what loads extension modules and turns the GIL on.

Stands alone: the process is the project's, and none of our modules may be in it.  The environment's own sitecustomize
runs afterwards.
"""

from __future__ import annotations

import _imp
import atexit
import os
import sys

LONGEST_CHAIN = 100   # frames; a test runner takes some thirty of them

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _watch(path: str) -> None:
    import json

    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    gil_is_on = sys._is_gil_enabled  # type: ignore[attr-defined]  # free-threaded builds have it
    create = _imp.create_dynamic

    def write(**fields: object) -> None:
        os.write(handle, json.dumps({"pid": os.getpid(), **fields}).encode() + b"\n")  # appended as a whole

    def create_dynamic(spec: Any, file: Any = None) -> Any:
        before = gil_is_on()
        write(load=spec.name, chain=_chain(sys._getframe(1)))
        module = create(spec) if file is None else create(spec, file)
        if not before and gil_is_on():
            write(flip=spec.name)
        return module

    _imp.create_dynamic = create_dynamic
    atexit.register(lambda: write(gil=gil_is_on()))


def _chain(frame: Any) -> list[tuple[str, int]]:
    """Return file and line of who asked for the import, the innermost first."""
    found: list[tuple[str, int]] = []
    while frame is not None and len(found) < LONGEST_CHAIN:
        if not frame.f_code.co_filename.startswith("<frozen"):
            found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return found


def _run_the_next() -> None:
    # The one that would have been imported without us.
    import importlib.machinery
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


# Another build's Python that a test starts has its GIL on by right.
if os.environ.get("GILSCOPE_WITNESS") and "t" in sys.abiflags:
    _watch(os.environ["GILSCOPE_WITNESS"])
_run_the_next()
