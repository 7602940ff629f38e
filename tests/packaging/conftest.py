"""The wheels of this checkout for every build at hand, and the packages that gilscope installs: made once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conformance.builds import ROOT, chosen
from tests.patience import PATIENCE
from tests.shared import once

# What the commands install by themselves, and what their examples use.
MORE = ("pytest", "setuptools")
FLEET = "distributed"


def output(command: list[str | Path], folder: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def pythons() -> dict[str, Path]:
    """Return the interpreters, by label; not those of environments made from them."""
    return {build.label: Path(os.path.realpath(build.base_executable)) for build in chosen()}


@pytest.fixture(scope="session")
def dist(pythons, tmp_path_factory) -> Path:
    """Return the folder with the source distribution and the wheels, as `make wheel` makes and checks them."""
    def make(folder: Path) -> None:
        words = [f"{label}={path}" for label, path in pythons.items()]
        output([sys.executable, ROOT / ".ci" / "make_wheels.py", "--out", folder, *words])

    return once(tmp_path_factory, "dist", make)


@pytest.fixture(scope="session")
def packages(pythons, tmp_path_factory) -> Path:
    """Return a folder with the wheels of other packages, so that no command needs an index."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = [re.split(r"[<>=]", each)[0] for each in project["dependencies"]]

    def make(folder: Path) -> None:
        limits = folder / "constraints.txt"
        # Each build takes its newest version of markupsafe, as that of the constraints has no wheel for 3.13t.
        limits.write_text(re.sub(r"(?m)^markupsafe==.*\n", "", (ROOT / "constraints.txt").read_text()))
        for python in pythons.values():
            get = [sys.executable, "-m", "pip", "--python", python, "download", "--quiet", "--only-binary", ":all:",
                   "--constraint", limits, "--dest", folder]
            output([*get, "--no-deps", "pyperf"])
            output([*get, *(each for each in own if each != "pyperf"), *MORE])
            # For some builds there is no wheel of pyperf's and the fleet's; subinterpreters need the last before 3.14.
            for optional in ("psutil", FLEET, "backports-interpreters"):
                subprocess.run([*get, optional], capture_output=True, timeout=PATIENCE, check=False)

    return once(tmp_path_factory, "packages", make)
