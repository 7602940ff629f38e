"""The race checker's table in pyproject.toml."""

import pytest

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.race.report.settings import RaceSettings, Suppression, relative, settings
from tests.race.fakes.report import make_access, make_race, make_report


def read(tmp_path, text):
    path = tmp_path / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return settings(path)


def test_a_whole_table(tmp_path):
    found = read(tmp_path, """
        [tool.gilscope.race]
        include = ["vendored"]
        notes = true
        suppress = [{variable = "Account.*", kind = "lost update", file = "bank/*.py", why = "counted at night"}]
    """)
    entry = Suppression(variable="Account.*", kind="lost update", file="bank/*.py", why="counted at night")
    assert found == RaceSettings(suppressions=(entry,), include=("vendored",), notes=True)


@pytest.mark.parametrize("text", ["", "[tool.other]\nkey = 1\n", "[tool.gilscope]\n"])
def test_no_table(tmp_path, text):
    assert read(tmp_path, text) == RaceSettings()


def test_no_file(tmp_path):
    assert settings(tmp_path / "pyproject.toml") == settings(None) == RaceSettings()


@pytest.mark.parametrize(("table", "said"), [
    ("race = 3", "[tool.gilscope.race] must be a table"),
    ("race.colour = true", "no key 'colour'; it may have suppress, include, notes"),
    ("race.notes = 'yes'", "tool.gilscope.race.notes must be a bool"),
    ("race.include = [3]", "tool.gilscope.race.include must hold names, not 3"),
    ("race.suppress = ['Account']", "entry 1 of tool.gilscope.race.suppress must be a table"),
    ("race.suppress = [{variable = 'x', why = 'y'}, {varible = 'x'}]", "entry 2 of .* has no key 'varible'"),
    ("race.suppress = [{variable = 'x'}]", "needs a why"),
    ("race.suppress = [{variable = 'x', why = ''}]", "why must be a text"),
    ("race.suppress = [{why = 'all'}]", "would hide everything"),
    ("race.suppress = [{kind = 'lost updates', why = 'y'}]", "no kind is called 'lost updates'; there are lost"),
    ("race.suppress = [", "is no TOML"),
])
def test_a_mistake_names_file_and_key(tmp_path, table, said):
    with pytest.raises(BadFileError, match=said.replace("[", r"\[")) as caught:
        read(tmp_path, f"[tool.gilscope]\n{table}\n")
    assert "pyproject.toml" in str(caught.value)


RACE = make_race(variable="counts['the']", base="counts", kind="lost update",
                 first=make_access(path="/src/lib/words.py"), second=make_access(path="/src/main.py"))


@pytest.mark.parametrize(("entry", "covers"), [
    ({"variable": "counts['the']"}, True),           # brackets are no wildcards
    ({"variable": "counts*"}, True),
    ({"variable": "counts"}, True),
    ({"variable": "count"}, False),
    ({"kind": "lost*"}, True),
    ({"kind": "check-then-act"}, False),
    ({"file": "lib/*.py"}, True),                    # either side
    ({"file": "/src/main.py"}, True),
    ({"file": "words.py"}, False),
    ({"variable": "counts*", "file": "other.py"}, False),
])
def test_all_patterns_of_an_entry_must_match(entry, covers):
    made = Suppression(**{"variable": None, "kind": None, "file": None, "why": "w", **entry})
    assert made.covers(RACE, "/src") is covers


@pytest.mark.parametrize(("path", "root", "expected"), [
    ("/src/a/b.py", "/src", "a/b.py"), ("/src/a.py", "/src/", "a.py"), ("/srcs/a.py", "/src", "/srcs/a.py"),
    ("<string>", "/src", "<string>"), ("/a.py", "", "/a.py"),
])
def test_relative(path, root, expected):
    assert relative(path, root) == expected


def test_made_up_reports_are_whole():
    assert make_report().races
