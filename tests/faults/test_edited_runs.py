"""Saved runs that somebody has edited, copied or cut: what cannot be is refused by name, before anything is made."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT
from tests.faults.calling import call, faults_of

pytestmark = pytest.mark.newest

EXAMPLE = ROOT / "results" / "example" / "second-worker"
SUITE = "3.14.json"


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A run under another name than its own, in the results of the current folder."""
    monkeypatch.chdir(tmp_path)
    target = tmp_path / "results" / "copied"
    target.mkdir(parents=True)
    for file in EXAMPLE.glob("*.json"):
        shutil.copy(file, target)
    return target


def edit(file, change):
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def first_run(suite):
    return suite["benchmarks"][0]["runs"][0]


@pytest.mark.parametrize(("name", "change", "said"), [
    ("run.json", lambda run: run.update(cells=[]), "cells is empty"),
    ("run.json", lambda run: run["options"]["settings"].update(rounds=-5), "options.settings.rounds is -5"),
    ("run.json", lambda run: run["options"]["settings"].update(budget=-1), "options.settings.budget is -1"),
    ("run.json", lambda run: run["options"]["settings"].update(timeout=1e300), "options.settings.timeout is 1e+300"),
    ("run.json", lambda run: run["options"].update(shared_by=0), "options.shared_by is 0"),
    ("run.json", lambda run: run["options"].update(units=[["w", 0.1, 1, -3]]), "options.units has"),
    ("run.json", lambda run: run["builds"][0].update(version="../../x"), "has the version '../../x'"),
    (SUITE, lambda suite: first_run(suite)["metadata"].update(gilscope_demand=-3), "demand is -3"),
    (SUITE, lambda suite: first_run(suite)["values"].__setitem__(0, 1e300), "a value is 1e+300"),
    (SUITE, lambda suite: first_run(suite)["values"].__setitem__(0, 1e-300), "a value is 1e-300"),
    (SUITE, lambda suite: first_run(suite)["metadata"].update(gilscope_seconds=1e300), "seconds is 1e+300"),
    (SUITE, lambda suite: first_run(suite)["metadata"].update(gilscope_metric_p50=-1e300), "metric 'p50' is -1e+300"),
    (SUITE, lambda suite: first_run(suite)["metadata"].update(gilscope_load=-1.0), "load is -1.0"),
])
@pytest.mark.parametrize("words", [("report", "copied"), ("run", "--resume", "copied", "--rounds", "20")])
def test_number_that_cannot_be_is_named_with_a_remedy(copied, words, name, change, said):
    edit(copied / name, change)
    called = call(*words)
    assert (called.code, [*faults_of(called)]) == (2, [])
    assert said in called.errors
    assert "take the file from a copy or measure again" in called.errors


def test_file_that_is_cut_off_has_the_same_remedy(copied):
    (copied / "run.json").write_text((copied / "run.json").read_text()[:500])
    called = call("report", "copied")
    assert called.code == 2
    assert "is cut off or not JSON" in called.errors
    assert "take the file from a copy or measure again" in called.errors


@pytest.mark.parametrize(("executable", "version", "said"), [
    (sys.executable, "3.13.0a1", "was Python 3.13.0a1, and at"),
    ("/dev/null", "3.13.0", "and now"), ("/no/python", "3.13.0", "is gone from /no/python"),
])
def test_run_whose_builds_are_others_now_does_not_go_on(copied, tmp_path, monkeypatch, executable, version, said):
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "cache"))
    edit(copied / "run.json", lambda run: [build.update(executable=executable, base_executable=executable,
                                                        version=version) for build in run["builds"]])
    called = call("run", "--resume", "copied", "--rounds", "20")
    assert (called.code, [*faults_of(called)]) == (2, [])
    assert said in called.errors
    assert "so copied cannot go on" in called.errors
    assert not (tmp_path / "cache" / "environments").exists()


def test_copy_goes_by_its_folder(copied, tmp_path):
    called = call("report", "copied", "--full")
    assert called.code == 0
    assert "gilscope copied" in called.out
    assert "second-worker" not in called.out
    elsewhere = Path(shutil.copytree(copied, tmp_path / "kept"))
    assert load_run(elsewhere).label == str(elsewhere)
    assert load_run(EXAMPLE).label == "second-worker"   # where it is found under its own name, by a path or not
