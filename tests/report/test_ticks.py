"""Marks of axes."""

import math

import pytest

from gilscope.toolkit.report.figures.figure import Axis, seconds_axis
from gilscope.toolkit.report.figures.plots.ticks import limits, linear_steps, marks, number_texts, seconds_text


@pytest.mark.parametrize(("seconds", "text"), [
    (0, "0"), (1e-9, "1 ns"), (1e-6, "1 µs"), (1e-5, "10 µs"), (1e-4, "100 µs"), (1e-3, "1 ms"), (5e-3, "5 ms"),
    (0.01, "10 ms"), (0.05, "50 ms"), (0.1, "0.1 s"), (0.25, "0.25 s"), (1, "1 s"), (100, "100 s"), (1500, "1,500 s"),
    (1e-12, "0.001 ns"),
])
def test_seconds_are_read_as_one_says_them(seconds, text):
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(("lo", "hi", "texts"), [
    (1e-6, 0.1, ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "0.1 s"]),
    (1e-5, 1e-3, ["10 µs", "20 µs", "50 µs", "100 µs", "200 µs", "500 µs", "1 ms"]),
    (2.1e-3, 2.9e-3, ["2.2 ms", "2.4 ms", "2.6 ms", "2.8 ms"]),   # no power of ten inside: even steps
])
def test_marks_of_a_logarithmic_axis_of_seconds(lo, hi, texts):
    assert [text for _, text in marks(seconds_axis("latency", log=True), lo, hi, 7)] == texts


def test_a_linear_axis_of_seconds_keeps_to_one_unit():
    assert [text for _, text in marks(seconds_axis("time"), 0, 0.12, 6)] == [
        "0", "20 ms", "40 ms", "60 ms", "80 ms", "100 ms", "120 ms"]


def test_marks_stand_at_the_values_when_there_are_few():
    assert marks(Axis("threads"), 0.5, 8.5, 8, [8, 1, 2, 4, 2]) == [(1, "1"), (2, "2"), (4, "4"), (8, "8")]


def test_marks_of_the_axis_itself_come_first():
    axis = Axis("interval", ticks=((1, "short"), (2, "long"), (99, "out of sight")))
    assert marks(axis, 0, 10, 8, [1, 2, 3]) == [(1, "short"), (2, "long")]


@pytest.mark.parametrize(("values", "texts"), [
    ([0, 10_000, 20_000], ["0", "10,000", "20,000"]), ([1e6, 2.5e6], ["1 M", "2.5 M"]), ([3e9], ["3 G"]),
    ([0.1, 1, 10], ["0.1", "1", "10"]), ([1e-6], ["1e-6"]), ([-1.5], ["-1.5"]), ([], []),
])
def test_numbers_on_marks(values, texts):
    assert number_texts(values) == texts


@pytest.mark.parametrize("count", [2, 3, 5, 8])
@pytest.mark.parametrize(("lo", "hi"), [(0, 1), (-3, 7), (0, 1e-7), (1e9, 1e9 + 5), (0, 23_456)])
def test_linear_steps_are_within_and_not_too_many(lo, hi, count):
    found = linear_steps(lo, hi, count)
    assert lo <= found[0]
    assert found[-1] <= hi * (1 + 1e-12)
    assert 1 <= len(found) <= count + 1


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("values", [
    [], [math.nan], [0.0], [5.0], [5.0, 5.0], [-1.0, 1.0], [1e-9, 1e9], [math.inf, 2.0],
])
@pytest.mark.parametrize("zero", [True, False])
def test_limits_hold_every_value_and_are_apart(values, log, zero):
    axis = Axis("x", log=log)
    lo, hi = limits(axis, values, zero=zero)
    assert lo < hi
    assert not log or lo > 0
    assert all(lo <= value <= hi for value in values if math.isfinite(value) and (value > 0 or not log))


@pytest.mark.parametrize(("axis", "expected"), [
    (Axis("x", lo=2, hi=20), (2, 20)), (Axis("x", log=True, lo=2, hi=20), (2, 20)), (Axis("x", lo=0), (0, 10.5)),
])
def test_ends_asked_for_are_taken(axis, expected):
    assert limits(axis, [5, 10], zero=False) == pytest.approx(expected)
