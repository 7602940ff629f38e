"""Find out in which tests a second thread runs the project's code.

Python functions are seen when they start, functions of the project's extension modules when Python code calls them.
Nothing is watched while there is one thread.  Threads that C code starts are seen only when a test also starts one from
Python.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
from _thread import _count, get_ident
from typing import TYPE_CHECKING

from gilscope.toolkit.gil_guard.code_under_test import free_tool, is_under_test
from gilscope.toolkit.gil_guard.extension_loads import watch_extension_loads
from gilscope.toolkit.own_files import InstalledProject, split_installed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import CodeType, ModuleType
    from typing import Any

# The functions that start threads.  Auditing would see those that other modules hold, too, but costs each test more: an
# audit hook is called for every event, such as the reading of a function's __code__.
STARTS = ((_thread, "start_new_thread"), (_thread, "start_joinable_thread"), (threading, "_start_joinable_thread"))
# Calls of one of the project's functions until it is left alone.  After the next start of a thread it is watched again,
# for twice as many, so that this is rare: the interpreter then prepares every function anew.
OWN_CALLS, MOST_CALLS = 200, 12_800
FOREIGN_CALLS = 10_000   # calls of other people's functions in other threads, until each place is left alone likewise


class ProjectCode:
    """Tells the project's own code from its tests and from other people's code."""

    def __init__(self, root: Path) -> None:
        """Prepare for the project whose pyproject.toml is in `root`; its installed copy is its code, too."""
        self._root = os.path.realpath(root)
        self._installed = InstalledProject(self._root)
        self._known: dict[str, bool] = {}
        self._packages: dict[str, bool] = {}

    def has_file(self, file: str) -> bool:
        """Return True if a source file or an extension module is the project's."""
        known = self._known.get(file)
        if known is None:
            known = self._known[file] = self._is_own(file)
        return known

    def has_callable(self, function: Any) -> bool:
        """Return True for a function or a type of one of the project's extension modules."""
        name = getattr(function, "__module__", None) or getattr(
            getattr(function, "__objclass__", None), "__module__", None)
        if not isinstance(name, str):
            return False
        known = self._packages.get(name)
        if known is None:
            file = getattr(sys.modules.get(name), "__file__", None)
            known = self._packages[name] = isinstance(file, str) and not file.endswith(".py") and self.has_file(file)
        return known

    def _is_own(self, file: str) -> bool:
        if not os.path.isabs(file):   # "<frozen importlib._bootstrap>", "<string>"
            return False
        file = os.path.realpath(file)
        site = split_installed(file)[0]
        return is_under_test(file, site.rstrip(os.sep) or self._root) and (
            not site or self._installed.has_file(file))


class ProjectThreads:
    """Counts the tests in which a thread other than the main one ran the project's code."""

    def __init__(self, code: ProjectCode) -> None:
        """Begin; must be called in the main thread."""
        self._code = code
        self._main = get_ident()
        self._calls: dict[int, int] = {}   # of the project's functions, by id of their code
        self._enough = OWN_CALLS
        self._restarts_due = 0     # of the watch, since some of them were left alone
        self._foreign = 0
        self._compiled = False
        self._events = 0          # of sys.monitoring, that are on
        self._others = _count()   # threads of pytest and its plugins
        self._tool = free_tool()
        self._replaced: list[tuple[ModuleType, str, Any, Any]] = []   # module, name, function before and now
        self._seen = False        # in the current test
        self.tests: list[str] = []
        if self._tool is not None:
            events = sys.monitoring.events
            sys.monitoring.use_tool_id(self._tool, "gilscope-project-threads")
            sys.monitoring.register_callback(self._tool, events.PY_START, self._starts)
            sys.monitoring.register_callback(self._tool, events.CALL, self._call)
            files = (getattr(module, "__file__", None) for module in [*sys.modules.values()])
            self._compiled = any(map(self._is_extension, files))   # the project has extension modules
            watch_extension_loads(self._loads, lambda *_: None)
            for module, name in STARTS:
                before = getattr(module, name)
                now = self._watched(before)
                setattr(module, name, now)
                self._replaced.append((module, name, before, now))

    @property
    def works(self) -> bool:
        """False if other tools have taken all IDs of sys.monitoring."""
        return self._tool is not None

    def begin_test(self) -> None:
        """Begin a test: threads that live already may run the project's code in it."""
        self._seen = False
        if _count() > self._others:
            self._watch()

    def end_test(self, name: str) -> None:
        """End the test of that name."""
        if self._seen:
            self.tests.append(name)

    def stop(self) -> None:
        """Stop watching."""
        if self._tool is not None:
            sys.monitoring.set_events(self._tool, sys.monitoring.events.NO_EVENTS)
            sys.monitoring.free_tool_id(self._tool)
            self._tool = None
        for module, name, before, now in self._replaced:
            if getattr(module, name) is now:
                setattr(module, name, before)
        self._replaced.clear()

    def _watch(self) -> None:
        """Watch all of the project's functions, also those that were left alone.

        They stay watched after the test: a function that is left alone costs nothing, but after each change of events,
        and each restart, the interpreter prepares every function anew, pytest's own, too.
        """
        if self._tool is None:
            return
        events = sys.monitoring.events
        wanted = events.PY_START | (events.CALL if self._compiled else 0)
        if wanted != self._events:
            self._events = wanted
            sys.monitoring.set_events(self._tool, wanted)
        # A place that was left alone because it called somebody else's function may call extension modules next.
        if self._restarts_due or self._compiled:
            self._restarts_due = max(self._restarts_due - 1, 0)
            self._enough = min(2 * self._enough, MOST_CALLS)
            self._calls.clear()
            self._foreign = 0
            sys.monitoring.restart_events()

    def _watched(self, start: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that starts a thread and begins to watch before."""
        def start_thread(*args: Any, **keywords: Any) -> Any:
            if not self._seen:
                self._watch()
            return start(*args, **keywords)

        return start_thread

    def _loads(self, spec: Any, _frame: object) -> None:
        if not self._compiled and self._is_extension(spec.origin):
            self._compiled = True   # before any thread calls its functions
            if self._events:
                self._watch()

    def _is_extension(self, file: object) -> bool:
        return isinstance(file, str) and not file.endswith(".py") and self._code.has_file(file)

    def _starts(self, code: CodeType, _offset: int) -> Any:
        if not self._code.has_file(code.co_filename):
            return sys.monitoring.DISABLE
        return self._ran(id(code))

    def _call(self, code: CodeType, offset: int, function: object, _first: object) -> Any:
        if hasattr(function, "__code__") or not self._code.has_callable(function):
            self._foreign += 1
            is_enough = get_ident() == self._main or self._foreign > FOREIGN_CALLS
            return sys.monitoring.DISABLE if is_enough else None
        return self._ran(id(code) + offset)

    def _ran(self, place: int) -> Any:
        if get_ident() != self._main:
            self._seen = True
        calls = self._calls[place] = self._calls.get(place, 0) + 1
        if calls < self._enough:
            return None
        self._restarts_due = 2   # another thread may be restarting now, just before this takes effect
        return sys.monitoring.DISABLE
