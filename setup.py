"""Compile the C libraries of a wheel: the race checker's core, and those of `gilscope scale` and `gilscope gil`.

Everything else about the package is in pyproject.toml.  The libraries are optional, so that the source distribution
installs where there is no compiler; GILSCOPE_NATIVE=required makes a failure an error, as for a release.  An editable
install compiles none: gilscope compiles a checkout's libraries into its cache at their first use.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from setuptools import Extension, find_namespace_packages, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.egg_info import egg_info
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
LINKS = ".editable"    # a checkout's link to `gilscope`; a source distribution holds the package itself
WHERE = LINKS if (ROOT / LINKS).is_dir() else "."
sys.path.insert(0, str(ROOT / WHERE))

from gilscope.toolkit.gil import preload  # noqa: E402
from gilscope.toolkit.race._core.build import CORE  # noqa: E402
from gilscope.toolkit.scale.child.headers import HEADERS  # noqa: E402

SHIM = "gilscope.toolkit.gil.shim"
# In a source distribution beside the package; links, caches and what tools left are not taken.
BESIDE = ("setup.py", "pyproject.toml", "tests", "docs", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md",
          "tox.ini", "Makefile", "constraints.txt")
UNWANTED = shutil.ignore_patterns("__pycache__", "*.pyc", "*.so", "_build", "*.egg-info")
# -g0 and no LTO: what a build's own options add would be machine paths, and code that .symver directives get lost in.
FLAGS = ("-O2", "-g0", "-fno-lto", "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-DNDEBUG", "-pthread")


def extensions() -> list[Extension]:
    """Return what can be compiled on this platform."""
    optional = os.environ.get("GILSCOPE_NATIVE") != "required"
    glibc = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
    compile_args, link_args = [*FLAGS], []
    if glibc:
        # Wheels are for glibc 2.28 and newer, whichever this machine has.
        compile_args += ["-include", str(ROOT / WHERE / "gilscope/toolkit/builds/old_glibc.h")]
        link_args += ["-Wl,--strip-debug", "-Wl,--push-state,--no-as-needed", "-l:libpthread.so.0", "-l:libdl.so.2",
                      "-Wl,--pop-state"]
    scale = sys.platform == "linux" and sysconfig.get_config_var("Py_GIL_DISABLED")
    found = [Extension(
        each.name, [_relative(Path(each.main))], depends=[_relative(Path(source)) for source in each.sources()],
        define_macros=[("GILSCOPE_SOURCES", f'"{each.sources_digest()}"')],
        extra_compile_args=[*compile_args, "-fno-strict-overflow"], extra_link_args=link_args, optional=optional)
        for each in (CORE, *([HEADERS] if scale else []))]
    if glibc and sys.maxsize > 1 << 32:
        shim = ROOT / WHERE / "gilscope/toolkit/gil/_shim"
        found.append(Extension(
            SHIM, sorted(_relative(each) for each in shim.glob("*.c")),
            depends=sorted(_relative(each) for each in shim.glob("*.h")),
            extra_compile_args=[*compile_args, "-ftls-model=initial-exec"], extra_link_args=link_args,
            optional=optional))
    return found


def _relative(path: Path) -> str:
    return os.path.relpath(path, ROOT)


def _temporary_folder() -> str:
    folder = tempfile.mkdtemp(prefix="gilscope-setup-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class BuildInTemporaryFolder(build):
    """Build outside of the source tree: a file that an earlier build left there would get into the wheel."""

    def initialize_options(self) -> None:
        """Set the folder."""
        super().initialize_options()
        self.build_base = _temporary_folder()


class EggInfoInTemporaryFolder(egg_info):
    """Write the metadata outside of the source tree, since several builds may read it at once."""

    def initialize_options(self) -> None:
        """Set the folder."""
        super().initialize_options()
        self.egg_base = _temporary_folder()


class BuildLibraries(build_ext):
    """Compile the libraries for a wheel, and nothing for an editable install."""

    def run(self) -> None:
        """Compile."""
        if not self.editable_mode:
            super().run()

    def build_extensions(self) -> None:
        """Compile, without the folders of this machine in which the build itself looks for libraries."""
        command = self.compiler.linker_so
        self.compiler.linker_so = [word for word in command if not word.startswith(("-Wl,-rpath", "-L"))]
        super().build_extensions()

    def get_ext_filename(self, fullname: str) -> str:
        """Return the file's name: that of the shim, which depends on no Python, cannot be imported."""
        if fullname.endswith(SHIM.rpartition(".")[2]):
            return str(Path(*fullname.split(".")).with_name(preload.file_name()))
        return super().get_ext_filename(fullname)


class SourceDistribution(sdist):
    """Pack the package itself in place of the links to it, and what is beside it."""

    def make_distribution(self) -> None:
        """Pack in a temporary folder: the working folder may be one in which another build packs, too."""
        self.dist_dir = str(Path(self.dist_dir).absolute())
        with contextlib.chdir(_temporary_folder()):
            super().make_distribution()

    def make_release_tree(self, base_dir: str, files: Any) -> None:
        """Copy the files into `base_dir`; `files` are those that setuptools found through the links."""
        del files
        target = Path(base_dir)
        shutil.copytree(ROOT / WHERE / "gilscope", target / "gilscope", ignore=UNWANTED)
        for name in BESIDE:
            source = ROOT / PurePosixPath(name)
            if source.is_dir():
                shutil.copytree(source, target / name, ignore=UNWANTED)
            else:
                shutil.copy2(source, target / name)
        self.distribution.metadata.write_pkg_info(base_dir)


setup(
    package_dir={"": WHERE},
    packages=find_namespace_packages(WHERE, include=["gilscope*"], exclude=["*__pycache__*"]),
    ext_modules=extensions(),
    cmdclass={"build": BuildInTemporaryFolder, "egg_info": EggInfoInTemporaryFolder, "build_ext": BuildLibraries,
              "sdist": SourceDistribution},
)
