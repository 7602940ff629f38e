"""Found on PYTHONPATH by every Python of a test run: writes down what loads extension modules and turns the GIL on.

And, when asked, whether code of the project ran in several threads, and which functions and lines.

Stands alone: the process is the project's, and none of our modules may be in it.  The environment's own sitecustomize
runs afterwards.
"""

from __future__ import annotations

import _imp
import atexit
import os
import sys

LONGEST_CHAIN = 100   # frames; a test runner takes some thirty of them
OPTIMIZED = 1         # of co_flags: a function's
# What else holds something for all threads, or keeps them apart, and is not written in Python or stores no items.
KEEPERS = frozenset({"threading.Semaphore", "threading.Condition", "_thread.lock", "_thread.RLock", "random.Random",
                     "_weakrefset.WeakSet"})
PYTHON_API = 4         # of a function of ctypes: called with the GIL
MOST_CALLS = 100_000   # of one function, and lines of it that the first thread runs, that are looked at: 0.1 s
TOOLS = (5, 4, 3)     # of sys.monitoring: the race checker looks for its own from the other end
TESTS = ("test", "tests", "testing", "conftest.py")   # folders and files that are no part of what is tested

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


class _Ran:
    """A function that ran."""

    def __init__(self, code: Any, first: int) -> None:
        """`first` is the thread that ran it first."""
        self.code = code
        self.first = first
        self.calls = 0
        self.lines: dict[int, bool] = {}   # that other threads than the first of the process ran
        self.passed = 0                    # lines that the first one ran meanwhile
        self.twice = self.one_self = False   # in two threads; of one object
        self.others = False                  # in another than the first of the process
        self.foreign: dict[str, str] = {}

    def line(self, number: int, *, first: bool) -> Any:
        """Note that a thread runs a line; the first of the process may have run it long before the others."""
        if first and self.passed < MOST_CALLS:
            self.passed += 1
            return None
        self.lines[number] = True
        return sys.monitoring.DISABLE


class _Threads:
    """Which functions below some folders ran in which threads."""

    def __init__(self, tool: int, folders: list[str]) -> None:
        """`tool` is ours in sys.monitoring; the thread that is running now is the first."""
        from _thread import get_ident

        self._ident = get_ident
        self._first = get_ident()
        self._tool = tool
        self._folders = folders
        self._own: set[int] = set()      # threads that ran any of them
        self._others = False             # another thread than the first ran anything
        self._ran: dict[int, _Ran] = {}  # by the id of the code, whose hash takes as long as it is
        self._selves: dict[tuple[int, int], int] = {}    # ids of code and its object -> the thread that came first

    def starts(self, code: Any, _offset: int) -> Any:
        """Note that a function starts."""
        ident = self._ident()
        if ident != self._first:
            self._others = True
        # What runs at an import is no function.
        if not code.co_flags & OPTIMIZED or not _is_own(code.co_filename, self._folders):
            return sys.monitoring.DISABLE
        self._own.add(ident)
        told = self._ran.get(id(code)) or self._ran.setdefault(id(code), _Ran(code, ident))
        frame = sys._getframe(1)
        thing = frame.f_locals.get("self") if code.co_varnames[:1] == ("self",) else None
        if ident != told.first and not told.twice:
            told.foreign, told.twice = _foreign(frame, code, thing, self._folders), True
        if thing is not None and self._selves.setdefault((id(code), id(thing)), ident) != ident:
            told.one_self = True
        if ident != self._first and not told.others:
            told.others = True
            sys.monitoring.set_local_events(self._tool, code, sys.monitoring.events.LINE)
        told.calls += 1
        done = told.twice and (thing is None or told.one_self)
        return sys.monitoring.DISABLE if done or told.calls > MOST_CALLS else None

    def line(self, code: Any, number: int) -> Any:
        """Note that a line of such a function runs."""
        return self._ran[id(code)].line(number, first=self._ident() == self._first)

    def write(self, path: str) -> None:
        """Append what was seen to a file."""
        import json

        told = [[each.code.co_filename, each.code.co_firstlineno, each.twice, each.one_self, each.foreign,
                 sorted(each.lines)]
                for each in list(self._ran.values()) if each.twice or each.first != self._first]
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, json.dumps({"pid": os.getpid(), "threads": self._others, "together": len(self._own) > 1,
                                     "ran": told}).encode() + b"\n")
        os.close(handle)


def _watch_threads(path: str, folders: list[str]) -> None:
    """Write down whether other threads than this one ran anything, and which functions below `folders` ran in two."""
    monitoring = sys.monitoring
    tool = next((tool for tool in TOOLS if monitoring.get_tool(tool) is None), None)
    if tool is None:
        return
    threads = _Threads(tool, folders)
    monitoring.use_tool_id(tool, "gilscope-threads")
    monitoring.register_callback(tool, monitoring.events.PY_START, threads.starts)
    monitoring.register_callback(tool, monitoring.events.LINE, threads.line)
    monitoring.set_events(tool, monitoring.events.PY_START)
    atexit.register(threads.write, path)


def _foreign(frame: Any, code: Any, thing: object, folders: list[str]) -> dict[str, str]:
    """Return by name what a function may use that holds something and is neither the project's nor built in."""
    try:
        return _foreign_names(frame, code, thing, folders)
    except Exception:  # noqa: BLE001 - what a class says of itself may be anything, and the program must not notice
        return {}


def _foreign_names(frame: Any, code: Any, thing: object, folders: list[str]) -> dict[str, str]:
    attributes = dict(_of_class(type(thing)))
    if type(thing).__getattribute__ is object.__getattribute__:
        attributes |= getattr(thing, "__dict__", {})
    values = {name: frame.f_globals.get(name) for name in code.co_names}
    values |= {f"{name}.{inner}": _inside(value).get(inner) for name, value in values.items()
               for inner in code.co_names}
    found = {name: _foreign_class(value, folders) for name, value in values.items()}
    found |= {f"self.{name}": _foreign_class(attributes.get(name), folders) for name in code.co_names}
    found["self"] = _foreign_class(thing, folders)
    return {name: kind for name, kind in found.items() if kind}


def _inside(value: object) -> dict[str, Any]:
    """Return what a module or a class holds by name, of any other object nothing."""
    if type(value) is type(sys):
        return vars(value)
    return _of_class(value) if issubclass(type(value), type) else {}


def _of_class(kind: Any) -> dict[str, Any]:
    return {name: value for each in reversed(type.__dict__["__mro__"].__get__(kind))
            for name, value in type.__dict__["__dict__"].__get__(each).items()}


def _foreign_class(value: object, folders: list[str]) -> str:
    """Return the class that stores items by code that is neither the project's nor built in, or is one of KEEPERS.

    "" for all others.
    """
    for kind in type.__dict__["__mro__"].__get__(type(value)):
        if f"{kind.__module__}.{kind.__qualname__}" in KEEPERS:
            return f"{kind.__module__}.{kind.__qualname__}"
        if (kind.__module__, kind.__qualname__) == ("_ctypes", "CFuncPtr"):
            return "ctypes.PyDLL" if type(value)._flags_ & PYTHON_API else ""  # type: ignore[attr-defined]  # it has them
        store = type.__dict__["__dict__"].__get__(kind).get("__setitem__")
        if type(store) is type(_foreign_class) and not _is_own(store.__code__.co_filename, folders):
            return f"{kind.__module__}.{kind.__qualname__}"
    return ""


def _is_own(file: str, folders: list[str]) -> bool:
    """Return whether a file is below one of the folders, and neither a test nor installed there by others."""
    inside = next((file[len(folder):] for folder in folders if file.startswith(folder + os.sep)), None)
    if inside is None:
        return False
    *above, last = inside.split(os.sep)
    return not ("site-packages" in above or last.startswith("test_") or last.endswith("_test.py")
                or any(part in TESTS for part in (*above, last)))


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
# A Python before 3.12 that a test starts has no sys.monitoring.
if hasattr(sys, "monitoring") and os.environ.get("GILSCOPE_WITNESS_THREADS") and os.environ.get("GILSCOPE_WITNESS"):
    _watch_threads(os.environ["GILSCOPE_WITNESS"], os.environ["GILSCOPE_WITNESS_THREADS"].split(os.pathsep))
_run_the_next()
