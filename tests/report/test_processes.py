"""Reports name a slow process, and rounds that disturb a class of cells."""

import dataclasses
import functools
import random
import re
from math import exp

import pytest

from gilscope.toolkit.model import Cell
from gilscope.toolkit.report import as_json, markdown, terminal
from gilscope.toolkit.report.comparison import comparison_document
from gilscope.toolkit.report.run_document import run_document
from gilscope.toolkit.report.table.contrast import compare_builds, compare_models, compare_runs
from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.site.pages.run import run_page
from tests.fakes import RunMaker
from tests.stats.matrix import correlated

MODELS = ("threads", "subinterpreters", "processes-forkserver", "asyncio", "free-threaded")
SERIAL, THREADS = (Cell(workload="w", runner=name, workers=count, build="3.14")
                   for name, count in (("serial", 1), ("threads", 2)))
SLOW = "the slowest process took 1.5 times the median"


@functools.cache
def quiet_run(rounds=6):
    maker = RunMaker(rounds=rounds)
    for build in ("3.14", "3.14t"):
        maker.measure(dataclasses.replace(SERIAL, build=build), 1.0)
        maker.twin(dataclasses.replace(SERIAL, build=build), 1.0)
        for model in MODELS:
            maker.measure(dataclasses.replace(THREADS, runner=model, build=build), 0.55)
        maker.twin(dataclasses.replace(THREADS, build=build), 0.55)
    return maker.run(("3.14", "3.14t"), cells=tuple(each.cell for each in maker.measurements))


def changed(run, cell, factors):
    """The run with the wall times of one cell multiplied, by round and value."""
    return dataclasses.replace(run, measurements=tuple(
        dataclasses.replace(each, observations=tuple(
            dataclasses.replace(o, wall=tuple(value * factors(o.round, k) for k, value in enumerate(o.wall)))
            for o in each.observations)) if each.cell == cell else each
        for each in run.measurements))


def result_of(run, wanted):
    return next(result for table in build_tables(run) for row in table.rows for result in row.results
                if result.cell == wanted)


@pytest.fixture(scope="module")
def slow():
    return changed(quiet_run(), THREADS, lambda r, _: 1.5 if r == 2 else 1.0)


@pytest.mark.parametrize(("times", "noted"), [(1.3, ()), (1.5, ("the slowest process took 1.5 times the median",))])
def test_only_a_process_far_slower_than_the_others_has_a_note(times, noted):
    found = result_of(changed(quiet_run(), THREADS, lambda r, _: times if r == 2 else 1.0), THREADS)
    assert found.slowest == pytest.approx(times, abs=0.06)
    assert tuple(each.text for each in found.process_notes) == noted


def test_one_slow_process_is_a_value_of_its_cell_and_widens_its_interval(slow):
    found, before = result_of(slow, THREADS), result_of(quiet_run(), THREADS)
    assert found.speedup.hi / found.speedup.lo > (before.speedup.hi / before.speedup.lo) ** 2
    assert [result.cell for table in build_tables(slow) for row in table.rows for result in row.results
            if result.process_notes] == [THREADS]


def test_process_that_was_starved_is_no_slow_one(slow):
    starved = dataclasses.replace(slow, measurements=tuple(
        dataclasses.replace(each, observations=tuple(
            dataclasses.replace(o, starved=o.round == 2) for o in each.observations)) if each.cell == THREADS else each
        for each in slow.measurements))
    assert result_of(starved, THREADS).process_notes == ()


def test_of_two_processes_neither_is_the_slow_one():
    run = changed(quiet_run(2), THREADS, lambda r, _: 9.0 if r == 1 else 1.0)
    assert (result_of(run, THREADS).slowest, result_of(run, THREADS).process_notes) == (None, ())


def test_it_stands_beside_the_number_in_every_format(slow):
    document = run_document(slow)
    for text in (terminal.render(document, width=200), markdown.render(document)):
        assert text.count(SLOW) == 2   # below the overview and below the table of the workload
    (cell,) = (each for each in as_json.run_values(slow)["cells"]
               if (each["model"], each["build"]) == ("threads", "3.14"))
    assert cell["slowest_process"] == pytest.approx(1.5, abs=0.06)
    assert SLOW in cell["notes"]
    assert SLOW in str(run_page(slow, {}))


def test_slow_process_of_a_baseline_is_a_footnote():
    run = changed(quiet_run(), SERIAL, lambda r, _: 1.5 if r == 2 else 1.0)
    text = terminal.render(run_document(run), width=200)
    assert f"¹ {SLOW}" in text
    (row,) = (row for each in run_page(run, {})["workloads"] for row in each["rows"]
              if (row["model"], row["build"]) == ("serial", "3.14"))
    assert row["verdict"] == "baseline"


def test_it_stands_beside_the_time_that_a_comparison_shows(slow):
    contrasts = compare_models(slow, "serial", "threads")
    of_builds = compare_builds(slow, "3.14t", "3.14")
    other = dataclasses.replace(quiet_run(), label="other")
    for found, side in ((contrasts, "sample_notes"), (of_builds, "sample_notes"),
                        (compare_runs(slow, other), "baseline_notes")):
        marked = [each for each in found if each.baseline_notes or each.sample_notes]
        assert {(each.sample.runner, each.sample.build) for each in marked} == {("threads", "3.14")}
        texts = [note.text for note in getattr(marked[0], side)]
        assert texts[0] == SLOW
        document = comparison_document("", found, baseline="a", sample="b")
        for text in (terminal.render(document, width=200), markdown.render(document)):
            assert text.count(SLOW) == 1
        (cell,) = (each for each in as_json.compare_values(found, baseline="a", sample="b", notes=())["cells"]
                   if each[side])
        assert cell[side] == texts


def test_processes_are_judged_by_wall_time_whatever_the_clock():
    run = changed(quiet_run(), SERIAL, lambda r, _: 1.5 if r == 2 else 1.0)
    (found,) = (each for each in compare_builds(run, "3.14", "3.14t") if each.baseline == SERIAL)
    assert found.clock == "cpu"
    assert found.baseline_notes[0].text == f"by wall time, {SLOW}"


def disturbed_run():
    """The run whose rounds disturb cells with several workers and no serial cell."""
    draw = random.Random(1)
    effects = [exp(draw.gauss(0, 0.03)) for _ in range(6)]
    run = quiet_run()
    for each in run.measurements:
        if each.cell.workers > 1:
            run = changed(run, each.cell, lambda r, _: effects[r])
    return run


def test_rounds_that_disturb_cells_with_several_workers_widen_their_intervals():
    run = disturbed_run()
    found, before = result_of(run, THREADS), result_of(quiet_run(), THREADS)
    assert found.speedup.hi / found.speedup.lo > (before.speedup.hi / before.speedup.lo) ** 2


def test_what_widens_intervals_of_cpu_time_is_said_below_the_costs_of_builds():
    draw, run = random.Random(1), quiet_run(24)
    measurements = []
    for each in run.measurements:
        slower = correlated([draw.gauss(0, 0.02) for _ in each.observations], 0.9)
        measurements.append(dataclasses.replace(each, observations=tuple(
            dataclasses.replace(one, cpu=tuple(value * exp(own) for value in one.cpu))
            for one, own in zip(each.observations, slower, strict=True))))
    run = dataclasses.replace(run, measurements=tuple(measurements))
    said = "Note: successive rounds are somewhat alike (correlation "
    text = terminal.render(run_document(run), width=300)
    assert re.search(rf"{re.escape(said)}0\.\d+\): intervals of CPU time are widened", text)
    assert "intervals of CPU time are widened" in str(run_page(run, {}))
    assert said not in terminal.render(run_document(quiet_run(24)), width=300)
