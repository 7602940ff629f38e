import random
from statistics import fmean

import pytest

from gilscope.toolkit.stats.logs import RoundLogs
from gilscope.toolkit.stats.noise import pool_noise
from gilscope.toolkit.stats.ratios import compare
from gilscope.toolkit.stats.witness import MOST_BETA, adjust


def run(seed=1, *, beta=1.0, arms=10, rounds=8, parallel=0.0, loop=0.0):
    """Values and witnesses of arms whose processes meet a machine of their own speed; odd arms keep two cores busy.

    `parallel` is a true slow-down of odd arms, `loop` what their loop takes longer for the same reason.
    """
    draw = random.Random(seed)
    values, witness = {}, {}
    for arm in range(arms):
        machine = {r: draw.gauss(0, 0.05) for r in range(rounds)}
        values[arm] = {r: beta * met + draw.gauss(0, 0.01) + parallel * (arm % 2) for r, met in machine.items()}
        witness[arm] = {r: met + draw.gauss(0, 0.005) + loop * (arm % 2) for r, met in machine.items()}
    kinds = {arm: ("3.14", 1 + arm % 2) for arm in range(arms)}
    return RoundLogs(levels=values), RoundLogs(levels=witness), kinds


def spread(logs, arms):
    pairs = [(one, other) for one in arms for other in arms if one < other]
    return fmean(d * d for pair in pairs for d in logs.difference(*pair).values()) ** 0.5


@pytest.mark.parametrize("beta", [0.5, 1.0, 1.3])
def test_witness_takes_the_machine_out_of_like_arms(beta):
    values, witness, kinds = run(beta=beta)
    found = adjust(values, witness, kinds)
    assert fmean(found.betas.values()) == pytest.approx(beta, abs=0.1)
    assert spread(found.logs(0, 2), [0, 2, 4, 6, 8]) < 0.5 * spread(values, [0, 2, 4, 6, 8])


def test_true_slow_down_of_parallel_arms_survives():
    # Two cores busy: the work takes 10 % longer, and so does the loop.  Adjusting unlike arms would hide all of it.
    values, witness, kinds = run(parallel=0.1, loop=0.1, rounds=40)
    found = adjust(values, witness, kinds)
    assert fmean(found.logs(0, 1).difference(0, 1).values()) == pytest.approx(-0.1, abs=0.03)
    assert abs(fmean(found.adjusted.difference(0, 1).values())) < 0.03   # what would have been
    assert found.logs(0, 1) is found.plain


def test_plain_values_stay():
    values, witness, kinds = run()
    assert adjust(values, witness, kinds).plain is values


def test_without_correlation_nothing_is_adjusted():
    values, _, kinds = run(seed=1)
    _, witness, _ = run(seed=2)
    found = adjust(values, witness, kinds)
    # A correlation by chance passes the test in 2.5 % of rounds, and rounds share most of their data.
    assert [*found.betas.values()].count(0.0) >= 6
    opposed = RoundLogs(levels={arm: {r: -v for r, v in each.items()} for arm, each in values.levels.items()})
    assert {*adjust(values, opposed, kinds).betas.values()} == {0.0}


def test_coefficient_is_bounded():
    values, witness, kinds = run(beta=4.0)
    assert {*adjust(values, witness, kinds).betas.values()} == {MOST_BETA}


def test_coefficient_of_a_round_does_not_know_the_round():
    values, witness, kinds = run()
    changed = RoundLogs(levels={arm: each | {3: arm * 1.0} for arm, each in values.levels.items()})
    before, after = adjust(values, witness, kinds).betas, adjust(changed, witness, kinds).betas
    assert before[3] == after[3]
    assert before[4] != after[4]


def test_processes_without_a_witness_are_left_out_of_the_adjusted_levels():
    values, witness, kinds = run()
    lost = RoundLogs(levels=witness.levels | {4: {r: witness.levels[4][r] for r in (0, 1, 2)}, 6: {}})
    found = adjust(values, lost, kinds)
    assert found.adjusted.levels[4].keys() == {0, 1, 2}
    assert found.plain.levels[6].keys() == set(range(8))


def test_few_numbers_show_nothing():
    values, witness, kinds = run(arms=4, rounds=3)
    assert {*adjust(values, witness, kinds).betas.values()} == {0.0}


def test_arms_of_one_kind_are_a_group_with_a_smaller_noise():
    values, witness, kinds = run()
    like = adjust(values, witness, kinds).kind(("3.14", 1))
    assert like.levels.keys() == {0, 2, 4, 6, 8}
    plain, adjusted = (pool_noise({0: logs}, draws=0)[0] for logs in (values, like))
    assert compare(like, adjusted, 0, 2).half() < 0.6 * compare(values, plain, 0, 2).half()
