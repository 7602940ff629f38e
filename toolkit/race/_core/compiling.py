"""Compile the C core with the running build's own compiler, under a lock, and install it atomically.

Kept apart from `build`, so that a checked program whose core is compiled already does not import this.
"""

from __future__ import annotations

import os
import shlex
import sysconfig
from pathlib import Path

from gilscope.toolkit.builds.compile_library import CompileError, c_compiler, compile_library
from gilscope.toolkit.race.core import CoreUnavailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def compile_core(folder: str, path: str, on_compile: Callable[[], object] | None = None) -> None:
    """Compile `folder`/core.c to `path`.

    Raises:
        CoreUnavailableError: There is no compiler, or no header of this Python, or the compiler failed.
    """
    target = Path(path)
    try:
        compile_library(compiler(), [str(Path(folder, "core.c"))], target, on_compile)
    except CompileError as error:
        raise CoreUnavailableError(str(error)) from error
    except OSError as error:
        raise CoreUnavailableError(f"the core cannot be written to {target.parent}: {error}") from error


def compiler() -> list[str]:
    """Return the command that compiles an extension for this build, without input and output.

    Raises:
        CoreUnavailableError: There is no compiler, or no header of this Python.
    """
    try:
        command = c_compiler()
    except CompileError as error:
        raise CoreUnavailableError(str(error)) from error
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").exists():
        raise CoreUnavailableError(f"the headers of this Python are not installed (no Python.h in {include})")
    mac = sysconfig.get_platform().startswith("macosx")
    shared = ["-bundle", "-undefined", "dynamic_lookup"] if mac else ["-shared"]
    return [*command, "-O2", "-g", "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-fno-strict-overflow", "-DNDEBUG",
            "-pthread", *shared, f"-I{include}", *shlex.split(os.environ.get("GILSCOPE_RACE_CFLAGS", ""))]
