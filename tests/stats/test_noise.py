import random
from dataclasses import replace
from math import inf, log1p, sqrt
from statistics import fmean, median

import pytest

from gilscope.toolkit.stats.distributions import t_quantile
from gilscope.toolkit.stats.estimators import scale_of_differences
from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.noise import ArmSpread, pool_noise, pull_of_differences
from gilscope.toolkit.stats.pair_kinds import ArmClass
from gilscope.toolkit.stats.paired import conclude
from gilscope.toolkit.stats.ratios import compare
from gilscope.toolkit.stats.sample import CONFIDENCE
from tests.stats.matrix import DISTURBANCES, EFFECTS, PAIRS, TREATMENTS, disturbed_group, group, known_noise


def normal(draw, arms, rounds, scales=None):
    return RoundLogs(levels={
        arm: {r: draw.gauss(0, 0.02 * (scales[arm] if scales else 1)) for r in range(rounds)} for arm in range(arms)
    })


def test_spread_is_that_of_one_process():
    noise = pool_noise({"g": normal(random.Random(1), 40, 6)})["g"]
    assert noise.arm.spread == pytest.approx(0.02, rel=0.1)


def test_like_arms_lend_one_another_all_they_have_and_unlike_ones_little():
    draw = random.Random(2)
    alike = pool_noise({g: normal(draw, 20, 6) for g in range(4)})
    unlike = pool_noise({g: normal(draw, 20, 6, [4 ** draw.gauss(0, 1) for _ in range(20)]) for g in range(4)})
    assert min(noise.usual.prior for noise in alike.values()) > 25
    assert max(noise.usual.prior for noise in unlike.values()) < 4


def test_two_arms_have_nothing_but_their_own_rounds():
    noise = pool_noise({"g": normal(random.Random(3), 2, 6)})["g"]
    assert noise.usual.freedom(6) == 5   # and Student's t of six differences


def test_prior_knows_no_more_than_the_other_arms():
    # 3 arms, 6 rounds: 10 residuals beyond arms and rounds, 5 of them a pair's own
    noise = pool_noise({"g": normal(random.Random(3), 3, 6)})["g"]
    assert noise.usual.prior <= 5


def test_each_class_of_workers_spends_freedom_on_its_own_effects_of_rounds():
    draw = random.Random(4)
    # 2 classes of 3 arms, 6 rounds: 10 residuals beyond arms and rounds in each; of 6 arms alike it would be 25
    classes = {arm: ArmClass(workers=arm < 3, build=0) for arm in range(6)}
    priors = [pool_noise({"g": normal(draw, 6, 6)}, classes=given)["g"].usual.prior
              for given in (classes, None) for _ in range(20)]
    assert (max(priors[:20]), max(priors[20:])) == (pytest.approx(20 * 4 / 5), pytest.approx(25 * 4 / 5))


@pytest.mark.parametrize("logs", [RoundLogs(levels={}), RoundLogs(levels={"a": {0: 1.0}, "b": {0: 1.1}})])
def test_nothing_is_known_from_too_few_numbers(logs):
    noise = pool_noise({"g": logs})["g"]
    assert (noise.arm.spread, noise.usual.prior, noise.usual.floor(9)) == (inf, 0.0, None)
    if logs.levels:
        assert compare(logs, noise, "a", "b").interval() == (0.0, inf)


def test_values_that_never_vary_do_not_show_their_noise():
    logs = RoundLogs(levels={arm: dict.fromkeys(range(4), float(arm)) for arm in range(4)})
    noise = pool_noise({"g": logs})["g"]
    assert noise.usual.floor(4) is None
    assert compare(logs, noise, 1, 0).interval() == (0.0, inf)
    assert conclude(compare(logs, noise, 1, 0), CONFIDENCE).verdict() == "cannot tell"


def test_moderated_error_is_between_the_pairs_own_and_the_groups():
    noise = known_noise(0.02, prior=6.0).usual
    # own: squares 0.01^2 * 2 over 2; the group's: 2 * 0.02^2
    expected = sqrt((6 * 2 * 0.02**2 + 2 * 0.01**2) / (6 + 2) / 3)
    assert noise.error([0.01, 0.0, -0.01], 0.0) == pytest.approx(expected)


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
    assert pull_of_differences((0.0, 1.0, 9.0), 2.0) == pytest.approx((1 / 3, sqrt((1 + 4 + 4) / 3 / 2) * 3))
    assert pull_of_differences((0.0, 1.0, 9.0), 9.0)[0] == 1.0


def test_floor_is_what_equal_cells_differ_by_and_falls_with_the_rounds():
    noise = known_noise(0.02).usual
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
    for _ in range(6):
        groups = {g: group(draw, kind, rounds, [0.05 * (arm % 2) for arm in range(21)]) for g in range(4)}
        noises = pool_noise(groups)
        for g, logs in groups.items():
            for arm in range(1, 21):
                ratio = compare(logs, noises[g], 0, arm)
                covered.append(abs(ratio.center - 0.05 * (arm % 2)) <= ratio.half())
                halves.append(ratio.half())
                alone.append(students_half([*logs.difference(0, arm).values()]))
    assert 0.88 <= fmean(covered) <= 0.99
    assert median(halves) < (0.9 if rounds == 4 else 1.02) * median(alone)


def students_half(differences):
    center = fmean(differences)
    count = len(differences)
    return t_quantile(0.95, count - 1) * sqrt(sum((d - center) ** 2 for d in differences) / (count - 1) / count)


def test_pair_with_an_arm_unlike_the_others_has_its_own_spread():
    scales = [1.0] * 20
    scales[5] = 6.0
    noise = pool_noise({"g": normal(random.Random(7), 20, 8, scales)})["g"]
    assert [*noise.unlike] == [5]
    assert noise.arm.spread == pytest.approx(0.02, rel=0.1)      # it does not widen the others
    own = noise.between(0, 5)
    assert own.freedom(8) == 7                               # and they do not lend it anything
    assert own.error([0.1, -0.1, 0.1, -0.1], 0.0) == pytest.approx(sqrt(4 * 0.1**2 / 3 / 4))
    assert own.floor(8) > 3 * noise.usual.floor(8)
    assert noise.between(0, 1) is noise.usual


def test_one_far_value_of_twelve_counts_in_part_and_one_of_four_in_full():
    noise = replace(
        known_noise(0.02, prior=30.0), unlike={"wild": ArmSpread(spread=0.1, scale=0.02)}).between("calm", "wild")
    calm = [0.02, -0.02] * 5 + [0.02]
    far = noise.cutoff / 1.345 * 3
    assert noise.error([*calm, 0.5], 0.0) == pytest.approx(sqrt((11 * 0.02**2 + far**2) / 11 / 12))
    assert noise.error([*calm[:3], 0.5], 0.0) == pytest.approx(sqrt((3 * 0.02**2 + 0.25) / 3 / 4))


@pytest.mark.parametrize("kind", ["wild", "slow processes"])
@pytest.mark.parametrize("rounds", [4, 12])
def test_intervals_of_arms_unlike_the_others_cover(kind, rounds):
    draw, covered = random.Random(f"{kind} {rounds}"), []
    for _ in range(12):
        groups = {g: disturbed_group(draw, DISTURBANCES[kind], rounds) for g in range(4)}
        noises = pool_noise({g: each.logs for g, each in groups.items()}, treatments=TREATMENTS)
        for g, each in groups.items():
            for baseline, arm in PAIRS:
                if arm in each.disturbed:
                    ratio = compare(each.logs, noises[g], baseline, arm)
                    covered.append(abs(ratio.center - EFFECTS[arm]) <= ratio.half())
    assert fmean(covered) > 0.86   # 0.67 to 0.71 by the spread of the others
