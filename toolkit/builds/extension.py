"""Load gilscope's own C extensions: from the installed wheel, from the cache, or made for the running build first.

A checked program waits for this at its start, so loading an extension imports nothing that the program might not import
itself.
"""

from __future__ import annotations

import os
import sys

from gilscope.toolkit.user_dirs import cache_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from gilscope.toolkit.builds.compile_library import CompileError

QUICK = {"PIP_RETRIES": "1", "PIP_TIMEOUT": "15"}     # the program waits; without a network it is compiled
KEY = 0x67696C73                   # of the hash of the sources: any number
_FOLDER = os.path.dirname(os.path.abspath(__file__))


class ExtensionUnavailableError(Exception):
    """An extension that is not available here; the message has the reason."""


class CExtension:
    """A C extension of gilscope.

    Args:
        name: The full name of the module.
        beside: A file in the folder of the sources; a wheel has the compiled file there.
        main: The name of the source that includes the others.
        cache: The folder in gilscope's cache.
        prepare: Called with the module when it is loaded, before anything else gets it.
    """

    def __init__(self, name: str, beside: str, main: str, cache: str,
                 prepare: Callable[[ModuleType], object] | None = None) -> None:
        self.name = name
        self.folder = os.path.dirname(os.path.abspath(beside))
        self.main = os.path.join(self.folder, main)
        self._stem = name.rpartition(".")[2]
        self._cache = cache
        self._prepare = prepare

    def load(self, on_compile: Callable[[float], object] | None = None) -> ModuleType:
        """Return the module: the one that this process has loaded, or else the first of these that works.

        1. The file for this build in the installed wheel.
        2. The one that an earlier run put into the cache.
        3. The one in gilscope's wheel for this build, which the installer gets; not in a checkout, which has no wheel.
        4. A compiled one.

        Args:
            on_compile: Called with the seconds that a compilation has taken so far: 0 before it, 10, 20, 40, ...

        Raises:
            ExtensionUnavailableError: None works.
        """
        loaded = sys.modules.get(self.name)
        if loaded is not None:
            return loaded
        refused = ""
        installed = os.path.join(self.folder, self.file_name())
        if os.path.exists(installed):
            try:
                return self.load_file(installed)
            except ExtensionUnavailableError as error:
                refused = str(error)
        path = os.path.join(cache_folder(), self._cache, self.cache_key(), f"{self._stem}.so")
        if not os.path.exists(path):
            _make(self, path, refused, with_wheel=not is_checkout(), on_compile=on_compile)
        return sys.modules.get(self.name) or self.load_file(path)   # one from a wheel was loaded to see if it works

    def load_file(self, path: str) -> ModuleType:
        """Load the module from a file.

        Raises:
            ExtensionUnavailableError: It cannot be loaded, or was made for another build or from other sources.
        """
        from _imp import create_dynamic, exec_dynamic
        from importlib.machinery import ExtensionFileLoader, ModuleSpec

        spec = ModuleSpec(self.name, ExtensionFileLoader(self.name, path), origin=path)
        try:
            module: ModuleType = create_dynamic(spec)
            # Its own check of the build comes first, in C: what follows would read memory in another build's layout.
            made_from = module.made_from()      # "" of one that was compiled into the cache: its path names its sources
            if made_from and made_from != self.sources_digest():
                raise ExtensionUnavailableError(f"{path} was made from other sources than this gilscope's")
            exec_dynamic(module)
        except (ImportError, AttributeError, OSError) as error:
            raise ExtensionUnavailableError(f"{os.path.basename(path)} cannot be loaded: {error}") from error
        if self._prepare:
            self._prepare(module)
        module.__spec__ = spec
        sys.modules[self.name] = module
        return module

    def file_name(self) -> str:
        """Return the file's name in a wheel, with the full suffix: others list `.so` among theirs, too."""
        from _imp import extension_suffixes

        return f"{self._stem}{extension_suffixes()[0]}"

    def sources(self) -> list[str]:
        """Return the paths of the C sources, in a fixed order."""
        found = [os.path.join(folder, name) for folder, _, files in os.walk(self.folder) for name in files
                 if name.endswith((".c", ".h"))]
        return sorted([*found, os.path.join(_FOLDER, "extension.h")])

    def sources_digest(self) -> str:
        """Return a hash of the sources, by a function that costs no import and is the same in one version of Python."""
        from _imp import source_hash

        parts = []
        for path in self.sources():
            with open(path, "rb") as file:
                parts += [os.path.basename(path).encode(), b"\0", file.read()]
        return source_hash(KEY, b"".join(parts)).hex()

    def cache_key(self) -> str:
        """Return a name that changes with the build and the sources, which sizes and times of files identify."""
        parts = [sys.version, sys.implementation.cache_tag or "", sys.base_prefix, getattr(sys, "abiflags", "")]
        for path in (*self.sources(), sys.executable):
            found = os.stat(path)
            parts.append(f"{os.path.basename(path)}:{found.st_size}:{found.st_mtime_ns}")
        return format(_fnv("\n".join(parts).encode()), "016x")


def is_checkout() -> bool:
    """Return True if this gilscope is a checkout: its `toolkit` lies outside of the package."""
    toolkit = os.path.dirname(os.path.realpath(_FOLDER))
    return not os.path.exists(os.path.join(os.path.dirname(toolkit), "__init__.py"))


def _fnv(text: bytes) -> int:
    """Return the 64-bit FNV-1a hash, since importing hashlib takes longer than everything else here."""
    number = 0xCBF29CE484222325
    for byte in text:
        number = (number ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return number


# What follows runs once for each build, so it may import more.


def _make(extension: CExtension, path: str, refused: str, *, with_wheel: bool,
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
    from pathlib import Path

    from gilscope.toolkit.builds.compile_library import CompileError, compile_library

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
    import shlex
    import sysconfig
    from pathlib import Path

    from gilscope.toolkit.builds.compile_library import CompileError, CompileFailure, c_compiler

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
    import shutil
    import tempfile
    from pathlib import Path

    from gilscope import __version__
    from gilscope.toolkit.builds.package_installer import problem_in, run_installer
    from gilscope.toolkit.file_locks import locked

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
    import importlib.util
    from pathlib import Path

    from gilscope.toolkit.builds.uv import uv_command

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
    from gilscope import __version__
    from gilscope.toolkit.builds.compile_library import CompileFailure

    remedy = error.remedy("a C compiler and this Python's headers (Debian: apt-get install gcc python3-dev)")
    if not with_wheel or error.failure not in {CompileFailure.NO_TOOLS, CompileFailure.REFUSED}:
        return remedy
    return (f"install gilscope {__version__} from its wheel for this build, put that wheel into a folder that "
            f"PIP_FIND_LINKS (UV_FIND_LINKS) names, or {remedy}")
