import random
from dataclasses import replace
from statistics import fmean

import pytest

from gilscope.toolkit.stats.class_rounds import _stretches, class_rounds
from gilscope.toolkit.stats.log_times import RoundLogs, fit
from gilscope.toolkit.stats.noise import pool_noise
from gilscope.toolkit.stats.ratios import compare
from gilscope.toolkit.stats.serial_correlation import INDEPENDENT
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


LASTING = DISTURBANCES["lasting interaction"]


def test_disturbances_of_successive_rounds_have_the_correlation_that_they_were_drawn_with():
    draw = random.Random(6)
    components = [found(drawn(draw, LASTING, rounds=40))[0] for _ in range(8)]
    assert fmean(each.correlation.estimate for each in components) == pytest.approx(0.8, abs=0.1)
    assert all(each.correlation.significant for each in components)
    assert all(each.freedom < 0.5 * 39 * 4 for each in components)   # fewer than of as many independent rounds


def test_independent_disturbances_are_seldom_taken_for_lasting_ones():
    draw = random.Random(7)
    chances = [found(drawn(draw, replace(QUIET, interaction=0.03), rounds=rounds))[0].correlation.chance
               for rounds in (4, 12) for _ in range(40)]
    assert sum(chance < 0.05 for chance in chances) <= 9     # 4 expected
    assert sum(chance < 0.25 for chance in chances) <= 30    # 20 expected


def test_only_pairs_across_classes_are_wider_for_lasting_disturbances():
    logs = drawn(random.Random(8), LASTING, rounds=12)
    noise = pool_noise(logs, classes=WORKER_CLASSES, draws=0)[0]
    single = replace(noise, class_rounds=replace(noise.class_rounds, correlation=INDEPENDENT))
    assert noise.class_rounds.correlation.applied > 0.5
    assert noise.between(0, 1).reach(0.95, 12) > 1.3 * single.between(0, 1).reach(0.95, 12)
    assert noise.between(1, 2).reach(0.95, 12) == single.between(1, 2).reach(0.95, 12)


def test_rounds_of_another_session_do_not_follow_those_before():
    effects = {r: 0.1 * r for r in range(6)}
    whole = {"a": dict.fromkeys(range(6), 0.0)}
    assert [*map(len, _stretches(effects, whole))] == [6]
    apart = {("a", 0): dict.fromkeys(range(3), 0.0), ("a", 1): dict.fromkeys(range(3, 6), 0.0)}
    assert [*map(len, _stretches(effects, apart))] == [3, 3]
    assert [*map(len, _stretches({r: value for r, value in effects.items() if r != 4}, whole))] == [4, 1]


def test_intervals_cover_better_if_disturbances_last():
    draw, covered, before = random.Random(9), [], []
    for _ in range(12):
        logs = drawn(draw, LASTING, rounds=12)
        noises = pool_noise(logs, classes=WORKER_CLASSES, draws=0)
        for group, each in logs.items():
            noise = noises[group]
            single = replace(noise, class_rounds=replace(noise.class_rounds, correlation=INDEPENDENT))
            for pair in PAIRS:
                for kind, where in ((noise, covered), (single, before)):
                    ratio = compare(each, kind, *pair)
                    where.append(abs(ratio.center - EFFECTS[pair[1]]) <= ratio.half())
    assert fmean(covered) > fmean(before) + 0.08
    assert fmean(covered) > 0.75   # not 95 %: 12 rounds do not show how long a disturbance lasts
