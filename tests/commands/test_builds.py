"""`gilscope builds add` and `remove`: what is remembered was looked at, and what is forgotten was there."""

import json
import sys
import venv

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.builds.added import added_builds


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """Remember builds in a folder of the test's."""
    monkeypatch.setenv("GILSCOPE_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def environment(tmp_path):
    venv.create(tmp_path / "own", symlinks=True)
    return tmp_path / "own"


def test_environment_is_added_shown_and_removed(environment, capsys):
    assert cli.main(["builds", "add", f"mine={environment}"]) == 0
    told = capsys.readouterr().out
    assert "nothing is installed into it" in told
    assert f"install it there: {environment}/bin/python -m pip install 'pyperf" in told
    assert cli.main(["builds", "--json"]) == 0
    shown = {each["label"]: each for each in json.loads(capsys.readouterr().out)["builds"]}
    assert (shown["mine"]["source"], shown["mine"]["executable"]) == ("added", str(environment / "bin" / "python"))
    assert cli.main(["builds", "remove", "mine"]) == 0
    assert added_builds() == {}
    assert environment.exists()


@pytest.mark.parametrize(("argv", "told"), [
    (["add", "mine"], "write LABEL=PATH"),
    (["add", "mine=/nowhere/python"], "there is no file /nowhere/python"),
    (["add", "mine=/bin/sh"], "/bin/sh"),
    *((["add", f"{label}={sys.executable}"], f"cannot be called '{label}'")
      for label in ("run", "all", "fleet", "experiments")),
    (["remove", "mine"], "no build was added as 'mine'; added: none"),
])
def test_what_is_no_build_is_not_remembered(argv, told, capsys):
    assert cli.main(["builds", *argv]) == 2
    assert told in capsys.readouterr().err
    assert added_builds() == {}


def test_label_of_another_build_is_not_taken(capsys):
    cli.main(["builds", "--json"])
    label = json.loads(capsys.readouterr().out)["builds"][0]["label"]
    assert cli.main(["builds", "add", f"{label}={sys.executable}"]) == 2
    assert f"there is a build '{label}' already" in capsys.readouterr().err
