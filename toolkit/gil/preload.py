"""Have the shim: compiled once into the cache, and put in front of a process through its environment.

It needs nothing of any Python, so one library serves every build: what differs between them it finds out when loaded.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from pathlib import Path

from gilscope.toolkit.builds.compile_library import CompileError, c_compiler, compile_library
from gilscope.toolkit.builds.user_dirs import cache_dir
from gilscope.toolkit.errors import ToolkitError

VARIABLE = "GILSCOPE_GIL"    # the folder that processes record into from their start on; absolute
ALL_HOLDS = "GILSCOPE_GIL_ALL"
_SOURCES = Path(__file__).with_name("_shim")
_FLAGS = ("-O2", "-g", "-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", "-ftls-model=initial-exec", "-pthread")


class UnavailableError(ToolkitError):
    """The shim cannot be had here; the message says why. Exit code 3."""

    exit_code = 3


def unavailable() -> str | None:
    """Return why GIL waits cannot be measured here, or None when they can; compiles the shim when it has to."""
    try:
        library()
    except UnavailableError as error:
        return str(error)
    return None


def library() -> Path:
    """Return the path of the compiled shim.

    Raises:
        UnavailableError: another system than Linux with glibc on a 64-bit machine, or no compiler, or it failed.
    """
    if reason := _unsupported():
        raise UnavailableError(reason)
    sources = sorted(_SOURCES.glob("*.[ch]"))
    digest = hashlib.sha256(platform.machine().encode())
    for source in sources:
        digest.update(source.name.encode() + source.read_bytes())
    target = cache_dir() / "gil-shim" / digest.hexdigest()[:16] / "shim.so"
    if target.exists():
        return target
    try:
        compile_library([*c_compiler(), *_FLAGS], [str(each) for each in sources if each.suffix == ".c"], target)
    except CompileError as error:
        raise UnavailableError(
            f"GIL waits are measured by a small C library, which cannot be compiled: {error}"
        ) from error
    except OSError as error:
        raise UnavailableError(f"the library that measures GIL waits cannot be written: {error}") from error
    return target


def environment(folder: str | None = None, *, all_holds: bool = False) -> dict[str, str]:
    """Return the variables that put the shim in front of a process.

    Args:
        folder: Where each process records into from its start on; None: not before it calls `gilscope_gil_start`.
        all_holds: Whether the time that a thread has the GIL is recorded also while nobody waits for it, which costs
            a program that gives it away all the time some 15 %.

    Raises:
        UnavailableError: as `library`.
    """
    others = os.environ.get("LD_PRELOAD", "")
    variables = {"LD_PRELOAD": f"{library()}:{others}" if others else str(library())}
    if all_holds:
        variables[ALL_HOLDS] = "1"
    if folder is not None:
        variables[VARIABLE] = str(Path(folder).absolute())
    return variables


def _unsupported() -> str | None:
    if sys.platform != "linux":
        return f"GIL waits are measured on Linux alone: what it takes, LD_PRELOAD, is not there on {sys.platform}"
    if platform.libc_ver()[0] != "glibc":
        return "GIL waits are measured on Linux with glibc alone, and this Python's C library is another one"
    if sys.maxsize < 1 << 32:
        return "GIL waits are measured on 64-bit machines alone"
    return None
