"""Experiments run for real in their smallest size, as a user runs them, on a GIL and a free-threaded build."""

import os
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT, builds
from tests.measure.children import MARK, still_alive
from tests.patience import PATIENCE

ATTEMPTS = 4    # runs in which something that is the scheduler's to allow is looked for


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
        pytest.skip("no free-threaded build in GILSCOPE_TEST_BUILDS")


def chosen_builds():
    """Return "LABEL=PATH" of this Python and of the newest free-threaded build there is."""
    found = builds()
    free = sorted((label for label in found if label.endswith("t") and label != "current"),
                  key=lambda label: [int(part) for part in label.rstrip("t").split(".")])
    return [f"{label}={found[label]}" for label in ("current", *free[-1:])]


@pytest.fixture(scope="session")
def smoke_in_which(run_smoke):
    """Give a function that returns a run of which `seen` is true: what a thread does once it gets its core in time."""
    def find(name, seen):
        for attempt in range(ATTEMPTS):
            smoke = run_smoke(name, again=attempt > 0)
            if seen(smoke):
                return smoke
        pytest.skip(f"in {ATTEMPTS} runs of {name} a thread did not get a core when it was its turn")

    return find


@pytest.fixture(scope="session")
def run_smoke(tmp_path_factory):
    """Give a function that runs an experiment with --smoke, once however many tests ask for it, unless `again`."""
    done = {}

    def run(name, *, again=False):
        if again or name not in done:
            done[name] = _run(name, tmp_path_factory.mktemp(name))
        return done[name]

    return run


def _run(name, folder):
    words = [word for build in chosen_builds() for word in ("--build", build)]
    mark = uuid.uuid4().hex
    inherited = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    done = subprocess.run(
        [sys.executable, "-m", "gilscope", "experiment", "run", name, "--smoke", "--label", "smoke", *words],
        cwd=folder, text=True, capture_output=True, timeout=PATIENCE, check=False,
        env={**inherited, "PYTHONPATH": str(ROOT), MARK: mark})
    assert done.returncode in {0, 3}, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert not still_alive(mark)
    path = folder / "results" / "smoke" / name
    return Smoke(Results(load_run(path), path), path, done.stdout, done.stderr)


WHOLE = {"test_countdown.py", "test_signals.py"}   # experiments that `make test` runs at their smallest


def pytest_collection_modifyitems(items):
    """The tests of the others' smallest runs are slow: each run takes seconds for each build."""
    for item in items:
        if {"run_smoke", "smoke_in_which"} & {*getattr(item, "fixturenames", ())} and item.path.name not in WHOLE:
            item.add_marker(pytest.mark.slow)
