"""Words for numbers of several rounds: ratios by round, ranges, and what the marks of the tables mean."""

import importlib

import pytest

from gilscope.toolkit.experiments import catalog
from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.experiments.report import document, figures_of
from gilscope.toolkit.experiments.round_texts import (
    every_round,
    mark_lines,
    range_words,
    round_ratios,
    rounds_text,
    times_text,
    two_digits,
)
from gilscope.toolkit.report.document import Column, Entry, Lines, Quantity, RatioValue, Table
from gilscope.toolkit.stats.sample import summarize
from gilscope.toolkit.stats.verdict import Comparison
from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT
from tests.experiments.made_up import UNPUBLISHED, made_up_run

EXAMPLES = ROOT / "results" / "example" / "experiments"


@pytest.mark.parametrize(("number", "text"), [
    (0, "0"), (0.0797, "0.080"), (0.58, "0.58"), (0.996, "1.0"), (1.0, "1.0"), (8.77, "8.8"), (9.96, "10"),
    (14.1, "14"), (139.2, "140"), (20_917, "21,000"),
])
def test_a_ratio_has_two_digits(number, text):
    assert two_digits(number) == text


def test_ratios_are_of_rounds_that_both_have():
    assert round_ratios({0: 2.0, 2: 6.0, 3: 1.0}, {0: 1.0, 1: 5.0, 2: 2.0, 3: 0.0}) == [2.0, 3.0]


def test_a_ratio_has_the_range_of_its_rounds():
    # Of the medians, 30 and 10, the quotient is 3.
    ratios = round_ratios({0: 10.0, 1: 30.0, 2: 90.0}, {0: 10.0, 1: 1.0, 2: 20.0})
    assert times_text(ratios) == "about 4.5 times (1.0 to 30 in 3 rounds)"
    assert times_text([2.0], ", undecided") == "about 2.0 times (2.0 in one round, undecided)"
    assert rounds_text([6_400, 20_900, 9_500], unit=" requests/s") == "6,400 to 20,900 requests/s in 3 rounds"
    assert (every_round(1), every_round(3)) == ("in the one round", "in every round (3 of 3)")


@pytest.mark.parametrize(("rounds", "words"), [
    ([3], "range of 3 rounds (75 %)"), ([5, 5], "range of 5 rounds (93.8 %)"),
    ([2, 3, 1], "range of 2 or 3 rounds (50 or 75 %)"),
    ([6, 12], "95 % interval of the median"), ([5, 6], "95 % interval of the median, or range of 5 rounds (93.8 %)"),
    ([1], "range of the rounds"),
])
def test_legend_names_the_confidence_of_the_ranges(rounds, words):
    assert range_words([None, *(summarize([1.0 + each for each in range(count)]) for count in rounds)]) == words


def table(*values):
    return Table(title="t", columns=tuple(Column(title="c") for _ in values),
                 rows=(tuple(Entry(value) for value in values),))


def comparison(ratio=2.0, width=1.1, **changes):
    return Comparison(**{"ratio": ratio, "lo": ratio / width, "hi": ratio * width, "floor": 0.01,
                         "rounds": 3, **changes})


def marks(*values, rounds=(3,)):
    return [*mark_lines([Lines("", ("text",)), table(*values)],
                        [summarize([1.0 + each for each in range(count)]) for count in rounds])]


@pytest.mark.parametrize(("rounds", "line"), [
    ((3, 3), "± is half the range of the rounds, which holds with 75 % (3 rounds)."),
    ((2, 3), "± is half the range of the rounds, which holds with 50 % (2 rounds) or 75 % (3 rounds)."),
    ((6, 12), "± is half of the 95 % interval of the median."),
    ((5, 12), ("± is half of the 95 % interval of the median; with fewer rounds half their range, which holds with "
               "93.8 % (5 rounds).")),
])
def test_spread_is_explained_as_it_was_reckoned(rounds, line):
    assert marks(Quantity(1.0, "seconds", 0.1), rounds=rounds) == [line]


def test_only_marks_that_occur_are_explained():
    assert marks("text ±", Quantity(1.0, "seconds")) == []
    (interval,) = marks(RatioValue(comparison()))
    assert interval.startswith("[ ] is the 95 % interval of one ratio")
    first, second = marks(RatioValue(comparison(1.05, 1.2)))
    assert (first, second[:30]) == (interval, "? marks an undecided ratio: ju")
    assert marks(RatioValue(comparison(1.0, 1.001))) == []   # "none beyond 3 %" has neither
    spread, *_ = marks(Quantity(1.0, "seconds", 0.1), RatioValue(comparison()))
    assert spread.startswith("±")


def lines_of(found):
    return [line for section in found.sections if isinstance(section, Lines) and not section.title
            for line in section.items]


@pytest.mark.parametrize("name", catalog.EXPERIMENTS)
def test_every_report_explains_the_marks_of_its_tables(name, tmp_path):
    runs = [(made_up_run(name, EffortLevel.QUICK, tmp_path), tmp_path)]
    runs += [(load_run(EXAMPLES / name), EXAMPLES / name)] if name not in UNPUBLISHED else []
    for run, folder in runs:
        found = document(catalog.find(name), run, folder)
        values = [entry.value for each in found.sections if isinstance(each, Table) for row in each.rows
                  for entry in row]
        explained = {line[:1] for line in lines_of(found)}
        assert ("±" in explained) is any(getattr(value, "spread", None) is not None for value in values)
        assert not [value for value in values if getattr(value, "spread", None) == 0 and not value.value]
        assert ("[" in explained) >= any(isinstance(value, RatioValue) for value in values)


BY_ROUNDS = {   # figures whose lines are ranges of rounds, not intervals of ratios
    "convoy": ["convoy"], "convoy-interval": ["convoy-interval"], "affinity": ["affinity-echo"],
    "channels": ["channels", "channels-ring", "channels-fan-in"], "downloads": ["downloads", "downloads-memory"],
    "aggregator": ["aggregator", "aggregator-latency"], "lost-updates": ["lost-updates", "lost-updates-interval"],
}


@pytest.mark.parametrize("name", BY_ROUNDS)
def test_figures_of_rounds_say_of_how_many(name):
    run = load_run(EXAMPLES / name)
    counts = {len(each.observations) for each in run.measurements}
    words = "range of the rounds" if counts == {1} else range_words([summarize([1.0] * count) for count in counts])
    found = figures_of(catalog.find(name), run, EXAMPLES / name)
    assert {figure.name: figure.whiskers for figure in found if figure.name in BY_ROUNDS[name]} == dict.fromkeys(
        BY_ROUNDS[name], words)


@pytest.mark.parametrize("name", [each for each in catalog.EXPERIMENTS if each not in UNPUBLISHED])
def test_ranges_of_rounds_are_never_drawn_as_95_percent(name, monkeypatch):
    # `bounded` makes the ranges of rounds, in every experiment.
    module, drawn = importlib.import_module(type(catalog.find(name)).__module__), []
    real = getattr(module, "bounded", None)
    if real is not None:
        monkeypatch.setattr(module, "bounded", lambda *given: drawn.append(given) or real(*given))
    found = figures_of(catalog.find(name), load_run(EXAMPLES / name), EXAMPLES / name)
    assert bool(drawn) is any(figure.whiskers.startswith("range of") for figure in found)
