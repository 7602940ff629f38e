"""`--dry-run` prints at most a screen for any matrix, with the reasons in groups."""

import dataclasses

import pytest

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.commands.output.dry_run import preview
from gilscope.toolkit.measure.cells import Plan, Selection
from gilscope.toolkit.measure.settings import Settings
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
    lines = preview(Plan(cells, skips), [make_build(label) for label in LABELS], selection(names), SETTINGS)
    assert len(lines) < 40
    assert max(map(len, lines)) <= 80


def test_counts_and_grouped_reasons():
    plan = Plan(
        (cell("serial"), cell("threads"), cell("threads", "3.14t"), cell("threads", "3.14t", twin=True)),
        (Skip(cell=cell("interpreter-pool", "3.13"), reason="needs CPython 3.14"),
         Skip(cell=cell("interpreter-pool", "3.12"), reason="needs CPython 3.14"),
         Skip(cell=cell("subinterpreters"), reason="its workers cannot share a queue"),
         Skip(cell=cell("processes-fork"), reason="its workers cannot share a queue")))
    lines = preview(plan, [make_build("3.14"), make_build("3.14t")], selection(("primes",)), SETTINGS)
    assert lines[0] == "4 cells x 12 rounds = 48 processes; seed 0"
    assert [line.split() for line in lines if line.startswith(("serial ", "threads ", "A/A "))] == [
        ["serial", "1", "-"], ["threads", "1", "1"], ["A/A", "-", "1"]]
    assert "     2  interpreter-pool on 3.13, 3.12: needs CPython 3.14" in lines
    assert "     2  subinterpreters, processes-fork on 3.14: its workers cannot share a" in lines   # wrapped


def test_rounds_that_depend_on_what_is_found_are_told_as_a_range():
    settings = dataclasses.replace(SETTINGS, where_open=True)
    lines = preview(Plan((cell("serial"), cell())), [make_build("3.14")], selection(("primes",)), settings)
    assert lines[0] == "2 cells x 4 to 12 rounds = 8 to 24 processes; seed 0"
    few = preview(Plan((cell(),)), [], selection(("primes",)), dataclasses.replace(settings, rounds=3))
    assert few[0] == "1 cells x 3 rounds = 3 processes; seed 0"


@pytest.mark.parametrize(("budget", "said"), [(None, []), (180.0, ["time: at most 3 min"])])
def test_time_is_said_if_a_budget_ends_it(budget, said):
    settings = dataclasses.replace(SETTINGS, budget=budget)
    lines = preview(Plan((cell(),)), [make_build("3.14")], selection(("primes",)), settings)
    assert [line for line in lines if line.startswith("time:")] == said
