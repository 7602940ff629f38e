import pytest

from gilscope.toolkit.stats.floor import noise_floor
from gilscope.toolkit.stats.paired import compare_paired
from tests.stats.synthetic import pairs

ROUNDS = range(6)


def arm(*seconds):
    return dict(enumerate(seconds))


def test_floor_is_the_median_error_and_the_farther_end():
    # ratios 1/1.0, 1/1.0, 1/0.98, 1/0.98, 1/0.96, 1/0.95: median 1/0.98, farther end 1/0.95
    floor = noise_floor([(dict.fromkeys(ROUNDS, 1.0), arm(1.0, 1.0, 0.98, 0.98, 0.96, 0.95))])
    assert floor.error == pytest.approx(1 / 0.98 - 1)
    assert floor.bound == pytest.approx(1 / 0.95 - 1)
    assert floor.rounds == 6


def test_bound_counts_alike_in_both_directions():
    # ratio 0.9 in every round: 1 / 0.9 - 1 = 11.1 %
    floor = noise_floor([(dict.fromkeys(ROUNDS, 0.9), dict.fromkeys(ROUNDS, 1.0))])
    assert floor.bound == pytest.approx(1 / 0.9 - 1)


def test_worst_arm_counts():
    calm = (dict.fromkeys(ROUNDS, 1.0), dict.fromkeys(ROUNDS, 1.0))
    wild = (dict.fromkeys(ROUNDS, 1.0), dict.fromkeys(ROUNDS, 1.1))
    assert noise_floor([calm, wild, calm]) == noise_floor([wild])


def test_few_rounds_are_noted():
    assert "needs 6 rounds" in noise_floor([(arm(1.0, 1.0), arm(1.0, 1.0))]).notes[0].text


def test_no_arm_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        noise_floor([])


@pytest.mark.parametrize("kind", ["gauss", "bursts", "bimodal"])
def test_floor_of_one_arm_silences_another(kind):
    alarms = 0
    arms = list(pairs(11, kind, 20, 1.0, 400))
    for first, second in zip(arms[::2], arms[1::2], strict=True):
        alarms += compare_paired(*second, floor=noise_floor([first]).bound).verdict() != "same"
    assert alarms <= 4   # of 200: 5 % by the interval alone, most of them below the floor
