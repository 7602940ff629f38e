"""Import modules and record every extension module that this loads: who imports it and whether it turns the GIL on.

Runs inside the build under test, in its main interpreter or another one.  Kept apart from `import_child`, because
modules that are in `sys.modules` already cannot be observed being imported.
"""

from __future__ import annotations

import _imp
import sys

from gilscope.toolkit.children.child import Journal, forget_toolkit, stdlib_modules
from gilscope.toolkit.gil_guard.extension_loads import gil_is_on, importing_frames, watch_extension_loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

LONGEST_CHAIN = 40   # frames; a longer chain is a circular import


def import_all(job: dict[str, Any], cycle: int | None = None) -> None:
    """Import the modules of `job` and record what happens in its journal.

    `roots` are imported first, as a program would.  If they load none of the package's extension modules, `sweep`
    follows, modules that may; then the rest of `extensions`.  `cycle` numbers the interpreter, None for the main one.
    """
    journal = Journal(job, cycle or 0)
    read_gil = _gil_reader() if cycle is None else _no_gil_flag
    forget_toolkit()
    asked: set[str] = set()
    _watch_loads(journal, read_gil, asked)
    _imp.exec_dynamic = _watched_execution(_imp.exec_dynamic, journal)
    for part in ("roots", "sweep", "extensions"):
        if part == "sweep" and not asked.isdisjoint(job["extensions"]):
            continue
        for name in job[part]:
            if part == "roots" or name not in sys.modules:
                _import_one(journal, name, part)
    # mypyc creates several modules when one is loaded; the others are never imported.
    present = [name for name in job["extensions"] if name in sys.modules]
    journal.write("end", gil=gil_is_on(), stdlib=sorted(stdlib_modules()), present=present)


def _import_one(journal: Journal, name: str, part: str) -> None:
    import importlib

    journal.write("begin", name=name, part=part)
    # Any exception is a result, including SystemExit from a package that misses something.
    try:
        importlib.import_module(name)
    except BaseException as error:  # noqa: BLE001  see above
        journal.write("failed", name=name, part=part, error=_first_line(error))
    else:
        journal.write("imported", name=name, part=part)


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:300]}" if text else type(error).__name__


def _watch_loads(journal: Journal, read_gil: Callable[[object], str | None], requested: set[str]) -> None:
    """Record every load in the journal, and add the names of the modules to `requested`."""
    fields: dict[str, dict[str, Any]] = {}

    def before(spec: Any, frame: FrameType) -> None:
        fields[spec.name] = {"name": spec.name, "file": spec.origin, "chain": _chain(frame)}
        requested.add(spec.name)
        journal.write("loading", **fields[spec.name])

    def after(spec: Any, module: object, error: BaseException | None,
              flipped: bool) -> None:  # noqa: FBT001 - a callback's
        journal.write("load", **fields[spec.name], gil=None if error else read_gil(module), flipped=flipped,
                      error=_first_line(error) if error else None)

    watch_extension_loads(before, after)


def _watched_execution(execute: Callable[..., Any], journal: Journal) -> Callable[..., Any]:
    """Wrap `_imp.exec_dynamic`, which runs the code of a multi-phase module, to record when it begins and ends."""

    def exec_dynamic(module: Any) -> Any:
        name = getattr(module, "__name__", "?")
        journal.write("executing", name=name)
        try:
            return execute(module)
        finally:
            journal.write("executed", name=name)

    return exec_dynamic


def _gil_reader() -> Callable[[object], str | None]:
    if "t" not in sys.abiflags:
        return _no_gil_flag
    import ctypes  # noqa: F401  now: later it would itself be a load that is watched

    from gilscope.toolkit.evaluate.packages.slots_child import module_gil

    return module_gil


def _no_gil_flag(_module: object) -> None:
    return None


def _chain(frame: FrameType) -> list[list[Any]]:
    """Return the chain of imports as module, file and line, outermost first."""
    found: list[list[Any]] = []
    for each in importing_frames(frame):
        if each.f_code is _import_one.__code__:
            break
        if each.f_code.co_filename != __file__:
            found.append([str(each.f_globals.get("__name__", "?")), each.f_code.co_filename, each.f_lineno])
    # The innermost `importlib` frames are our own call.
    while found and found[-1][0] == "importlib":
        found.pop()
    return found[:LONGEST_CHAIN][::-1]
