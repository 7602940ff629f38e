import random
from dataclasses import dataclass, replace
from math import exp, inf, log
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gilscope.toolkit.stats.best import best_of, fastest_ratio
from gilscope.toolkit.stats.distributions import t_quantile
from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.noise import pool_noise
from tests.stats.matrix import fastest, group, known_noise

KNOWN = known_noise()


def logs(**centers):
    """Arms that differ by nothing but their logs: an error of 0.01 * root(2 / 8) is what the group's noise gives."""
    return RoundLogs(levels={arm: dict.fromkeys(range(8), -value) for arm, value in centers.items()})


def test_what_cannot_be_told_from_the_best_is_named_with_it():
    # 3 arms, 8 rounds: one-sided, each of two at sqrt(0.95): 1.95 * 0.005 = 0.0098
    found = fastest(logs(serial=0.0, processes=0.6, interpreters=0.605), KNOWN, ["serial", "processes", "interpreters"])
    assert found == ("interpreters", "processes")


def test_what_is_shown_to_be_slower_is_not():
    found = fastest(logs(a=0.0, b=0.0099), KNOWN, ["a", "b"])   # two arms, one-sided 95 %: 1.645 * 0.005 = 0.0082
    assert found == ("b",)
    assert fastest(logs(a=0.0, b=0.0080), KNOWN, ["a", "b"]) == ("b", "a")


def test_single_arm_is_the_best_and_none_is_refused():
    assert fastest(logs(a=0.0), KNOWN, ["a"]) == ("a",)
    with pytest.raises(ValueError, match="no arms"):
        fastest(logs(), KNOWN, [])


@dataclass(frozen=True)
class Known:
    """A ratio whose standard error is known."""

    center: float
    error: float = 0.01
    floor: float = 0.0
    rounds: int = 8

    def half(self, confidence):
        return t_quantile(confidence, inf) * self.error

    def interval(self, confidence):
        return exp(self.center - self.half(confidence)), exp(self.center + self.half(confidence))


def fastest_of_two(baselines, samples, error=0.01):
    """Levels in logs, higher is faster."""
    levels = {**baselines, **samples}
    return fastest_ratio([*baselines], [*samples], lambda one, other: Known(levels[other] - levels[one], error))


def test_fastest_of_both_is_that_of_the_highest_estimates():
    found = fastest_of_two({"a": 0.0, "b": 0.5}, {"c": 0.6, "d": 0.1, "e": 0.0})
    assert found.leaders == ("b", "c")
    assert found.ratio == pytest.approx(exp(0.1))
    # All others are out, so the interval is that of the pair at 1 - 0.05 / 3: 2.394 standard errors.
    assert [log(end) for end in found.interval()] == pytest.approx([0.1 - 0.02394, 0.1 + 0.02394], abs=1e-5)


def test_interval_of_the_fastest_includes_every_model_that_may_be_it():
    found = fastest_of_two({"a": 0.49, "b": 0.5}, {"c": 0.6})
    assert found.leaders == ("b", "c")
    assert [log(end) for end in found.interval()] == pytest.approx([0.1 - 0.02394, 0.11 + 0.02394], abs=1e-5)


def test_interval_of_the_fastest_holds_although_they_are_chosen_from_the_same_values():
    draw, held, naive = random.Random(1), [], []
    for _ in range(400):
        # Six equal arms against one: the best looking of six is 1.3 standard errors too fast.
        found = fastest_of_two({"one": draw.gauss(0, 0.001)}, {arm: draw.gauss(0, 0.01) for arm in range(6)})
        lo, hi = found.interval()
        held.append(lo <= 1 <= hi)
        naive.append(abs(log(found.ratio)) <= 1.96 * 0.01)
    assert fmean(held) >= 0.95
    assert fmean(naive) <= 0.90


def test_unknown_pair_makes_the_fastest_unknown():
    found = fastest_of_two({"a": 0.49, "b": 0.5}, {"c": 0.6})
    assert replace(found, ratios={**found.ratios, ("a", "c"): None}).interval() == (0.0, inf)


@given(centers=st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_fastest_estimate_is_always_in_the_set_and_first(centers):
    named = {f"arm{k}": value for k, value in enumerate(centers)}
    found = fastest(logs(**named), KNOWN, list(named))
    assert named[found[0]] == pytest.approx(max(centers), abs=1e-9)


def test_set_holds_the_truly_fastest_as_often_as_it_says():
    # 200 sets; equals are the hardest, as each is the truly fastest: 0.95 +- 0.03 and above, as five of six share it
    draw = random.Random(7)
    held, alone = [], []
    for _ in range(200):
        effects = [0.0, 0.03, 0.03, 0.03, 0.0, 0.0]
        made = group(draw, "normal", 6, effects)
        members = fastest(made, pool_noise({0: made})[0], list(range(6)))
        held.append(1 in members)
        alone.append(len(members) == 1)
    assert fmean(held) >= 0.93
    assert fmean(alone) <= 0.05


def test_unknown_ratio_removes_no_arm():
    # c is out by its ratio to a; to b it is not compared, which says nothing against b.
    ratios = {("a", "c"): Known(-0.5), ("c", "a"): Known(0.5), ("a", "b"): Known(0.0), ("b", "a"): Known(0.0)}
    assert set(best_of(["a", "b", "c"], lambda one, other: ratios.get((one, other)))) == {"a", "b"}
