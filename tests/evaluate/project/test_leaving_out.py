"""Files of tests that cannot be collected are left out and named; of a suite that is too long a sample is run."""

import random
from dataclasses import replace

import pytest

from gilscope.toolkit.evaluate.project.suite.leaving_out import (
    failing,
    ignoring,
    is_pytest,
    sampled,
    seconds_by_file,
    uncollected,
)
from gilscope.toolkit.evaluate.project.suite.leaving_out import without as leave_out
from gilscope.toolkit.evaluate.sections import LeftOut, Missing
from tests.evaluate.made_up import PROJECT, suite

XML = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="" name="tests.test_broken" time="0.0"><error message="collection failure">import gone
E   ModuleNotFoundError: No module named 'gone'</error></testcase>
<testcase classname="" name="tests.no_such_file" time="0.0"><error message="collection failure">E</error></testcase>
<testcase classname="tests.test_app" name="test_a" time="0.5"/>
<testcase classname="tests.test_app.Case" name="test_b" time="0.25"><error message="failed">x</error></testcase>
<testcase classname="tests.test_other" name="test_c" time="2"/>
</testsuite></testsuites>"""
BROKEN = LeftOut(file="tests/test_broken.py", why="ModuleNotFoundError")


@pytest.fixture
def place(tmp_path):
    (tmp_path / "tests").mkdir()
    for name in ("app", "other", "broken"):
        (tmp_path / "tests" / f"test_{name}.py").write_text("")
    (tmp_path / "junit.xml").write_text(XML)
    return tmp_path


def test_failing_tests_are_named_as_pytests_command_line_names_them(place):
    text = XML.replace('name="test_a" time="0.5"/>', 'name="test_a"><failure message="no">x</failure></testcase>')
    (place / "junit.xml").write_text(text)
    assert failing(place / "junit.xml", place) == ("tests/test_app.py::test_a", "tests/test_app.py::Case::test_b")
    assert failing(place / "gone.xml", place) == ()


def test_what_could_not_be_collected_by_pytests_xml(place):
    found = uncollected(place / "junit.xml", place, lambda text: text.splitlines()[-1])
    assert found == (LeftOut(file="tests/test_broken.py", why="E   ModuleNotFoundError: No module named 'gone'"),)
    assert uncollected(place / "gone.xml", place, str) == ()
    assert uncollected(place / "junit.xml", place, lambda _: "")[0].why == "collection failure"


def test_seconds_of_each_file(place):
    assert seconds_by_file(place / "junit.xml", place) == {"tests/test_app.py": 0.75, "tests/test_other.py": 2.0}


@pytest.mark.parametrize(("command", "is_one"), [
    (("python", "-m", "pytest", "-q"), True), (("pytest",), True), (("python3.14t", "-m", "pytest"), True),
    (("python", "-m", "unittest"), False), (("tox",), False), ((), False)])
def test_commands_that_take_pytests_options(command, is_one):
    assert is_pytest(command) is is_one


def test_project_without_what_could_not_be_collected_on_any_build():
    other = replace(BROKEN, file="tests/b.py")
    runs = [suite(left_out=(BROKEN,)), Missing(reason="no time"), suite(left_out=(other, BROKEN))]
    assert leave_out(PROJECT, runs).tests == (*PROJECT.tests, "--ignore=tests/test_broken.py", "--ignore=tests/b.py")
    assert leave_out(PROJECT, [suite()]) is PROJECT
    assert leave_out(replace(PROJECT, tests=None), runs).tests is None


def test_ignoring_nothing_is_the_command():
    assert ignoring(("pytest",), []) == ("pytest",)


def test_sample_fits_and_is_drawn_by_chance():
    seconds = {f"tests/test_{number}.py": 1.0 for number in range(10)}
    drawn = [tuple(sorted(sampled(seconds, 4.5, random.Random(seed)))) for seed in range(9)]
    assert {len(each) for each in drawn} == {4}
    assert len(set(drawn)) > 1
    assert sampled(seconds, 0.5, random.Random(0)) == []
