"""What a report says of its rounds: how many, why no more, and that fewer are no failure."""

from dataclasses import replace

import pytest

from gilscope.toolkit.report.run_document import about, run_document
from gilscope.toolkit.report.terminal import render
from tests.fakes import make_run


def lines(run):
    return about(run).items[1:]


def cut(run, cell, rounds):
    """The run, of which one cell has fewer rounds."""
    return replace(run, looks=2, measurements=tuple(
        replace(each, observations=each.observations[:rounds]) if each.cell == cell else each
        for each in run.measurements))


@pytest.mark.parametrize(("stopped", "said"), [
    ("rounds", "8 of 12 rounds in this session, ended by: rounds; seed 1"),
    ("answered", "8 of 12 rounds in this session, stopped: every answer is clear; seed 1"),
    ("resolution",
     "8 of 12 rounds in this session, stopped: every answer is clear, and as precise as --resolution requires; seed 1"),
])
def test_why_there_are_no_more_is_said(stopped, said):
    assert lines(replace(make_run(), rounds_planned=12, stopped=stopped, looks=2)) == (said,)


def test_cells_with_fewer_rounds_are_told_as_clear_and_not_as_failed():
    run = make_run()
    threads = next(each.cell for each in run.measurements if each.cell.runner == "threads" and each.cell.workers == 8)
    fewer = cut(run, threads, 4)
    assert lines(fewer)[1] == ("cells with a clear answer got fewer rounds than open ones: 4 to 8; on average, their "
                               "ratios are slightly too far from 1; those of cells that were not clear until the end "
                               "are slightly too near to 1, and their intervals hold less often than 95 %")
    whole, short = (render(run_document(each)) for each in (run, fewer))
    assert {word: short.count(word) for word in ("failed", "starved", "skipped", "not measured")} == {
        word: whole.count(word) for word in ("failed", "starved", "skipped", "not measured")}


def test_cells_that_failed_do_not_count_as_clear():
    run = make_run()
    (failed, *_) = (failure.cell for failure in run.failures)
    assert failed not in {each.cell for each in run.measurements}
    some = replace(run, measurements=(*run.measurements, replace(run.measurements[0], cell=failed)))
    assert len(lines(cut(some, failed, 1))) == 1
