"""Make a C extension for the running build: take it from gilscope's wheel for this build, or compile it.

Kept apart from `extension`, so that a checked program whose core is at hand does not import this.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope import __version__
from gilscope.toolkit.builds.compile_library import CompileError, CompileFailure, c_compiler, compile_library
from gilscope.toolkit.builds.extension import ExtensionUnavailableError
from gilscope.toolkit.builds.package_installer import problem_in, run_installer
from gilscope.toolkit.builds.uv import uv_command
from gilscope.toolkit.file_locks import locked

if TYPE_CHECKING:
    from collections.abc import Callable

    from gilscope.toolkit.builds.extension import CExtension

QUICK = {"PIP_RETRIES": "1", "PIP_TIMEOUT": "15"}     # the program waits; without a network it is compiled


def make(extension: CExtension, path: str, refused: str, *, with_wheel: bool,
         on_compile: Callable[[float], object] | None = None) -> None:
    """Make the extension at `path`, or load it from a wheel and put it there.

    Args:
        extension: The extension.
        path: Where the file goes, in the cache.
        refused: Why the one in the installed wheel was not loaded; "" if it holds none for this build.
        with_wheel: Try gilscope's wheel for this build first.
        on_compile: As in `compile_library`.

    Raises:
        ExtensionUnavailableError: There is no wheel for this build, and it cannot be compiled.
    """
    problems = [refused] if refused else []
    if with_wheel:
        try:
            _take_from_wheel(extension, Path(path))
        except ExtensionUnavailableError as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(f"gilscope's wheel for this build cannot be put into the cache: {error}")
        else:
            return
    try:
        compile_library(compiler(), [extension.main], Path(path), on_compile)
    except CompileError as error:
        reasons = "; ".join([*problems, str(error)])
        raise ExtensionUnavailableError(f"{reasons}\n{_remedy(error, with_wheel=with_wheel)}") from error


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


def _take_from_wheel(extension: CExtension, path: Path) -> None:
    """Install gilscope's wheel for this build into a temporary folder, load the extension, and move it to `path`."""
    with locked(path.with_name("lock")):
        if path.exists():
            return
        # A "no" is not remembered: whoever was told what to install starts again at once.
        folder = Path(tempfile.mkdtemp(dir=path.parent))
        try:
            name = f"gilscope=={__version__}"
            words: list[str | Path] = ["--quiet", "--no-deps", "--only-binary", ":all:", "--target", folder, name]
            if output := run_installer([*_installer(), *words], QUICK):
                raise ExtensionUnavailableError(f"there is no wheel of {name} for this build ({problem_in(output)})")
            found = folder.joinpath(*extension.name.split(".")).with_name(extension.file_name())
            if not found.exists():
                raise ExtensionUnavailableError(f"the wheel of {name} for this build holds no {found.name}")
            extension.load_file(str(found))
            found.replace(path)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _installer() -> list[str | Path]:
    """Return the command that installs for the running build: of uv, its own pip, or the pip beside gilscope.

    Raises:
        ExtensionUnavailableError: There is none of these.
    """
    if uv := uv_command():
        return [uv, "pip", "install", "--no-config", "--python", sys.executable]
    end = ["install", "--disable-pip-version-check", "--no-input"]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-I", "-m", "pip", *end]
    package = Path(os.path.realpath(__file__))
    for place in package.parents:      # .../lib/python3.14/site-packages/gilscope
        if (python := place / "bin" / "python").exists():
            return [python, "-I", "-m", "pip", "--python", sys.executable, *end]
    raise ExtensionUnavailableError("there is no pip or uv to get gilscope's wheel for this build with")


def _remedy(error: CompileError, *, with_wheel: bool) -> str:
    remedy = error.remedy("a C compiler and this Python's headers (Debian: apt-get install gcc python3-dev)")
    if not with_wheel or error.failure not in {CompileFailure.NO_TOOLS, CompileFailure.REFUSED}:
        return remedy
    return (f"install gilscope {__version__} from its wheel for this build, put that wheel into a folder that "
            f"PIP_FIND_LINKS (UV_FIND_LINKS) names, or {remedy}")
