"""The builds at hand, and environments of them that hold packages compiled here."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gilscope.toolkit.builds.find import find_builds
from gilscope.toolkit.builds.package_installer import InstallProblem
from gilscope.toolkit.evaluate.packages.distributions import installed, site_folders
from gilscope.toolkit.evaluate.packages.scratch import ScratchEnvironment
from gilscope.toolkit.evaluate.project.machine_calibration import Calibration
from gilscope.toolkit.evaluate.readings import is_quiet
from tests.patience import PATIENCE

SOURCE = Path(__file__).with_name("variants.c")
COMPILER = shutil.which("gcc") or shutil.which("cc")
INCLUDE = "import sysconfig; print(sysconfig.get_path('include'))"


@functools.cache
def at_hand():
    """Return every build at hand, and those that GILSCOPE_TEST_BUILDS="3.14t=/path/to/python,..." names."""
    named = [entry.strip() for entry in os.environ.get("GILSCOPE_TEST_BUILDS", "").split(",") if entry.strip()]
    return find_builds(named).builds


def one_of_each(*, free_threaded=(False, True)):
    """Return one label per version and kind: 3.13.0 behaves as 3.13.15."""
    first = {}
    for build in at_hand():
        if build.free_threaded in free_threaded:
            first.setdefault((build.minor, build.free_threaded), build.label)
    return list(first.values())


def build_called(label):
    return next(build for build in at_hand() if build.label == label)


def version(build):
    return tuple(int(part) for part in build.minor.split("."))


def skip_when_busy(missed):
    """Skip the test where the machine has no two cores to give now: then nobody can say that two threads meet."""
    if not is_quiet(machine := Calibration().facts()):
        pytest.skip(f"{missed}: {machine}")


def compiled(build, folder):
    """Return the library of all variants for a build, compiled when it is not in `folder`; skip without means to."""
    target = folder / f"variants-{build.label}.so"
    if target.exists():
        return target
    if COMPILER is None:
        pytest.skip("no C compiler")
    asked = subprocess.run([build.executable, "-I", "-c", INCLUDE], capture_output=True, text=True, check=True)
    include = asked.stdout.strip()
    if not (Path(include) / "Python.h").exists():
        pytest.skip(f"no headers of {build.label}")
    command = [COMPILER, "-shared", "-fPIC", "-O0", f"-I{include}", str(SOURCE), "-o", str(target)]
    subprocess.run(command, check=True, timeout=PATIENCE)
    return target


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
