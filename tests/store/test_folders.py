"""The folder for new runs: no build back end takes it for a package, git ignores it, and earlier places are read."""

import shutil
import subprocess

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.store import Store, find_label, labels, list_runs, results_folder
from tests.test_store import ROOT

RUN = ROOT / "results" / "example" / "second-worker"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A flat project with one package, as the current folder, and no variable that names a folder for results."""
    monkeypatch.delenv("GILSCOPE_RESULTS")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shopstats").mkdir()
    (tmp_path / "shopstats" / "__init__.py").touch()
    return tmp_path


def begin(label="first"):
    store = Store.create(label)
    store.close()
    return store.path


def test_the_folder_of_a_new_run_can_be_no_package(project):
    """setuptools takes identifiers by default, and all names without a dot with `packages.find`; others take fewer."""
    shutil.copytree(RUN, begin(), dirs_exist_ok=True)
    assert [path.name for path in project.iterdir() if "." not in path.name] == ["shopstats"]


def test_git_ignores_a_new_default_folder(project):
    subprocess.run(["git", "init", "--quiet", "."], check=True)
    path = begin()
    (path / "run.json").write_text("{}")
    untracked = subprocess.run(["git", "status", "--porcelain", "--untracked-files=all"], capture_output=True,
                               text=True, check=True).stdout.split()
    assert [each for each in untracked if each != "??"] == ["shopstats/__init__.py"]


def test_a_default_folder_that_is_there_stays_as_it_is(project):
    (project / ".gilscope-results").mkdir()
    assert begin().parent.name == ".gilscope-results"
    assert not (project / ".gilscope-results" / ".gitignore").exists()


@pytest.mark.parametrize("name", ["measured", ".gilscope-results"])
def test_a_folder_that_the_user_names_is_not_ignored(project, monkeypatch, name):
    monkeypatch.setenv("GILSCOPE_RESULTS", name)
    assert begin() == results_folder() / "first"
    assert [path.name for path in (project / name).iterdir()] == ["first"]


def test_a_results_folder_with_a_run_goes_on_to_be_used(project):
    shutil.copytree(RUN, project / "results" / "earlier")
    assert begin().parent.name == "results"
    assert not (project / "results" / ".gitignore").exists()


@pytest.mark.parametrize("content", ['{"format": "somebody else"}', '{"seed": 1}', "[]", ""])
def test_a_results_folder_of_another_program_is_left_alone(project, content):
    (project / "results" / "1").mkdir(parents=True)
    (project / "results" / "1" / "run.json").write_text(content)
    assert begin().parent.name == ".gilscope-results"


def test_runs_of_every_folder_are_found_and_their_labels_are_taken(project, capsys):
    begin()
    shutil.copytree(RUN, project / ".gilscope-results" / "new")
    shutil.copytree(RUN, project / "results" / "earlier")
    assert [find_label(label).parent.name for label in ("new", "earlier")] == [".gilscope-results", "results"]
    assert {each.label for each in list_runs()} >= {"new", "earlier"}
    assert {*labels()} == {"new", "earlier"}
    assert cli.main(["run", "primes", "--label", "new"]) == 2
    assert ".gilscope-results/new exists already" in capsys.readouterr().err


def test_a_site_of_the_default_folders_has_the_runs_of_each(project, capsys):
    shutil.copytree(RUN, project / ".gilscope-results" / "new")
    (project / "results").mkdir()
    assert cli.main(["site", "--check"]) == 0, capsys.readouterr()
