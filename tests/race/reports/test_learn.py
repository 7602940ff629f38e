"""Entries for today's findings in the suppress list of pyproject.toml."""

import resource
import tomllib

import pytest

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.race.report.learn import learn, with_entries
from gilscope.toolkit.race.report.settings import settings
from tests.race.fakes.report import ROOT, frame, make_access, make_race, make_report

ENTRY = {"variable": "counts['a \\ \"b\"']", "file": "a.py", "why": "unreviewed"}
OLD = {"variable": "Old.*", "why": "known"}
OLD_TEXT = '{ variable = "Old.*", why = "known" }'


@pytest.mark.parametrize(("text", "old"), [
    ("", []),
    ("[project]\nname = 'x'   # no newline follows", []),
    ("[tool.gilscope.race]   # ours\nnotes = true\n\n[tool.ruff]\nselect = ['A']\n", []),
    ("[tool.gilscope.race]\nsuppress = []\n[tool.ruff]\nselect = ['A']\n", []),
    (f"[tool.gilscope.race]\nsuppress = [{OLD_TEXT}]  # short\n", [OLD]),
    (f"[tool.gilscope.race]\nsuppress = [\n    {OLD_TEXT},   # see [1]\n    # more: [2]\n]\n", [OLD]),
    (f"[tool.gilscope.race]\nsuppress = [\n    {OLD_TEXT}   # no comma behind the last\n]\nnotes = true\n", [OLD]),
    (f"# to suppress ['x']\n[tool.lint]\nsuppress = ['y']\n[tool.gilscope]\nrace.suppress = [{OLD_TEXT}]\n", [OLD]),
    ("[[tool.gilscope.race.suppress]]\nvariable = 'Old.*'\nwhy = 'known'\n", [OLD]),
    ("[tool.gilscope.race]\r\nsuppress = [\r\n  # none\r\n]\r\n", []),
])
def test_entries_are_added_and_nothing_else_changes(text, old):
    added = with_entries(text, [ENTRY, {**ENTRY, "file": "b.py"}])
    found, before = tomllib.loads(added), tomllib.loads(text)
    table = found["tool"]["gilscope"]["race"]
    assert table.pop("suppress") == [*old, ENTRY, {**ENTRY, "file": "b.py"}]
    before.get("tool", {}).get("gilscope", {}).get("race", {}).pop("suppress", None)
    assert {name: each for name, each in found.items() if name != "tool"} == {
        name: each for name, each in before.items() if name != "tool"}
    assert table == before.get("tool", {}).get("gilscope", {}).get("race", {})
    comments = [line.partition("#")[2].strip() for line in text.splitlines() if "#" in line]
    assert [line.partition("#")[2].strip() for line in added.splitlines() if "#" in line] == comments
    assert added.count("\r\n") in {0, added.count("\n")}


def test_list_of_an_unknown_form_is_left_and_the_entries_are_printed(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text(text := "[tool]\ngilscope = { race = { notes = true } }\n")
    with pytest.raises(BadFileError, match=r'(?s)cannot edit .*variable = "Account.balance".*why = "unreviewed"'):
        learn(make_report(), path)
    assert path.read_text() == text


def test_a_finding_is_one_entry_that_suppresses_it_and_no_other(tmp_path):
    other = make_race(kind="check-then-act", first=make_access(place=frame("teller.py:3", "f")))
    elsewhere = make_race(base="Stats.hits", variable="Stats.hits", kind="lost update",
                          first=make_access(place=frame("/venv/lib/python3.14/site-packages/stats/a.py:1", "f")),
                          second=make_access(place=frame("/venv/lib/python3.14/site-packages/stats/a.py:2", "f")))
    found = make_report(races=(make_race(), other, elsewhere))
    path = tmp_path / "pyproject.toml"
    path.write_text("")
    assert "2 new entries" in learn(found, path)
    entries = settings(path).suppressions
    assert [(each.variable, each.file, each.why) for each in entries] == [
        ("Account.balance", "bank.py", "unreviewed"), ("Stats.hits", "*/stats/a.py", "unreviewed")]
    assert [[entry.covers(race, ROOT) for race in found.races] for entry in entries] == [
        [True, True, False], [False, False, True]]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text(text := "# reasons\n" * 1000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(text) // 2, limits[1]))
    try:
        with pytest.raises(BadFileError, match="File too large"):
            learn(make_report(), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_remains_a_link_with_its_mode(tmp_path):
    (target := tmp_path / "shared.toml").write_text("")
    target.chmod(0o640)
    (path := tmp_path / "pyproject.toml").symlink_to(target)
    learn(make_report(), path)
    assert path.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert settings(target).suppressions


def test_a_clean_report_changes_no_file(tmp_path):
    assert learn(make_report(races=()), tmp_path / "pyproject.toml") == ""
