"""The calls of a module's public functions, and the files that they are found in."""

import sys
import textwrap
from pathlib import Path

import pytest

from gilscope.toolkit.hammer.offered_calls import call_files, find_calls

OFFERS = '''
    from os.path import join
    from offered_c import inner, _hidden

    class Box:
        """
        >>> box = Box()
        >>> box.put(3)
        >>> Box.of([1, 2])
        """
        @classmethod
        def of(cls, values): return cls()
        def put(self, value): ...
    class BoxError(Exception): ...
    Chest = Box
    def twice(numbers):
        """
        >>> twice([])
        >>> twice([1] * 100_000)
        """
        return [each * 2 for each in numbers]
    def refuses(): ...
'''
INNER = "def inner(): ...\ndef _hidden(): ..."
TEST = "import offered\ndef test_a():\n    offered.refuses(1)\n"


def test_each_offered_function_has_its_longest_call_or_the_reason_why_there_is_none(tmp_path):
    (tmp_path / "offered.py").write_text(textwrap.dedent(OFFERS))
    (tmp_path / "offered_c.py").write_text(INNER)
    (tmp_path / "test_a.py").write_text(TEST)
    found = find_calls(Path(sys.executable), "offered", [tmp_path], [(tmp_path / "test_a.py", "test_a.py")])
    assert (found.complete, found.problem) == (True, "")
    # Neither what it imports from elsewhere, nor exceptions, nor the second name of a type.
    assert {each.name: each.shown for each in found.calls} == {
        "Box": "Box()", "Box.of": "Box.of([1, 2])", "Box.put": "box.put(3)", "twice": "twice([1] * 100000)",
        "refuses": "offered.refuses(1)"}
    (failed,) = (each for each in found.calls if each.recipe is None)
    assert (failed.name, failed.place) == ("refuses", "test_a.py:3")
    assert failed.problem.startswith("TypeError: refuses() takes 0 positional arguments")


def test_names_of_all_are_offered_wherever_they_come_from(tmp_path):
    (tmp_path / "offered.py").write_text("from offered_c import inner, _hidden\n__all__ = ['inner']\n")
    (tmp_path / "offered_c.py").write_text(INNER)
    found = find_calls(Path(sys.executable), "offered", [tmp_path], [])
    assert [(each.name, each.shown) for each in found.calls] == [("inner", "")]


def test_function_of_the_same_name_in_another_module_is_not_taken_for_it(tmp_path):
    (tmp_path / "offered.py").write_text("from offered_c import inner\nfrom offered_d import other\n"
                                         "__all__ = ['inner', 'other']\n")
    (tmp_path / "offered_c.py").write_text(INNER)
    (tmp_path / "offered_d.py").write_text("def inner(number):\n    '>>> inner(2)'\ndef other():\n    '>>> other()'\n")
    found = find_calls(Path(sys.executable), "offered", [tmp_path], [])
    assert [(each.name, each.shown) for each in found.calls] == [("inner", ""), ("other", "other()")]


def test_method_of_the_same_name_of_another_object_is_not_taken_for_a_function(tmp_path):
    (tmp_path / "offered.py").write_text("def sort(value):\n    '>>> [3, None].sort(key=sort)'\n    return -value\n")
    found = find_calls(Path(sys.executable), "offered", [tmp_path], [])
    assert [(each.name, each.shown) for each in found.calls] == [("sort", "")]


@pytest.mark.parametrize(("text", "problem"), [
    ("import no_such_package", "offered cannot be imported: ModuleNotFoundError: No module named 'no_such_package'"),
    ("import os; os.abort()", "the search for calls crashed with SIGABRT"),
])
def test_module_that_cannot_be_imported_is_said(text, problem, tmp_path):
    (tmp_path / "offered.py").write_text(text)
    assert find_calls(Path(sys.executable), "offered", [tmp_path], []).problem == problem


def test_files_are_tests_and_pages_also_below_a_relative_folder(tmp_path, monkeypatch):
    for name in ("tests/test_a.py", "tests/util.py", "docs/page.md", "src/code.py", "build/test_b.py",
                 ".hid/test_c.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    assert list(map(str, call_files(Path()))) == ["tests/test_a.py", "tests/util.py", "docs/page.md"]
    assert list(map(str, call_files(Path("tests")))) == ["tests/test_a.py"]
    assert call_files(tmp_path)[0] == tmp_path / "tests" / "test_a.py"


def test_no_file_is_dropped(tmp_path):   # reading ends with its time, which is said
    for number in range(600):
        (tmp_path / f"test_{number}.py").touch()
    assert len(call_files(tmp_path)) == 600
