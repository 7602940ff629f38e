import pytest

from gilscope.toolkit.report.document import Duration, Entry
from gilscope.toolkit.report.wording import (
    ascii_text,
    cost_text,
    duration_text,
    entry_text,
    estimate_text,
    inflation_text,
    percent_text,
    ratio_number,
    ratio_text,
    spelling,
)
from gilscope.toolkit.stats.paired import Comparison
from gilscope.toolkit.stats.scaling import Estimate


def comparison(ratio, lo, hi, floor=0.013):
    return Comparison(ratio=ratio, lo=lo, hi=hi, confidence=0.95, floor=floor, rounds=20)


@pytest.mark.parametrize(("compared", "text"), [
    (comparison(3.4, 3.32, 3.49), "3.40x [3.32, 3.49]"),
    (comparison(0.9, 0.85, 0.95), "0.90x [0.85, 0.95]"),
    (comparison(0.9612, 0.9598, 0.9631), "0.961x [0.960, 0.963]"),   # a narrow interval stays visible
    (comparison(1.001, 0.995, 1.005), "~ (floor 1.3 %)"),
    (comparison(1.05, 0.92, 1.2), "~ [0.92, 1.20]"),              # not shown, but not excluded either
    (comparison(3.4, 3.32, 3.49, floor=None), "3.40x [3.32, 3.49] ?"),
])
def test_ratio_is_only_claimed_with_its_verdict(compared, text):
    assert ratio_text(compared) == text


@pytest.mark.parametrize(("compared", "text"), [
    (comparison(1 / 1.075, 1 / 1.087, 1 / 1.062), "+7.5 % [+6.2, +8.7]"),
    (comparison(1.001, 0.995, 1.005), "~ (floor 1.3 %)"),
    (comparison(1.0, 1 / 1.05, 1 / 0.96), "~ [-4.0, +5.0]"),
    (comparison(1 / 0.9, 1 / 0.91, 1 / 0.89, floor=None), "-10.0 % [-11.0, -9.0] ?"),
])
def test_cost_is_what_the_sample_takes_more(compared, text):
    assert cost_text(compared) == text


@pytest.mark.parametrize(("compared", "text"), [
    (comparison(1.31, 1.3, 1.32), "1.31x"),
    (comparison(1.0, 0.99, 1.01), "~"),
    (comparison(1.31, 1.3, 1.32, floor=None), "1.31x ?"),
])
def test_inflation_is_short(compared, text):
    assert inflation_text(compared) == text


@pytest.mark.parametrize(("ratio", "text"), [
    (0.0123, "0.0123"), (0.97, "0.97"), (0.1, "0.10"), (0.999, "1.00"), (1.0, "1.00"), (3.4, "3.40"), (9.994, "9.99"),
    (9.996, "10.0"), (12.5, "12.5"), (99.96, "100"), (130.4, "130"),
])
def test_ratio_has_the_digits_that_mean_something(ratio, text):
    assert ratio_number(ratio) == text


@pytest.mark.parametrize(("share", "text"), [(0.013, "1.3 %"), (0.0002, "<0.1 %"), (0.0, "0.0 %"), (0.25, "25.0 %")])
def test_share_that_rounds_to_nothing_is_not_nothing(share, text):
    assert percent_text(share) == text


def test_estimate_has_two_digits():
    assert estimate_text(Estimate(value=0.0304, lo=0.00199, hi=0.997)) == "3 % [0.2, 100]"


def test_interval_is_written_in_as_many_digits_as_show_that_it_has_two_ends():
    assert estimate_text(Estimate(value=0.998, lo=0.9961, hi=1.0)) == "99.8 % [99.6, 100]"


def test_duration_without_a_spread_has_none():
    assert duration_text(Duration(0.412, 0.01)) == "412 ms ±1 %"
    assert duration_text(Duration(0.412)) == "412 ms"


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
    ("latin-1", "skipped (1) (4) ±1 % µs \\u017a"),      # it has three of the raised digits: not enough
    ("iso8859-2", "skipped (1) (4) +-1 % us ź"),
    ("ascii", "skipped (1) (4) +-1 % us \\u017a"),
    ("no such encoding", "skipped (1) (4) +-1 % us \\u017a"),
    (None, "skipped (1) (4) +-1 % us \\u017a"),
])
def test_spelling_uses_what_the_encoding_has(encoding, spelled):
    assert spelling(encoding)("skipped¹ ⁴ ±1 % µs ź") == spelled


def test_file_name_that_is_no_text_can_be_written():
    spelling("utf-8")("caf\udce9.py").encode("utf-8")
