"""Projects of the registry under the race checker: what it finds is what somebody has judged, in projects.toml.

Each is unpacked, installed and run in an environment of its own, outside the checkout: its code is project code there.
"""

import json
import os
import subprocess
import tarfile
import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from gilscope.toolkit.builds.inspection import version_key
from tests.conformance import builds
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE

pytestmark = [pytest.mark.network, pytest.mark.slow, pytest.mark.nightly]
HERE = Path(__file__).parent
RACE = 66


@dataclass(frozen=True, kw_only=True)
class Project:
    """A pinned project, its own tests or a program that uses it, and each variable with a race, with its judgement."""

    name: str
    version: str
    needs: list[str] = field(default_factory=list)      # what the tests import
    tests: list[str] = field(default_factory=list)      # arguments of pytest
    program: str = ""                                   # in `programs`
    true: dict[str, str] = field(default_factory=dict)
    true_but_rare: dict[str, str] = field(default_factory=dict)
    benign: dict[str, str] = field(default_factory=dict)
    false: dict[str, str] = field(default_factory=dict)

    @property
    def judged(self):
        return [*self.true, *self.true_but_rare, *self.benign, *self.false]


def matches(base, variable):
    """Return True if a judgement is on the variable; `*` stands for a part that differs from run to run."""
    return fnmatchcase(base, variable.replace("[", "[[]"))


PROJECTS = [Project(**each) for each in tomllib.loads((HERE / "projects.toml").read_text())["project"]]


@pytest.fixture
def environment(project, tmp_path):
    """The interpreter of an environment with the project, and the project's unpacked source.

    The judgements are for the newest build without the GIL, on which the most orders are possible.
    """
    free = [build for build in builds.found() if builds.kind_of(build) == "free" and not build.debug
            and build.version.replace(".", "").isdigit()]       # packages have no wheels for what is not released
    if not free:
        pytest.skip("there is no released free-threaded build")
    python = max(free, key=lambda build: version_key(build.version)).executable
    subprocess.run([python, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=PATIENCE)
    installed = str(tmp_path / "venv" / "bin" / "python")
    pip = [installed, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "download", "--no-deps", "--no-binary", ":all:", "-d", str(tmp_path),
                    f"{project.name}=={project.version}"], check=True, timeout=PATIENCE)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    [source] = (each.parent for each in tmp_path.glob("*/PKG-INFO"))
    subprocess.run([*pip, "install", "pytest>=8.4", *project.needs, "-e", str(source)], check=True, timeout=PATIENCE)
    return installed, source


def races(environment, project, folder):
    """Return the variables with races of a run, and what it printed."""
    python, source = environment
    report = folder / "races.json"
    program = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", *project.tests)
    if project.program:
        program = (str(HERE / "programs" / project.program),)
    done = subprocess.run(
        [python, "-m", "gilscope", "race", f"--json={report}", *program], cwd=source, check=False, timeout=PATIENCE,
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT), "GILSCOPE_CACHE": str(folder)})
    shown = done.stdout + done.stderr
    found = json.loads(report.read_text())
    assert found["unrewritten"] == []
    assert project.program or " passed" in shown, shown
    assert (done.returncode == RACE) == bool(found["races"]), shown
    return {race["base"]: race for race in found["races"]}, shown


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_every_finding_is_judged_and_no_true_one_is_lost(environment, project, tmp_path):
    found, shown = races(environment, project, tmp_path)
    unjudged = {base: race["pattern"] for base, race in found.items()
                if not any(matches(base, variable) for variable in project.judged)}
    lost = [variable for variable in project.true if not any(matches(base, variable) for base in found)]
    assert (unjudged, lost) == ({}, []), shown
