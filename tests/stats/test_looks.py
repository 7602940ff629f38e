import random
from math import log
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gilscope.toolkit.stats.looks import Plan, open_pairs
from gilscope.toolkit.stats.ratios import judge
from tests.benchmarks.coverage import stopped, table
from tests.stats.test_ratios import ratio


@given(cells=st.integers(1, 200), looks=st.integers(0, 40))
def test_looks_and_cells_together_err_no_more_than_was_allowed(cells, looks):
    plan = Plan(cells=cells, looks=looks)
    taken = min(looks, 20)   # more must not be taken
    assert taken * (1 - plan.on_the_way() ** cells) + 1 - plan.at_last() ** cells <= 0.05 + 1e-12


def test_last_look_of_one_cell_is_the_plain_interval():
    assert Plan(cells=1).at_last() == pytest.approx(0.95)


def test_a_look_on_the_way_asks_for_much_more_than_the_last():
    plan = Plan(cells=84, looks=4)
    assert 1 - plan.on_the_way() < (1 - plan.at_last()) / 80


def test_clear_cells_need_no_more_rounds_and_others_do():
    ratios = {
        "clear": ratio(log(1.9), 0.03), "equal": ratio(0.0, 0.01), "edge": ratio(0.05, 0.04), "lost": ratio(0.0, 0.5),
    }
    assert open_pairs(ratios, Plan(cells=4)) == {"edge": "no word", "lost": "no word"}


def test_what_the_last_look_would_call_clear_is_open_on_the_way():
    near = {0: ratio(0.05, 0.04)}   # 2.45 standard errors
    assert judge(near[0], Plan(cells=1).at_last()).word == "faster"
    assert open_pairs(near, Plan(cells=1)) == {0: "no word"}


def test_wide_cells_are_open_where_a_resolution_is_asked_for():
    ratios = {"clear": ratio(log(1.9), 0.03), "narrow": ratio(log(1.9), 0.009)}
    assert open_pairs(ratios, Plan(cells=2), resolution=0.01) == {"clear": "wide"}


def test_margin_decides_what_equal_means():
    ratios = {"equal": ratio(0.0, 0.01)}
    assert open_pairs(ratios, Plan(cells=1), margin=0.01) == {"equal": "no word"}


def test_stopping_early_keeps_the_coverage_and_saves_rounds():
    # 8 tables of 80 cells: see tests/benchmarks/coverage.py for many more
    draw = random.Random(5)
    covered, rounds, false = [], [], 0
    for k in range(8):
        made = stopped([*table(draw, "normal", 12, 84)], k)
        covered += [truth.covered(0.95) for truth in made]
        rounds += [truth.ratio.rounds for truth in made]
        false += any(truth.false_word(Plan(cells=80, looks=3).at_last()) for truth in made)
    assert 0.91 <= fmean(covered) <= 0.985
    assert fmean(rounds) < 11
    assert {4, 12} <= {*rounds}
    assert false <= 2


def test_word_of_a_cell_that_was_left_alone_stays():
    clear = ratio(log(1.9), 0.03)
    plan = Plan(cells=84, looks=20)
    assert not open_pairs({0: clear}, plan)
    assert judge(clear, plan.at_last()).word == "faster"
