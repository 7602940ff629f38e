from statistics import fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gilscope.toolkit.stats.estimators import hodges_lehmann, huber, trimmed_mean

NUMBERS = st.lists(st.floats(-10, 10), min_size=1, max_size=12)


def test_hodges_lehmann_is_the_median_of_the_means_of_pairs():
    # 1, 2, 6: means 1, 1.5, 3.5, 2, 4, 6 -> ordered 1, 1.5, 2, 3.5, 4, 6 -> between 2 and 3.5
    assert hodges_lehmann([6.0, 1.0, 2.0]) == 2.75


def test_hodges_lehmann_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        hodges_lehmann([])


@pytest.mark.parametrize("estimate", [hodges_lehmann, lambda values: huber(values, 0.03)])
def test_one_slow_process_of_six_moves_the_estimate_little(estimate):
    calm = [0.0, 0.01, -0.01, 0.02, -0.02]
    assert abs(estimate([*calm, 0.3])) < 0.01 < fmean([*calm, 0.3])


@pytest.mark.parametrize("estimate", [hodges_lehmann, lambda values: huber(values, 1.0), trimmed_mean])
@given(values=NUMBERS, shift=st.floats(-5, 5))
def test_estimates_move_with_the_values_and_turn_with_them(estimate, values, shift):
    assert estimate([value + shift for value in values]) == pytest.approx(estimate(values) + shift, abs=1e-3)
    assert estimate([-value for value in values]) == pytest.approx(-estimate(values), abs=1e-3)
    assert min(values) - 1e-9 <= estimate(values) <= max(values) + 1e-9


@given(values=NUMBERS)
def test_huber_is_between_the_mean_and_the_median_cut_off(values):
    assert huber(values, float("inf")) == pytest.approx(fmean(values), abs=1e-9)
    assert huber(values, 0.0) == median(values)


@given(values=NUMBERS, cutoff=st.floats(0.01, 5))
def test_pulls_at_the_estimate_cancel(values, cutoff):
    center = huber(values, cutoff)
    pull = sum(max(-cutoff, min(value - center, cutoff)) for value in values)
    assert abs(pull) <= 1e-3 * cutoff * len(values)


def test_trimmed_mean_leaves_out_a_fifth_at_either_end():
    assert trimmed_mean([100.0, 1.0, 2.0, 3.0, -100.0]) == 2.0
    assert trimmed_mean([1.0, 2.0, 3.0, 10.0]) == 2.5   # one slow arm of four is not everybody's
    assert trimmed_mean([1.0, 10.0]) == 5.5
