"""What `--dry-run` shows: a screen for any matrix, an estimate that says what it rests on, reasons grouped."""

import dataclasses
import datetime
import json

import pytest

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.commands.output.dry_run import earlier_processes, preview
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.measure.cells import Plan, Selection
from gilscope.toolkit.measure.child.spec import UserTarget
from gilscope.toolkit.measure.estimate import PASS_SECONDS, START_SECONDS, EarlierProcess, estimate
from gilscope.toolkit.measure.machine import this_machine
from gilscope.toolkit.measure.settings import Settings
from gilscope.toolkit.measure.trial import TrialOutcome, fit_budget
from gilscope.toolkit.model import Cell, Phase, Skip
from gilscope.workloads.catalog import WORKLOADS
from tests.fakes import make_build

SETTINGS = Settings(rounds=12, values=3, warmups=1, min_seconds=0.05, timeout=60.0)   # 5 passes each
LABELS = ("3.15", "3.15t", "3.14", "3.14t", "3.13", "3.13t", "3.12")


def selection(names):
    return Selection(workloads=names, user=None, models=(), workers=(1, 2), phases=(Phase.STEADY,), size="small")


def cell(runner="threads", build="3.14", workload="primes", **changed):
    return Cell(workload=workload, runner=runner, workers=2, build=build, **changed)


def test_largest_matrix_fits_a_screen():
    names = tuple(each.name for each in WORKLOADS)
    cells = tuple(cell(runner.name, build, name) for runner in RUNNERS for build in LABELS for name in names)
    many = "does not support loading " * 6
    skips = tuple(Skip(cell=each, reason=f"module {each.workload} {many}") for each in cells)
    lines = preview(Plan(cells, skips), [make_build(label) for label in LABELS], selection(names), SETTINGS, [])
    assert len(lines) < 40
    assert max(map(len, lines)) <= 80


def test_counts_and_grouped_reasons():
    plan = Plan(
        (cell("serial"), cell("threads"), cell("threads", "3.14t"), cell("threads", "3.14t", twin=True)),
        (Skip(cell=cell("interpreter-pool", "3.13"), reason="needs CPython 3.14"),
         Skip(cell=cell("interpreter-pool", "3.12"), reason="needs CPython 3.14"),
         Skip(cell=cell("subinterpreters"), reason="its workers cannot share a queue"),
         Skip(cell=cell("processes-fork"), reason="its workers cannot share a queue")))
    lines = preview(plan, [make_build("3.14"), make_build("3.14t")], selection(("primes",)), SETTINGS, [])
    assert lines[0] == "4 cells x 12 rounds = 48 processes; seed 0"
    assert [line.split() for line in lines if line.startswith(("serial ", "threads ", "A/A "))] == [
        ["serial", "1", "-"], ["threads", "1", "1"], ["A/A", "-", "1"]]
    assert "     2  interpreter-pool on 3.13, 3.12: needs CPython 3.14" in lines
    assert "     2  subinterpreters, processes-fork on 3.14: its workers cannot share a" in lines   # wrapped


def test_rounds_that_depend_on_what_is_found_are_told_as_a_range():
    settings = dataclasses.replace(SETTINGS, where_open=True)
    lines = preview(Plan((cell("serial"), cell())), [make_build("3.14")], selection(("primes",)), settings, [])
    assert lines[0] == "2 cells x 4 to 12 rounds = 8 to 24 processes; seed 0"
    few = preview(Plan((cell(),)), [], selection(("primes",)), dataclasses.replace(settings, rounds=3), [])
    assert few[0] == "1 cells x 3 rounds = 3 processes; seed 0"


def test_estimate_is_of_the_same_cell_else_of_its_workload_else_arithmetic():
    known = [EarlierProcess(cell=cell("threads"), size="small", passes=3, seconds=3.0),
             EarlierProcess(cell=cell("threads"), size="medium", passes=1, seconds=99.0)]
    for asked, one_process, told in (
        (cell("threads", "3.15t"), 5.0, 1),     # a second a pass, five passes; the build does not matter
        (cell("asyncio"), 5.0, 1),
        (cell("threads", workload="sort"), START_SECONDS + 5 * PASS_SECONDS["small"], 0),
        (cell("threads", workload="sort", task_seconds=0.5), START_SECONDS + 5 * 2 * 0.5, 0),
    ):
        found = estimate([asked], SETTINGS, "small", known)
        assert (found.seconds, found.known) == (pytest.approx(12 * one_process), told)


@pytest.mark.parametrize(("cells", "budget", "words"), [
    ((cell("threads"),), None, "about 60 s (from earlier runs here)"),
    ((cell("threads"), cell("threads", workload="sort")), None, "(1 of 2 cells from earlier runs here"),
    ((cell("threads", workload="sort"),), None, "(a guess from the number of passes"),
    ((cell("threads"),), 30.0, "about 60 s, cut to 30 s by the budget"),
])
def test_what_the_time_rests_on_is_said(cells, budget, words):
    known = [EarlierProcess(cell=cell("threads"), size="small", passes=1, seconds=1.0)]
    settings = Settings(rounds=12, values=3, warmups=1, min_seconds=0.05, timeout=60.0, budget=budget)
    lines = preview(Plan(cells), [make_build("3.14")], selection(("primes",)), settings, known)
    assert words in " ".join(" ".join(lines).split())


@pytest.mark.parametrize(("seconds", "said"), [(3.0, False), (10.0, True)])
def test_ways_to_shorten_are_told_of_what_is_long(seconds, said):
    known = [EarlierProcess(cell=cell("threads"), size="small", passes=1, seconds=seconds)]
    lines = preview(Plan((cell("threads"),)), [make_build("3.14")], selection(("primes",)), SETTINGS, known)
    assert ("shorter: --rounds 6 (about" in " ".join(lines)) == said


@pytest.mark.parametrize(("budget", "said"), [(None, True), (200.0, True), (150.0, False)])
def test_half_of_the_rounds_is_no_way_to_shorten_what_the_budget_cuts_below_them(budget, said):
    known = [EarlierProcess(cell=cell("threads"), size="small", passes=1, seconds=8.0)]   # 384 s, half of them 192
    settings = dataclasses.replace(SETTINGS, budget=budget, where_open=budget is not None)
    lines = preview(Plan((cell("threads"),)), [make_build("3.14")], selection(("primes",)), settings, known)
    assert ("shorter: --rounds 6 (about" in " ".join(lines)) == said


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Write a run of two processes, 2 s apart, and then one after a pause."""
    def write(label, hostname):
        here = this_machine()
        folder = tmp_path / "results" / label
        folder.mkdir(parents=True)
        begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
        dates = [str(begin + datetime.timedelta(seconds=seconds)) for seconds in (0.0, 2.0, 900.0)]
        (folder / "3.14.json").write_text(json.dumps({"benchmarks": [
            {"metadata": {"name": cell().name}, "runs": [{"metadata": {"date": date}} for date in dates]}]}))
        (folder / "run.json").write_text(json.dumps({
            "machine": {"hostname": hostname, "cpu_model": here.cpu_model, "cores": here.cores},
            "started": "2026", "builds": [{"label": "3.14"}],
            "options": {"settings": {"warmups": 0, "values": 2}, "selection": {"size": "small"}}}))

    monkeypatch.chdir(tmp_path)
    return write


def test_what_processes_took_is_read_from_runs_of_this_machine(stored):
    stored("mine", this_machine().hostname)
    stored("others", "elsewhere")
    assert earlier_processes() == [EarlierProcess(cell=cell(), size="small", passes=3, seconds=2.0)]


def test_process_that_took_turns_says_itself_what_it_took(stored, tmp_path):
    stored("mine", this_machine().hostname)
    suite = tmp_path / "results/mine/3.14.json"
    shared = {"name": cell().name, "gilscope_again": 1, "gilscope_seconds": 1.5, "date": "2026-01-01"}
    # What all runs have in common stands with the benchmark.
    suite.write_text(json.dumps({"benchmarks": [{"metadata": shared, "runs": [
        {"values": [0.1] * 6}, {"metadata": {"gilscope_seconds": 2.5}, "values": [0.1] * 2}]}]}))
    assert earlier_processes() == [
        EarlierProcess(cell=cell(), size="small", passes=1 + 6 + 1, seconds=1.5),
        EarlierProcess(cell=cell(), size="small", passes=1 + 2 + 1, seconds=2.5)]


def test_long_values_are_fewer_in_the_estimate_too():
    known = [EarlierProcess(cell=cell("threads"), size="small", passes=1, seconds=2.0)]
    settings = dataclasses.replace(SETTINGS, values=6)
    found = estimate([cell("threads")], settings, "small", known)
    assert found.seconds == pytest.approx(12 * 2.0 * (1 + 1 + 2))   # checked, warm-up, and two values of two seconds


def test_damaged_results_cost_no_preview(stored, tmp_path):
    stored("mine", this_machine().hostname)
    (tmp_path / "results/mine/3.14.json").write_text("{")
    stored("second", this_machine().hostname)
    (tmp_path / "results/second/run.json").write_text("[]")
    assert earlier_processes() == []



def of_a_function(seconds, budget=180.0):
    """Return the words on the time of a function whose earlier pass took `seconds`; None: it was never called."""
    user = UserTarget(function="mine:work", payloads="mine:payloads", payload=None, tasks=4, check=None,
                      async_function=None, kind=None)
    chosen = dataclasses.replace(selection(()), user=user)
    cells = (cell("serial", workload="mine:work"), cell(workload="mine:work"))
    earlier = [] if seconds is None else [
        EarlierProcess(cell=cells[0], size="small", passes=1, seconds=seconds)]
    settings = dataclasses.replace(SETTINGS, budget=budget, where_open=True)
    return " ".join(" ".join(preview(Plan(cells, ()), [make_build("3.14")], chosen, settings, earlier)).split())


def test_no_time_is_promised_for_a_function_that_was_never_called():
    said = of_a_function(None)
    assert "time: unknown until mine:work is called" in said
    assert "refuses it if it does not fit into the budget of 3 min" in said
    assert "budget" not in of_a_function(None, budget=None).partition("time: ")[2]


def test_budget_that_an_earlier_run_says_is_too_short_is_told():
    assert "more than the budget of 3 min: the run would be refused" in of_a_function(80.0)
    assert "refused" not in of_a_function(0.1)


@pytest.mark.parametrize("one_pass", [1.0, 2.0, 3.0, 9.0])
def test_refusal_is_told_where_the_run_refuses(one_pass):
    # Three rounds of the checked pass, a warm-up and one value: 13.5 passes' time; with all values it would be 22.5.
    cells = (cell("serial", workload="mine:work"), cell("processes-fork", workload="mine:work"))
    settings = dataclasses.replace(SETTINGS, budget=30.0, where_open=True)
    trials = {"3.14": TrialOutcome(tasks=4, pass_seconds=one_pass, demand=1.0)}
    try:
        fit_budget(cells, settings, trials, "mine:work", 0.0)
        refused = False
    except ToolkitError:
        refused = True
    told = "would be refused" in of_a_function(START_SECONDS + one_pass, budget=30.0)
    assert told == refused == (one_pass > 2.5)
