import random
from itertools import product
from statistics import median

import pytest

from gilscope.toolkit.stats.paired import _even_medians as even_medians
from gilscope.toolkit.stats.paired import _odd_medians as odd_medians
from gilscope.toolkit.stats.paired import bootstrap_interval, compare_paired, compare_unpaired
from gilscope.toolkit.stats.words import Comparison
from tests.stats.synthetic import pairs


def comparison(ratio, lo, hi, *, floor=0.013, sure=True):
    return Comparison(ratio=ratio, lo=lo, hi=hi, confidence=0.95, floor=floor, rounds=20, sure=sure)


@pytest.mark.parametrize(("values", "medians"), [
    ([1.0, 2.0, 4.0], odd_medians),
    ([1.0, 2.0, 4.0, 8.0], even_medians),
])
def test_bootstrap_distribution_equals_every_resample(values, medians):
    resampled = [median(draw) for draw in product(values, repeat=len(values))]
    computed = dict.fromkeys(resampled, 0.0)
    for value, probability in medians(values):
        computed[value] += probability
    for value in set(resampled):
        assert computed[value] == pytest.approx(resampled.count(value) / len(resampled))


def test_bootstrap_interval_of_nine_values_is_the_second_to_the_eighth():
    # P(a resample's median is the smallest of 9) = P(Binomial(9, 1/9) >= 5) = 0.0014, of the two smallest 0.041;
    # the expanded tail for 8 degrees of freedom (t = 2.306) is Phi(-2.306 * sqrt(9/8)) = 0.0072
    assert bootstrap_interval([float(v) for v in range(1, 10)]) == (2.0, 8.0)


def test_bootstrap_interval_is_the_same_upside_down():
    values = [random.Random(5).gauss(0, 1) for _ in range(12)]
    lo, hi = bootstrap_interval(values)
    assert bootstrap_interval([-v for v in values]) == (-hi, -lo)


def test_only_rounds_that_both_have_count():
    # round 2 only in the one, round 9 only in the other; ratios 2, 2, 4
    result = compare_paired({0: 2.0, 1: 4.0, 2: 9.0, 3: 8.0}, {0: 1.0, 1: 2.0, 3: 2.0, 9: 1.0})
    assert (result.ratio, result.rounds) == (2.0, 3)


def test_above_one_is_faster_than_the_baseline():
    result = compare_paired(dict.fromkeys(range(8), 3.0), dict.fromkeys(range(8), 1.5), floor=0.01)
    assert (result.ratio, result.lo, result.hi) == (2.0, 2.0, 2.0)
    assert result.verdict() == "faster"


def test_five_rounds_get_their_extremes_and_a_note():
    result = compare_paired(dict.fromkeys(range(5), 1.0), {0: 0.5, 1: 0.8, 2: 1.0, 3: 1.25, 4: 2.0})
    assert (result.lo, result.ratio, result.hi) == (0.5, 1.0, 2.0)
    assert result.confidence == 1 - 2 * 0.5**5
    assert "needs 6 rounds, there are 5" in result.notes[0].text


def test_arms_without_a_common_round_are_refused():
    with pytest.raises(ValueError, match="no round"):
        compare_paired({0: 1.0}, {1: 1.0})


@pytest.mark.parametrize(("result", "verdict"), [
    (comparison(1.10, 1.05, 1.15), "faster"),
    (comparison(0.90, 0.85, 0.95), "slower"),
    (comparison(1.10, 0.99, 1.21), "same"),                    # the interval holds 1
    (comparison(1.012, 1.01, 1.02), "same"),                   # below the floor of 1.3 %
    (comparison(0.99, 0.98, 0.995), "same"),                   # likewise on the other side
    (comparison(1.02, 1.01, 1.03), "faster"),                  # the estimate is beyond the floor
    (comparison(1.02, 1.01, 1.03, sure=False), "same"),        # too few rounds: all of it must be
    (comparison(1.04, 1.02, 1.06, sure=False), "faster"),
    (comparison(3.40, 3.32, 3.49, floor=None), "unknown"),     # no A/A arm, no verdict
])
def test_verdict_needs_an_interval_without_one_and_a_ratio_beyond_the_floor(result, verdict):
    assert result.verdict() == verdict


def test_missing_floor_is_noted():
    arm = dict.fromkeys(range(8), 1.0)
    assert "no noise floor" in compare_paired(arm, arm, floor=None).notes[0].text


@pytest.mark.parametrize("kind", ["gauss", "bursts", "bimodal"])
@pytest.mark.parametrize("rounds", [6, 7, 11, 20])
def test_interval_covers_the_true_ratio_under_drift(kind, rounds):
    covered = sum(
        result.lo <= 1.03 <= result.hi
        for result in (compare_paired(a, b) for a, b in pairs(1, kind, rounds, 1.03, 400))
    )
    # Ends on values: 0.935 (11 rounds, 3rd to 9th value) to 0.984 (7 rounds); 400 trials deviate by 0.012.
    assert 0.91 <= covered / 400 <= 0.998


@pytest.mark.parametrize("kind", ["gauss", "bursts", "bimodal"])
def test_same_build_twice_is_hardly_ever_called_different(kind):
    # Nothing but the interval protects here: the floor is 0.  Nominal false alarms 5 %.
    alarms = sum(compare_paired(a, b).verdict() != "same" for a, b in pairs(2, kind, 20, 1.0, 400))
    assert alarms / 400 <= 0.07


def test_blocks_instead_of_rounds_would_be_called_different():
    # The same arms, paired with another minute of the machine: what the pairing is for.
    arms = [a for a, _ in pairs(3, "gauss", 20, 1.0, 200)]
    wrong = sum(compare_paired(a, b).verdict() != "same" for a, b in zip(arms[::2], arms[1::2], strict=True))
    assert wrong > 50


def test_true_three_percent_is_found():
    found = [compare_paired(a, b, floor=0.01).verdict() for a, b in pairs(4, "gauss", 20, 1.03, 200)]
    assert found.count("faster") >= 190   # 19 of 20, the project's promise
    assert "slower" not in found


@pytest.mark.newest
def test_unpaired_interval_covers_without_drift_and_says_what_it_leaves_out():
    draw, covered = random.Random(6), 0
    for number in range(200):
        baseline = [draw.gauss(1.0, 0.02) for _ in range(15)]
        sample = [draw.gauss(0.8, 0.02) for _ in range(11)]
        result = compare_unpaired(baseline, sample, seed=number)
        covered += result.lo <= 1.25 <= result.hi
    assert 0.91 <= covered / 200 <= 0.998
    assert "different times" in result.notes[0].text


def test_unpaired_is_the_same_for_the_same_seed():
    values = [1.0, 1.1, 1.2, 0.9, 0.95, 1.05, 1.3]
    assert compare_unpaired(values, values[:6], seed=7) == compare_unpaired(values, values[:6], seed=7)


def test_unpaired_with_few_values_spans_every_ratio():
    result = compare_unpaired([1.0, 2.0], [0.5, 1.0])
    assert (result.ratio, result.lo, result.hi) == (2.0, 1.0, 4.0)   # 1.5/0.75; 1/1; 2/0.5


@pytest.mark.parametrize(("rounds", "verdict"), [(1, "unknown"), (2, "unknown"), (3, "faster")])
def test_no_word_before_three_rounds(rounds, verdict):
    baseline, sample = dict.fromkeys(range(rounds), 2.0), dict.fromkeys(range(rounds), 1.0)
    assert compare_paired(baseline, sample, floor=0.01).verdict() == verdict
