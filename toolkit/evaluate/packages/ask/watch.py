"""Import modules and write down every extension module that this loads, who asked for it and what it did to the GIL.

Runs inside the build asked about, in its main interpreter or in another one, and imports little: what stands in
`sys.modules` already cannot be seen being imported.
"""

from __future__ import annotations

import _imp
import sys

from gilscope.toolkit.evaluate.children.journal import Journal
from gilscope.toolkit.evaluate.children.loaded_modules import forget_toolkit, stdlib_modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

LONGEST_CHAIN = 40   # frames; a package that imports itself in circles needs no more to be understood


def import_all(job: dict[str, Any], turn: int | None = None) -> None:
    """Import the modules of `job` and write what happens to its journal.

    `roots` are imported first, as a program would.  Where that asks for none of the extension modules, `sweep` follows,
    the package's modules that may ask for them; then what is left of `extensions`.
    `turn` is the number of the interpreter when it is not the main one.
    """
    journal = Journal(job, turn or 0)
    read_gil = _gil_reader() if turn is None else _no_gil_flag
    forget_toolkit()
    asked: set[str] = set()
    _imp.create_dynamic = _watched(_imp.create_dynamic, journal, read_gil, asked)
    _imp.exec_dynamic = _watched_execution(_imp.exec_dynamic, journal)
    for part in ("roots", "sweep", "extensions"):
        if part == "sweep" and not asked.isdisjoint(job["extensions"]):
            continue
        for name in job[part]:
            if part == "roots" or name not in sys.modules:
                _import_one(journal, name, part)
    # mypyc makes several modules when one is loaded, and nobody is asked for the others.
    present = [name for name in job["extensions"] if name in sys.modules]
    journal.write("end", gil=_gil_is_on(), stdlib=sorted(stdlib_modules()), present=present)


def _import_one(journal: Journal, name: str, part: str) -> None:
    import importlib

    journal.write("begin", name=name, part=part)
    # What an import raises is the answer, also when a package calls sys.exit() because something is missing.
    try:
        importlib.import_module(name)
    except BaseException as error:  # noqa: BLE001  see above
        journal.write("failed", name=name, part=part, error=_first_line(error))
    else:
        journal.write("imported", name=name, part=part)


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:300]}" if text else type(error).__name__


def _watched(
    create: Callable[..., Any], journal: Journal, read_gil: Callable[[object], str | None], asked: set[str],
) -> Callable[..., Any]:
    """Return `_imp.create_dynamic` that reports, and adds to `asked` whatever it is asked for."""

    def create_dynamic(spec: Any, file: Any = None) -> Any:
        before, chain = _gil_is_on(), _chain(sys._getframe(1))  # noqa: SLF001  the only way to see who imports
        told = {"name": spec.name, "file": spec.origin, "chain": chain}
        asked.add(spec.name)
        journal.write("loading", **told)
        try:
            module = create(spec) if file is None else create(spec, file)
        except BaseException as error:
            journal.write("load", **told, gil=None, flipped=_gil_is_on() and not before, error=_first_line(error))
            raise
        journal.write("load", **told, gil=read_gil(module), flipped=_gil_is_on() and not before, error=None)
        return module

    return create_dynamic


def _watched_execution(execute: Callable[..., Any], journal: Journal) -> Callable[..., Any]:
    """Return `_imp.exec_dynamic`, which runs a multi-phase module's own code, that says when it begins and ends."""

    def exec_dynamic(module: Any) -> Any:
        name = getattr(module, "__name__", "?")
        journal.write("executing", name=name)
        try:
            return execute(module)
        finally:
            journal.write("executed", name=name)

    return exec_dynamic


def _gil_is_on() -> bool:
    ask = getattr(sys, "_is_gil_enabled", None)   # since 3.13
    return True if ask is None else bool(ask())


def _gil_reader() -> Callable[[object], str | None]:
    if "t" not in sys.abiflags:
        return _no_gil_flag
    import ctypes  # noqa: F401  now: later it would itself be a load that is watched

    from gilscope.toolkit.evaluate.packages.ask.slots_child import module_gil

    return module_gil


def _no_gil_flag(_module: object) -> None:
    return None


def _chain(frame: FrameType | None) -> list[list[Any]]:
    """Return where the import came from, outermost first: module, file, line."""
    found: list[list[Any]] = []
    while frame is not None and frame.f_code is not _import_one.__code__:
        code = frame.f_code
        if not code.co_filename.startswith("<frozen importlib") and code.co_filename != __file__:
            found.append([str(frame.f_globals.get("__name__", "?")), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    # The importlib that we call ourselves is not on the user's way either.
    while found and found[-1][0] == "importlib":
        found.pop()
    return found[:LONGEST_CHAIN][::-1]
