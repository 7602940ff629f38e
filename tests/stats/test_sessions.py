"""Ratios over sessions: what the intervals cover, and what the variances between sessions are estimated from."""

import random
from math import exp, inf, log
from statistics import fmean

import pytest

from gilscope.toolkit.stats.distributions import t_quantile
from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.noise import Noise
from gilscope.toolkit.stats.noise_floor import checked_noise
from gilscope.toolkit.stats.ratios import Ratio, compare
from gilscope.toolkit.stats.sessions import (
    JOINT_SHARE,
    JointShift,
    OwnDeviation,
    SessionRatio,
    confidences,
    joint_shift,
    own_deviation,
)
from tests.benchmarks.sessions import Tally, table
from tests.stats.matrix import session_levels

EXACT = Noise(spread=0.01, prior=inf, residuals=(), draws=0)   # a noise that is known, so that t is normal


def ratio(center, error=0.01, rounds=4):
    return Ratio(center=center, error=error, rounds=rounds, noise=EXACT)


def family(rows, error=0.01):
    """A pair for each row of centers, one a session; each with its own baseline."""
    return {((row, 0), (row, 1)): {s: ratio(center, error) for s, center in enumerate(centers)}
            for row, centers in enumerate(rows)}


def test_estimate_is_the_mean_of_the_sessions_however_many_rounds_each_has():
    found = SessionRatio(parts=(ratio(0.1, rounds=4), ratio(0.3, rounds=40)))
    assert found.center == pytest.approx(0.2)
    assert (found.rounds, found.sessions) == (44, 2)


def test_two_sessions_are_about_these_two():
    found = SessionRatio(parts=(ratio(0.1), ratio(0.3)))   # far apart, and nothing says whether that is usual
    assert found.half(0.95) == pytest.approx(1.959964 * 0.01 / 2**0.5, rel=1e-4)


def test_joint_shift_is_that_of_the_mean_of_the_pairs():
    shift = joint_shift(family([[0.1, 0.2, 0.3], [0.5, 0.6, 0.7]]))
    assert (shift.variance, shift.freedom, shift.pairs) == (pytest.approx(0.01), 2, 2)
    assert shift.half(0.95, 3) == pytest.approx(t_quantile(0.95, 2) * 0.1 / 3**0.5)
    assert t_quantile(0.95, 2) == pytest.approx(4.303, abs=1e-3)


def test_what_all_pairs_have_in_common_is_no_deviation_of_their_own():
    alike = family([[0.1, 0.2, 0.3], [0.5, 0.6, 0.7], [0.2, 0.3, 0.4]], error=0.001)
    assert own_deviation([alike], {}).variance == 0
    # Without a shift of the family, the same differences are the pairs' own.
    assert own_deviation([], alike).variance == pytest.approx(0.01, rel=0.01)


@pytest.mark.parametrize("error", [0.0, 0.004, 0.02])
def test_own_deviation_is_what_the_errors_do_not_explain(error):
    draw = random.Random(1)
    rows = [[draw.gauss(0, 0.01) + draw.gauss(0, error) for _ in range(5)] for _ in range(400)]
    found = own_deviation([family(rows, error)], {})
    assert found.variance**0.5 == pytest.approx(0.01, rel=0.15)
    assert 0 < found.uncertainty < found.variance**2


def test_deviation_of_a_shared_baseline_is_counted_once():
    draw = random.Random(2)
    pairs = {}
    for baseline in range(60):
        shared = [draw.gauss(0, 0.01) for _ in range(3)]
        for arm in range(6):
            pairs[baseline, (baseline, arm)] = {s: ratio(shared[s] - draw.gauss(0, 0.01), 0.0) for s in range(3)}
    # Two deviations of 1 % make one of 1.41 %.
    assert own_deviation([pairs], {}).variance**0.5 == pytest.approx(0.0141, rel=0.1)


def test_deviation_of_the_only_baseline_is_in_the_joint_shift():
    draw = random.Random(4)
    shared = [draw.gauss(0, 0.01) for _ in range(200)]
    pairs = {(0, arm): {s: ratio(shared[s] - draw.gauss(0, 0.01), 0.0) for s in range(200)} for arm in range(1, 7)}
    # Its part of the pairs' variance is expected nowhere else: otherwise the estimate would be a quarter of it.
    assert own_deviation([pairs], {}).variance**0.5 == pytest.approx(0.0141, rel=0.1)


def test_single_pair_knows_its_sessions_and_nothing_else():
    alone = family([[0.1, 0.2, 0.3]], error=0.001)
    own, shift = own_deviation([alone], {}), joint_shift(alone)
    assert own.uncertainty == inf
    found = SessionRatio(parts=tuple(next(iter(alone.values())).values()), own=own, shifts=(shift,),
                         joint_confidence=(0.95,))
    assert found.half(0.95) == pytest.approx(shift.half(0.95, 3))   # Student's t of three numbers
    # Without a shift, nothing is known of how sessions differ.
    assert SessionRatio(parts=found.parts, own=own).interval() == (0.0, inf)


def test_interval_is_never_narrower_than_that_of_the_sessions_alone():
    calm = JointShift(variance=0.0, freedom=2, pairs=2)
    found = SessionRatio(parts=(ratio(0.1), ratio(0.1), ratio(0.1)), shifts=(calm,), joint_confidence=(0.98,),
                         own=OwnDeviation(variance=0.0, uncertainty=1e-12))
    assert found.half(0.95) >= SessionRatio(parts=found.parts).half(0.95)


def test_verdict_adds_the_joint_part_at_its_own_share_of_the_error():
    shift = JointShift(variance=0.02**2, freedom=2, pairs=1000)
    found = SessionRatio(parts=(ratio(0.3), ratio(0.3), ratio(0.3)), shifts=(shift,), joint_confidence=(0.98,),
                         own=OwnDeviation(variance=0.0, uncertainty=0.0))
    own = SessionRatio(parts=found.parts).half(0.999)
    lo, _ = found.between(0.999)
    assert lo == pytest.approx(exp(0.3 - own - t_quantile(0.98, 2) * 0.02 / 3**0.5), rel=1e-3)


def test_shares_of_a_tables_error_add_up():
    own, workers, builds = confidences(0.95, 2, workers=True)
    assert (1 - own) + (1 - workers) + 2 * (1 - builds) == pytest.approx(0.05)
    assert 1 - own == pytest.approx(0.05 * (1 - JOINT_SHARE))
    own, workers, _ = confidences(0.95, 0, workers=True)   # one build: the shift of workers has all of that part
    assert (1 - own) + (1 - workers) == pytest.approx(0.05)


def test_pairs_have_all_of_the_error_where_nothing_shifts():
    assert confidences(0.95, 0, workers=False)[0] == pytest.approx(0.95)


def test_session_that_lacks_a_pair_is_no_session_of_it():
    pairs = family([[0.1, 0.2, 0.3], [0.5, 0.6, 0.7], [0.2, 0.3, 0.4]])
    first = next(iter(pairs))
    del pairs[first][2]
    assert joint_shift(pairs).variance == pytest.approx(0.01)   # the others know the shift


def coverage(kind, sessions, tables):
    tally = Tally()
    for seed in range(tables):
        table(kind, sessions, seed, tally, draws=0)
    return tally


@pytest.mark.slow
def test_three_sessions_cover_another_one():
    together = coverage("joint 2 %", 3, 60)
    assert fmean(together.covered) >= 0.93
    assert fmean(together.false_tables) <= 0.05
    assert fmean(together.words[log(1.35)]) >= 0.95
    alone = coverage("joint 2 %", 1, 30)   # one session by itself does not
    assert fmean(alone.covered) < 0.75


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nothing", "own 1 %"])
def test_three_sessions_cover_the_truth_without_a_joint_shift(kind):
    found = coverage(kind, 3, 40)
    assert fmean(found.covered) >= 0.93
    assert fmean(found.false_tables) <= 0.05


def test_differences_between_sessions_are_no_noise_of_processes():
    draw = random.Random(4)
    (sessions,) = session_levels(draw, "joint 2 % + own 1 %", [dict.fromkeys(range(12), 0.0)], range(1, 12),
                                 sessions=3, rounds=6, spread=0.005)
    logs = [RoundLogs(levels=each) for each in sessions]
    arms = RoundLogs(levels={(arm, s): rounds for s, each in enumerate(sessions) for arm, rounds in each.items()})
    noises, _ = checked_noise({0: arms}, {0: []}, draws=0)
    assert noises[0].spread == pytest.approx(0.005, rel=0.15)
    assert compare(logs[0], noises[0], 0, 1).rounds == 6


def test_sessions_that_no_pair_connects_are_centred_apart():
    def seen(center):
        return Ratio(center=center, error=0.01, rounds=4, noise=Noise(spread=0.01, prior=10.0, residuals=(), draws=0))

    family = {"a": {0: seen(0.0), 1: seen(0.02)}, "b": {2: seen(0.5), 3: seen(0.54)}}
    shift = joint_shift(family)
    assert shift.freedom == 2   # four sessions in two blocks
    assert shift.variance == pytest.approx((2 * 0.01**2 + 2 * 0.02**2) / 2)


def test_own_deviation_of_sessions_that_no_pair_connects_is_unbiased():
    """Two blocks have a shift each, and lose two degrees of freedom; as one, the estimate would be a fifth too low."""
    draw, found = random.Random(5), []
    for _ in range(60):
        first, second = ([[draw.gauss(0, 0.02) for _ in range(3)] for _ in range(4)] for _ in range(2))
        pairs = family(first, 1e-6) | {
            ((row + 4, 0), (row + 4, 1)): {s + 3: ratio(center, 1e-6) for s, center in enumerate(centers)}
            for row, centers in enumerate(second)}
        found.append(own_deviation([pairs], {}).variance)
    assert fmean(found) == pytest.approx(0.0004, rel=0.1)
