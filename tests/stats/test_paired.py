import random
from math import exp, log
from statistics import fmean

import pytest

from gilscope.toolkit.stats.pair_kinds import ArmClass
from gilscope.toolkit.stats.paired import UNCHECKED, PairedArms
from tests.stats.matrix import KINDS, group
from tests.stats.synthetic import pairs


def seconds(logs):
    return {arm: {r: exp(level) for r, level in rounds.items()} for arm, rounds in logs.levels.items()}


def test_only_rounds_that_both_have_count():
    # round 4 only in the one, round 9 only in the other
    together = PairedArms({"a": {0: 2.0, 1: 4.0, 2: 3.0, 4: 9.0}, "b": {0: 1.0, 1: 2.0, 2: 1.5, 9: 1.0}})
    result = together.compare("a", "b")
    assert (result.ratio, result.rounds) == (pytest.approx(2.0), 3)


def test_arms_that_share_too_few_rounds_are_not_compared():
    together = PairedArms({"a": {0: 2.0, 1: 4.0}, "b": {0: 1.0, 1: 2.0}, "c": {5: 1.0}})
    assert together.compare("a", "b") is None
    assert together.compare("a", "c") is None


def test_what_takes_no_time_has_no_ratio():
    assert PairedArms({"a": dict.fromkeys(range(6), 1.0), "b": dict.fromkeys(range(6), 0.0)}).compare("a", "b") is None


@pytest.mark.newest
@pytest.mark.parametrize(("rounds", "kind"), [
    (6, "bursts"), (12, "bimodal"),   # the others are quicker to cover
    *(pytest.param(*case, marks=pytest.mark.slow)
      for case in [(6, "gauss"), (6, "bimodal"), (12, "gauss"), (12, "bursts")])])
def test_two_arms_alone_have_intervals_that_hold(kind, rounds):
    found = [PairedArms({"a": a, "b": b}).compare("a", "b") for a, b in pairs(1, kind, rounds, 1.03, 80)]
    assert sum(each.lo <= 1.03 <= each.hi for each in found) / 80 >= 0.88   # the deviation of 80 is 0.024


def test_true_three_percent_is_found():
    found = [PairedArms({"a": a, "b": b}).compare("a", "b").verdict() for a, b in pairs(4, "gauss", 20, 1.03, 30)]
    assert found.count("faster") >= 28   # 19 of 20, the project's promise
    assert "slower" not in found


@pytest.mark.slow
def test_blocks_instead_of_rounds_would_be_called_different():
    # The same arms, paired with another minute of the machine: what the pairing is for.
    arms = [a for a, _ in pairs(3, "gauss", 20, 1.0, 200)]
    wrong = [PairedArms({"a": a, "b": b}).compare("a", "b").differs
             for a, b in zip(arms[::2], arms[1::2], strict=True)]
    assert sum(wrong) > 8


@pytest.mark.newest
@pytest.mark.parametrize("kind", KINDS)
def test_few_arms_of_few_rounds_are_hardly_ever_called_different(kind):
    draw = random.Random(kind)
    false = 0
    for _ in range(15):
        together = PairedArms(seconds(group(draw, kind, 5, [0.0] * 5)))
        false += any(together.compare(0, arm).differs for arm in range(1, 5))
    assert false <= 4   # of 15 tables, 5 % of which would be 0.75


def test_rounds_that_disturb_parallel_arms_widen_these_against_the_serial_one():
    draw = random.Random(7)
    wider = {arm: [] for arm in ("other", "parallel")}
    for _ in range(20):
        machine, disturbed = ([draw.gauss(0, 0.04) for _ in range(8)] for _ in range(2))
        arms = {arm: {r: exp(machine[r] + (disturbed[r] if arm.startswith("parallel") else 0) + draw.gauss(0, 0.01))
                      for r in range(8)} for arm in ("serial", "other", "parallel", "parallel 2")}
        classes = {arm: ArmClass(workers=arm.startswith("parallel"), build=None) for arm in arms}
        plain, known = PairedArms(arms), PairedArms(arms, classes=classes)
        for arm, widths in wider.items():
            old, new = (each.compare("serial", arm) for each in (plain, known))
            widths.append(log(new.hi / new.lo) / log(old.hi / old.lo))
    assert fmean(wider["parallel"]) > 1.1
    assert fmean(wider["other"]) < 0.9   # its noise is not theirs


def test_twin_that_is_off_widens_the_intervals():
    draw = random.Random(1)
    arms = {arm: {r: factor * (1 + r / 10) * (1 + draw.gauss(0, 0.01)) for r in range(6)}
            for arm, factor in (("base", 1.0), ("twin", 1.1), ("other", 0.96))}
    checked, unchecked = (PairedArms(arms, pairs).compare("base", "other") for pairs in ([("base", "twin")], ()))
    assert log(checked.hi / checked.lo) > 3 * log(unchecked.hi / unchecked.lo)
    assert (checked.verdict(), unchecked.verdict()) == ("cannot tell", "faster")
    assert unchecked.notes == (UNCHECKED,)
