"""From what was measured to the verdict and its cause, with measurements of planted programs as they were recorded."""

from dataclasses import replace

import pytest

from gilscope.toolkit.scale.judgement import (
    ContendedLock,
    Doubt,
    Judgement,
    LaterLook,
    Obstacle,
    ScalingEvidence,
    ScalingVerdict,
    Span,
    after_later_looks,
    gain,
    judge,
    verdict_of_many,
)


def span(ratio, spread=0.1):
    return Span(ratio=ratio, lo=ratio * (1 - spread), hi=ratio * (1 + spread))


def evidence(of_ceiling=0.4, immortal=None, *, speedup=1.2, ceiling=1.9, **other):
    return ScalingEvidence(**{
        "threads": 2, "clean_seconds": 0.03, "enough": True, "of_ceiling": span(of_ceiling), "speedup": span(speedup),
        "ceiling": span(ceiling), "immortal": None if immortal is None else span(immortal), **other})


def locks(held):
    return (ContendedLock(number=7, held=held),)


SCALES, PLATEAUS, SLOWER, UNSURE = ScalingVerdict


# Threads of the ceiling, everything immortal against threads, lock seen held, from the first runs of the programs.
@pytest.mark.parametrize(("of_ceiling", "immortal", "held", "obstacle"), [
    (0.31, 3.41, 0, Obstacle.COUNTS),        # shared_object on 3.13t
    (0.21, 5.47, 0, Obstacle.COUNTS),        # container_value on 3.13t
    (0.66, 2.15, 0, Obstacle.COUNTS),        # a partial of a bound method on 3.14t
    (0.43, 2.35, 0.1, Obstacle.COUNTS),      # counts and list.append at once on 3.14t
    (0.34, 1.18, 0.86, Obstacle.LOCK),       # threading.Lock on 3.14t
    (0.51, 1.39, 0.31, Obstacle.LOCK),       # a dict that is written on 3.14t: its counts rise with the lock
    (0.51, 1.04, 0.56, Obstacle.LOCK),       # list.append on 3.14t
    (0.36, 1.08, 0, Obstacle.NOT_YOUR_OBJECTS),   # type() in a loop on 3.14t
])
def test_cause_of_a_loss(of_ceiling, immortal, held, obstacle):
    found = judge(evidence(of_ceiling, immortal, locks=locks(held) if held else ()))
    assert found == Judgement(verdict=PLATEAUS, obstacle=obstacle)


@pytest.mark.parametrize(("share", "said"), [
    (0.97, (UNSURE, Doubt.ONE_CORE)),     # common caches hide what it may lose on cores of their own
    (0.4, (PLATEAUS, None)),              # what shows there all the same is lost
])
def test_hyperthreads_of_one_core_prove_a_loss_and_never_that_there_is_none(share, said):
    seen = evidence(share, one_core=True, ceiling=1.3, speedup=1.25)
    assert verdict_of_many(seen) == said
    found = judge(seen)
    assert (found.verdict, found.doubt if found.verdict is UNSURE else None) == said


def test_on_one_core_no_cause_is_left_over_and_nothing_is_slower_than_a_whole_core():
    seen = evidence(0.4, 0.98, one_core=True, speedup=0.5, locks=locks(0.03))
    assert judge(seen) == Judgement(verdict=PLATEAUS, obstacle=Obstacle.UNKNOWN, doubt=Doubt.ONE_CORE)
    apart = replace(seen, one_core=False)
    assert judge(apart) == Judgement(verdict=SLOWER, obstacle=Obstacle.LOCK)
    assert judge(replace(seen, locks=locks(0.3))).obstacle is Obstacle.LOCK     # it was seen held


@pytest.mark.parametrize(("of_ceiling", "changed", "doubt"), [
    # Counts may explain most of a small loss, although they gain less than a quarter.
    (0.74, {"immortal": Span(ratio=1.20, lo=1.14, hi=1.26)}, Doubt.CONTRAST),
    (0.50, {"immortal": Span(ratio=1.15, lo=1.11, hi=1.19)}, None),       # a fifth of the loss at most
    (0.50, {"immortal": Span(ratio=1.18, lo=1.14, hi=1.22)}, Doubt.CONTRAST),      # the next run may blame counts
    (0.50, {"immortal": Span(ratio=0.97, lo=0.74, hi=1.27), "collected": True}, Doubt.CONTRAST),
    (0.50, {"no_collector": Span(ratio=1.8, lo=0.95, hi=2.6), "collected": True}, Doubt.COLLECTOR),
    (0.50, {"no_collector": None, "collected": True}, Doubt.COLLECTOR),                       # not measured
    (0.50, {"no_collector": Span(ratio=1.8, lo=0.95, hi=2.6), "collected": False}, None),     # it never ran
    (0.50, {"no_collector": Span(ratio=1.2, lo=1.05, hi=1.35), "collected": True}, None),     # a third of the loss
])
def test_nothing_is_acquitted_that_its_interval_does_not_acquit(of_ceiling, changed, doubt):
    found = judge(replace(evidence(of_ceiling, 1.0), **changed))
    assert found == Judgement(verdict=PLATEAUS, doubt=doubt,
                              obstacle=Obstacle.UNKNOWN if doubt else Obstacle.NOT_YOUR_OBJECTS)


@pytest.mark.parametrize(("of_ceiling", "ceiling", "obstacle"), [
    (1.05, 1.9, Obstacle.NONE), (0.91, 1.9, Obstacle.NONE), (0.95, 1.1, Obstacle.HARDWARE)])
def test_nothing_is_blamed_where_threads_reach_the_ceiling(of_ceiling, ceiling, obstacle):
    # Although immortality gains a little, and whatever lock is seen held.
    found = judge(evidence(of_ceiling, 1.3, ceiling=ceiling, locks=locks(0.9)))
    assert found == Judgement(verdict=SCALES, obstacle=obstacle)


def test_one_slow_moment_of_the_processes_is_no_low_ceiling():
    # `pages_mapped` on a shared machine: 1.2 of two processes, while threads reached 1.2 [0.9, 1.5].
    wide = Span(ratio=1.2, lo=0.9, hi=1.5)
    low = evidence(0.95, 1.0, ceiling=1.2, speedup=1.2)
    assert judge(low).obstacle is Obstacle.HARDWARE
    for name in ("speedup", "ceiling"):
        assert judge(replace(low, **{name: wide})) == Judgement(
            verdict=SCALES, obstacle=Obstacle.UNKNOWN, doubt=Doubt.HARDWARE)
    far_from_low = replace(wide, ratio=1.55)
    assert judge(replace(low, ceiling=far_from_low)) == Judgement(verdict=SCALES, obstacle=Obstacle.NONE)


def test_hardware_is_blamed_only_if_later_looks_agree():
    low = Judgement(verdict=SCALES, obstacle=Obstacle.HARDWARE)
    opened = replace(low, obstacle=Obstacle.UNKNOWN, doubt=Doubt.HARDWARE)
    for speedup, told in ((1.2, low), (1.35, low), (1.45, opened)):      # of 1.4, with an interval of 10 %
        later = tuple(LaterLook(of_ceiling=span(1.0), speedup=span(each)) for each in (1.1, speedup))
        assert after_later_looks(low, evidence(0.95, 1.0, ceiling=1.2, speedup=1.2, later=later)) == told


@pytest.mark.parametrize(("speedup", "verdict"), [(0.6, SLOWER), (0.92, SLOWER), (0.97, PLATEAUS)])
def test_threads_are_slower_than_one_unless_a_later_look_is_not(speedup, verdict):
    slower = Judgement(verdict=SLOWER, obstacle=Obstacle.COUNTS)
    later = (LaterLook(of_ceiling=span(0.4), speedup=span(speedup)),)      # with an interval of 10 %
    assert after_later_looks(slower, evidence(0.4, 2.0, speedup=0.7, later=later)) == replace(slower, verdict=verdict)


def test_lock_that_waiters_yield_their_cores_for_is_blamed_if_even_disturbed_calls_show_its_cost():
    seen = evidence(enough=False, of_ceiling=0.0, locks=locks(0.6), disturbed=span(0.5), disturbed_immortal=span(1.0))
    seen = replace(seen, of_ceiling=None)
    assert judge(seen) == Judgement(verdict=PLATEAUS, obstacle=Obstacle.LOCK)
    for changed in ({"disturbed": span(0.7)}, {"disturbed": None}, {"locks": locks(0.1)}, {"locks": ()},
                    {"disturbed_immortal": span(1.6)}):      # too near, not seen often, or counts may cost it
        assert judge(replace(seen, **changed)).doubt is Doubt.FEW_CLEAN
        assert judge(replace(seen, **changed)).verdict is UNSURE


@pytest.mark.parametrize(("of_ceiling", "verdict", "doubt"), [
    (Span(ratio=0.82, lo=0.80, hi=0.84), SCALES, None), (Span(ratio=0.78, lo=0.76, hi=0.79), PLATEAUS, None),
    (Span(ratio=0.82, lo=0.79, hi=0.85), UNSURE, Doubt.NEAR), (Span(ratio=0.78, lo=0.75, hi=0.81), UNSURE, Doubt.NEAR),
    (Span(ratio=0.86, lo=0.75, hi=0.99), SCALES, None), (Span(ratio=0.74, lo=0.65, hi=0.84), PLATEAUS, None),
    (Span(ratio=0.82, lo=0.72, hi=0.94), UNSURE, Doubt.WIDE), (Span(ratio=0.78, lo=0.68, hi=0.89), UNSURE, Doubt.WIDE)])
def test_near_the_threshold_the_whole_interval_decides(of_ceiling, verdict, doubt):
    found = judge(replace(evidence(), of_ceiling=of_ceiling))
    assert (found.verdict, found.doubt if verdict is UNSURE else None) == (verdict, doubt)


@pytest.mark.parametrize(("immortal", "obstacle"), [
    (Span(ratio=1.3, lo=1.2, hi=1.4), Obstacle.COUNTS), (Span(ratio=1.1, lo=1.0, hi=1.2), Obstacle.UNKNOWN),
    (None, Obstacle.UNKNOWN)])
def test_counts_are_in_the_way_of_what_is_lost_near_the_threshold(immortal, obstacle):
    near = replace(evidence(), of_ceiling=Span(ratio=0.79, lo=0.75, hi=0.83), immortal=immortal)
    assert judge(near) == Judgement(verdict=UNSURE, obstacle=obstacle, doubt=Doubt.NEAR)


def test_estimate_alone_does_not_say_that_threads_scale_which_gain_a_quarter_from_immortality():
    # `enum_member` on 3.13t: the next run said that it does not scale.
    seen = evidence(0.86, 1.29)
    assert judge(seen) == Judgement(verdict=UNSURE, obstacle=Obstacle.COUNTS, doubt=Doubt.NEAR)
    for changed in ({"immortal": span(1.2)}, {"immortal": span(1.3, 0.3)}, {"immortal": None},
                    {"of_ceiling": span(0.86, 0.05)}):
        assert judge(replace(seen, **changed)).verdict is SCALES


def test_threads_that_seem_to_scale_and_gain_much_from_immortality_are_unsure():
    assert judge(evidence(0.95, 3.0)) == Judgement(
        verdict=UNSURE, obstacle=Obstacle.UNKNOWN, doubt=Doubt.SURPRISE)
    assert judge(evidence(0.95, 1.3)).verdict is SCALES      # counts cost something, too, where nobody contends
    wide = replace(evidence(0.95), immortal=Span(ratio=1.6, lo=1.1, hi=2.3))
    assert judge(wide).verdict is SCALES


def test_less_than_one_thread_gets_slower():
    assert judge(evidence(0.3, 3.0, speedup=0.6)).verdict is SLOWER
    assert judge(evidence(0.3, 3.0, speedup=0.9)).verdict is PLATEAUS     # the interval includes 0.95


@pytest.mark.parametrize(("changed", "doubt"), [
    ({"enough": False}, Doubt.FEW_CLEAN),
    ({"of_ceiling": None}, Doubt.FEW_CLEAN),
    ({"of_ceiling": Span(ratio=0.85, lo=0.5, hi=1.3)}, Doubt.WIDE),
    ({"of_ceiling": Span(ratio=0.75, lo=0.5, hi=1.1)}, Doubt.WIDE),
])
def test_too_little_to_tell_is_unsure_and_blames_nothing(changed, doubt):
    found = judge(replace(evidence(0.5, 3.0, locks=locks(0.9)), **changed))
    assert found == Judgement(verdict=UNSURE, obstacle=Obstacle.UNKNOWN, doubt=doubt)


def test_collector_is_blamed_if_it_ran_and_threads_are_faster_without_it():
    without = {"no_collector": span(1.9), "immortal_beside": 1.0}
    assert judge(evidence(0.5, 1.9, collected=True, **without)).obstacle is Obstacle.COLLECTOR
    assert judge(evidence(0.5, 1.9, collected=False, **without)).obstacle is Obstacle.COUNTS     # it never ran
    # Types that are made and dropped are collected, too, but most of the loss is another's.
    assert judge(evidence(0.45, 1.0, collected=True, no_collector=span(1.4), immortal_beside=1.0)).obstacle \
        is Obstacle.NOT_YOUR_OBJECTS
    # Immortality gains more than the collector costs: counts are in the way.
    assert judge(evidence(0.3, 3.0, collected=True, no_collector=span(1.3), immortal_beside=2.3)).obstacle \
        is Obstacle.COUNTS


@pytest.mark.parametrize("refused", [Doubt.REFUSED, Doubt.RESULTS])
def test_without_immortality_counts_are_neither_blamed_nor_acquitted(refused):
    assert judge(evidence(0.4, refused=refused)) == Judgement(
        verdict=PLATEAUS, obstacle=Obstacle.UNKNOWN, doubt=refused)
    assert judge(evidence(0.4, refused=refused, locks=locks(0.5))).obstacle is Obstacle.LOCK


def test_gain_that_may_be_none_is_in_doubt():
    wide = replace(evidence(0.5), immortal=Span(ratio=1.4, lo=0.9, hi=2.1))
    assert judge(wide).doubt is Doubt.CONTRAST
    # Nothing was gained, but a gain is not excluded.
    assert judge(evidence(0.5, immortal=1.2)) == Judgement(
        verdict=PLATEAUS, obstacle=Obstacle.UNKNOWN, doubt=Doubt.CONTRAST)


def test_counts_that_surely_explain_little_of_a_large_loss_are_not_what_is_in_the_way():
    # next() of a shared itertools.count on 3.14t: its number is changed by an atomic instruction, too.
    seen = replace(evidence(0.22), immortal=Span(ratio=1.3, lo=1.0, hi=1.6))
    assert judge(seen) == Judgement(verdict=PLATEAUS, obstacle=Obstacle.NOT_YOUR_OBJECTS)
    assert judge(replace(seen, immortal=Span(ratio=1.3, lo=0.9, hi=1.9))).doubt is Doubt.CONTRAST


def test_lock_that_is_seldom_seen_because_threads_seldom_run_leaves_the_cause_open():
    # The cell of a decorator on 3.13t, at a load of 7: 0.027 of the samples, 0.09 of those while its threads had cores.
    seen = evidence(0.54, 0.78, locks=locks(0.027))
    assert judge(replace(seen, on_cores=0.3)) == Judgement(
        verdict=PLATEAUS, obstacle=Obstacle.UNKNOWN, doubt=Doubt.YIELDING)
    assert judge(replace(seen, locks=locks(0.002), on_cores=0.3)).obstacle is Obstacle.NOT_YOUR_OBJECTS


def test_lock_that_is_seldom_held_is_in_the_way_where_nothing_else_is_left():
    seen = evidence(0.44, 0.98, locks=locks(0.033))
    assert judge(seen).obstacle is Obstacle.LOCK
    assert judge(replace(seen, locks=locks(0.008))).obstacle is Obstacle.NOT_YOUR_OBJECTS
    assert judge(replace(seen, immortal=span(2.2))).obstacle is Obstacle.COUNTS


# functools.singledispatch on 3.13t, whose cell was locked in 1.5 % of samples in one run and in 5.5 % in another.
def test_one_run_does_not_blame_a_lock_that_another_acquits():
    seen = evidence(0.55, 1.09, locks=locks(0.015))
    assert judge(seen) == Judgement(verdict=PLATEAUS, obstacle=Obstacle.UNKNOWN, doubt=Doubt.SELDOM)
    assert judge(replace(seen, locks=locks(0.055))).obstacle is Obstacle.LOCK


# type() in a loop on 3.14t: the dictionary in which a class keeps its subclasses, locked in 2 to 6 % of samples.
@pytest.mark.parametrize("held", [0.02, 0.06])
def test_lock_without_a_name_is_not_the_programs(held):
    unnamed = tuple(replace(each, named=False) for each in locks(held))
    seen = evidence(0.4, 1.02, locks=unnamed)
    assert judge(seen) == Judgement(verdict=PLATEAUS, obstacle=Obstacle.NOT_YOUR_OBJECTS)
    assert judge(replace(seen, locks=(*unnamed, *locks(0.055)))).obstacle is Obstacle.LOCK     # which has one
    assert judge(replace(seen, locks=(replace(*unnamed, held=0.3),))).obstacle is Obstacle.LOCK     # of what, it says


def test_gain_is_the_share_of_the_loss():
    assert gain(0.7, 0.4, 1.0) == pytest.approx(0.5)
    assert gain(1.2, 0.4, 1.0) == pytest.approx(4 / 3)     # counting alone costs, too
    assert gain(0.7, 1.0, 1.0) == 0.0


@pytest.mark.parametrize(("lo", "hi", "verdict"), [
    (0.80, 1.10, SCALES), (0.79, 1.10, UNSURE), (0.70, 0.80, UNSURE), (0.70, 0.79, PLATEAUS), (0.81, 0.85, SCALES),
])
def test_among_hundreds_the_interval_alone_decides(lo, hi, verdict):
    found, _ = verdict_of_many(replace(evidence(), of_ceiling=Span(ratio=(lo + hi) / 2, lo=lo, hi=hi)))
    assert found is verdict


@pytest.mark.parametrize("width", [0.02, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("true", [0.7, 0.78, 0.8, 0.82, 0.9])
def test_intervals_that_contain_the_truth_never_contradict_each_other(true, width):
    spans = [Span(ratio=middle, lo=middle - width, hi=middle + width)
             for middle in (true - width + step * width / 10 for step in range(21))]
    verdicts = {verdict_of_many(replace(evidence(), of_ceiling=each))[0] for each in spans}
    assert not {SCALES, PLATEAUS} <= verdicts


@pytest.mark.parametrize(("disturbed", "verdict"), [(0.5, PLATEAUS), (0.68, UNSURE), (1.0, UNSURE)])
def test_disturbed_calls_tell_a_loss_and_never_that_there_is_none(disturbed, verdict):
    seen = replace(evidence(enough=False), of_ceiling=span(1.0), disturbed=span(disturbed))
    assert verdict_of_many(seen)[0] is verdict
