"""Seconds, bytes, counts and long lists as people read and write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gilscope.toolkit.units import counted, few, format_bytes, format_seconds, inflect, parse_seconds, percent


@pytest.mark.parametrize(("seconds", "text"), [
    (0.094, "94.0 ms"), (0.0, "0 s"), (1.0, "1.00 s"), (0.9996, "1.00 s"), (0.9994, "999 ms"), (12.34, "12.3 s"),
    (123.4, "123 s"),
    (9.996, "10.0 s"), (99.96, "100 s"), (1e-3, "1.00 ms"), (0.00123456, "1.23 ms"), (1e-6, "1.00 µs"),
    (1e-9, "1.00 ns"),
    (1.5e-10, "0.15 ns"), (3600.0, "3600 s"), (-0.094, "-94.0 ms"),
])
def test_seconds_have_three_digits_and_a_unit(seconds, text):
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(("share", "digits", "text"), [
    (0.013, 1, "1.3 %"), (0.0002, 1, "<0.1 %"), (0.0, 1, "0.0 %"), (0.25, 1, "25.0 %"), (0.583, 0, "58 %"),
    (0.004, 0, "<1 %"), (0.0, 0, "0 %"), (0.00004, 2, "<0.01 %"),
])
def test_share_that_rounds_to_nothing_is_not_nothing(share, digits, text):
    assert percent(share, digits) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0 rounds"), (1, "1 round"), (2, "2 rounds")])
def test_one_is_not_many(number, text):
    assert counted(number, "round") == text


@pytest.mark.parametrize(("number", "text"), [(0, "tries do"), (1, "try does"), (2, "tries do")])
def test_irregular_forms_and_verbs_agree_with_the_number(number, text):
    assert f"{inflect(number, 'try', 'tries')} {inflect(number, 'does', 'do')}" == text


@pytest.mark.parametrize(("names", "text"), [
    ((), ""), (("a",), "a"), (("a", "b"), "a, b"), (("a", "b", "c"), "a, b and 1 more")])
def test_many_names_are_cut_and_counted(names, text):
    assert few(names, 2) == text
    assert few(names, 2, "; ") == text.replace(", ", "; ")


@pytest.mark.parametrize(("count", "text"), [
    (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (1258291.2, "1.2 MiB"), (2**30, "1.0 GiB"),
    (2**40, "1024.0 GiB"), (-2048, "-2.0 KiB"), (1024**2 - 1, "1.0 MiB"), (1024**3 - 1, "1.0 GiB"),
])
def test_bytes_have_binary_units(count, text):
    assert format_bytes(count) == text


@pytest.mark.parametrize(("text", "seconds"), [
    ("250ms", 0.25), ("10s", 10.0), ("5m", 300.0), ("1h", 3600.0), ("7s", 7.0), ("1.5 s", 1.5), (" 3us ", 3e-6),
    ("1e-3s", 1e-3), ("1e3ms", 1.0), ("20ns", 2e-8), (".5m", 30.0),
])
def test_durations_are_read(text, seconds):
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", [
    "", " ", "s", "0", "0s", "-1s", "5 minutes", "1m30s", "1d", "ms5", "inf", "nan", "1e400", "infs", "5M", "1_0x",
    "five", "1,5s", "7",
])
def test_other_texts_are_no_durations(text):
    with pytest.raises(ValueError, match="duration"):
        parse_seconds(text)


@given(st.floats(1e-9, 1e5))
def test_formatted_seconds_are_read_again_to_three_digits(seconds):
    assert parse_seconds(format_seconds(seconds)) == pytest.approx(seconds, rel=0.006)
