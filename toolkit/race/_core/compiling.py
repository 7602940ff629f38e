"""Compile the C core with the running build's own compiler, under a lock, and install it atomically.

Kept apart from `build`, so that a checked program whose core is compiled already does not import this.
"""

from __future__ import annotations

import os
import shlex
import sysconfig
from pathlib import Path

from gilscope.toolkit.builds.compile_library import CompileError, CompileFailure, c_compiler, compile_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def compile_core(folder: str, path: str, on_compile: Callable[[float], object] | None = None) -> None:
    """Compile `folder`/core.c to `path`.

    Raises:
        CompileError: There is no compiler, or no header of this Python, or the compiler failed.
    """
    compile_library(compiler(), [str(Path(folder, "core.c"))], Path(path), on_compile)


def compiler() -> list[str]:
    """Return the command that compiles an extension for this build, without input and output.

    Raises:
        CompileError: There is no compiler, or no header of this Python.
    """
    command = c_compiler()
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").exists():
        raise CompileError(f"the headers of this Python are not installed (no Python.h in {include})",
                           CompileFailure.NO_TOOLS)
    mac = sysconfig.get_platform().startswith("macosx")
    shared = ["-bundle", "-undefined", "dynamic_lookup"] if mac else ["-shared"]
    return [*command, "-O2", "-g", "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-fno-strict-overflow", "-DNDEBUG",
            "-pthread", *shared, f"-I{include}", *shlex.split(os.environ.get("GILSCOPE_RACE_CFLAGS", ""))]
