"""Which requirements of a distribution are for its extras, however the condition is written."""

import pytest

from gilscope.toolkit.evaluate.requirements.extras import for_extra, is_of_an_extra

FORMS = ['foo; extra == "dev"', "foo; extra=='dev'", 'foo;extra=="dev"', 'foo; "dev" == extra', "foo; 'dev'==extra",
         'foo; extra   ==   "Dev"']


@pytest.mark.parametrize("text", FORMS)
def test_requirement_of_an_extra_however_it_is_written(text):
    assert is_of_an_extra(text)
    assert for_extra(text, "dev") == 'foo; python_version >= "3"'
    assert for_extra(text, "test") is None


@pytest.mark.parametrize("text", [
    "foo", "foo>=1", 'foo; python_version >= "3.9"', "extra == 1", 'extra-x; sys_platform == "extra"', "Needed (>=1)"])
def test_requirement_of_everybody(text):
    assert not is_of_an_extra(text)
    assert for_extra(text, "extra") is None


def test_rest_of_the_marker_stays():
    text = """foo[a]<2; python_version < '3.9' and (extra == "test_all" or "x" == extra)"""
    assert for_extra(text, "test-all") == (
        'foo[a]<2; python_version < "3.9" and (python_version >= "3" or python_version < "3")')
    assert for_extra('foo @ https://example.org/foo.zip ; extra == "dev"', "dev") == (
        'foo @ https://example.org/foo.zip ; python_version >= "3"')
