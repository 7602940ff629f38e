"""The figure of an evaluation: each value with its interval, and none where nothing was measured."""

from dataclasses import replace

import pytest

from gilscope.toolkit.evaluate.views.picture import figure
from tests.evaluate.made_up import MEMORY, NOT_DONE, QUIET, concluded, evaluation, found, gain

BUSY = replace(QUIET, doubts=("busy",))


def bars(given):
    shown = figure(given)
    return {} if shown is None else {
        name: (value, lo, hi) for panel in shown.panels for series in panel.series for name, value, lo, hi in zip(
            panel.categories, series.y, series.lo, series.hi, strict=True)}


def test_values_have_their_intervals():
    seen = bars(evaluation())
    assert seen["3.14t, 4 threads"] == pytest.approx((1.6, 1.568, 1.632))
    assert seen["3.14t, CPU"] == pytest.approx((1.25, 1.2255, 1.2755), rel=1e-3)
    assert seen["processes 3.14"] == pytest.approx((1.7, 1.666, 1.734))
    assert seen["3.14t, memory"][0] == pytest.approx(MEMORY.here / MEMORY.there)


def test_busy_machine_shows_no_gain():
    assert set(bars(evaluation(machine=BUSY))) == {"3.14t, CPU", "3.14t, memory"}


def test_bound_is_no_value():
    assert set(bars(concluded(found(gain=gain())))) == {"3.14t, CPU"}


def test_nothing_measured_is_no_figure():
    assert figure(concluded(found(gain=NOT_DONE, cost=NOT_DONE))) is None
