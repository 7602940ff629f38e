"""Find the shim in the installed wheel or compile it once into the cache, and preload it into a process.

It does not depend on a Python, so one library serves every build: it detects their differences when it is loaded.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from pathlib import Path

from gilscope.toolkit.builds.compile_library import CompileError, announce, c_compiler, compile_library
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.user_dirs import cache_dir

VARIABLE = "GILSCOPE_GIL"    # the absolute folder that processes record into from their start on
ALL_HOLDS = "GILSCOPE_GIL_ALL"
_SOURCES = Path(__file__).with_name("_shim")
FLAGS = ("-O2", "-g", "-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", "-ftls-model=initial-exec", "-pthread")


class ShimUnavailableError(ToolkitError):
    """The shim is not available here; the message has the reason.  Exit code 3."""

    exit_code = 3


def unavailable() -> str | None:
    """Return the reason why GIL waits cannot be measured here, or None; compile the shim if necessary."""
    try:
        library()
    except ShimUnavailableError as error:
        return str(error)
    return None


def _announce_compilation(seconds: float) -> None:
    announce("the library that measures GIL waits", seconds)


def library() -> Path:
    """Return the path of the shim: of the installed wheel, or compiled now or earlier.

    Raises:
        ShimUnavailableError: The system is not Linux with glibc on a 64-bit machine, or compiling failed.
    """
    if reason := _unsupported():
        raise ShimUnavailableError(reason)
    name = file_name()
    installed = Path(__file__).with_name(name)
    if installed.exists():
        return installed
    target = cache_dir() / "gil-shim" / name
    if target.exists():
        return target
    try:
        compile_library([*c_compiler(), *FLAGS], [str(each) for each in c_files()], target,
                        _announce_compilation)
    except CompileError as error:
        remedy = error.remedy("gilscope's wheel (python -m pip install --only-binary gilscope gilscope) or a C "
                              "compiler (Debian: apt-get install gcc libc6-dev)")
        raise ShimUnavailableError(
            "GIL waits are measured by a small C library, which this installation of gilscope lacks and which cannot "
            f"be compiled: {error}; {remedy}") from error
    return target


def file_name() -> str:
    """Return the shim's file name, which changes with its sources and the machine, and which no import finds."""
    digest = hashlib.sha256(platform.machine().encode())
    for source in _sources():
        digest.update(source.name.encode() + source.read_bytes())
    return f"lib-gil-{digest.hexdigest()[:16]}.so"


def c_files() -> list[Path]:
    """Return the shim's C files."""
    return [each for each in _sources() if each.suffix == ".c"]


def _sources() -> list[Path]:
    return sorted(_SOURCES.glob("*.[ch]"))


def environment(folder: str | None = None, *, all_holds: bool = False) -> dict[str, str]:
    """Return the variables that preload the shim into a process.

    Args:
        folder: The folder that each process records into from its start on; None: not before it calls
            `gilscope_gil_start`.
        all_holds: True to record holds of the GIL even if no thread waits, which costs a program that releases it all
            the time about 15 %.

    Raises:
        ShimUnavailableError: As `library`.
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
