"""Which calls count: those in which every thread had its core, at the same time."""

import random
from math import exp, inf

import pytest

from gilscope.toolkit.scale.scaling_rounds import ONE, PROCESSES, THREADS, CpuPlacement, RoundCalls
from gilscope.toolkit.scale.throughput import CleanCalls, apart_or_all, clean_calls, near_limit, pooled

MS = 1_000_000


def measured(*threads, calls=10, one_core=False, handoff=0.0):
    """Return a measurement; a thread is (begin, end, ms without a core) of each chunk, in milliseconds."""
    return {"rows": [[(begin * MS, end * MS, (end - begin - queued) * MS, queued * MS) for begin, end, queued in thread]
                     for thread in threads],
            "calls": calls, "system": 0, "switches": 0, "collections": 0, "one_core": one_core, "handoff": handoff}


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


def test_measurements_on_hyperthreads_of_one_core_count_if_there_are_no_others():
    apart = clean_calls(measured([(0, 1, 0)], [(0, 1, 0)]))
    together = clean_calls(measured([(0, 1, 0)], [(0, 1, 0)], calls=30, one_core=True))
    assert apart_or_all([together, apart]) == [apart]
    assert apart_or_all([together, together]) == [together, together]


def test_round_on_one_core_is_left_out_where_other_rounds_were_not():
    quick = {"spent": 20 * MS, "lasted": 20 * MS}
    alone = {number: CleanCalls(threads=2, calls=1000 + number, **quick) for number in range(4)}
    half = {number: CleanCalls(threads=2, calls=500 + 7 * number, **quick) for number in range(4)}
    hidden = CleanCalls(threads=2, calls=1000, one_core=1, **quick)
    rounds = RoundCalls({PROCESSES: alone | {4: hidden}, THREADS: half | {4: hidden}})
    assert rounds.placement is CpuPlacement.NEAR
    assert rounds.span(PROCESSES, THREADS) == RoundCalls({PROCESSES: alone, THREADS: half}).span(PROCESSES, THREADS)
    assert rounds.total(THREADS).calls == sum(each.calls for each in half.values())


def test_rounds_that_slow_parallel_calls_widen_only_what_is_against_one_thread():
    draw = random.Random(1)
    slow = [draw.gauss(0, 0.2) for _ in range(8)]

    def calls(threads, size):
        return {number: CleanCalls(threads=threads, calls=round(10_000 * exp(draw.gauss(0, 0.005) + size * each)),
                                   spent=20 * MS, lasted=20 * MS) for number, each in enumerate(slow)}

    rounds = RoundCalls({ONE: calls(1, 0), PROCESSES: calls(2, 1), THREADS: calls(2, 1)})
    alike, unlike = rounds.span(PROCESSES, THREADS), rounds.span(ONE, THREADS)
    assert alike.hi / alike.lo < 1.05
    assert unlike.hi / unlike.lo > 1.2


def test_round_on_far_cpus_is_left_out_where_enough_others_were_near():
    def timed(calls, handoff, rounds):
        return {number: CleanCalls(threads=2, calls=calls + 7 * number, spent=20 * MS, lasted=20 * MS, handoff=handoff)
                for number in rounds}

    near, far = range(4), range(4, 8)
    alone = timed(1000, 26.0, near) | timed(1000, 160.0, far)
    shared = timed(800, 26.0, near) | timed(300, 160.0, far)
    limit = near_limit([*[26.0] * 8, *[160.0] * 8, 0.0])
    assert limit == 52.0
    rounds = RoundCalls({PROCESSES: alone, THREADS: shared}, limit)
    assert rounds.placement is CpuPlacement.NEAR
    assert rounds.span(PROCESSES, THREADS).ratio == pytest.approx(0.8, abs=0.02)
    assert rounds.far().span(PROCESSES, THREADS).ratio == pytest.approx(0.32, abs=0.02)
    assert sorted(set(rounds.far().handoffs())) == [160.0]
    few = RoundCalls({PROCESSES: alone, THREADS: timed(300, 160.0, range(8))}, limit)      # threads never were near
    assert few.placement is CpuPlacement.FAR
    assert few.span(PROCESSES, THREADS).ratio == pytest.approx(0.32, abs=0.02)


def test_near_measurements_count_alone_if_enough_rounds_have_them_in_common():
    """Where CPUs move within rounds, each mode may have been near in other rounds than the next."""
    def timed(calls, near):
        return {number: CleanCalls(threads=2, calls=calls + 7 * number, spent=200 * MS, lasted=200 * MS,
                                   handoff=26.0 if number in near else 160.0) for number in range(8)}

    apart = RoundCalls({PROCESSES: timed(1000, {0, 1, 2, 3}), THREADS: timed(500, {4, 5, 6, 7})}, 52.0)
    assert apart.placement is CpuPlacement.FAR
    assert apart.span(PROCESSES, THREADS) is not None
    common = RoundCalls({PROCESSES: timed(1000, {0, 1, 2, 3}), THREADS: timed(500, {1, 2, 3, 4})}, 52.0)
    assert common.placement is CpuPlacement.NEAR
    assert common.span(PROCESSES, THREADS) is not None


def test_nothing_is_far_where_no_time_is_known():
    assert near_limit([]) == near_limit([0.0]) == inf


def test_time_of_a_cache_line_is_of_two_threads_alone():
    one = (0, 1, 0)
    assert clean_calls(measured([one], [one], handoff=26.0)).handoff == 26.0
    assert clean_calls(measured([one], [one], [one], handoff=26.0)).handoff == 0.0
    assert pooled([clean_calls(measured([one], [one], handoff=each)) for each in (26.0, 0.0, 160.0)]).handoff == 160.0


def test_rounds_on_one_core_count_where_there_is_no_other():
    def hidden(calls):
        return {number: CleanCalls(threads=2, calls=calls + number, spent=20 * MS, lasted=20 * MS, one_core=1)
                for number in range(4)}

    rounds = RoundCalls({PROCESSES: hidden(1000), THREADS: hidden(900)})
    assert rounds.placement is CpuPlacement.ONE_CORE
    assert rounds.enough([PROCESSES, THREADS])
    assert rounds.span(PROCESSES, THREADS).ratio == pytest.approx(0.9, abs=0.01)


def test_rounds_on_one_core_count_until_enough_are_not():
    """One short measurement elsewhere, or one that nobody recognised, is no reason to drop all others."""
    hidden = {number: CleanCalls(threads=2, calls=900 + number, spent=20 * MS, lasted=20 * MS, one_core=1)
              for number in range(4)}
    short = {4: CleanCalls(threads=2, calls=100, spent=2 * MS, lasted=2 * MS)}
    rounds = RoundCalls({PROCESSES: hidden | short, THREADS: hidden | short})
    assert rounds.placement is CpuPlacement.ONE_CORE
    assert rounds.enough([PROCESSES, THREADS])
