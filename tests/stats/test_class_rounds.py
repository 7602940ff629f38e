import random
from dataclasses import replace
from statistics import fmean

import pytest

from gilscope.toolkit.stats.class_rounds import class_rounds
from gilscope.toolkit.stats.log_times import RoundLogs, fit
from gilscope.toolkit.stats.noise import pool_noise
from gilscope.toolkit.stats.ratios import compare
from tests.stats.matrix import DISTURBANCES, EFFECTS, PAIRS, WORKER_CLASSES, disturbed_group

QUIET = DISTURBANCES["normal"]


def drawn(draw, kind, groups=4, rounds=4):
    return {group: disturbed_group(draw, kind, rounds).logs for group in range(groups)}


def found(logs, classes=WORKER_CLASSES):
    return class_rounds({group: fit(each) for group, each in logs.items()}, logs, classes)


def test_component_is_the_variance_of_what_rounds_do_to_one_class():
    draw = random.Random(1)
    shares = [found(drawn(draw, replace(QUIET, interaction=0.03), rounds=8))[0].share for _ in range(30)]
    assert fmean(shares) == pytest.approx((0.03 / 0.015) ** 2 / 2, rel=0.15)   # one of two classes has it: half each


def test_component_of_quiet_runs_is_seldom_significant():
    draw = random.Random(2)
    chances = [found(drawn(draw, QUIET))[0].chance for _ in range(100)]
    assert sum(chance < 0.05 for chance in chances) <= 11   # 5 expected
    assert fmean(chances) > 0.4


def test_a_group_that_is_disturbed_alone_keeps_its_own():
    draw = random.Random(3)
    logs = drawn(draw, QUIET, rounds=8) | {9: disturbed_group(draw, replace(QUIET, interaction=0.1), 8).logs}
    components = found(logs)
    assert components[9].share > 10 * components[0].share
    assert components[9].freedom == 7   # of 8 rounds


def test_one_class_has_no_component():
    logs = drawn(random.Random(4), QUIET)
    assert found(logs, dict.fromkeys(EFFECTS, "one")) == {}
    assert found({0: RoundLogs(levels={0: {0: 1.0, 1: 1.1}, 1: {0: 1.0, 1: 1.0}})}, {0: "one", 1: "several"}) == {}


def test_only_pairs_across_classes_are_wider():
    logs = drawn(random.Random(5), replace(QUIET, interaction=0.04))
    noise = pool_noise(logs, classes=WORKER_CLASSES, draws=0)[0]
    assert noise.between(1, 2) is noise           # two arms with several workers
    assert noise.between(0, 1).pooled(4) > 1.5 * noise.pooled(4)
    assert noise.between(0, 1).freedom(4) < noise.freedom(4)


@pytest.mark.parametrize("size", [0.02, 0.04])
def test_intervals_across_classes_cover(size):
    draw, covered = random.Random(f"cover {size}"), []
    for _ in range(25):
        logs = drawn(draw, replace(QUIET, interaction=size))
        noises = pool_noise(logs, classes=WORKER_CLASSES, draws=0)
        for group, each in logs.items():
            for pair in PAIRS:
                ratio = compare(each, noises[group], *pair)
                covered.append(abs(ratio.center - EFFECTS[pair[1]]) <= ratio.half())
    assert fmean(covered) > 0.87   # 0.90 and 0.82 without the component
