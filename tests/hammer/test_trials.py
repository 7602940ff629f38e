"""The order of calls, and what counts as a difference."""

import threading

import pytest

from gilscope.toolkit.hammer.meeting import run_in_turn
from gilscope.toolkit.hammer.trials import CallResults, Trial, difference, drawn, state_entry


def order_of(order, threads=3, rounds=8):
    """Return (the calls as they were made, as (row, round), the number of threads that made them)."""
    made, who = [], set()

    def call(row, number):
        made.append((row, number))
        who.add(threading.get_ident())

    run_in_turn([[lambda row=row, number=number: call(row, number) for number in range(rounds)]
                 for row in range(threads)], order)
    return made, len(who)


BY_ROUND = [(row, number) for number in range(8) for row in range(3)]


def test_one_thread_goes_by_rounds():
    assert order_of("one") == (BY_ROUND, 1)


def test_turns_keep_the_order_and_change_the_thread():
    assert order_of("turns") == (BY_ROUND, 3)


def test_whole_makes_all_of_a_thread_first():
    made, who = order_of("whole")
    assert made == [(row, number) for row in (2, 1, 0) for number in range(8)]
    assert who == 3


def test_mixed_keeps_each_threads_order_and_makes_every_call_once():
    made, who = order_of("mixed")
    assert sorted(made) == sorted(BY_ROUND)
    assert all([number for row, number in made if row == each] == [*range(8)] for each in range(3))
    assert made not in (BY_ROUND, sorted(BY_ROUND))
    assert who == 3


def results(*rounds, state=()):
    return CallResults(rounds, state).plain()


ONE = object()
EIGHT, SEVEN = (state_entry("total() gives", number) for number in (8, 7))


@pytest.mark.parametrize(("one", "several", "what"), [
    (results([1, 2, 2]), results([2, 1, 2]), None),              # in another order
    (results([1, 2, 3]), results([1, 2, 2]), "results"),         # one lost
    (results([1], [2]), results([1]), None),                     # there was no time for the second round
    (results([1], [2]), results([1], [3]), "results"),
    (results([None], state=[EIGHT]), results([None], state=[EIGHT]), None),
    (results([None], state=[EIGHT]), results([None], state=[SEVEN]), "state"),
    (results([ONE, ONE]), results([ONE, ONE]), None),
    (results([ONE, ONE]), results([object(), object()]), "objects"),
    (results([object(), object()]), results([object(), object()]), None),   # one thread gets two objects as well
])
def test_difference(one, several, what):
    found = difference(one, several)
    assert (found and found["what"]) == what


def test_equal_objects_need_not_be_one_where_that_does_not_count():
    assert difference(results([ONE, ONE]), results([object(), object()]), objects=False) is None


def test_mix_draws_few_functions_the_same_ones_for_a_seed():
    trials = [Trial(kind="mix", threads=2, rounds=1, seed=seed) for seed in range(50)]
    names = [*"abcdefgh"]
    assert [drawn(each, names) for each in trials] == [drawn(each, names) for each in trials]
    assert {len(drawn(each, names)) for each in trials} == {2, 3, 8}
    assert {*"abcdefgh"} == {name for each in trials for name in drawn(each, names)[:2]}


@pytest.mark.parametrize(("value", "number"), [
    (8, 8), (-0.5, -0.5), (2**60, None), (float("nan"), None), (float("inf"), None), (True, None), ("8", None),
    (None, None)])
def test_state_keeps_numbers_to_compare_them(value, number):
    entry = state_entry("total() gives", value)
    assert (entry["name"], entry["value"], entry["number"]) == ("total() gives", repr(value), number)
