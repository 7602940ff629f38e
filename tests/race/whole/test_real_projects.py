"""Real projects' own suites: outcomes under the checker are those without it.

Needs a package registry, and some minutes: `GILSCOPE_REAL_PROJECTS=1 pytest tests/race/whole/test_real_projects.py`.
Their sources are unpacked outside the checkout, installed from there, and so are project code.
"""

import json
import os
import subprocess
import tarfile
import venv
from dataclasses import dataclass
from fnmatch import fnmatchcase
from xml.etree import ElementTree

import pytest

from tests.conformance.builds import ROOT
from tests.patience import PATIENCE

pytestmark = [
    pytest.mark.network, pytest.mark.slow,
    # What others' suites do under load is not for every run of ours to depend on.
    pytest.mark.skipif(os.environ.get("GILSCOPE_REAL_PROJECTS") != "1", reason="GILSCOPE_REAL_PROJECTS=1 runs them"),
]
RACE = 66
OUTCOMES = {"failure", "error", "skipped"}     # of a test; of one that passed, none


@dataclass(frozen=True)
class Project:
    """A package with threads in its tests.

    `races` are globs of the variables that the checker names, each judged by reading the source; `needs` is what the
    tests import.
    """

    name: str
    version: str
    races: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


PROJECTS = (
    Project("cachetools", "8.0.1"),
    # The clock of its tests is a counter that the scheduler's thread and the test both advance.
    Project("apscheduler", "3.11.3", frozenset({"TimeFreezer.current"}),
            ("pytz", "tornado", "pytest-asyncio"),
            # The job stores are for servers and packages that are not here; process pools' tests run against the clock.
            ("--ignore=tests/test_jobstores.py", "--deselect=tests/test_executors.py::test_max_instances")),
    # _txn_id is asked only whether it is one's own; the settings are read back from the database by each thread; the
    # tests order `state` by sleeping and by locks in the database, neither of which orders memory.
    Project("diskcache", "5.6.3", frozenset({"Cache._txn_id", "Cache.size", "Cache.sqlite_*", "state"}), (),
            ("-o", "addopts=", "--ignore=tests/test_djangocache.py", "--ignore=tests/test_doctest.py")),
)


@pytest.fixture(scope="module", params=PROJECTS, ids=lambda project: project.name)
def project(request, tmp_path_factory):
    """The project, its unpacked source, and the interpreter that has it installed."""
    folder = tmp_path_factory.mktemp(request.param.name)
    venv.create(folder / "venv", with_pip=True)
    python = str(folder / "venv" / "bin" / "python")
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "download", "--no-deps", "--no-binary", ":all:", "-d", str(folder),
                    f"{request.param.name}=={request.param.version}"], check=True, timeout=PATIENCE)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    source = folder / f"{request.param.name}-{request.param.version}"
    subprocess.run([*pip, "install", "pytest>=8.4", *request.param.needs, "-e", str(source)], check=True,
                   timeout=PATIENCE)
    return request.param, source, python


def run(project, source, python, *checker):
    """Return outcome of each test by its name, exit code, and what was told on standard error."""
    results = source / "outcomes.xml"
    results.unlink(missing_ok=True)
    done = subprocess.run(
        [python, *(checker or ("-m", "pytest")), "tests", "-q", "-p", "no:cacheprovider", f"--junitxml={results}",
         *project.options], cwd=source, check=False, capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "GILSCOPE_CACHE": str(source.parent / "cache")})
    cases = ElementTree.parse(results).iter("testcase")
    outcomes = {f"{case.get('classname')}::{case.get('name')}": [child.tag for child in case if child.tag in OUTCOMES]
                for case in cases}
    return outcomes, done.returncode, done.stderr


def test_suite_has_the_same_outcomes_under_the_checker(project):
    project, source, python = project
    report = source / "races.json"
    plain, code, _ = run(project, source, python)
    checked, checked_code, told = run(
        project, source, python, "-m", "gilscope", "race", f"--json={report}", "-m", "pytest")
    assert len(plain) > 100
    assert checked == plain
    assert checked_code in (code, RACE), told
    found = json.loads(report.read_text())
    assert found["unrewritten"] == []
    unjudged = [race["base"] for race in found["races"]
                if not any(fnmatchcase(race["base"], known) for known in project.races)]
    assert unjudged == []
