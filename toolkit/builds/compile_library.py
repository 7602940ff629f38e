"""Compile C sources into a shared library; a lock and a rename keep others from seeing an incomplete one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sysconfig
from typing import TYPE_CHECKING

from gilscope.toolkit.file_locks import locked
from gilscope.toolkit.processes.supervised import run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_TIMEOUT = 120.0
_QUOTED = 2000     # characters of a compiler's message


class CompileError(Exception):
    """A library that cannot be compiled here; the message says why."""


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
        raise CompileError(f"there is no C compiler ({compiler} is not on PATH)")
    return command


def compile_library(
    command: Sequence[str], sources: Sequence[str], target: Path, on_compile: Callable[[], object] | None = None
) -> None:
    """Compile `sources` to `target` unless it exists.

    Args:
        command: The compiler and its options, without the files.
        sources: Paths of the C files.
        target: The library.
        on_compile: Called before a compilation, which takes some seconds.

    Raises:
        CompileError: the compiler failed or took too long.
        OSError: the library cannot be written.
    """
    with locked(target.with_name("lock")):
        if target.exists():
            return
        if on_compile is not None:
            on_compile()
        # While we hold the lock, no other process uses this folder: its content was left by a killed one.  The compiler
        # puts its temporary files here, too.
        folder = target.with_name("compiling")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        made = folder / target.name
        try:
            done = run([*command, *sources, "-o", str(made)], timeout=_TIMEOUT,
                       env={**os.environ, "TMPDIR": str(folder)})
            if done.returncode:
                raise CompileError(f"{command[0]} failed:\n{done.stderr.strip()[:_QUOTED]}")
            made.replace(target)
        except subprocess.TimeoutExpired as error:
            raise CompileError(f"{command[0]} did not finish within {_TIMEOUT:.0f} s") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
