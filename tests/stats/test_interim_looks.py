import random
from dataclasses import replace
from math import log
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gilscope.toolkit.model import MOST_LOOKS
from gilscope.toolkit.stats.interim_looks import (
    EVERY,
    final_confidence,
    includes_clear_cells,
    interim_confidence,
    is_look_due,
    open_pairs,
)
from gilscope.toolkit.stats.paired import conclude
from gilscope.toolkit.stats.ratios import simultaneous
from tests.benchmarks.coverage import LOOKS, compared, false_words, stopped, table
from tests.benchmarks.hostile_noise import LAST, WORKLOADS, simulate
from tests.stats.matrix import known_noise
from tests.stats.test_ratios import ratio


@given(looks=st.integers(0, 20))
def test_all_looks_together_err_no_more_than_was_allowed(looks):
    assert looks * (1 - interim_confidence()) + (1 - final_confidence(looks)) <= 0.05 + 1e-12


def test_last_look_alone_has_all():
    assert final_confidence(0) == pytest.approx(0.95)


def test_more_looks_than_planned_are_refused():
    with pytest.raises(ValueError, match="more than 20"):
        final_confidence(21)


def test_looks_become_rarer_and_are_never_more_than_the_last_has_room_for():
    looks = [rounds for rounds in range(2000) if is_look_due(rounds)]
    assert looks[:7] == [4, 6, 8, 11, 15, 20, 27]
    assert len(looks) == MOST_LOOKS


def test_a_look_on_the_way_asks_for_much_more_than_the_last():
    assert 1 - interim_confidence() < (1 - final_confidence(4)) / 80


def test_clear_cells_need_no_more_rounds_and_others_do():
    ratios = {
        "clear": ratio(log(1.9), 0.03), "equal": ratio(0.0, 0.01), "edge": ratio(0.05, 0.04), "lost": ratio(0.0, 0.5),
    }
    assert open_pairs(ratios) == {"edge", "lost"}


def test_what_the_last_look_would_call_clear_is_open_on_the_way():
    near = {0: ratio(0.05, 0.04)}   # 2.45 standard errors
    assert conclude(near[0], final_confidence(1)).verdict() == "faster"
    assert open_pairs(near) == {0}


def test_wide_cells_are_open_where_a_resolution_is_asked_for():
    ratios = {"clear": ratio(log(1.9), 0.03), "narrow": ratio(log(1.9), 0.009)}
    assert open_pairs(ratios, resolution=0.01) == {"clear"}


@pytest.mark.slow
def test_stopping_early_keeps_the_coverage_and_saves_rounds():
    # 8 tables of 80 cells: see tests/benchmarks/coverage.py for many more
    draw = random.Random(5)
    covered, rounds, false = [], [], 0
    for _ in range(8):
        made = compared(stopped([*table(draw, "normal", 12, 84)]))
        covered += [truth.covered(0.95) for truth in made]
        rounds += [truth.ratio.rounds for truth in made]
        false += false_words(made, final_confidence(len(LOOKS))) > 0
    assert 0.91 <= fmean(covered) <= 0.985
    assert fmean(rounds) < 11
    assert (min(rounds), max(rounds)) == (4, 12)
    assert false <= 2


def test_word_of_a_cell_that_was_left_alone_stays():
    table = {k: ratio(log(1.9), 0.03) if k % 2 else ratio(0.0, 0.5) for k in range(84)}
    left = table.keys() - open_pairs(table)
    assert len(left) == 42
    last = simultaneous(84, final_confidence(20))
    assert {conclude(table[k], last).verdict() for k in left} == {"faster"}


def test_clear_cells_take_part_in_every_third_round_early_on():
    assert [number for number in range(40) if includes_clear_cells(number)] == [2, 5, 8, 11]


@pytest.mark.slow
def test_cells_that_are_clear_early_are_covered_whenever_that_was():
    # True 10 % with a process sd of 3.5 %: without further rounds those clear after 4 are 4 % off, coverage 0.76.
    tally = simulate("large", "stop", tables=12, workloads=WORKLOADS, every=EVERY)
    early = [cell for rounds, cells in tally.stopped.items() if rounds < LAST for cell in cells]
    assert len(early) > 50
    assert fmean(covered for _, covered in early) > 0.9
    alone = simulate("large", "stop", tables=12, workloads=WORKLOADS, every=0)
    biases = [fmean(bias for rounds in (4, 6) for bias, _ in each.stopped.get(rounds, ())) for each in (tally, alone)]
    assert biases[0] < 0.85 * biases[1]


def test_a_pair_that_looks_calmer_than_its_group_does_not_stop_for_that():
    # Its own error is 0.5 %, the group's 0.06 * root(2 / 8) = 3 %: 8 % is beyond the floor, but not by 3.48 of them.
    calm = ratio(0.08, 0.01)
    assert open_pairs({0: calm}) == set()
    rough = known_noise(0.06).usual
    assert open_pairs({0: replace(calm, noise=rough)}) == {0}
