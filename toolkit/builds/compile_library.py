"""Compile C sources into a shared library; a lock and a rename keep others from seeing an incomplete one."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sysconfig
from enum import Enum, auto
from typing import TYPE_CHECKING

from gilscope.toolkit.file_locks import locked
from gilscope.toolkit.processes.supervised import run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

# Seconds.  It takes 3 to 15 on a quiet machine; a core shared with many others was seen to need more than 120.  The
# limit is for a compiler that hangs, so it is far above what a slow machine needs.
_TIMEOUT = 600.0
_QUOTED = 2000     # characters of a compiler's message


class CompileFailure(Enum):
    """The kinds of failure, which call for different advice."""

    NO_TOOLS = auto()     # no compiler, or no headers of this Python
    REFUSED = auto()      # the compiler ended with an error
    TIME_LIMIT = auto()   # it took too long
    UNWRITABLE = auto()   # the library cannot be written


class CompileError(Exception):
    """A library that cannot be compiled here; the message says why.

    Attributes:
        failure: The kind of failure.
    """

    def __init__(self, text: str, failure: CompileFailure) -> None:
        super().__init__(text)
        self.failure = failure

    def remedy(self, tools: str) -> str:
        """Return the advice: "install `tools`" only if a tool may be missing."""
        match self.failure:
            case CompileFailure.NO_TOOLS:
                return f"install {tools}"
            case CompileFailure.REFUSED:
                return f"see the compiler's message; if something is missing, install {tools}"
            case CompileFailure.TIME_LIMIT:
                return "the machine is busy: run it again"
            case CompileFailure.UNWRITABLE:
                return "make that folder writable, or name another one in GILSCOPE_CACHE"


def c_compiler() -> list[str]:
    """Return the command of the C compiler: $CC, the one that this Python was built with, or cc.

    Raises:
        CompileError: no such command is on PATH.
    """
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    command = shlex.split(compiler)
    if shutil.which(command[0]) is None:
        command = ["cc"]
    if shutil.which(command[0]) is None:
        raise CompileError(f"there is no C compiler ({compiler} is not on PATH)", CompileFailure.NO_TOOLS)
    return command


def compile_library(
    command: Sequence[str], sources: Sequence[str], target: Path, on_compile: Callable[[float], object] | None = None
) -> None:
    """Compile `sources` to `target` unless it exists.

    Args:
        command: The compiler and its options, without the files.
        sources: Paths of the C files.
        target: The library.
        on_compile: Called with the seconds that the compilation has taken so far: 0 before it, and then as `on_wait`
            of `supervised.run`.

    Raises:
        CompileError: the compiler failed or took too long, or the library cannot be written.
    """
    try:
        _compile(command, sources, target, on_compile or (lambda _seconds: None))
    except OSError as error:
        raise CompileError(f"{target.parent} cannot be written: {error.strerror or error}",
                           CompileFailure.UNWRITABLE) from error


def _compile(
    command: Sequence[str], sources: Sequence[str], target: Path, on_compile: Callable[[float], object]
) -> None:
    with locked(target.with_name("lock")):
        if target.exists():
            return
        on_compile(0.0)
        # While we hold the lock, no other process uses this folder: its content was left by a killed one.  The compiler
        # puts its temporary files here, too.
        folder = target.with_name("compiling")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        made = folder / target.name
        try:
            done = run([*command, *sources, "-o", str(made)], timeout=_TIMEOUT,
                       env={**os.environ, "TMPDIR": str(folder)}, on_wait=on_compile)
            if done.returncode:
                raise CompileError(f"{command[0]} failed:\n{done.stderr.strip()[:_QUOTED]}", CompileFailure.REFUSED)
            made.replace(target)
        except subprocess.TimeoutExpired as error:
            raise CompileError(f"the compiler took longer than {_TIMEOUT:.0f} s ({command[0]})",
                               CompileFailure.TIME_LIMIT) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def announce(what: str, seconds: float) -> None:
    """Say on standard error that `what` is being compiled, and for how long already.

    A terminal is told at once.  Elsewhere standard error may be the program's own, so a log gets a line only if there
    is a long wait to explain.
    """
    if seconds:
        _say(f"still compiling {what}: {seconds:.0f} s so far")
    elif os.isatty(2):
        _say(f"compiling {what}, once (some seconds)")


def _say(text: str) -> None:
    # Not through sys.stderr, which belongs to the program.
    with contextlib.suppress(OSError):   # closed, or nobody reads it
        os.write(2, f"gilscope: {text}\n".encode())
