"""Calls of tests and doctests that can be made again."""

import pytest

from gilscope.toolkit.hammer.calls import calls_in_doctest, calls_in_file

OWN = ("pkg",)


def calls(text):
    return [(each.shown, each.setup) for each in calls_in_file(text, "test_it.py", OWN)]


def test_call_of_a_function_has_its_import_and_its_line():
    (found,) = calls_in_file("from pkg import label\n\n\ndef test():\n    assert label('a', 2, n=[3]) == 'A'\n",
                             "tests/test_it.py", OWN)
    assert (found.shown, found.imports, found.place) == (
        "label('a', 2, n=[3])", ("from pkg import label",), "tests/test_it.py:5")


@pytest.mark.parametrize("statement", [
    "import pkg\npkg.f(1)", "import pkg._c\npkg._c.f(1)", "from pkg import _c as c\nc.f(1)",
    "def test():\n    from pkg import f\n    f(1)"])
def test_function_is_found_by_any_import(statement):
    assert [shown.rpartition(".")[2] for shown, _ in calls(statement)] == ["f(1)"]


@pytest.mark.parametrize(("statement", "own"), [
    ("from zope.proxy import f\nf(1)", True), ("from zope import proxy\nproxy.f(1)", True),
    ("import zope.proxy.more\nzope.proxy.more.f(1)", True), ("import zope.proxy as p\np.f(1)", True),
    ("from zope.event import f\nf(1)", False), ("from zope import event\nevent.f(1)", False),
    ("import zope.proxying\nzope.proxying.f(1)", False)])
def test_of_a_namespace_package_only_the_projects_part_is_its_own(statement, own):
    found = [*calls_in_file(statement, "test_it.py", ("zope.proxy",))]
    assert bool(found) is own


def test_method_has_the_statements_that_make_its_object():
    text = ("from pkg import Counter\ndef test():\n    other = 3\n    c = Counter(2)\n    c.add(1)\n    print(c)\n"
            "    assert c.total() == 3\n")
    assert calls(text)[-1] == ("c.total()", ("c = Counter(2)", "c.add(1)"))


def test_object_made_in_the_call_is_made_first():
    assert ("made.total()", ("made = Counter(2)",)) in calls("from pkg import Counter\nCounter(2).total()\n")


def test_fixtures_parameters_loops_and_set_up_are_followed():
    text = ("import pytest\nfrom pkg import Counter, f\n"
            "@pytest.fixture\ndef box():\n    return Counter(1)\n"
            "@pytest.mark.parametrize(('x', 'y'), [(1, 2), (3, 4)])\ndef test(x, y, box):\n    box.add(x)\n"
            "class TestIt:\n    def setUp(self):\n        self.c = Counter(5)\n"
            "    def test(self):\n        for i in range(4):\n            self.c.add(i)\n")
    found = [(shown, tuple(each for each in setup if not each.startswith("y"))) for shown, setup in calls(text)]
    assert ("box.add(x)", ("box = Counter(1)", "x = 1")) in found
    assert ("box.add(x)", ("box = Counter(1)", "x = 3")) in found
    assert ("self_c.add(i)", ("self_c = Counter(5)", "i = next(iter(range(4)))")) in found


BASES = """
from pkg import PyMap
class BaseTest:
    Map = None
    def setUp(self):
        self.m = self.Map()
    def test_a(self):
        self.m.set('a')
    def test_b(self):
        self.Map(1)
class PyTest(BaseTest):
    Map = PyMap
try:
    from pkg._c import Map as CMap
except ImportError:
    CMap = None
class CTest(BaseTest):
    Map = CMap
    def test_b(self):
        self.Map(2)
"""


def test_tests_of_a_base_class_are_called_with_each_classs_own_attributes():
    found = [(each.shown, each.setup, each.imports) for each in calls_in_file(BASES, "test_it.py", OWN)]
    of_c = [(shown, setup) for shown, setup, imports in found if imports == ("from pkg._c import Map as CMap",)]
    assert set(of_c) == {("self_Map()", ("self_Map = CMap",)), ("self_Map(2)", ("self_Map = CMap",)),
                         ("self_m.set('a')", ("self_Map = CMap", "self_m = self_Map()"))}
    assert ("self_Map(1)", ("self_Map = PyMap",), ("from pkg import PyMap",)) in found


HELPERS = """
import os
def counter_of(number):
    from pkg import Counter
    found = Counter(number)
    return found
def removed():
    from pkg import f
    os.remove('file')
    return f(1)
class TestIt:
    def _class(self):
        from pkg import Box
        return Box
    def _box(self, *args):
        return self._class()(*args)
    def _other(self):
        from os import remove
        from pkg import Box
        return Box(remove('file'))
    def test(self):
        counter_of(3).add(4)
        box = self._box(5)
        box.put(6)
        self._other().put(7)
        removed().put(8)
"""


def test_what_helpers_of_tests_return_is_made_by_them():
    found = dict(calls(HELPERS))
    assert [*found] == ["f(1)", "made.add(4)", "box.put(6)"]
    assert [each.partition("(")[0] for each in found["made.add(4)"]] == ["def counter_of", "made = counter_of"]
    assert [each.partition("(")[0] for each in found["box.put(6)"]] == ["def self__class", "def self__box",
                                                                       "box = self__box"]


@pytest.mark.parametrize("statement", [
    "f(open('file').read())", "f(tmp_path)", "f(lambda: 1)", "other.f(1)", "os.remove('file')", "f(os.getcwd())",
    "f(numpy.fromfile('x'))", "f(*rest)", "with pytest.raises(ValueError):\n        f(None)",
    "assertRaises(ValueError, f, 1)"])
def test_what_touches_more_than_the_process_or_is_not_known_is_left_out(statement):
    assert calls(f"import os, numpy, pytest\nfrom pkg import f\ndef test(tmp_path):\n    {statement}\n") == []


def test_doctests_are_read_and_know_the_names_of_their_module():
    text = "Text.\n\n    >>> c = Counter()\n    >>> c.add(\n    ...     2)\n    >>> c.total()\n    2\n"
    found = [*calls_in_doctest(text, "pkg/c.py", OWN, "pkg.c", ["Counter"])]
    assert [(each.shown, each.setup, each.module, each.place) for each in found] == [
        ("Counter()", (), "pkg.c", "pkg/c.py:3"), ("c.add(2)", ("c = Counter()",), "pkg.c", "pkg/c.py:4"),
        ("c.total()", ("c = Counter()", "c.add(2)"), "pkg.c", "pkg/c.py:6")]
    assert not [*calls_in_doctest(text, "README.md", OWN)]   # there nothing binds Counter


def test_file_that_is_no_python_has_no_calls():
    assert calls("this is (") == []
