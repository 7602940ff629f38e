import random
from math import log1p
from statistics import fmean

import pytest

from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.outliers import far_processes
from tests.stats.matrix import DISTURBANCES, disturbed_group


def table(draw, slow, rounds=4, spread=0.01):
    """72 arms; `slow` are the rounds in which the process of arm 0 of group 0 is 30 % slow."""
    return {group: RoundLogs(levels={
        arm: {r: draw.gauss(0, spread) + (log1p(0.3) if (group, arm) == (0, 0) and r in slow else 0.0)
              for r in range(rounds)} for arm in range(18)}) for group in range(4)}


@pytest.mark.parametrize(("slow", "far", "share"), [
    ({2}, {2}, 0.3),
    ({0, 3}, {0, 3}, 0.3),            # of two halves, the slower one
    ({0, 1, 3}, {2}, 1 / 1.3 - 1),    # the fewer: one is fast
])
def test_processes_beyond_a_gap_are_far(slow, far, share):
    found = far_processes(table(random.Random(1), slow))
    assert found == {0: {0: found[0][0]}, 1: {}, 2: {}, 3: {}}
    assert (found[0][0].rounds, found[0][0].of) == (frozenset(far), 4)
    assert found[0][0].share == pytest.approx(share, abs=0.05)


def test_share_has_no_part_of_its_own_effect():
    """Of three arms, the slow one makes the common effect of its round that of the slower of the others."""
    logs = table(random.Random(7), {2}, rounds=8, spread=0.001)
    logs[0] = RoundLogs(levels={arm: logs[0].levels[arm] for arm in range(3)})
    logs[0].levels[1][2] += 0.02
    logs[0].levels[2][2] -= 0.02
    (far,) = far_processes(logs)[0].values()
    assert (far.rounds, far.share) == (frozenset({2}), pytest.approx(0.3, abs=0.005))


def test_cell_with_all_processes_slow_has_none_far():
    assert not any(far_processes(table(random.Random(2), {0, 1, 2, 3})).values())


@pytest.mark.parametrize("kind", ["normal", "student", "bimodal", "wild", "wild anywhere", "interaction 4 %"])
@pytest.mark.parametrize("rounds", [4, 12])
def test_noise_alone_seldom_has_a_flag(kind, rounds):
    draw, tables = random.Random(f"{kind} {rounds}"), 20
    flagged = sum(any(far_processes({group: disturbed_group(draw, DISTURBANCES[kind], rounds).logs
                                     for group in range(4)}).values()) for _ in range(tables))
    assert flagged <= 3   # 5 % expected at most; more than 3 has a probability of 2 %


@pytest.mark.parametrize("freedom", [3, 1e6])
def test_few_arms_seldom_have_a_flag(freedom):
    draw, flagged = random.Random(f"few {freedom}"), 0
    for _ in range(100):
        flagged += bool(far_processes({0: RoundLogs(levels={
            arm: {r: draw.gauss(0, 0.01) / (draw.gammavariate(freedom / 2, 2) / freedom) ** 0.5 for r in range(4)}
            for arm in range(6)})})[0])
    assert flagged <= 10


def test_slow_process_among_few_arms_is_flagged():
    draw, found = random.Random("few"), []
    for _ in range(20):
        logs = table(draw, {1})[0]
        found.append([*far_processes({0: RoundLogs(levels={arm: logs.levels[arm] for arm in range(5)})})[0]] == [0])
    assert sum(found) >= 18


def test_processes_of_unequal_slowness_are_flagged_together():
    """One that takes ten times as long must not hide another that is 30 % slow."""
    logs = table(random.Random(3), {2})
    logs[1].levels[5][0] += log1p(9)
    found = far_processes(logs)
    assert {group: {*arms} for group, arms in found.items()} == {0: {0}, 1: {5}, 2: set(), 3: set()}


def test_slow_processes_without_a_gap_are_a_heavy_tail():
    logs = table(random.Random(4), set())
    for arm in range(9):
        logs[0].levels[arm][1] += log1p(0.03 * 1.35**arm)
    assert not any(far_processes(logs).values())


def test_two_processes_do_not_show_which_one_is_slow():
    assert not any(far_processes(table(random.Random(6), {1}, rounds=2)).values())


def test_two_arms_of_a_workload_do_not_show_which_one_is_slow():
    logs = table(random.Random(5), set())
    logs[1] = RoundLogs(levels={arm: {r: 0.3 * (arm == 0 and r == 1) for r in range(4)} for arm in range(2)})
    assert far_processes(logs)[1] == {}


@pytest.mark.parametrize("rounds", [4, 12])
def test_slow_processes_of_several_arms_are_flagged(rounds):
    draw, seen = random.Random(rounds), []
    for _ in range(8):
        groups = {group: disturbed_group(draw, DISTURBANCES["slow processes"], rounds) for group in range(4)}
        found = far_processes({group: each.logs for group, each in groups.items()})
        seen += [arm in found[group] for group, each in groups.items() for arm, slow in each.slow.items()
                 if 0 < len(slow) < rounds]
    assert fmean(seen) > 0.88


def test_differences_that_matter_to_nobody_are_not_flagged():
    quiet = {0: RoundLogs(levels={arm: {r: 0.02 * (arm == r == 0) + 1e-5 * ((arm * 7 + r * 3) % 5) for r in range(4)}
                                  for arm in range(12)})}
    assert far_processes(quiet) == {0: {}}


@pytest.mark.parametrize("levels", [{}, {0: {0: 0.0}}, {0: {0: 0.0, 1: 0.5}, 1: {0: 0.0, 1: 0.0}},
                                    {arm: dict.fromkeys(range(4), 0.0) for arm in range(10)}])
def test_too_little_says_nothing(levels):
    assert far_processes({0: RoundLogs(levels=levels)}) == {0: {}}


