"""Arguments made anew, and results made comparable."""

import pytest

from gilscope.toolkit.hammer.values import as_text, can_vary, fresh, varied, with_fresh_arguments

NEW = ["some text", b"some bytes", 123456, 1.5, ("a text", 3), ["a text"], {"key": [1]}, {"one", "two"},
       bytearray(b"x")]


@pytest.mark.parametrize("value", NEW)
def test_fresh_value_is_equal_and_another_object(value):
    made = fresh(value)
    assert (made, type(made)) == (value, type(value))
    assert made is not value


@pytest.mark.parametrize("value", NEW)
def test_call_has_a_new_object_each_time(value):
    seen = []
    call = with_fresh_arguments(lambda one, *, word: seen.extend((one, word)), (value,), {"word": value})
    call()
    call()
    assert seen == [value] * 4
    assert len({id(each) for each in (*seen, value)}) == 5


@pytest.mark.parametrize("value", ["a", b"a", 3, 1.5, ("a", 2)])
def test_variations_differ_and_number_0_is_the_value(value):
    assert can_vary(value)
    assert varied(value, 0) == value
    assert len({varied(value, number) for number in range(5)}) == 5


def test_other_values_do_not_vary():
    assert not any(map(can_vary, (None, True, [1], {}, (), object())))


class Plain:
    """Says where it lies."""


class Spoken:
    def __repr__(self):
        return "Spoken(3)"


class Broken:
    def __repr__(self):
        raise ValueError


def test_text_of_equal_results_is_the_same():
    assert as_text({3, 1, 2}) == as_text({2, 3, 1})
    assert as_text({"b": 1, "a": [Plain()]}) == as_text({"a": [Plain()], "b": 1})
    assert as_text(Plain()) == as_text(Plain())
    assert as_text(Spoken()).endswith("Spoken(3)")
    assert as_text(Broken()).endswith("without repr (ValueError)")


def test_text_of_other_results_differs():
    texts = [as_text(each) for each in (1, True, 1.0, "1", b"1", [1], (1,), {1}, {1: 1}, None, "a" * 400, "a" * 401)]
    assert len({*texts}) == len(texts)
