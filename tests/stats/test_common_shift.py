"""The common shift of two runs: when there is one, how far, and what it leaves of each ratio."""

import random
from math import exp, inf

import pytest

from gilscope.toolkit.stats.common_shift import (
    TYPICAL_SHIFT,
    BuildWorkload,
    common_shift,
    most_moved,
    weighted_median,
    without_shift,
)
from gilscope.toolkit.stats.noise import pool_noise
from gilscope.toolkit.stats.unpaired import ErrorPart, RunLevel, UnpairedRatio, run_level
from gilscope.toolkit.stats.verdict import ShiftBasis, verdict_for
from tests.stats.matrix import two_runs


def made(effects, *, error=0.005, rounds=8, builds=("3.14",)):
    """Return ratios and places of cells, one for each of `effects` by workload and build, without noise.

    `error` is that of all workloads, or by workload.
    """
    def level(center, error):
        part = ErrorPart(square=error**2, freedom=20)
        return RunLevel(center=center, rounds=rounds, own=part, usual=part, machine=part, kept=0.9)

    ratios, places = {}, {}
    for workload, own in effects.items():
        by_build = own if isinstance(own, dict) else dict.fromkeys(builds, own)
        for build, several in by_build.items():
            for n, effect in enumerate(several if isinstance(several, list) else [several] * 3):
                key = f"{workload} {build} {n}"
                errors = error[workload] if isinstance(error, dict) else error
                ratios[key] = UnpairedRatio(before=level(0.0, errors), after=level(-effect, errors))
                places[key] = BuildWorkload(workload=workload, build=build)
    return ratios, places


def words(ratios, places, confidence=0.999):
    shift = common_shift(ratios, places, "wall")
    rest = without_shift(ratios, places, shift.basis if shift else None, len(ratios))
    return {key: verdict_for(each.ratio, each.between(confidence), each.floor)
            for key, each in {**ratios, **rest}.items()}


def named(ratios, places, word):
    return {key for key, found in words(ratios, places).items() if found == word}


def test_workloads_that_moved_alike_have_a_shift_and_no_verdict():
    ratios, places = made({"a": -0.10, "b": -0.11, "c": -0.09, "d": -0.10})
    shift = common_shift(ratios, places, "wall")
    assert shift.basis is ShiftBasis.WORKLOADS
    assert shift.ratio == pytest.approx(exp(-0.10))
    lo, hi = shift.interval
    assert lo < exp(-0.11) < exp(-0.09) < hi < 1
    assert shift.workloads[0].workload == "b"
    assert set(words(ratios, places).values()) == {"cannot tell"}


def test_workload_that_moved_much_more_is_named():
    ratios, places = made({"a": -0.05, "b": -0.05, "c": -0.05, "d": -0.05, "e": -0.25})
    assert named(ratios, places, "slower") == {"e 3.14 0", "e 3.14 1", "e 3.14 2"}
    ratios, places = made({"a": -0.05, "b": -0.05, "c": -0.05, "d": -0.05, "e": 0.2})
    assert named(ratios, places, "faster") == {"e 3.14 0", "e 3.14 1", "e 3.14 2"}


UNEVEN = {"a": 0.004, "b": 0.004, "c": 0.06, "d": 0.06}


def test_shift_that_noisy_workloads_hide_gives_the_others_no_verdict():
    ratios, places = made({"a": -0.05, "b": -0.05, "c": 0.02, "d": -0.03}, error=UNEVEN)
    assert common_shift(ratios, places, "wall") is None
    assert verdict_for(ratios["a 3.14 0"].ratio, ratios["a 3.14 0"].between(0.95), 0.0) == "slower"
    assert named(ratios, places, "slower") == set()


def test_precise_workload_that_did_not_move_shows_that_the_machine_did_not_beside_noisy_ones():
    ratios, places = made({"a": -0.15, "b": 0.0, "c": 0.02, "d": -0.03}, error=UNEVEN)
    assert named(ratios, places, "slower") == {"a 3.14 0", "a 3.14 1", "a 3.14 2"}


def test_precise_workload_does_not_hide_how_far_the_others_scatter():
    """One that hardly moved, where most moved far: the others are no measure of a cell that moved as they did."""
    ratios, places = made({"x": -0.40, "a": -0.02, "c": -0.10, "d": -0.45, "e": -0.60},
                          error={"x": 0.004, "a": 0.002, "c": 0.04, "d": 0.04, "e": 0.04})
    assert not {name for name, word in words(ratios, places, 0.95).items() if word == "slower" and name[0] == "x"}


def test_what_is_the_same_needs_no_other_workload():
    ratios, places = made(dict.fromkeys("abcd", 0.0), error=0.002)
    assert set(words(ratios, places).values()) == {"same"}


@pytest.mark.parametrize(("values", "median"), [
    ([(3.0, 1.0), (1.0, 1.0), (2.0, 1.0)], 2.0), ([(4.0, 2.0), (1.0, 2.0), (2.0, 2.0), (3.0, 2.0)], 2.5),
    ([(1.0, 5.0)], 1.0), ([(1.0, 1.0), (2.0, 1000.0), (9.0, 1.0)], 2.0), ([(1.0, 3.0), (2.0, 1.0)], 1.25)])
def test_median_goes_by_weights(values, median):
    assert weighted_median(values) == pytest.approx(median)


def test_workload_that_hardly_moved_where_all_others_did_is_not_called_faster():
    ratios, places = made(dict.fromkeys("abcdefgh", -0.08) | {"i": -0.008}, error=0.001)
    shift = common_shift(ratios, places, "wall")
    lo, _ = without_shift(ratios, places, shift.basis, 1)["i 3.14 0"].remaining()
    assert lo > 1, "without the shift it would be faster"
    assert words(ratios, places, 0.95)["i 3.14 0"] == "cannot tell"


def test_what_remains_is_measured_by_the_other_workloads():
    ratios, places = made({"a": -0.05, "b": -0.15, "c": -0.30})
    rest = without_shift(ratios, places, ShiftBasis.WORKLOADS, 1)
    assert rest["c 3.14 0"].center == pytest.approx(-0.30 + 0.10)
    assert rest["a 3.14 0"].center == pytest.approx(-0.05 + 0.225)


def test_shift_is_that_of_the_majority():
    shift = common_shift(*made({"a": -0.1, "b": -0.1, "c": -0.1, "d": -0.1, "e": -0.9}), "wall")
    assert shift.center == pytest.approx(-0.1)


def width(movements):
    ratios, places = made(dict(zip("abcdefgh", movements, strict=False)))
    lo, hi = without_shift(ratios, places, ShiftBasis.WORKLOADS, 1)["a 3.14 0"].remaining()
    return hi / lo


def test_what_remains_is_less_certain_where_workloads_scatter():
    assert width([-0.1] * 5) * 1.2 < width([-0.1, 0.0, -0.05, -0.15, -0.2])


def test_what_remains_is_less_certain_after_a_large_shift():
    assert width([-0.05] * 5) * 1.2 < width([-0.3] * 5)


def test_workloads_are_counted_and_not_cells():
    ratios, places = made({"many": {"3.14": [-0.1] * 40}, "a": 0.0, "b": 0.0})
    assert common_shift(ratios, places, "wall") is None
    assert words(ratios, places)["many 3.14 0"] == "slower"


def test_few_cells_of_each_workload_are_no_shift():
    ratios, places = made({name: {"3.14": [0.0, 0.0, 0.0, -0.2]} for name in "abcd"})
    assert common_shift(ratios, places, "wall") is None
    assert words(ratios, places)["a 3.14 3"] == "slower"


def test_build_that_did_not_move_shows_that_the_machine_did_not():
    ratios, places = made({name: {"3.14": 0.0, "3.14t": -0.1} for name in "abcd"})
    assert common_shift(ratios, places, "wall") is None
    assert {key.split()[1] for key, word in words(ratios, places).items() if word == "slower"} == {"3.14t"}


def test_builds_that_moved_the_other_way_are_no_shift():
    ratios, places = made({name: {"3.14": 0.1, "3.14t": -0.1} for name in "abcd"})
    assert common_shift(ratios, places, "wall") is None


def test_half_of_the_workloads_are_no_majority():
    ratios, places = made({"a": -0.1, "b": -0.1, "c": 0.0, "d": 0.0})
    assert common_shift(ratios, places, "wall") is None
    assert common_shift(*made({"a": -0.1, "b": -0.1, "c": -0.1, "d": 0.0}), "wall") is not None


@pytest.mark.parametrize(("workloads", "moved"), [(3, 1), (4, 2), (8, 4), (12, 6)])
def test_workloads_that_are_no_majority_are_seldom_taken_for_one(workloads, moved):
    # The others did not move: their p-values are uniform.  2.5 % is the test's level, and 2,000 draws have an error of
    # 0.35 percentage points.
    draw = random.Random(1)
    chances = ([0.0] * moved + [draw.random() for _ in range(workloads - moved)] for _ in range(2000))
    assert sum(map(most_moved, chances)) <= 0.036 * 2000


@pytest.mark.parametrize("workloads", [1, 2])
def test_one_or_two_workloads_are_judged_with_a_typical_shift(workloads):
    names = "ab"[:workloads]
    ratios, places = made(dict.fromkeys(names, -TYPICAL_SHIFT))
    assert common_shift(ratios, places, "wall").basis is ShiftBasis.TYPICAL
    assert set(words(ratios, places).values()) == {"cannot tell"}
    ratios, places = made(dict.fromkeys(names, -5 * TYPICAL_SHIFT))
    assert set(words(ratios, places).values()) == {"slower"}


def test_few_workloads_make_the_interval_of_what_remains_wide():
    def half(count):
        ratios, places = made(dict.fromkeys("abcdefghijkl"[:count], -0.05))
        lo, hi = without_shift(ratios, places, ShiftBasis.WORKLOADS, 1)["a 3.14 0"].remaining()
        return hi - lo
    assert half(3) > half(5) > half(12)
    assert half(3) > 1.2 * half(12)


def test_workloads_that_moved_unequally_leave_nothing_to_name():
    ratios, places = made({"a": -0.1, "b": -0.3, "c": -0.45, "d": -0.64})
    assert set(words(ratios, places).values()) == {"cannot tell"}


def test_cells_with_unknown_noise_say_nothing():
    ratios, places = made({"a": -0.1, "b": -0.1, "c": -0.1}, rounds=2)
    assert common_shift(ratios, places, "wall") is None
    ratios, places = made({"a": -0.1, "b": -0.1, "c": -0.1}, error=inf)
    assert common_shift(ratios, places, "wall") is None
    assert common_shift({}, {}, "wall") is None


@pytest.mark.newest
def test_shift_of_a_twentieth_leaves_a_tenth_more_to_name_and_nothing_else():
    named, false, tables = 0, 0, 12
    draw = random.Random(7)
    for _ in range(tables):
        ratios = {}
        for k in range(4):
            runs = two_runs(draw, "normal", 6, [-0.15 if k == 0 else -0.05] * 5, 0.01)
            noises = [pool_noise({0: logs}, draws=0)[0] for logs in runs]
            for arm in range(5):
                before, after = (run_level(logs, noise, arm) for logs, noise in zip(runs, noises, strict=True))
                ratios[k, arm] = UnpairedRatio(before=before, after=after)
        said = words(ratios, {key: BuildWorkload(workload=str(key[0]), build="one") for key in ratios})
        named += any(said[0, arm] == "slower" for arm in range(5))
        false += any(word in {"slower", "faster"} for (k, _), word in said.items() if k)
    assert named >= 10
    assert false <= 1
