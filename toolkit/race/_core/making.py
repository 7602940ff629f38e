"""Make the C core of the running build: take it from gilscope's wheel for this build, or compile it.

Kept apart from `build`, so that a checked program whose core is at hand does not import this.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

from gilscope import __version__
from gilscope.toolkit.builds.compile_library import CompileError, CompileFailure
from gilscope.toolkit.builds.package_installer import problem_in, run_installer
from gilscope.toolkit.builds.uv import uv_command
from gilscope.toolkit.file_locks import locked
from gilscope.toolkit.race._core.compiling import compile_core
from gilscope.toolkit.race.core import CoreUnavailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

QUICK = {"PIP_RETRIES": "1", "PIP_TIMEOUT": "15"}     # the program waits; without a network it is compiled


def make_core(
    folder: str, path: str, refused: str, in_wheel: str, load_file: Callable[[str], Any] | None,
    on_compile: Callable[[float], object] | None = None,
) -> None:
    """Make the core at `path`, or load it from a wheel and put it there.

    Args:
        folder: The folder with the sources.
        path: Where the core goes, in the cache.
        refused: Why the core in the installed wheel was not loaded; "" if it holds none for this build.
        in_wheel: The name of the core's file in a wheel for this build.
        load_file: Loads the core in a file; None in a checkout, which has no wheel.
        on_compile: As in `compile_library`.

    Raises:
        CoreUnavailableError: There is no wheel for this build, and the core cannot be compiled.
    """
    problems = [refused] if refused else []
    if load_file is not None:
        try:
            _take_from_wheel(Path(path), in_wheel, load_file)
        except CoreUnavailableError as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(f"gilscope's wheel for this build cannot be put into the cache: {error}")
        else:
            return
    try:
        compile_core(folder, path, on_compile)
    except CompileError as error:
        reasons = "; ".join([*problems, str(error)])
        raise CoreUnavailableError(f"{reasons}\n{_remedy(error, with_wheel=load_file is not None)}") from error


def _take_from_wheel(path: Path, in_wheel: str, load_file: Callable[[str], Any]) -> None:
    """Install gilscope's wheel for this build into a temporary folder, load its core, and move that to `path`."""
    with locked(path.with_name("lock")):
        if path.exists():
            return
        # A "no" is not remembered: whoever was told what to install starts again at once.
        folder = Path(tempfile.mkdtemp(dir=path.parent))
        try:
            name = f"gilscope=={__version__}"
            words: list[str | Path] = ["--quiet", "--no-deps", "--only-binary", ":all:", "--target", folder, name]
            if output := run_installer([*_installer(), *words], QUICK):
                raise CoreUnavailableError(f"there is no wheel of {name} for this build ({problem_in(output)})")
            found = folder / "gilscope" / "toolkit" / "race" / "_core" / in_wheel
            if not found.exists():
                raise CoreUnavailableError(f"the wheel of {name} for this build holds no core")
            load_file(str(found))
            found.replace(path)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _installer() -> list[str | Path]:
    """Return the command that installs for the running build: of uv, its own pip, or the pip beside gilscope.

    Raises:
        CoreUnavailableError: There is none of these.
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
    raise CoreUnavailableError("there is no pip or uv to get gilscope's wheel for this build with")


def _remedy(error: CompileError, *, with_wheel: bool) -> str:
    remedy = error.remedy("a C compiler and this Python's headers (Debian: apt-get install gcc python3-dev)")
    if not with_wheel or error.failure not in {CompileFailure.NO_TOOLS, CompileFailure.REFUSED}:
        return remedy
    return (f"install gilscope {__version__} from its wheel for this build, put that wheel into a folder that "
            f"PIP_FIND_LINKS (UV_FIND_LINKS) names, or {remedy}")
