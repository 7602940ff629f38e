"""Which cells the next rounds go to: made-up runs whose answers are clear or not."""

from dataclasses import replace

import pytest

from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.report.table.open_cells import open_cells
from tests.fakes import RunMaker


def cell(runner="serial", workers=1, build="3.14", **changes):
    return Cell(**{"workload": "w", "runner": runner, "workers": workers, "build": build} | changes)


def twin(*args, **changes):
    return cell(*args, twin=True, **changes)


def made(times, builds=("3.14",)):
    """A run of cells that take `times`; by the wall clock 3 % apart from round to round, less than 1 % in CPU time."""
    maker = RunMaker(rounds=6, noise=0.03)
    for each, seconds in times.items():
        maker.measure(each, seconds)
    return maker.run(builds, cells=tuple(times))


def names(found):
    return {(each.runner, each.build, each.twin) for each in found}


FEW = {cell(): 1.0, twin(): 1.0, cell("threads", 2): 0.5, cell("asyncio", 2): 1.4, twin("asyncio", 2): 1.4}


def test_nothing_is_open_when_every_answer_is_clear():
    run = made(FEW)
    assert open_cells(run, run.cells) == frozenset()


def test_open_is_what_has_no_word_with_its_baseline_and_the_arms_that_check_it():
    run = made(FEW | {cell("processes-fork", 2): 0.96})   # gains less than the noise lets be told
    assert names(open_cells(run, run.cells)) == {
        ("serial", "3.14", False), ("serial", "3.14", True), ("processes-fork", "3.14", False),
        ("asyncio", "3.14", False), ("asyncio", "3.14", True)}   # measured twice, with as many workers


def test_one_worker_needs_the_arms_with_one_worker_alone():
    run = made(FEW | {cell("processes-fork", 1): 0.96})
    assert names(open_cells(run, run.cells)) == {
        ("serial", "3.14", False), ("serial", "3.14", True), ("processes-fork", "3.14", False)}


def test_other_workloads_are_left_alone():
    run = made(FEW | {replace(each, workload="other"): seconds for each, seconds in FEW.items()}
               | {cell("processes-fork", 2, workload="other"): 0.96})
    assert {each.workload for each in open_cells(run, run.cells)} == {"other"}


def test_wide_ratios_are_open_where_a_resolution_is_asked_for():
    run = made(FEW)
    assert open_cells(run, run.cells, resolution=0.2) == frozenset()
    assert open_cells(run, run.cells, resolution=0.0001) == frozenset(run.cells)


def test_cell_without_numbers_is_open():
    run = made(FEW)
    missing = cell("processes-fork", 2)
    found = open_cells(replace(run, cells=(*run.cells, missing)), [*run.cells, missing])
    assert {missing, cell()} <= found


def test_cell_that_cannot_be_measured_is_not_asked_for():
    run = made(FEW | {cell("processes-fork", 2): 0.96})
    assert open_cells(run, [each for each in run.cells if each.runner != "processes-fork"]) == frozenset()


def test_baseline_alone_needs_all_rounds():
    run = made({cell(): 1.0, twin(): 1.0})
    assert open_cells(run, run.cells) == frozenset(run.cells)


PAIR = {cell(): 1.0, twin(): 1.0, cell("threads", 2): 1.4, cell(build="3.14t"): 1.2,
        cell("free-threaded", 2, "3.14t"): 0.6, twin("free-threaded", 2, "3.14t"): 0.6}


def test_what_free_threading_costs_is_asked():
    assert open_cells(made(PAIR, ("3.14", "3.14t")), [*PAIR]) == frozenset()
    run = made(PAIR | {cell(build="3.14t"): 1.015}, ("3.14", "3.14t"))
    assert names(open_cells(run, run.cells)) == {
        ("serial", "3.14", False), ("serial", "3.14t", False), ("serial", "3.14", True)}


@pytest.mark.parametrize(("free", "open_"), [(0.5, False), (0.97 * 0.6, True)])
def test_whether_the_best_of_two_builds_differ_is_asked(free, open_):
    times = PAIR | {cell("threads", 2): 0.6, cell("free-threaded", 2, "3.14t"): free,
                    twin("free-threaded", 2, "3.14t"): free}
    run = made(times, ("3.14", "3.14t"))
    found = names(open_cells(run, run.cells))
    assert (("threads", "3.14", False) in found) == (("free-threaded", "3.14t", False) in found) == open_


def test_the_best_of_two_builds_wait_until_all_else_is_clear():
    alike = PAIR | {cell("threads", 2): 0.6, cell("free-threaded", 2, "3.14t"): 0.6}
    assert ("threads", "3.14", False) in names(open_cells(made(alike, ("3.14", "3.14t")), [*alike]))
    more = alike | {cell("processes-fork", 2): 0.96}
    found = names(open_cells(made(more, ("3.14", "3.14t")), [*more]))
    assert ("processes-fork", "3.14", False) in found
    assert ("threads", "3.14", False) not in found


def test_fastest_of_builds_is_open_while_the_report_cannot_tell():
    """The leaders alone are clear, but a model that may be the fastest as well leaves their ratio open."""
    maker, cells = RunMaker(rounds=6, noise=0.008, seed=1), []
    for build, serial, parallel, models in (
            ("3.14", 0.40, 0.2, {"processes": 1.0, "subinterpreters": 1.015, "loky": 1.005, "interpreter-pool": 1.012}),
            ("3.14t", 0.46, 0.194, {"processes": 1.0, "subinterpreters": 1.015, "free-threads": 1.005})):
        base = cell(build=build)
        maker.measure(base, serial)
        maker.twin(base, serial)
        for model, factor in models.items():
            maker.measure(cell(model, 4, build), parallel * factor)
        cells += [base, replace(base, twin=True), *(cell(model, 4, build) for model in models)]
    run = maker.run(("3.14", "3.14t"), looks=1)
    (fastest,) = build_tables(run)[0].fastest_of_builds
    assert fastest.comparison.verdict() == "cannot tell"
    assert {fastest.gil, fastest.free} < open_cells(run, cells)
