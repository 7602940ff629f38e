"""A session of race checking in this process: core, synchronisation layer, import hook and conflict handler."""

from __future__ import annotations

import builtins
import os
import sys
from types import ModuleType

from gilscope.toolkit.builds.extension import ExtensionUnavailableError
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.own_files import split_installed
from gilscope.toolkit.race import sync
from gilscope.toolkit.race.conflicts.handler import ConflictHandler
from gilscope.toolkit.race.loading import hook
from gilscope.toolkit.race.program.spec import (
    CHECKED,
    FORKED,
    INCLUDED,
    INSTALLED,
    SPAWNED,
    STARTED,
    THREADS,
    UNCHECKED,
)
from gilscope.toolkit.race.site import OP_PREFIX, all_sites
from gilscope.toolkit.race.spool import append
from gilscope.toolkit.race.sync.patch_on_import import ImportPatcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import CodeType
    from typing import Any

    from gilscope.toolkit.race.core import Core

SPAWNERS = frozenset({"multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver"})   # imported if used
NOT_THE_PROGRAMS = {"__main__", "__mp_main__", "gilscope", "sitecustomize", "usercustomize"}   # imports
CHECKING = OP_PREFIX + "checking"    # a name in builtins during a session
_follows_forks = False


class RaceSession:
    """A session of race checking, from `start` to `stop`.  There is one at a time: it patches builtins and locks.

    Args:
        spool: The folder that races are written to; exists.
        include: Globs of modules to check besides the project's.
        options: The options of the conflict handler: `root`, `target`, `build`, `command`, `sections`.

    Attributes:
        core: The core, with vector clocks and shadow state; from `start` on.
        handler: The receiver of the core's conflicts; from `start` on.
    """

    current: RaceSession | None = None
    core: Core
    handler: ConflictHandler

    def __init__(self, *, spool: str, include: Sequence[str] = (), options: Mapping[str, Any] | None = None) -> None:
        self.spool = os.path.abspath(spool)
        self.include = include
        self.options = dict(options or {})
        self.unrewritten: dict[str, str] = {}   # path -> why the module is not rewritten
        self.checked: set[str] = set()          # paths of rewritten modules
        self._matched: set[str] = set()         # globs of `include`
        self._undo: list[Callable[[], None]] = []

    def start(self) -> None:
        """Start checking.

        Raises:
            RuntimeError: This process is already being checked.
            CoreMissingError: There is no core for this build, and none can be compiled.
        """
        if CHECKING in vars(builtins):   # also if another copy of this package checks it
            raise RuntimeError("this process is already being checked for races; sessions cannot be nested")
        vars(builtins)[CHECKING] = self
        RaceSession.current = self
        try:
            self._start()
        except BaseException:
            self._undo_patches()
            raise

    def _start(self) -> None:
        self.core = load_core()
        self._is_project = hook.project_filter(str(self.options.get("root", "")), self.include, self._matched)
        self._undo.append(sync.install(self.core, is_checked=self._is_project))
        self._undo.append(hook.install(self.core, self._is_project, self._note_loaded))
        pytest = ImportPatcher({"_pytest.assertion.rewrite": self._rewrite_tests})
        pytest.start()
        self._undo.append(pytest.stop)
        self.handler = ConflictHandler(self.core, self.spool, sync.describe, self.options)
        self.core.start(self.handler.on_conflict)
        self.core.report_gaps(self.handler.on_gap)
        _follow_forks()

    def attach(self) -> None:
        """Rewrite the project's functions in modules that are imported already."""
        from gilscope.toolkit.race.loading.rewrite_loaded import attach
        self._undo.append(attach(self.core, self._is_project, self._note_loaded))

    def compile(self, source: bytes, path: str) -> CodeType:
        """Return the entry script's code, rewritten.

        Raises:
            SyntaxError: The source is not valid Python.
            ValueError: The source contains null bytes.
        """
        return hook.code_for_script(path, source, self.core, self._note_loaded)

    def finish(self) -> None:
        """Stop checking and write the final record; the patches stay, as at the end of a process."""
        self.core.stop()
        self._append(THREADS, str(sync.threads_seen()))
        if not SPAWNERS.isdisjoint(sys.modules):
            self._append(THREADS, SPAWNED)
        if sync.started_process():
            self._append(THREADS, STARTED)
        for pattern in self._matched.copy():
            self._append(INCLUDED, pattern)
        if self.handler.any_record or self.unrewritten or any(site.note is not None for site in all_sites):
            self.handler.finish(self.unrewritten.items())
        unchecked, installed = self._unchecked_packages()
        for path in unchecked:
            self._append(UNCHECKED, path)
        for name in installed:
            self._append(INSTALLED, name)

    def _unchecked_packages(self) -> tuple[list[str], list[str]]:
        """Return the imported top-level packages that were not checked.

        Of the project's own, a file of each; of other installed ones, the names of those with Python files.  The
        program may have put anything into sys.modules: only namespaces of real modules are read.
        """
        files: dict[str, str] = {}
        installed: dict[str, None] = {}
        checked = set()
        root = os.path.join(str(self.options.get("root", "")), "")
        for name, module in list(sys.modules.items()):
            file = vars(module).get("__file__") if type(module) is ModuleType else None
            top = name.partition(".")[0] if type(name) is str else ""
            if type(file) is not str or not top or top in NOT_THE_PROGRAMS:
                continue
            if file in self.checked or file in self.unrewritten:
                checked.add(top)
            elif split_installed(file)[0] or file.startswith(root):
                if self._is_project(name, file):
                    files.setdefault(top, file)
                elif file.endswith(".py") and split_installed(file)[0]:
                    installed[top] = None
        return ([file for top, file in files.items() if top not in checked],
                [top for top in installed if top not in checked])

    def note_fork(self) -> None:
        """Note that there is a process whose end may not be noted."""
        self._append(THREADS, FORKED)

    def stop(self) -> None:
        """Stop checking and undo all patches."""
        self.finish()
        self._undo_patches()

    def _undo_patches(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        if all_sites:   # rewritten modules, closures and threads may still run
            hook.put_ops(self.core)
        vars(builtins).pop(CHECKING, None)
        RaceSession.current = None

    def _rewrite_tests(self, module: Any) -> None:
        from gilscope.toolkit.race.loading import pytest_hook
        self._undo.append(pytest_hook.install(module, self.core, self._is_project, self._note_loaded))

    def _note_loaded(self, path: str, reason: str) -> None:
        if reason:
            self.unrewritten[path] = reason
        elif path not in self.checked:
            self.checked.add(path)
            self._append(CHECKED, path)

    def _append(self, name: str, line: str) -> None:
        try:
            append(os.path.join(self.spool, name), f"{line}\n".encode(errors="replace"))
        except OSError:
            return   # the report then does not say it


def _follow_forks() -> None:
    global _follows_forks  # noqa: PLW0603  fork callbacks cannot be unregistered
    if not _follows_forks:
        _follows_forks = True
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    if (session := RaceSession.current) is not None:
        session.core.after_fork()
        session.handler.after_fork()
        session.note_fork()


class CoreMissingError(ToolkitError):
    """The checker has no core for this build here; the message has the reason and what to install.  Exit code 3."""

    exit_code = 3


def load_core() -> Core:
    """Return the core.

    Raises:
        CoreMissingError: There is none for this build, and none can be compiled.
    """
    from gilscope.toolkit.race._core import build
    try:
        core: Core = build.load(_announce_compilation)
    except ExtensionUnavailableError as error:
        raise CoreMissingError(f"the race checker has no core for this Python: {error}") from error
    return core


def _announce_compilation(seconds: float) -> None:
    from gilscope.toolkit.builds.compile_library import announce  # the compilation has imported it

    announce("the race checker's core for this Python", seconds)
