"""Found on PYTHONPATH by every Python of a test run: records extension modules and what turns the GIL on.

On request it also records if code of the project ran in several threads, and which functions and lines.

None of our modules may be imported into the project's process, so this file and those that it loads by their path use
the standard library alone.  The environment's own sitecustomize runs afterwards.
"""

from __future__ import annotations

import atexit
import os
import sys

OPTIMIZED = 1         # CO_OPTIMIZED of co_flags: the code of a function
# Classes with state for all threads, or that order threads, not written in Python or without items.
KEEPERS = frozenset({"threading.Semaphore", "threading.Condition", "_thread.lock", "_thread.RLock", "random.Random",
                     "_weakrefset.WeakSet"})
PYTHON_API = 4         # FUNCFLAG_PYTHONAPI of ctypes: the function is called with the GIL held
MOST_CALLS = 100_000   # calls of a function, and lines of it in the first thread, to look at: 0.1 s

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    _code: Any   # the module code_under_test, once threads are watched


def _loaded(name: str) -> Any:
    """Load a module of ours by its path: nothing of gilscope may be in `sys.modules`."""
    import importlib.util

    folder = os.path.dirname(os.path.abspath(__file__))
    file = os.path.normpath(os.path.join(folder, os.pardir, f"{name}.py"))
    spec: Any = importlib.util.spec_from_file_location(f"gilscope_{name}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Ran:
    """A function that ran, and in which threads."""

    def __init__(self, code: Any, first: int) -> None:
        """Start a record; `first` is the thread that ran the function first."""
        self.code = code
        self.first = first
        self.calls = 0
        self.lines: dict[int, bool] = {}   # lines that threads other than the first of the process ran
        self.passed = 0                    # lines that the first thread ran meanwhile
        self.twice = self.one_self = False   # ran in two threads; in two threads with the same `self`
        self.others = False                  # ran in a thread other than the first of the process
        self.foreign: dict[str, str] = {}

    def line(self, number: int, *, first: bool) -> Any:
        """Record a line of another thread; the first thread may run it long before, so keep watching then."""
        if first and self.passed < MOST_CALLS:
            self.passed += 1
            return None
        self.lines[number] = True
        return sys.monitoring.DISABLE


class _Threads:
    """Records which functions below some folders run in which threads."""

    def __init__(self, tool: int, folders: list[str]) -> None:
        """Start with the current thread as the first; `tool` is our ID in sys.monitoring."""
        from _thread import get_ident

        self._ident = get_ident
        self._first = get_ident()
        self._tool = tool
        self._folders = folders
        self._own: set[int] = set()      # threads that ran any of the functions
        self._others = False             # a thread other than the first ran anything
        self._ran: dict[int, _Ran] = {}  # by id of the code: hashing code takes time
        self._selves: dict[tuple[int, int], int] = {}    # ids of code and `self` -> the first thread to run it

    def starts(self, code: Any, _offset: int) -> Any:
        """Handle the start of a function."""
        ident = self._ident()
        if ident != self._first:
            self._others = True
        # Module and class bodies, which run at import, are not functions.
        if not code.co_flags & OPTIMIZED or not _is_own(code.co_filename, self._folders):
            return sys.monitoring.DISABLE
        self._own.add(ident)
        record = self._ran.get(id(code)) or self._ran.setdefault(id(code), _Ran(code, ident))
        frame = sys._getframe(1)
        thing = frame.f_locals.get("self") if code.co_varnames[:1] == ("self",) else None
        if ident != record.first and not record.twice:
            record.foreign, record.twice = _foreign(frame, code, thing, self._folders), True
        if thing is not None and self._selves.setdefault((id(code), id(thing)), ident) != ident:
            record.one_self = True
        if ident != self._first and not record.others:
            record.others = True
            sys.monitoring.set_local_events(self._tool, code, sys.monitoring.events.LINE)
        record.calls += 1
        done = record.twice and (thing is None or record.one_self)
        return sys.monitoring.DISABLE if done or record.calls > MOST_CALLS else None

    def line(self, code: Any, number: int) -> Any:
        """Handle a line of a recorded function."""
        return self._ran[id(code)].line(number, first=self._ident() == self._first)

    def write(self, path: str) -> None:
        """Append the records to a file."""
        import json

        rows = [[each.code.co_filename, each.code.co_firstlineno, each.twice, each.one_self, each.foreign,
                 sorted(each.lines)]
                for each in list(self._ran.values()) if each.twice or each.first != self._first]
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, json.dumps({"pid": os.getpid(), "threads": self._others, "together": len(self._own) > 1,
                                     "ran": rows}).encode() + b"\n")
        os.close(handle)


def _watch_threads(path: str, folders: list[str]) -> None:
    """Record the functions below `folders` that run in several threads, and if other threads run anything at all."""
    monitoring = sys.monitoring
    tool = _code.free_tool()
    if tool is None:
        return
    threads = _Threads(tool, folders)
    monitoring.use_tool_id(tool, "gilscope-threads")
    monitoring.register_callback(tool, monitoring.events.PY_START, threads.starts)
    monitoring.register_callback(tool, monitoring.events.LINE, threads.line)
    monitoring.set_events(tool, monitoring.events.PY_START)
    atexit.register(threads.write, path)


def _foreign(frame: Any, code: Any, thing: object, folders: list[str]) -> dict[str, str]:
    """Return, by name, the classes of stateful objects that a function uses, neither the project's nor built in."""
    try:
        return _foreign_names(frame, code, thing, folders)
    except Exception:  # noqa: BLE001 - foreign classes may raise anything, and the program must not notice
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
    """Return the contents of a module or a class by name; of any other object nothing."""
    if type(value) is type(sys):
        return vars(value)
    return _of_class(value) if issubclass(type(value), type) else {}


def _of_class(kind: Any) -> dict[str, Any]:
    return {name: value for each in reversed(type.__dict__["__mro__"].__get__(kind))
            for name, value in type.__dict__["__dict__"].__get__(each).items()}


def _foreign_class(value: object, folders: list[str]) -> str:
    """Return the class of an object that stores items by foreign Python code, or is one of KEEPERS; "" for others."""
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
    """Return True if a file is code under test in one of the folders."""
    return any(_code.is_under_test(file, folder) for folder in folders)


def _run_the_next() -> None:
    # The one that Python would have imported without us.
    import importlib.machinery
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


# Builds with a GIL that a test starts need no watch.
if os.environ.get("GILSCOPE_WITNESS") and "t" in sys.abiflags:
    _loaded("extension_loads").record_extension_loads(os.environ["GILSCOPE_WITNESS"])
# A test may start a Python before 3.12, which has no sys.monitoring.
if hasattr(sys, "monitoring") and os.environ.get("GILSCOPE_WITNESS_THREADS") and os.environ.get("GILSCOPE_WITNESS"):
    _code = _loaded("code_under_test")
    _watch_threads(os.environ["GILSCOPE_WITNESS"], os.environ["GILSCOPE_WITNESS_THREADS"].split(os.pathsep))
_run_the_next()
