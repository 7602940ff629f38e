import math

import pytest

from gilscope.toolkit.report.document import Entry, GainValue, Quantity
from gilscope.toolkit.report.table_sentences import spread_line
from gilscope.toolkit.report.wording import (
    ascii_text,
    cost_text,
    entry_text,
    floors_text,
    gain_text,
    half_width_text,
    inflation_text,
    limits_text,
    price_text,
    quantity_text,
    range_of,
    ratio_number,
    ratio_text,
    spelling,
)
from gilscope.toolkit.stats.sample import summarize
from gilscope.toolkit.stats.verdict import Comparison


def comparison(ratio, lo, hi, floor=0.013, verdict_interval=None):
    return Comparison(ratio=ratio, lo=lo, hi=hi, floor=floor, rounds=20,
                      verdict_interval=verdict_interval)


@pytest.mark.parametrize(("compared", "text"), [
    (comparison(3.4, 3.32, 3.49), "3.40x [3.32, 3.49]"),
    (comparison(0.9, 0.85, 0.95), "0.90x [0.85, 0.95]"),
    (comparison(0.9612, 0.9598, 0.9631), "0.961x [0.960, 0.963]"),   # a narrow interval stays visible
    (comparison(1.001, 0.995, 1.005), "none beyond 3 %"),
    (comparison(1.05, 0.92, 1.2), "1.05x [0.92, 1.20] ?"),              # not shown, but not excluded either
    (comparison(1.05, 1.03, 1.07, verdict_interval=(0.99, 1.11)), "1.05x [0.99, 1.11] ?"),   # one of many: not shown
    (comparison(3.4, 3.32, 3.49, floor=None), "3.40x ?"),
])
def test_ratio_is_only_claimed_with_its_verdict(compared, text):
    assert ratio_text(compared) == text


@pytest.mark.parametrize(("compared", "text"), [
    (comparison(1 / 1.075, 1 / 1.087, 1 / 1.062), "+7.5 % [+6.2, +8.7]"),
    (comparison(1.001, 0.995, 1.005), "none beyond 3 %"),
    (comparison(1.0, 1 / 1.05, 1 / 0.96), "+0.0 % [-4.0, +5.0] ?"),
    (comparison(1 / 0.9, 1 / 0.91, 1 / 0.89, floor=None), "-10.0 % ?"),
])
def test_cost_is_what_the_sample_takes_more(compared, text):
    assert cost_text(compared) == text


@pytest.mark.parametrize(("compared", "text"), [
    (comparison(1.31, 1.3, 1.32), "1.31x"),
    (comparison(1.0, 0.99, 1.01), "same"),
    (comparison(1.05, 0.95, 1.15), "1.05x ?"),
    (comparison(1.31, 1.3, 1.32, floor=None), "1.31x ?"),
])
def test_inflation_is_short(compared, text):
    assert inflation_text(compared) == text


@pytest.mark.parametrize(("gain", "text"), [
    (GainValue(comparison(1.88, 1.86, 1.9), best=True), "1.88x*"),
    (GainValue(comparison(1.31, 1.19, 1.43), workers=4), "1.31x ±9 % N=4"),
    (GainValue(comparison(0.5, 0.49, 0.51)), "0.50x"),
    (GainValue(comparison(5.2, 2.1, 10.9), best=True), "at least 2.10x*"),   # not ±110 %
    (GainValue(comparison(5.2, 2.1099, 10.9)), "at least 2.10x"),            # 2.11 is not sure
    (GainValue(comparison(0.2, 0.05, 0.5101)), "at most 0.52x"),
    (GainValue(comparison(1.1, 0.0999, 2.2)), "0.09-2.20x?"),                 # no ratio is 0
    (GainValue(comparison(0.3, 0.1, 0.7)), "at most 0.70x"),
    (GainValue(comparison(1.0, 0.99, 1.01)), "none"),
    (GainValue(comparison(0.98, 0.975, 0.985)), "0.98x"),          # a verdict, however small the loss
    (GainValue(comparison(0.9, 0.8, 1.01)), "none"),               # may lose, does not gain
    (GainValue(comparison(1.4, 0.9, 2.2)), "0.90-2.20x?"),
    (GainValue(comparison(1.1, 0.853, 1.328)), "0.85-1.33x?"),      # rounded outward
    (GainValue(comparison(1.02, 0.96, 1.08), best=True), "0.96-1.08x?"),
    (GainValue(comparison(1.4, 0.0, math.inf, floor=None)), "?"),  # one process tells nothing
    (GainValue(comparison(1.4, 0.01, 1e9, floor=None)), "?"),      # nor do two that differ
    (GainValue(comparison(1.3, 1.25, 1.35, floor=None)), "1.25-1.35x?"),
])
def test_gain_is_short_and_claims_what_is_shown(gain, text):
    assert gain_text(gain) == text


def test_costs_that_cannot_be_told_are_rounded_outward():
    assert limits_text(comparison(1.0, 0.9, 1.1, verdict_interval=(1 / 1.0511, 1 / 0.9851))) == "-2 to +6 %"
    assert limits_text(comparison(1.0, 0.9, 1.1, verdict_interval=(1 / 1.05, 1.0))) == "0 to +5 %"
    assert limits_text(comparison(1.0, 0.9, 1.1, verdict_interval=(0.0, math.inf))) == ""


@pytest.mark.parametrize(("lo", "hi", "text"), [
    (0.9, 2.2, "0.90-2.20x"), (0.0999, 2.2001, "0.09-2.21x"), (0.9049, 12.31, "0.90-12.31x"),   # outward, as in tables
    (0.0, math.inf, ""), (0.001, 1e17, "")])
def test_range_says_what_is_possible_if_that_is_anything(lo, hi, text):
    assert range_of(lo, hi) == text


@pytest.mark.parametrize(("floors", "text"), [
    ([0.012], "1.2 %"), ([0.034, 0.012], "1.2 to 3.4 %"), ([0.034, 3.179], "3.4 to above 100 %"),
    ([1.5, 3.179], "above 100 %"), ([1.0], "100.0 %"),
])
def test_noise_floor_above_100_percent_has_no_figure(floors, text):
    assert floors_text(floors) == text


@pytest.mark.parametrize(("ratio", "text"), [
    (0.0123, "0.0123"), (0.97, "0.97"), (0.1, "0.10"), (0.999, "1.00"), (1.0, "1.00"), (3.4, "3.40"), (9.994, "9.99"),
    (9.996, "10.0"), (12.5, "12.5"), (99.96, "100"), (130.4, "130"),
])
def test_ratio_has_the_digits_that_mean_something(ratio, text):
    assert ratio_number(ratio) == text


def test_duration_without_a_spread_has_none():
    assert quantity_text(Quantity(0.412, "seconds", 0.01)) == "412 ms ±1 %"
    assert quantity_text(Quantity(0.412, "seconds")) == "412 ms"


def test_marks_follow_their_entry():
    assert entry_text(Entry("skipped", (1, 12))) == "skipped¹ ¹²"


@pytest.mark.parametrize(("text", "ascii_"), [
    ("900 µs", "900 us"),
    ("skipped¹ ¹²", "skipped (1) (12)"), ("¹ the reason", "(1) the reason"), ("±1 %", "+-1 %"), ("naïve", "na\\xefve"),
])
def test_ascii_keeps_every_meaning(text, ascii_):
    assert ascii_text(text) == ascii_


@pytest.mark.parametrize(("encoding", "spelled"), [
    ("utf-8", "skipped¹ ⁴ ±1 % µs ź"),
    ("utf-16", "skipped¹ ⁴ ±1 % µs ź"),
    ("latin-1", "skipped (1) (4) +-1 % us \\u017a"),      # it has three of the raised digits: not enough
    ("iso8859-2", "skipped (1) (4) +-1 % us ź"),
    ("ascii", "skipped (1) (4) +-1 % us \\u017a"),
    ("no such encoding", "skipped (1) (4) +-1 % us \\u017a"),
    (None, "skipped (1) (4) +-1 % us \\u017a"),
])
def test_spelling_uses_what_the_encoding_has(encoding, spelled):
    assert spelling(encoding)("skipped¹ ⁴ ±1 % µs ź") == spelled


def test_file_name_that_is_no_text_can_be_written():
    spelling("utf-8")("caf\udce9.py").encode("utf-8")


@pytest.mark.parametrize(("spread", "shown"), [(0.04, "±4 %"), (0.99, "±99 %"), (10.52, "±100 % or more")])
def test_half_width_as_large_as_its_number_is_no_number(spread, shown):
    assert half_width_text(spread) == shown
    assert quantity_text(Quantity(0.4, "seconds", spread)) == f"400 ms {shown}"
    assert quantity_text(Quantity(400, "/s", spread)) == f"400/s {shown}"


@pytest.mark.parametrize(("ratio", "lo", "hi", "text"), [
    (1 / 1.114, 1 / 1.176, 1 / 1.055, "11 % [5, 18]"),        # an interval of 12 points: no decimals
    (1 / 1.05, 1 / 1.055, 1 / 1.045, "5.0 % [4.5, 5.5]"),     # of one point: one
    (1.25, 1.2, 1.3, "20 % [17, 23]"),                        # the sample takes less time
])
def test_price_has_as_many_digits_as_its_interval_is_sharp(ratio, lo, hi, text):
    seen = Comparison(ratio=ratio, lo=lo, hi=hi, floor=0.01, rounds=8)
    assert price_text(seen, interval=True) == text
    assert price_text(seen, interval=False) == f"{text.split()[0].split('.')[0]} %"


@pytest.mark.parametrize(("counts", "text"), [
    ((6, 12), None), ((1,), None),   # 6 are enough; one has no ± at all
    ((4, 6), "with 4 processes it is half of their range, which holds with 87.5 %."),
    ((4, 5, 4), "with 4 or 5 processes it is half of their range, which holds with 87.5 or 93.8 %."),
])
def test_line_says_the_confidence_of_times_where_it_is_lower(counts, text):
    line = spread_line([summarize([1.0 + n for n in range(count)]) for count in counts])
    assert line == (text and f"Times: ± is half of the 95 % interval of the median; {text}")


@pytest.mark.parametrize(("half", "text"), [
    (0.04, "1.81x"), (0.0449, "1.81x"), (0.0451, "1.81x ±5 %"), (0.05, "1.81x ±5 %"),   # the legend: wider than 4 %
])
def test_spread_of_a_gain_is_shown_where_it_is_printed_wider_than_the_legend_says(half, text):
    gain = Comparison(ratio=1.81, lo=1.81 / (1 + half), hi=1.81 * (1 + half), floor=0.01, rounds=8)
    assert gain_text(GainValue(gain, best=False)) == text
