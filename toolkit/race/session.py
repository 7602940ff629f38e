"""One checking of this process: core, synchronisation, rewriting and reports, put together and taken apart again."""

from __future__ import annotations

import builtins
import os

from gilscope.toolkit.race import site_registry, sync
from gilscope.toolkit.race.conflicts.handler import ConflictHandler
from gilscope.toolkit.race.core import UnavailableError
from gilscope.toolkit.race.loading import hook
from gilscope.toolkit.race.site import OP_PREFIX
from gilscope.toolkit.race.sync.patch_on_import import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import CodeType
    from typing import Any

    from gilscope.toolkit.race.core import Core

CHECKING = OP_PREFIX + "checking"    # among the builtins while a session lasts
_follows_forks = False
_used = ""


class Session:
    """What checks this process from `start` to `stop`.  There is one at a time: builtins and locks are the process's.

    Args:
        spool: The folder that races are written to; exists.
        core: "c", "python", or "" for the faster one that works.
        include: Globs of modules to check besides the project's.
        options: What the handler of conflicts is told: `root`, `target`, `build`, `command`, `sections`, `shared`.

    Attributes:
        core: What keeps clocks and shadow state; from `start` on.
        handler: What turns conflicts into races; from `start` on.
        slow_because: Why the pure-Python core is used although nobody asked for it; "" otherwise.
    """

    current: Session | None = None
    core: Core
    handler: ConflictHandler

    def __init__(self, *, spool: str, core: str = "", include: Sequence[str] = (),
                 options: Mapping[str, Any] | None = None) -> None:
        self.spool = spool
        self.wanted = core
        self.include = include
        self.options = dict(options or {})
        self.slow_because = ""
        self.unrewritten: dict[str, str] = {}   # path -> why the module runs as it is
        self._undo: list[Callable[[], None]] = []

    def start(self) -> None:
        """Begin to check.

        Raises:
            RuntimeError: This process is being checked already.
        """
        if CHECKING in vars(builtins):   # also where another copy of this package does it
            raise RuntimeError("this process is being checked for races already; one checking cannot hold another")
        vars(builtins)[CHECKING] = self
        Session.current = self
        try:
            self._start()
        except BaseException:
            self._take_back()
            raise

    def _start(self) -> None:
        global _used  # noqa: PLW0603  code that was linked with a core's sites needs the ops of that core
        self.core, self.slow_because = load_core(self.wanted or _used)
        if site_registry.sites and _used not in {"", self.core.name.lower()}:
            raise RuntimeError(f"this process was checked with the {_used} core; it cannot change to the other one")
        _used = self.core.name.lower()
        self._is_project = hook.project_filter(include=self.include)
        self._undo.append(sync.install(self.core))
        self._undo.append(hook.install(self.core, self._is_project, self._note_unrewritten))
        pytest = Later({"_pytest.assertion.rewrite": self._rewrite_tests})
        pytest.start()
        self._undo.append(pytest.stop)
        self.handler = ConflictHandler(self.core, self.spool, sync.describe, self.options)
        self.handler.root_of = sync.root_of
        self.core.start(self.handler.on_conflict)
        if self.options.get("shared"):
            self.core.tell_shared()
        _follow_forks()

    def attach(self) -> None:
        """Rewrite the project's functions that are there already."""
        from gilscope.toolkit.race.loading.rewrite_loaded import attach
        self._undo.append(attach(self.core, self._is_project, self._note_unrewritten))

    def compile(self, source: bytes, path: str) -> CodeType:
        """Return the entry script's code, rewritten.

        Raises:
            SyntaxError: As compiling it raises; ValueError likewise.
        """
        return hook.code_for_script(path, source, self.core, self._note_unrewritten)

    def finish(self) -> None:
        """Check no more and write what is known only at the end; the patches stay, as at the end of a process."""
        self.core.stop()
        if self.handler.heard_any or self.unrewritten or any(site.note is not None for site in site_registry.sites):
            self.handler.finish(self.unrewritten.items())

    def stop(self) -> None:
        """End the checking and take all patches back."""
        self.finish()
        self._take_back()

    def _take_back(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        if site_registry.sites:   # what was rewritten meanwhile may run on: modules, closures, threads
            hook.put_ops(self.core)
        vars(builtins).pop(CHECKING, None)
        Session.current = None

    def _rewrite_tests(self, module: Any) -> None:
        from gilscope.toolkit.race.loading import pytest_hook
        self._undo.append(pytest_hook.install(module, self.core, self._is_project, self._note_unrewritten))

    def _note_unrewritten(self, path: str, reason: str) -> None:
        self.unrewritten[path] = reason


def _follow_forks() -> None:
    global _follows_forks  # noqa: PLW0603  what is registered with `os` stays
    if not _follows_forks:
        _follows_forks = True
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    if (session := Session.current) is not None:
        session.core.after_fork()
        session.handler.after_fork()


def load_core(wanted: str) -> tuple[Core, str]:
    """Return the core, and why it is the slower one although that was not wanted.

    Args:
        wanted: "c", "python", or "" for the faster one that works.

    Raises:
        ToolkitError: "c" is wanted and cannot be had.
    """
    reason = ""
    if wanted != "python":
        try:
            from gilscope.toolkit.race._core import build
        except ImportError as error:   # an installation without it
            reason = str(error)
        else:
            try:
                return build.load(_say_that_it_compiles), ""
            except UnavailableError as error:
                reason = str(error)
    if wanted == "c":
        from gilscope.toolkit.errors import ToolkitError
        raise ToolkitError(f"the C core cannot be had: {reason}")
    from gilscope.toolkit.race.pure import load
    return load(), reason


def warn_of_slow_core(session: Session) -> None:
    """Say on standard error why this takes longer than it could."""
    if session.slow_because:
        first_line = session.slow_because.partition("\n")[0].rstrip(":")
        _say(f"the race checker's C core cannot be had: {first_line} (--core c says more); "
             "the one in Python gives the same verdicts, slower")


def _say_that_it_compiles() -> None:
    if os.isatty(2):
        _say("compiling the race checker's core, once for this Python")


def _say(words: str) -> None:
    # Not through sys.stderr: the program's is not ours to look at.
    from gilscope.toolkit.escaping import message
    os.write(2, f"gilscope: {message(words)}\n".encode(errors="replace"))
