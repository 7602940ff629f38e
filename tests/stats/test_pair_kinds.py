import random
from dataclasses import replace
from math import inf
from statistics import fmean

import pytest

from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.noise import pool_noise
from gilscope.toolkit.stats.pair_kinds import ArmClass, KindSpread, PairKind, kind_of
from gilscope.toolkit.stats.ratios import compare
from tests.stats.matrix import CLASSES, DISTURBANCES, EFFECTS, PAIRS, SERIAL_ARMS, disturbed_group

QUIET = DISTURBANCES["normal"]


def drawn(draw, kind, groups=4, rounds=4):
    return {group: disturbed_group(draw, kind, rounds, group).logs for group in range(groups)}


def spreads(logs, **options):
    return pool_noise(logs, classes=CLASSES, **options)[0].kinds


def test_kind_of_a_pair_is_what_its_arms_have_in_common():
    one, other = ArmClass(workers=1, build="a"), ArmClass(workers=2, build="a")
    assert kind_of(one, one) == kind_of(None, None) == PairKind.WITHIN
    assert kind_of(one, other) == kind_of(one, replace(other, build="b")) == PairKind.ACROSS
    assert kind_of(one, replace(one, build="b")) == PairKind.BUILDS


def test_ratio_of_a_kind_is_its_variance_over_that_within_a_class():
    draw = random.Random(1)
    found = [spreads(drawn(draw, replace(QUIET, interaction=0.03), rounds=8)) for _ in range(30)]
    # A difference of two errors has twice their variance; the rounds' effect on one class is in it once.
    assert fmean(each[PairKind.ACROSS].ratio for each in found) == pytest.approx(1 + (0.03 / 0.015) ** 2 / 2, rel=0.15)
    assert fmean(each[PairKind.BUILDS].ratio for each in found) == pytest.approx(1.0, abs=0.2)


def test_spread_between_builds_is_that_of_the_rounds_that_favour_one():
    draw = random.Random(3)
    found = [pool_noise(drawn(draw, replace(QUIET, build=0.04), rounds=8), classes=CLASSES)[0] for _ in range(30)]
    # Of a difference: twice the variance of a process, and once that of the effect on one build.
    assert fmean(each.between(*SERIAL_ARMS).spread for each in found) == pytest.approx(
        (0.015**2 + 0.04**2 / 2) ** 0.5, rel=0.1)


def test_workload_disturbed_alone_keeps_what_its_pairs_show():
    draw = random.Random(4)
    found = [pool_noise(drawn(draw, DISTURBANCES["one workload 4 %"], groups=8, rounds=8), classes=CLASSES)
             for _ in range(20)]
    alone, others = ([noise.kinds[PairKind.ACROSS] for noises in found for group, noise in noises.items()
                      if (group == 0) is first] for first in (True, False))
    assert fmean(each.ratio for each in alone) == pytest.approx(1 + (0.04 / 0.015) ** 2 / 2, rel=0.2)   # diluted: 1.4
    assert fmean(each.ratio for each in others) < 2
    assert {each.freedom for each in alone} == {7}   # its own rounds alone tell
    assert max(each.freedom for each in others) == 8 * 7


def test_workloads_measured_one_after_the_other_count_and_those_of_one_time_do_not():
    logs = drawn(random.Random(2), QUIET)
    assert spreads(logs)[PairKind.ACROSS].freedom == 4 * 3
    assert spreads(logs, shared_rounds=True)[PairKind.ACROSS].freedom == 3


def test_only_the_excess_counts_by_rounds():
    assert KindSpread(ratio=1.0, freedom=3).prior(40.0) == pytest.approx(40.0)
    assert KindSpread(ratio=1e6, freedom=3).prior(40.0) == pytest.approx(3.0, rel=1e-3)
    assert KindSpread(ratio=1.0, freedom=3).prior(0.0) == 0.0
    assert KindSpread(ratio=1.0, freedom=3).prior(inf) == inf


def test_arms_without_another_of_their_class_have_no_kind():
    logs = {0: RoundLogs(levels={0: {0: 1.0, 1: 1.1, 2: 1.0}, 1: {0: 1.0, 1: 1.0, 2: 1.2}})}
    assert pool_noise(logs, classes={0: CLASSES[0], 1: CLASSES[1]})[0].kinds == {}
    assert pool_noise(logs)[0].kinds == {}


def test_only_pairs_across_classes_are_wider():
    noise = pool_noise(drawn(random.Random(5), replace(QUIET, interaction=0.04)), classes=CLASSES)[0]
    assert noise.between(1, 2) is noise.usual           # two arms with several workers
    assert noise.between(0, 1).pooled(4) > 1.5 * noise.usual.pooled(4)
    assert noise.between(0, 1).freedom(4) < noise.usual.freedom(4)


def test_arm_alone_in_its_class_has_a_wider_pair():
    alone = {arm: CLASSES[arm] for arm in (0, 1, 2, 3)}   # one serial arm
    ratios = []
    for seed in range(20):
        logs = drawn(random.Random(seed), DISTURBANCES["interaction 4 %"], groups=1, rounds=8)[0]
        few = RoundLogs(levels={arm: logs.levels[arm] for arm in alone})
        ratios.append(pool_noise({0: few}, classes=alone)[0].kinds[PairKind.ACROSS].ratio)
    assert fmean(ratios) > 3


@pytest.mark.parametrize("name", ["interaction 2 %", "interaction 4 %", "one workload 4 %"])
def test_intervals_cover_where_rounds_disturb_one_class(name):
    draw, covered = random.Random(name), []
    for _ in range(10):
        logs = drawn(draw, DISTURBANCES[name])
        noises = pool_noise(logs, classes=CLASSES)
        for group, each in logs.items():
            for pair in PAIRS:
                ratio = compare(each, noises[group], *pair)
                covered.append(abs(ratio.center - EFFECTS[pair[1]]) <= ratio.half())
    assert fmean(covered) > 0.9   # 0.75 and 0.53 without the kinds
