"""Experiments run for real in their smallest size, as a user runs them, on a GIL and a free-threaded build."""

import json
import os
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT, choose, python_of
from tests.measure.children import MARK, still_alive
from tests.patience import PATIENCE
from tests.shared import once

ATTEMPTS = 8    # runs in which something that is the scheduler's to allow is looked for


@dataclass
class Smoke:
    """What one run of an experiment left."""

    results: Results
    folder: Path   # results/LABEL/EXPERIMENT
    out: str
    err: str

    @property
    def gil(self):
        """The label of the build with a GIL."""
        return next(build.label for build in self.results.builds if not build.free_threaded)

    @property
    def free(self):
        """The label of the free-threaded build; skips the test where there is none."""
        for build in self.results.builds:
            if build.free_threaded:
                return build.label
        pytest.skip("no free-threaded build at hand")


@pytest.fixture(scope="session")
def smoke_in_which(run_smoke):
    """Give a function that returns a run of which `seen` is true: what a thread does once it gets its core in time."""
    def find(name, seen):
        for attempt in range(ATTEMPTS):
            smoke = run_smoke(name, attempt)
            if seen(smoke):
                return smoke
        pytest.fail(f"in {ATTEMPTS} runs of {name} a thread did not get a core when it was its turn")

    return find


@pytest.fixture(scope="session")
def run_smoke(tmp_path_factory):
    """Give a function that runs an experiment with --smoke, once for each attempt however many tests ask for it."""
    def run(name, attempt=0):
        folder = once(tmp_path_factory, f"smoke-{name}-{attempt}", lambda folder: _run(name, folder))
        done = json.loads((folder / "done.json").read_text())
        assert done["returncode"] in {0, 3}, done["stderr"]
        assert "Traceback" not in done["stderr"], done["stderr"]
        assert not done["left"]
        path = folder / "results" / "smoke" / name
        return Smoke(Results(load_run(path), path), path, done["stdout"], done["stderr"])

    return run


def _run(name, folder):
    """Run an experiment on the host and its nearest build of the other kind, and write what came of it."""
    words = [word for build in choose("pair") for word in ("--build", f"{build.label}={python_of(build)}")]
    mark = uuid.uuid4().hex
    inherited = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    done = subprocess.run(
        [sys.executable, "-m", "gilscope", "experiment", "run", name, "--smoke", "--label", "smoke", *words],
        cwd=folder, text=True, capture_output=True, timeout=PATIENCE, check=False,
        env={**inherited, "PYTHONPATH": str(ROOT), MARK: mark})
    (folder / "done.json").write_text(json.dumps({
        "returncode": done.returncode, "stdout": done.stdout, "stderr": done.stderr,
        "left": [each.decode(errors="replace") for each in still_alive(mark)]}))


WHOLE = {"test_countdown.py"}   # experiments that `make test` runs at their smallest


def pytest_collection_modifyitems(items):
    """The tests of the others' smallest runs are slow: each run takes seconds for each build."""
    for item in items:
        names = {*getattr(item, "fixturenames", ())}
        if {"run_smoke", "smoke_in_which"} & names and item.path.name not in WHOLE:
            item.add_marker(pytest.mark.slow)
        if "smoke_in_which" in names:   # threads must get a core in time
            item.add_marker(pytest.mark.quiet)
