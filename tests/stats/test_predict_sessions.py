"""The benchmark that predicts a session from the others, on made-up sessions whose shift is known."""

from dataclasses import replace
from math import expm1
from statistics import fmean

import pytest

from gilscope.toolkit.report.table.observations import Index
from tests.benchmarks.predict_sessions import report, spread_of_times
from tests.report.test_sessions import STARTS, make


def test_sessions_that_do_not_differ_are_predicted_by_their_rounds(capsys):
    found = report("made", make(3))["wall"]
    assert fmean(abs(each.off) <= each.rounds for each in found) > 0.85
    assert "speed-ups" in capsys.readouterr().out


def test_shifted_session_is_outside_and_its_shift_is_named():
    found = report("made", make(2, (1.0, 1.1)))["wall"]
    assert fmean(abs(each.off) <= each.rounds for each in found) < 0.2
    first, second = found[:len(found) // 2], found[len(found) // 2:]
    assert expm1(fmean(each.off for each in first)) == pytest.approx(0.1, rel=0.1)
    assert expm1(fmean(each.off for each in second)) == pytest.approx(1 / 1.1 - 1, rel=0.1)
    assert all(each.sessions is None for each in found)   # one other session does not show how sessions differ


def test_three_others_show_how_much_a_session_may_differ(monkeypatch):
    monkeypatch.setitem(STARTS, 4, (0, 3, 6, 9))
    found = report("made", make(4, (1.0, 0.95, 1.05, 1.1)))["wall"]
    assert all(each.sessions is not None and each.sessions >= each.rounds for each in found)
    assert fmean(abs(each.off) <= each.rounds for each in found) < 0.5
    assert fmean(abs(each.off) <= (each.sessions or 0.0) for each in found) > 0.9


def test_times_that_move_from_session_to_session_are_measured(capsys):
    run = make(2)
    assert max(spread_of_times(Index(run), "cpu")) < 0.02
    slower = replace(run, measurements=tuple(
        replace(each, observations=tuple(
            replace(one, cpu=tuple(1.2 * value for value in one.cpu)) if one.session == 2 else one
            for one in each.observations)) for each in run.measurements))
    assert spread_of_times(Index(slower), "cpu") == [pytest.approx(0.2, abs=0.02)] * 4
    report("made", slower)
    assert "cpu time of a cell with one worker, slowest session over fastest: median +" in capsys.readouterr().out
