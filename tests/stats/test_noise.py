import random
from dataclasses import replace
from math import inf, log1p, sqrt
from statistics import fmean, median

import pytest

from gilscope.toolkit.stats.distributions import t_quantile
from gilscope.toolkit.stats.estimators import huber, scale_of_differences
from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.noise import Noise, UnlikeArm, _pull, pool_noise
from gilscope.toolkit.stats.ratios import compare, verdicts
from tests.stats.matrix import DISTURBANCES, EFFECTS, PAIRS, TREATMENTS, disturbed_group, group


def normal(draw, arms, rounds, scales=None):
    return RoundLogs(levels={
        arm: {r: draw.gauss(0, 0.02 * (scales[arm] if scales else 1)) for r in range(rounds)} for arm in range(arms)
    })


def test_spread_is_that_of_one_process():
    noise = pool_noise({"g": normal(random.Random(1), 40, 6)}, draws=0)["g"]
    assert noise.spread == pytest.approx(0.02, rel=0.1)


def test_like_arms_lend_one_another_all_they_have_and_unlike_ones_little():
    draw = random.Random(2)
    alike = pool_noise({g: normal(draw, 20, 6) for g in range(4)}, draws=0)
    unlike = pool_noise({g: normal(draw, 20, 6, [4 ** draw.gauss(0, 1) for _ in range(20)]) for g in range(4)}, draws=0)
    assert min(noise.prior for noise in alike.values()) > 25
    assert max(noise.prior for noise in unlike.values()) < 4


def test_two_arms_have_nothing_but_their_own_rounds():
    noise = pool_noise({"g": normal(random.Random(3), 2, 6)}, draws=0)["g"]
    assert noise.freedom(6) == 5   # and Student's t of six differences


def test_prior_knows_no_more_than_the_other_arms():
    # 3 arms, 6 rounds: 10 residuals beyond arms and rounds, 5 of them a pair's own
    noise = pool_noise({"g": normal(random.Random(3), 3, 6)}, draws=0)["g"]
    assert noise.prior <= 5


@pytest.mark.parametrize("logs", [RoundLogs(levels={}), RoundLogs(levels={"a": {0: 1.0}, "b": {0: 1.1}})])
def test_nothing_is_known_from_too_few_numbers(logs):
    noise = pool_noise({"g": logs})["g"]
    assert (noise.spread, noise.prior, noise.floor(1)) == (inf, 0.0, inf)
    if logs.levels:
        assert compare(logs, noise, "a", "b").interval() == (0.0, inf)


def test_values_that_never_vary_do_not_show_their_noise():
    logs = RoundLogs(levels={arm: dict.fromkeys(range(4), float(arm)) for arm in range(4)})
    noise = pool_noise({"g": logs})["g"]
    assert noise.floor(4) == inf
    assert compare(logs, noise, 1, 0).interval() == (0.0, inf)
    assert verdicts({"pair": compare(logs, noise, 1, 0)})["pair"] == "cannot tell"


def test_moderated_error_is_between_the_pairs_own_and_the_groups():
    noise = Noise(spread=0.02, prior=6.0, residuals=(-0.02, 0.0, 0.02), draws=0)
    # own: squares 0.01^2 * 2 over 2; the group's: 2 * 0.02^2
    expected = sqrt((6 * 2 * 0.02**2 + 2 * 0.01**2) / (6 + 2) / 3)
    assert noise.moderated([0.01, 0.0, -0.01], 0.0) == pytest.approx(expected)


def test_drawn_normal_errors_give_students_t():
    noise = pool_noise({"g": normal(random.Random(4), 40, 6)}, draws=4000)["g"]
    assert noise.reach(0.95, 6) == pytest.approx(t_quantile(0.95, noise.freedom(6)), rel=0.06)


def test_slow_processes_widen_the_far_tail_more_than_the_near_one():
    noise = pool_noise({"g": group(random.Random(5), "slow", 12, [0.0] * 40)})["g"]
    near, far = (noise.reach(level, 12) / t_quantile(level, noise.freedom(12)) for level in (0.95, 0.999))
    assert near < far


def test_slow_processes_that_hardly_move_estimates_hardly_widen_intervals():
    quiet = group(random.Random(5), "normal", 12, [0.0] * 40)
    # One process in twenty is a fifth slower.
    draw = random.Random(6)
    slow = RoundLogs(levels={
        arm: {r: value + (0.2 if draw.random() < 1 / 20 else 0.0) for r, value in rounds.items()}
        for arm, rounds in quiet.levels.items()
    })
    halves = [
        fmean(compare(logs, pool_noise({"g": logs})["g"], 0, arm).half() for arm in range(1, 40))
        for logs in (quiet, slow)
    ]
    assert halves[0] < halves[1] < 1.35 * halves[0]   # plain squares make it 1.42


def test_what_pulls_is_cut_off_and_counted():
    # 0 and 1 are within the cut-off, both are 9 and 8 away from 9, which pull by 2 each
    pull = Noise(spread=1.0, prior=0.0, residuals=(0.0, 1.0, 9.0)).pull
    made = _pull((0.0, 1.0, 9.0), 2.0)
    assert (made.inside, made.spread) == pytest.approx((0.5, sqrt((1 + 4 + 4) / 3 / 2) / 0.5))
    assert pull.inside == 1.0   # as the cut-off of a noise is beyond three quarters of the differences


def test_draws_are_the_same_for_the_same_seed_alone():
    noise = pool_noise({"g": group(random.Random(5), "slow", 6, [0.0] * 12)}, draws=500)["g"]
    assert noise.reach(0.95, 6) == replace(noise).reach(0.95, 6)
    assert noise.reach(0.95, 6) != replace(noise, seed=1).reach(0.95, 6)


@pytest.mark.parametrize("prior", [0.0, 3.5, 40.0])
@pytest.mark.parametrize("rounds", [3, 4, 11])
def test_drawn_points_are_those_of_pairs_that_are_drawn_one_by_one(rounds, prior):
    pooled = pool_noise({"g": group(random.Random(5), "slow", 6, [0.0] * 12)})["g"].residuals
    noise = Noise(spread=0.02, prior=prior, residuals=pooled, draws=300, seed=3)
    draw, distances = random.Random(f"3 {rounds}"), []
    for _ in range(300):
        drawn = draw.choices(pooled, k=2 * rounds)
        pair = [a - b for a, b in zip(drawn[:rounds], drawn[rounds:], strict=True)]
        center = huber(pair, noise.cutoff)
        distances.append(abs(center) / noise.moderated(pair, center))
    near, far = sorted(distances)[285], sorted(distances)[298]   # 95 and 99.5 % of 300
    tamed = len(pooled) / (len(pooled) + 15)
    student = [t_quantile(level, noise.freedom(rounds)) for level in (0.95, 0.995)]
    near, far = ((factor if factor > 1 else factor**tamed)
                 for factor in (near / student[0], far / student[1]))
    assert noise.reach(0.95, rounds) == pytest.approx(near * student[0], rel=1e-9)
    assert noise.reach(0.995, rounds) == pytest.approx(max(near, far) * student[1], rel=1e-9)


def test_floor_is_what_equal_cells_differ_by_and_falls_with_the_rounds():
    noise = Noise(spread=0.02, prior=1e6, residuals=(-0.02, 0.0, 0.02), draws=0)
    assert log1p(noise.floor(8)) == pytest.approx(1.96 * 0.02 * sqrt(2 / 8), rel=1e-3)   # 2 %
    assert noise.floor(16) < noise.floor(8)
    assert log1p(replace(noise, widening=2.0).floor(8)) == pytest.approx(2 * log1p(noise.floor(8)))


def test_scale_of_differences_is_their_standard_deviation_and_ignores_a_slow_fifth():
    draw = random.Random(6)
    calm = tuple(sorted(draw.gauss(0, 1) for _ in range(400)))
    assert scale_of_differences(calm) == pytest.approx(sqrt(2), rel=0.1)
    slow = tuple(sorted([*calm[:360], *(value + 30 for value in calm[360:])]))
    assert scale_of_differences(slow) < 2 * sqrt(2)


# Six tables of 80 ratios each: 480 intervals alone would scatter by 0.02 (two standard deviations), ratios that share a
# baseline scatter more.  Half the right width covers 0.7.
@pytest.mark.parametrize("kind", ["normal", "slow", "bimodal", "sizes"])
@pytest.mark.parametrize("rounds", [4, 8])
def test_intervals_cover_and_borrowing_narrows_them(kind, rounds):
    draw = random.Random(f"{kind} {rounds}")
    covered, halves, alone = [], [], []
    for table in range(6):
        groups = {g: group(draw, kind, rounds, [0.05 * (arm % 2) for arm in range(21)]) for g in range(4)}
        noises = pool_noise(groups, draws=1000, seed=table)
        for g, logs in groups.items():
            for arm in range(1, 21):
                ratio = compare(logs, noises[g], 0, arm)
                covered.append(abs(ratio.center - 0.05 * (arm % 2)) <= ratio.half())
                halves.append(ratio.half())
                alone.append(students_half([*logs.difference(0, arm).values()]))
    assert 0.88 <= fmean(covered) <= 0.99
    assert median(halves) < (0.85 if rounds == 4 else 1.02) * median(alone)


def students_half(differences):
    center = fmean(differences)
    count = len(differences)
    return t_quantile(0.95, count - 1) * sqrt(sum((d - center) ** 2 for d in differences) / (count - 1) / count)


def test_few_tame_residuals_are_not_taken_at_their_word():
    tame = (-0.02, -0.01, 0.01, 0.02)   # flat: tamer than normal ones, as those of small groups are after a fit
    few, many = (Noise(spread=0.0158, prior=1e6, residuals=tuple(sorted(tame * k)), draws=4000) for k in (2, 100))
    normal = t_quantile(0.9999, 1e6)
    assert many.reach(0.9999, 3) < few.reach(0.9999, 3) <= normal


def test_pair_with_an_arm_unlike_the_others_has_its_own_spread():
    scales = [1.0] * 20
    scales[5] = 6.0
    noise = pool_noise({"g": normal(random.Random(7), 20, 8, scales)}, draws=0)["g"]
    assert [*noise.unlike] == [5]
    assert noise.spread == pytest.approx(0.02, rel=0.1)      # it does not widen the others
    own = noise.between(0, 5)
    assert own.freedom(8) == 7                               # and they do not lend it anything
    assert own.moderated([0.1, -0.1, 0.1, -0.1], 0.0) == pytest.approx(sqrt(4 * 0.1**2 / 3 / 4))
    assert own.floor(8) > 3 * noise.floor(8)
    assert noise.between(0, 1) is noise


def test_one_far_value_of_twelve_counts_in_part_and_one_of_four_in_full():
    noise = Noise(spread=0.02, prior=30.0, residuals=(-0.02, 0.0, 0.02), draws=0,
                  unlike={"wild": UnlikeArm(spread=0.1, scale=0.02)}).between("calm", "wild")
    calm = [0.02, -0.02] * 5 + [0.02]
    far = noise.cutoff / 1.345 * 3
    assert noise.moderated([*calm, 0.5], 0.0) == pytest.approx(sqrt((11 * 0.02**2 + far**2) / 11 / 12))
    assert noise.moderated([*calm[:3], 0.5], 0.0) == pytest.approx(sqrt((3 * 0.02**2 + 0.25) / 3 / 4))


@pytest.mark.parametrize("kind", ["wild", "slow processes"])
@pytest.mark.parametrize("rounds", [4, 12])
def test_intervals_of_arms_unlike_the_others_cover(kind, rounds):
    draw, covered = random.Random(f"{kind} {rounds}"), []
    for _ in range(12):
        groups = {g: disturbed_group(draw, DISTURBANCES[kind], rounds) for g in range(4)}
        noises = pool_noise({g: each.logs for g, each in groups.items()}, treatments=TREATMENTS, draws=0)
        for g, each in groups.items():
            for baseline, arm in PAIRS:
                if arm in each.disturbed:
                    ratio = compare(each.logs, noises[g], baseline, arm)
                    covered.append(abs(ratio.center - EFFECTS[arm]) <= ratio.half())
    assert fmean(covered) > 0.86   # 0.67 to 0.71 by the spread of the others
