"""`gilscope experiment`: what may be asked, and that what was begun goes on; measured for real with one build."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.experiments import catalog
from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT
from tests.matplotlib_missing import matplotlib_missing
from tests.measure.children import MARK, still_alive
from tests.patience import PATIENCE, wait_until

HOST = ("--build", f"host={sys.executable}")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys, *words):
    """Return what is said of a command line that is refused."""
    assert cli.main(["experiment", *words]) == 2
    return capsys.readouterr().err


def test_unknown_experiment_has_a_hint(folder, capsys):
    assert "did you mean 'countdown'" in refused(capsys, "run", "contdown")


def test_no_name_says_where_they_are_listed(folder, capsys):
    assert "gilscope experiment list" in refused(capsys, "run")


def test_taken_label_is_refused_before_anything_is_made(folder, capsys):
    (folder / "results" / "mine").mkdir(parents=True)
    assert "--resume mine" in refused(capsys, "run", "countdown", "--label", "mine")


def test_resume_of_nothing_lists_what_there_is(folder, capsys):
    (folder / "results" / "mine").mkdir(parents=True)
    (folder / "results" / "mine" / "experiments.json").write_text("{}")
    assert "existing labels: mine" in refused(capsys, "run", "--resume", "yours")


def test_damaged_request_is_named(folder, capsys):
    (folder / "results" / "mine").mkdir(parents=True)
    (folder / "results" / "mine" / "experiments.json").write_text('{"builds": []}')
    assert "experiments.json was edited" in refused(capsys, "run", "--resume", "mine")


def test_what_is_fixed_is_refused_beside_resume(folder, capsys):
    said = refused(capsys, "run", "countdown", "--quick", "--resume", "mine")
    assert "NAME, --quick or --smoke cannot be changed" in said


def test_list_names_every_experiment_with_source_and_time(capsys):
    assert cli.main(["experiment", "list", "--json"]) == 0
    found = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert list(found) == list(catalog.EXPERIMENTS)
    for each in found.values():
        assert each["sources"]
        assert each["seconds"][EffortLevel.QUICK] < each["seconds"][EffortLevel.FULL]


def test_quick_experiments_fit_into_twenty_minutes_together():
    assert sum(catalog.find(name).levels[EffortLevel.QUICK].seconds for name in catalog.EXPERIMENTS) <= 1200


def start(folder, *words, **environment):
    """Start the command in `folder`, as a user does."""
    inherited = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    return subprocess.Popen(
        [sys.executable, "-m", "gilscope", "experiment", *words], cwd=folder, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
        env={**inherited, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder), **environment})


def call(folder, *words):
    with start(folder, *words) as started:
        out, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == 0, err
    return out, err


def test_dry_run_measures_nothing(folder):
    out, _ = call(folder, "run", "countdown", "--smoke", "--dry-run", *HOST)
    assert re.search(r"^countdown: cells: \d+ on host; 1 rounds, one process each; about \d+ s$", out, re.MULTILINE)
    assert not (folder / "results").exists()


@pytest.mark.slow
@pytest.mark.newest
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_what_was_killed_goes_on(how, folder):
    mark, rounds = uuid.uuid4().hex, 100000     # more than are over before we get a core to kill it
    with start(folder, "run", "countdown", "--smoke", "--rounds", str(rounds), "--label", "k", *HOST,
               **{MARK: mark}) as going:
        stored = folder / "results" / "k" / "countdown" / "run.json"
        assert wait_until(lambda: stored.exists() and json.loads(stored.read_text())["rounds_done"], going)
        os.kill(going.pid, how)
        _, err = going.communicate(timeout=PATIENCE)
    assert not still_alive(mark)
    if how is signal.SIGINT:
        assert "to continue: gilscope experiment run --resume k" in err
    before = load_run(stored.parent).rounds_done
    assert 0 < before < rounds
    request = folder / "results" / "k" / "experiments.json"     # two rounds more are enough to see that it goes on
    request.write_text(request.read_text().replace(f'"rounds": {rounds}', f'"rounds": {before + 2}'))
    out, _ = call(folder, "run", "--resume", "k", "--no-figures")
    assert load_run(stored.parent).rounds_done == before + 2
    assert "Wall time of the whole count" in out


@pytest.mark.slow
@pytest.mark.newest
def test_finished_ones_are_shown_again_not_measured_again(folder):
    call(folder, "run", "countdown", "--smoke", "--label", "done", "--no-figures", *HOST)
    stored = folder / "results" / "done" / "countdown" / "run.json"
    before = stored.read_bytes()
    resumed, _ = call(folder, "run", "--resume", "done", "--no-figures")
    shown, _ = call(folder, "show", "done/countdown", "--no-figures")
    markdown, _ = call(folder, "show", "done", "--no-figures", "--markdown")
    assert stored.read_bytes() == before
    assert resumed == shown
    assert "| model" in markdown
    assert (stored.parent / "report.md").read_text().strip() == markdown.strip()


@pytest.mark.slow
@pytest.mark.newest
def test_what_its_budget_ended_goes_on_with_another_budget(folder):
    call(folder, "run", "countdown", "--smoke", "--rounds", "2", "--budget", "0.001s", "--label", "cut", "--no-figures",
         *HOST)
    stored = folder / "results" / "cut" / "countdown"
    assert load_run(stored).stopped == "budget"
    assert load_run(stored).skips
    call(folder, "run", "--resume", "cut", "--no-figures")
    assert load_run(stored).stopped == "budget"
    call(folder, "run", "--resume", "cut", "--budget", "10m", "--no-figures")
    assert load_run(stored).stopped == "rounds"
    assert not load_run(stored).skips


@pytest.mark.newest
def test_published_run_has_its_figures_and_none_of_its_paths(folder):
    call(folder, "run", "countdown", "--smoke", "--label", "mine", "--no-figures", *HOST)
    published = subprocess.run(
        [sys.executable, "-m", "gilscope", "report", "mine/countdown", "--publish", "site"], cwd=folder, check=True,
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=PATIENCE)
    site = folder / "site"
    assert "Wall time of the whole count" in (site / "report.md").read_text()
    if not matplotlib_missing(published.stderr):
        assert (site / "countdown.svg").exists(), published.stderr
    for path in site.rglob("*.*"):
        assert str(folder).encode() not in path.read_bytes(), path
        assert sys.executable.encode() not in path.read_bytes(), path


def test_showing_without_figures_leaves_the_stored_report_with_its_figures(folder):
    copied = folder / "results" / "theirs" / "countdown"
    shutil.copytree(ROOT / "results" / "example" / "experiments" / "countdown", copied)
    before = (copied / "report.md").read_text()
    assert "](countdown.svg)" in before
    call(folder, "show", "theirs", "--no-figures")
    assert (copied / "report.md").read_text() == before
