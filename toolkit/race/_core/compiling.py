"""Compile the C core with the running build's own compiler, under a lock, and put it in its place atomically."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from toolkit.builds.places import locked
from toolkit.race._core.build import UnavailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TIMEOUT = 120.0
_TOLD = 2000       # characters of a compiler's message that a reason quotes


def compile_core(folder: str, path: str, on_compile: Callable[[], object] | None = None) -> None:
    """Compile `folder`/core.c to `path`.

    Raises:
        UnavailableError: There is no compiler, or no header of this Python, or the compiler failed.
    """
    command = compiler()
    target = Path(path)
    try:
        with locked(target.with_name("lock"), lambda: None):
            if target.exists():
                return     # another process was first
            if on_compile is not None:
                on_compile()
            _run(command, Path(folder), target)
    except OSError as error:
        raise UnavailableError(f"the core cannot be written to {target.parent}: {error}") from error


def compiler() -> list[str]:
    """Return the command that compiles an extension for this build, without input and output.

    Raises:
        UnavailableError: There is no compiler, or no header of this Python.
    """
    wanted = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    command = shlex.split(wanted)
    if shutil.which(command[0]) is None:
        command = ["cc"]
    if shutil.which(command[0]) is None:
        raise UnavailableError(f"there is no C compiler ({wanted} is not on PATH)")
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").exists():
        raise UnavailableError(f"the headers of this Python are not installed (no Python.h in {include})")
    mac = sysconfig.get_platform().startswith("macosx")
    shared = ["-bundle", "-undefined", "dynamic_lookup"] if mac else ["-shared"]
    return [*command, "-O2", "-g", "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-fno-strict-overflow", "-DNDEBUG",
            "-pthread", *shared, f"-I{include}", *shlex.split(os.environ.get("GILSCOPE_RACE_CFLAGS", ""))]


def _run(command: list[str], folder: Path, target: Path) -> None:
    handle, name = tempfile.mkstemp(".so", dir=target.parent)
    os.close(handle)
    try:
        done = subprocess.run([*command, str(folder / "core.c"), "-o", name], capture_output=True, text=True,
                              timeout=_TIMEOUT, check=False)
        if done.returncode:
            raise UnavailableError(f"{command[0]} failed:\n{done.stderr.strip()[:_TOLD]}")
        os.replace(name, target)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"{command[0]} did not finish within {_TIMEOUT:.0f} s") from error
    finally:
        Path(name).unlink(missing_ok=True)
