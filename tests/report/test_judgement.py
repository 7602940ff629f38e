"""What may be said of two cells, and what `--fail-on` makes of it."""

from dataclasses import replace
from math import inf

import pytest

from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.comparison import in_short
from gilscope.toolkit.report.table.contrast import Contrast
from gilscope.toolkit.report.table.judgement import gate, rounds_to_tell, unjudged
from gilscope.toolkit.stats.sample import summarize
from gilscope.toolkit.stats.verdict import Comparison, Unjudged

CELL = Cell(workload="w", runner="threads", workers=2, build="3.14")
TIME = summarize([1.0] * 8)


def compared(ratio, lo, hi, *, floor=0.01, rounds=12, between=None):
    return Comparison(
        ratio=ratio, lo=lo, hi=hi, floor=floor, rounds=rounds, verdict_interval=between)


def contrast(comparison):
    return Contrast(baseline=CELL, sample=CELL, clock="wall", comparison=comparison, baseline_time=TIME,
                    sample_time=TIME)


@pytest.mark.parametrize(("comparison", "judgement"), [
    (compared(0.6, 0.28, 0.94, between=(0.28, 1.14)), "cannot tell"),     # slower alone, not among others
    (compared(1.0, 0.9, 1.1), "cannot tell"),                 # no difference shown, 10 % not excluded
    (compared(1.0, 0.98, 1.02), "same"),
    (compared(1.0, 0.98, 1.02, between=(0.95, 1.05)), "cannot tell"),   # among others, more is possible
    (compared(1.0, 0.97, 1.0), "cannot tell"),                # 1 / 0.97 is 3.1 % slower
    (compared(1.0, 0.971, 1.029), "same"),
    (compared(1.0, 1.0, 1.0, floor=None), "cannot tell"),
    (compared(0.8, 0.78, 0.82), "slower"),
    (compared(1.5, 1.4, 1.6), "faster"),
])
def test_same_is_said_only_where_a_difference_is_excluded(comparison, judgement):
    assert comparison.verdict() == judgement


@pytest.mark.parametrize(("comparison", "rounds"), [
    # A probability of 80 % asks for 0.84 / 1.96 = 0.43 of the half interval more; on both sides for 1.28 / 1.96 = 0.65.
    (compared(1.0, 1 / 1.06, 1.06), 120),            # 1.65 * ln 1.06 / ln 1.03 = 3.26 too wide: 12 * 3.26**2 = 127,
    # less those that are taken for a difference: 118, in two digits
    (compared(0.9, 0.8, 1.01), 31),                  # 1.43 * ln(0.9 / 0.8) against ln 0.9: 12 * (0.168 / 0.105)**2
    (compared(1.0, 1 / 1.01, 1.01, between=(1 / 1.06, 1.06)), 58),   # among others, it is too wide
    (compared(1.0, 0.5, 2.0), None),                 # ln 2 / ln 1.03: 6600 rounds are no advice
    (compared(1.0, 0.9, 1.1, rounds=2), 64),   # 2 * (1.62 * 0.105 / 0.0296)**2 = 66
    (compared(1.0, 0.98, 1.02, rounds=2), 3),              # the fewest that have a verdict
    (compared(1.0, 0.0, inf, floor=None), None),
])
def test_rounds_that_would_tell_follow_from_the_width(comparison, rounds):
    assert rounds_to_tell(comparison) == rounds


@pytest.mark.parametrize(("comparison", "place"), [
    (compared(0.8, 0.78, 0.82), "past"),
    (compared(0.94, 0.90, 0.98), "undecided"),            # slower, by 2 to 11 %: nobody knows whether by 5
    (compared(0.98, 0.97, 0.99, floor=0.001), "within"),  # slower, by 3 % at most
    (compared(1.0, 0.99, 1.01), "within"),
    (compared(1.0, 0.9, 1.1), "undecided"),
    (compared(1.0, 0.99, 1.01, between=(0.94, 1.06)), "undecided"),
    (compared(2.0, 1.9, 2.1, floor=0.06), "within"),      # twice as fast is not slower, whatever the floor
    (compared(0.8, 0.78, 0.82, between=(0.0, inf)), "undecided"),
    (compared(1.0, 1.0, 1.0, floor=None), "undecided"),
])
def test_gate_sorts_by_what_is_excluded(comparison, place):
    found = gate([contrast(comparison)], 0.05)
    assert len(getattr(found, place)) == 1
    assert found.judged == (place in {"past", "within"})


def test_gate_counts_cells_without_a_comparison():
    alone = replace(contrast(None), sample_time=None, reason="only in A")
    nothing = replace(alone, baseline_time=None)
    found = gate([alone, nothing, contrast(None)], 0.05)
    assert (len(found.one_sided), len(found.empty), found.judged) == (1, 2, 0)


def test_sum_of_it_has_every_cell_once():
    contrasts = [contrast(compared(*each)) for each in (
        (2.0, 1.9, 2.1), (0.8, 0.78, 0.82), (1.0, 0.99, 1.01), (1.0, 0.9, 1.1))]
    assert in_short([*contrasts, contrast(None)], "A", "B") == [
        "4 cells compared: 1 faster, 1 slower, 1 same (within 3 %), 1 cannot tell. 1 not compared."]
    assert in_short([contrast(None)], "A", "B") == ["No cell could be compared."]


def test_gate_judges_no_two_runs_however_far_they_are_apart():
    apart = replace(compared(0.5, 0.49, 0.51, floor=None), paired=False)
    assert gate([contrast(apart)], 0.05).judged == 0
    assert (apart.verdict(), apart.judgeable, unjudged(apart)) == ("cannot tell", False, Unjudged.TWO_RUNS)
    assert apart.printed == (0.49, 0.51)   # there is an interval, though it decides nothing
