"""Which calls count: those in which every thread had its core, at the same time."""

import pytest

from gilscope.toolkit.scale.throughput import CleanCalls, clean_calls, pooled

MS = 1_000_000


def measured(*threads, calls=10):
    """Return a measurement; a thread is (begin, end, ms without a core) of each chunk, in milliseconds."""
    return {"rows": [[(begin * MS, end * MS, (end - begin - queued) * MS, queued * MS) for begin, end, queued in thread]
                     for thread in threads],
            "calls": calls, "system": 0, "switches": 0, "collections": 0}


def test_all_calls_count_if_all_threads_run():
    found = clean_calls(measured([(0, 1, 0), (1, 2, 0)], [(0, 1, 0), (1, 2, 0)]))
    assert found.calls == 40
    assert found.clean_seconds == pytest.approx(0.002)
    assert found.rate == pytest.approx(40 / 0.002)


def test_calls_do_not_count_while_another_thread_waits_for_a_core():
    # The second thread had no core for most of its second chunk: the first ran alone then, and met nobody.
    found = clean_calls(measured([(0, 1, 0), (1, 2, 0)], [(0, 1, 0), (1, 2, 0.8)]))
    assert found.calls == 20
    assert found.queued_share == pytest.approx(0.2)


def test_calls_beside_a_thread_that_has_not_begun_do_not_count():
    assert clean_calls(measured([(0, 1, 0), (1, 2, 0)], [(1, 2, 0)])).calls == 20


def test_a_single_thread_needs_nobody_beside_it():
    assert clean_calls(measured([(0, 1, 0), (1, 2, 0.5)])).calls == 10


def test_nothing_clean_is_no_rate():
    found = clean_calls(measured([(0, 1, 0.5)], [(0, 1, 0.5)]))
    assert (found.rate, found.enough()) == (0.0, False)


def test_all_calls_have_a_rate_without_the_time_that_threads_lacked_a_core():
    found = clean_calls(measured([(0, 1, 0), (1, 3, 1)], [(0, 1, 0), (1, 3, 1)]))
    assert found.rate_on_cores == pytest.approx(40 / 0.002)
    assert clean_calls(measured([(0, 1, 1)])).rate_on_cores == 0.0
    assert pooled([found, found]).rate_on_cores == pytest.approx(40 / 0.002)


def test_pooled_measurements_weigh_by_their_clean_time():
    long = CleanCalls(threads=2, calls=1000, spent=20 * MS)
    short = CleanCalls(threads=2, calls=10, spent=MS)
    assert pooled([long, short]).rate == pytest.approx(2 * 1010 / 0.021)
    with pytest.raises(ValueError, match="no measurement"):
        pooled([])
