"""What a report says of processes that are unlike the others, and of rounds that disturb a class of cells."""

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
from gilscope.toolkit.report.table import build_tables, compare_builds, compare_models, compare_runs
from gilscope.toolkit.site.pages.run import run_page
from gilscope.toolkit.stats.two_levels import TwoLevels
from tests.fakes import RunMaker, in_sessions
from tests.stats.matrix import correlated

MODELS = ("threads", "subinterpreters", "processes-forkserver", "asyncio", "free-threaded")
SERIAL, THREADS = (Cell(workload="w", runner=name, workers=count, build="3.14")
                   for name, count in (("serial", 1), ("threads", 2)))
SLOW = ("1 of 6 processes is 30 % slower than the others, beyond what its round did to all cells of the workload: "
        "unusual for this run's noise")
LEVELS = ("its times have two levels: 1.00 s (9 of 18 values) and 1.40 s (9); ratios of it are of a mix of both, and "
          "do not say what either level alone would give")


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
    return changed(quiet_run(), THREADS, lambda r, _: 1.3 if r == 2 else 1.0)


def test_one_slow_process_is_a_value_of_its_cell_and_widens_its_interval(slow):
    found, before = result_of(slow, THREADS), result_of(quiet_run(), THREADS)
    (far,) = found.far
    assert (far.processes.rounds, far.processes.of, far.session, far.cells) == (frozenset({2}), 6, None, None)
    assert far.processes.share == pytest.approx(0.3, abs=0.03)
    assert found.speedup.hi / found.speedup.lo > (before.speedup.hi / before.speedup.lo) ** 2
    assert before.far == ()
    assert all(result.far == () for table in build_tables(slow) for row in table.rows for result in row.results
               if result.cell != THREADS)


def test_it_stands_beside_the_number_in_every_format(slow):
    document = run_document(slow)
    for text in (terminal.render(document, width=200), markdown.render(document)):
        assert text.count(SLOW) == 2   # below the overview and below the table of the workload
    (cell,) = (each for each in as_json.run_values(slow)["cells"]
               if (each["model"], each["build"]) == ("threads", "3.14"))
    assert cell["processes"]["far"] == {"rounds": [2], "of": 6, "difference": pytest.approx(0.3, abs=0.03)}
    assert SLOW in cell["notes"]
    assert SLOW in str(run_page(slow, {}))


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
    run = changed(quiet_run(), SERIAL, lambda r, _: 1.3 if r == 2 else 1.0)
    (found,) = (each for each in compare_builds(run, "3.14", "3.14t") if each.baseline == SERIAL)
    assert found.clock == "cpu"
    assert found.baseline_notes[0].text == f"by wall time, {SLOW}"


def test_far_processes_of_two_sessions_stay_apart():
    """One slow process in a session and a fast one in another are not two slow ones."""
    factors = {2: 1.43, 7: 0.9, 8: 0.9}
    run = in_sessions(changed(quiet_run(12), THREADS, lambda r, _: factors.get(r, 1.0)), (0, 6))
    found = result_of(run, THREADS).far
    assert [(each.session, sorted(each.processes.rounds)) for each in found] == [(1, [2]), (2, [7, 8])]
    text = ("1 of 12 processes is 43 % slower than the others of its session; 2 are 10 % faster, beyond what their "
            "rounds did to all cells of the workload")
    document = run_document(run)
    for shown in (terminal.render(document, width=300), markdown.render(document), str(run_page(run, {}))):
        assert text in shown
    (cell,) = (each for each in as_json.run_values(run)["cells"]
               if (each["model"], each["build"]) == ("threads", "3.14"))
    far, by_session = cell["processes"]["far"], cell["processes"]["far_by_session"]
    assert (far["rounds"], far["of"]) == ([2], 12)
    assert [(each["session"], each["rounds"], each["of"], each["difference"] > 0) for each in by_session] == [
        (1, [2], 6, True), (2, [7, 8], 6, False)]


def test_two_states_of_the_machine_are_two_levels_of_the_baseline():
    run = changed(quiet_run(), SERIAL, lambda r, _: 1.4 if r % 2 else 1.0)
    steady = dataclasses.replace(run, measurements=tuple(
        dataclasses.replace(each, observations=tuple(
            dataclasses.replace(o, wall=(1.4 if o.round % 2 else 1.0,) * 3) for o in each.observations))
        if each.cell == SERIAL else each for each in run.measurements))
    found = result_of(steady, SERIAL)
    assert found.levels == TwoLevels(low=1.0, high=1.4, at_low=9, at_high=9)
    text = terminal.render(run_document(steady), width=200)
    assert f"serial of w on 3.14: {LEVELS}" in text   # the baseline has no number in the overview
    assert text.count(LEVELS) == 2
    (row,) = (row for each in run_page(steady, {})["workloads"] for row in each["rows"]
              if (row["model"], row["build"]) == ("serial", "3.14"))
    assert row["verdict"] == "baseline"


def disturbed_run():
    """The run whose rounds disturb cells with several workers and no serial cell."""
    draw = random.Random(1)
    effects = [exp(draw.gauss(0, 0.03)) for _ in range(6)]
    run = quiet_run()
    for each in run.measurements:
        if each.cell.workers > 1:
            run = changed(run, each.cell, lambda r, _: effects[r])
    return run


@pytest.mark.parametrize(("cell", "cells"), [(SERIAL, "one worker"), (THREADS, "several workers")])
def test_far_processes_are_told_from_what_their_round_did_to_their_class(cell, cells):
    run = changed(disturbed_run(), cell, lambda r, _: 1.4 if r == 2 else 1.0)
    (note,) = (each.text for each in result_of(run, cell).process_notes if "1 of 6 processes" in each.text)
    assert f"beyond what its round did to the cells with {cells}: " in note


def test_rounds_that_disturb_cells_with_several_workers_are_named():
    run = disturbed_run()
    found, before = result_of(run, THREADS), result_of(quiet_run(), THREADS)
    assert found.speedup.hi / found.speedup.lo > (before.speedup.hi / before.speedup.lo) ** 2
    text = terminal.render(run_document(run), width=300)
    assert "some rounds disturbed cells with several workers and cells with one differently" in text
    assert "(p < 0.001)" in text
    assert "rounds disturbed" not in terminal.render(run_document(quiet_run()), width=300)


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
