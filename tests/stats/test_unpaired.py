import random
from math import exp, inf, log
from statistics import median

import pytest

from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.noise import pool_noise
from gilscope.toolkit.stats.pair_kinds import ArmClass
from gilscope.toolkit.stats.unpaired import UnpairedRatio, run_level
from tests.stats.matrix import KINDS, two_runs


def apart(runs, arm=0):
    noises = [pool_noise({0: logs})[0] for logs in runs]
    before, after = (run_level(logs, noise, arm) for logs, noise in zip(runs, noises, strict=True))
    return UnpairedRatio(before=before, after=after)


def width(ratio):
    """Return the width of an interval as a ratio of its ends, in logs."""
    lo, hi = ratio.interval()
    return log(hi / lo)


def logs(*arms):
    return RoundLogs(levels={arm: dict(enumerate(map(log, values))) for arm, values in enumerate(arms)})


def test_ratio_is_of_the_levels_and_rounds_are_the_fewer():
    seen = apart([logs([2.0, 2.2, 1.9, 2.0], [1.0, 1.1, 0.95, 1.0]), logs([1.0] * 3, [1.0] * 3)])
    assert seen.ratio == pytest.approx(2.0, rel=0.02)
    assert seen.rounds == 3


def test_what_rounds_have_in_common_is_in_the_interval():
    calm, moved = (apart(two_runs(random.Random(2), "normal", 8, [0.0] * 8, step)) for step in (0.0, 0.05))
    assert width(moved) > 2 * width(calm)


def test_arm_alone_in_its_runs_has_an_interval():
    seen = apart([logs([1.0, 1.02, 0.99, 1.01]), logs([1.0, 1.01, 0.98, 1.0])])
    assert 0 < width(seen) < 0.2


def test_one_round_tells_nothing():
    seen = apart([logs([1.0]), logs([2.0])])
    assert seen.interval() == (0.0, inf)


def test_equal_values_have_an_interval_without_width():
    seen = apart([logs([1.0] * 4, [2.0] * 4), logs([0.5] * 4, [2.0] * 4)])
    assert seen.interval() == (pytest.approx(2.0), pytest.approx(2.0))


@pytest.mark.newest
@pytest.mark.parametrize("arms", [1, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_hold_where_the_machine_is_on_average_the_same(kind, arms):
    draw, held = random.Random(f"{kind} {arms}"), []
    for _ in range(120 // arms):
        effects = [draw.uniform(-0.3, 0.3) for _ in range(arms)]
        runs = two_runs(draw, kind, 6, effects, 0.02)
        for arm, effect in enumerate(effects):
            lo, hi = apart(runs, arm).interval()
            held.append(lo <= exp(effect) <= hi)
    assert sum(held) / len(held) >= 0.88   # 120 intervals of 95 % deviate by 0.02; those of one run are not independent


def test_level_of_an_arm_unlike_the_others_borrows_nothing():
    draw = random.Random(1)
    made = RoundLogs(levels={
        arm: {r: draw.gauss(0, 0.1 if arm == 3 else 0.01) for r in range(8)} for arm in range(20)})
    noise = pool_noise({0: made})[0]
    alike, unlike = (run_level(made, noise, arm) for arm in (2, 3))
    assert alike.own.freedom > 20
    assert unlike.own.freedom == 7
    assert unlike.own.square > 30 * alike.own.square


def test_level_of_an_arm_unlike_the_others_has_the_cutoff_of_its_own_errors():
    draw, wild = random.Random(1), [-0.1, -0.08, -0.06, -0.04, 0.0, 0.2, 0.3, 0.4]
    made = RoundLogs(levels={
        arm: dict(enumerate(wild if arm == 3 else [draw.gauss(0, 0.01) for _ in wild])) for arm in range(20)})
    noise = pool_noise({0: made})[0]
    assert run_level(made, noise, 3).center > median(wild) + 0.05   # by that of the others it is the median


def classes_run(draw, rounds, interaction, arms=8):
    """A quarter of the arms has one worker; the others share an effect of each round of their own."""
    machine, own = ([draw.gauss(0, step) for _ in range(rounds)] for step in (0.01, interaction))
    return RoundLogs(levels={
        arm: {r: machine[r] + (own[r] if arm >= 2 else 0.0) + draw.gauss(0, 0.01) for r in range(rounds)}
        for arm in range(arms)})


@pytest.mark.parametrize("arm", [0, 5])
def test_interval_covers_where_rounds_disturb_one_class_of_arms(arm):
    draw, held = random.Random(f"classes {arm}"), []
    classes = {each: ArmClass(workers=each >= 2, build=0) for each in range(8)}
    for _ in range(80):
        runs = [classes_run(draw, 6, 0.04) for _ in range(2)]
        levels = [run_level(logs, pool_noise({0: logs}, classes=classes)[0], arm) for logs in runs]
        lo, hi = UnpairedRatio(before=levels[0], after=levels[1]).interval()
        held.append(lo <= 1 <= hi)
    assert sum(held) / len(held) >= 0.89   # arm 5 has 0.87 if all arms have the same effects of rounds


def test_effects_of_rounds_on_several_workers_are_not_those_on_one():
    logs = classes_run(random.Random(3), 8, 0.05)
    noise = pool_noise({0: logs}, classes={arm: ArmClass(workers=arm >= 2, build=0) for arm in range(8)})[0]
    one, several = (run_level(logs, noise, arm) for arm in (0, 5))
    assert several.machine.square > 4 * one.machine.square
