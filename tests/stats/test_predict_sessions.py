"""The benchmark that predicts a session from the others, on made-up sessions whose shift is known."""

from math import expm1
from statistics import fmean

import pytest

from tests.benchmarks.predict_sessions import report
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
