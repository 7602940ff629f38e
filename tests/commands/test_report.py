"""`gilscope report`: what runs there are, how each stands, and what is shown of which label."""

import dataclasses
import json
import shutil
import subprocess
import sys

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.model import Cell
from gilscope.toolkit.store import Store, list_runs, load_run
from tests.conformance.builds import ROOT
from tests.fakes import RunMaker
from tests.test_store import write

EXPERIMENTS = ROOT / "results" / "example" / "experiments"


def small_run(label="first", **changes):
    maker = RunMaker(rounds=3)
    maker.measure(Cell(workload="primes", runner="serial", workers=1, build="3.14"), 1.0)
    cells = tuple(each.cell for each in maker.measurements)
    return dataclasses.replace(maker.run(("3.14",)), label=label, cells=cells, **changes)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(capsys, *argv):
    code = cli.main(["report", *argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def row(out, label):
    """Return the words of a label's row, whatever the table's width."""
    return " ".join(" ".join(line.split()[1:]) for line in out.splitlines() if line.split()[:1] == [label])


def test_list_says_when_what_and_how_it_stands(here, capsys):
    write(small_run(), here, "first")
    later = "2026-11-21T13:30:00+00:00"
    write(small_run("second", started=later, stopped="interrupted", rounds_planned=12), here, "second")
    code, out, _ = shown(capsys)
    assert code == 0
    assert row(out, "first") == "2026-11-21 12:00 3.14 3/3 finished primes"
    assert row(out, "second") == "2026-11-21 13:30 3.14 3/12 interrupted primes"
    assert out.index("first") < out.index("second")
    assert "gilscope run --resume second goes on with second." in out


@pytest.mark.parametrize(("names", "text"), [
    (("primes",), "primes"),
    (("primes", "sort"), "primes, sort"),
    (("primes", "sha256_64k", "http_fetch", "fetch_parse"), "primes, sha256_64k and 2 more"),
])
def test_list_names_two_workloads(here, capsys, names, text):
    run = small_run()
    more = tuple(dataclasses.replace(run.cells[0], workload=name) for name in names)
    write(dataclasses.replace(run, cells=more, rounds_done=0), here, "first")
    assert row(shown(capsys)[1], "first").endswith(f"finished {text}")


def test_list_counts_the_cells_that_failed(here, capsys):
    maker = RunMaker(rounds=3)
    maker.fail(Cell(workload="primes", runner="serial", workers=1, build="3.14"), "crash", "killed by SIGSEGV")
    write(maker.run(("3.14",), label="first"), here, "first")
    assert "finished, 1 with failures" in row(shown(capsys)[1], "first")


WRITER = """
import sys
from tests.commands.test_report import Store, small_run
store = Store.create("first")
store.save(small_run(stopped="running", rounds_done=0, rounds_planned=12))
print("saved", flush=True)
sys.stdin.read()
"""


def test_killed_run_is_not_running(here, capsys):
    with subprocess.Popen([sys.executable, "-c", WRITER], cwd=here, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env={"PYTHONPATH": str(ROOT), "GILSCOPE_RESULTS": "results"}) as writer:
        assert writer.stdout.readline() == b"saved\n"
        assert row(shown(capsys)[1], "first").split()[4] == "running"
        writer.kill()
        writer.wait()
        assert row(shown(capsys)[1], "first").split()[4] == "killed"
        assert load_run(here / "results" / "first").stopped == "killed"


def test_killed_run_can_be_gone_on_with(here):
    write(small_run(stopped="running"), here, "first")
    store, run = Store.reopen(here / "results" / "first")
    try:
        assert run.stopped == "running"   # by us
    finally:
        store.close()


def test_run_that_has_just_begun_is_not_called_damaged(here):
    store = Store.create("first")
    try:
        assert list_runs() == []
    finally:
        store.close()
    (listed,) = list_runs()
    assert "run.json is missing" in listed.problem


@pytest.mark.parametrize(("damage", "reason"), [
    (lambda path: (path / "run.json").write_text("{"), "cut off or not JSON"),
    (lambda path: (path / "run.json").write_bytes(b"\xff\xfe"), "cut off or not JSON"),
    (lambda path: (path / "run.json").write_text("{}"), "is not a gilscope run"),
    (lambda path: (path / "run.json").unlink(), "is missing"),
    (lambda path: (path / "3.14.json").unlink(), "is missing, with all values of 3.14"),
    (lambda path: edit(path, started="yesterday"), "or was edited"),
    (lambda path: edit(path, rounds_done="3"), "rounds_done is '3'"),
    (lambda path: edit(path, builds=3), "or was edited"),
    (lambda path: edit(path, version=99), "read it with the gilscope that wrote it"),
])
def test_damaged_folder_is_a_line_with_the_reason(here, capsys, damage, reason):
    write(small_run(), here, "whole")
    damage(write(small_run(), here, "broken"))
    code, out, _ = shown(capsys)
    assert code == 0
    assert "finished" in row(out, "whole")
    assert f"broken: results/broken/{'3.14' if '3.14' in reason else 'run'}.json" in out
    assert reason in " ".join(out.split())


def edit(path, **changes):
    header = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(header | changes))


def test_no_runs_yet(here, capsys):
    code, out, _ = shown(capsys)
    assert code == 0
    assert "gilscope run --quick" in out


def test_publish_wants_a_label(here, capsys):
    code, _, err = shown(capsys, "--publish", "there")
    assert code == 2
    assert "name it, as in `gilscope report LABEL --publish FOLDER`" in err
    assert not (here / "there").exists()


@pytest.fixture
def today(here):
    for name in ("countdown", "signals"):
        shutil.copytree(EXPERIMENTS / name, here / "results" / "today" / name)
    return here / "results" / "today"


def test_experiments_are_listed_and_shown_as_runs_are(today, capsys):
    assert "finished experiment signals, quick" in row(shown(capsys)[1], "today/signals")
    one = shown(capsys, "today/signals")[1]
    both = shown(capsys, "today")[1]
    assert one in both
    assert both.index("Countdown") < both.index("Signals")   # as they were made
    assert cli.main(["experiment", "show", "today", "--no-figures"]) == 0
    again = capsys.readouterr().out
    assert again.count("\n===") == both.count("\n===")


def test_damaged_experiment_costs_only_itself(today, capsys):
    (today / "countdown" / "run.json").write_text("{")
    code, out, err = shown(capsys, "today")
    assert code == 2
    assert "Signals" in out
    assert "countdown/run.json is cut off" in err


@pytest.mark.slow
def test_experiments_are_published_each_in_a_folder(today, here, capsys):
    code, _, _ = shown(capsys, "today", "--publish", "there")
    assert code == 0
    assert {path.parent.name for path in (here / "there").glob("*/report.md")} == {"countdown", "signals"}


def test_figures_whose_values_are_not_published_stay_with_what_was_published(here, capsys, monkeypatch):
    monkeypatch.setattr("gilscope.toolkit.commands.report.publishing.python_that_draws", lambda _: None)
    published = EXPERIMENTS / "gil-trace"   # without the traces that its figures show
    assert shown(capsys, str(published), "--publish", "there")[0] == 0
    report = (here / "there" / "report.md").read_text()
    for name in ("gil-trace.svg", "gil-trace-parked.svg"):
        assert (here / "there" / name).read_bytes() == (published / name).read_bytes()
        assert f"]({name})" in report
    assert shown(capsys, str(published), "--html", "page.html")[0] == 0
    page = (here / "page.html").read_text()
    assert 'alt="How the GIL changes hands"' in page
    assert 'alt="Without a GIL: threads wait for what they share"' in page


def test_page_of_a_run_is_cited_by_who_publishes_it(here, capsys):
    run = small_run()
    write(run, here, "first")
    assert shown(capsys, str(here / "results" / "first"), "--html", "page.html", "--by", "The Group")[0] == 0
    page = (here / "page.html").read_text()
    assert "Cite it: The Group: gilscope " in page


def test_one_run_is_wanted_where_a_label_has_several(today, capsys):
    assert cli.main(["compare", "today", "--builds", "a,b"]) == 2
    assert "name one of today/countdown, today/signals" in capsys.readouterr().err


def test_runs_that_lie_beside_each_other_are_not_one_report(here, capsys):
    for label in ("first", "second"):
        write(small_run(label), here, label)
    code, out, err = shown(capsys, "results", "--json")
    assert (code, out) == (2, "")
    assert "results contains several runs: name one of results/first, results/second" in err
