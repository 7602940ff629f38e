"""Environments of builds that hold packages compiled here."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gilscope.toolkit.builds.inspection import version_key
from gilscope.toolkit.builds.package_installer import InstallProblem
from gilscope.toolkit.evaluate.packages.distributions import installed, site_folders
from gilscope.toolkit.evaluate.packages.doctor import reference_of
from gilscope.toolkit.evaluate.packages.scratch import ScratchEnvironment
from tests.conformance import builds
from tests.patience import PATIENCE
from tests.shared import once

SOURCE = Path(__file__).with_name("variants.c")
COMPILER = shutil.which("gcc") or shutil.which("cc")
INCLUDE = "import sysconfig; print(sysconfig.get_path('include'))"


def newest_pair():
    """Return the newest free-threaded build that tests run on, and its counterpart; skip where there is none."""
    pairs = [(build, counterpart) for build in builds.chosen("free")
             if (counterpart := reference_of(build, builds.found()))]
    if not pairs:
        pytest.skip("no free-threaded build with its counterpart")
    return max(pairs, key=lambda pair: version_key(pair[0].version))


def headers(build):
    """Return the folder of a build's headers; skip where they are not installed."""
    asked = subprocess.run([build.executable, "-I", "-c", INCLUDE], capture_output=True, text=True, check=True)
    folder = Path(asked.stdout.strip())
    if not (folder / "Python.h").exists():
        pytest.skip(f"no headers of {build.label}")
    return folder


def library(build, tmp_path_factory):
    """Return the library of all variants for a build, compiled once in a test run; skip without means to."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    include = headers(build)

    def make(folder):
        command = [COMPILER, "-shared", "-fPIC", "-O0", f"-I{include}", str(SOURCE), "-o", str(folder / "variants.so")]
        subprocess.run(command, check=True, timeout=PATIENCE)

    return once(tmp_path_factory, f"variants-{build.label}", make) / "variants.so"


def version(build):
    return tuple(int(part) for part in build.minor.split("."))


class Site:
    """An environment of a build whose packages are put there by hand."""

    def __init__(self, build, folder, library):
        subprocess.run([build.executable, "-I", "-m", "venv", "--without-pip", str(folder)], check=True,
                       timeout=PATIENCE)
        self.build, self.folder, self.library = build, folder, library
        (self.site,) = site_folders(folder)

    def add(self, name, files, requires=()):
        """Put a distribution there; a value of `files` is source text, None for the library."""
        for path, text in files.items():
            target = self.site / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                shutil.copy(self.library, target)
            else:
                target.write_text(text, encoding="utf-8")
        info = self.site / f"{name}-1.0.dist-info"
        info.mkdir()
        needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}")
        (info / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\n")
        (info / "RECORD").write_text("".join(f"{path},,\n" for path in files), encoding="utf-8")

    def scratch(self, **missing):
        return ScratchEnvironment(folder=self.folder, distributions=installed([self.site], self.build),
                                  missing={name: InstallProblem(reason) for name, reason in missing.items()})
