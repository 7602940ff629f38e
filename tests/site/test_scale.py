"""Axes of pictures: their marks."""

from itertools import pairwise
from math import log

import pytest

from gilscope.toolkit.site.charts.cells import GLANCE_LETTER, GLANCE_WIDTH, glance_axis
from gilscope.toolkit.site.charts.lines import ChartLine, ChartPoint, lines
from gilscope.toolkit.site.charts.scale import MOST_MARKS, ratio_scale

LETTER = 12   # pixels


@pytest.mark.parametrize(("lo", "hi"), [
    (0.95, 2.3), (0.9, 2.3), (0.97, 3.1), (0.5, 1.1), (0.9, 1.3), (0.6, 1.6), (1, 16), (0.01, 80), (0.99, 1.01)])
def test_marks_of_a_ratio_axis_have_room_and_lie_on_all_of_it(lo, hi):
    scale = ratio_scale([lo, hi], 200, 10)
    marks = scale.marks()
    assert 2 <= len(marks) <= MOST_MARKS
    places = sorted(mark["at"] for mark in marks)
    assert all(after - before > LETTER for before, after in pairwise(places)), "labels do not overlap"
    values = [float(mark["text"]) for mark in marks]
    whole = log(scale.hi / scale.lo)
    assert log(max(values) / min(values)) > whole / 3, "they do not crowd one end"
    assert 1 in values


@pytest.mark.parametrize(("lo", "hi"), [
    (0.93, 1.2), (0.85, 1.45), (0.9, 1.3), (0.5, 2.2), (0.2, 9), (0.97, 1.03), (0.01, 16), (0.9, 4), (0.6, 2.3)])
def test_words_of_a_small_picture_do_not_overlap(lo, hi):
    marks = glance_axis(ratio_scale([lo, hi], 8, GLANCE_WIDTH - 8))["marks"]
    assert len(marks) >= 2
    for before, after in pairwise(marks):
        assert after["at"] - before["at"] > (len(before["text"]) + len(after["text"]) + 2) / 2 * GLANCE_LETTER


def test_words_below_an_axis_have_room():
    words = [(float(i), f"11-{i:02} 12:00") for i in range(1, 8)]
    points = tuple(ChartPoint(x=at, y=1.0, lo=0.9, hi=1.1, says=text) for at, text in words)
    chart = lines("t", [ChartLine(model="threads", name="threads", points=points)], words)
    wide = len(words[0][1]) * 6   # pixels at 11 pixels
    places = [word["at"] for word in chart["words"]]
    assert len(places) > 1
    assert all(after - before > wide for before, after in pairwise(places))
    assert places[0] - wide / 2 >= 0
    assert places[-1] + wide / 2 <= chart["width"]
