"""Runs that earlier gilscopes stored are read with the numbers that they had then.

Each folder of runs/ is a part of a run of results/example as it was stored: a build, two cells, six rounds.
numbers.json has what `gilscope report --json` said of it; a new number there needs an entry in the changelog.  A new
version of the format gets a folder of its own; the others stay.
"""

import json
from pathlib import Path

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.store.header import VERSION

RUNS = sorted(Path(__file__).with_name("runs").iterdir())
NUMBERS = ("time", "cpu_time", "speedup", "efficiency", "cpu_inflation", "memory")


def numbers(folder, tmp_path):
    """Return the numbers that `gilscope report --json` gives for the run in `folder`."""
    file = tmp_path / "report.json"
    assert cli.main(["report", str(folder), "--json", str(file)]) == 0
    values = json.loads(file.read_text())
    cells = {each["model"]: {name: bare(each[name]) for name in NUMBERS} for each in values["cells"]}
    return {"cells": cells, "floors": [[each["smallest"], each["largest"]] for each in values["floors"]]}


def bare(value):
    """Return a value without its sentences."""
    return {name: bare(each) for name, each in value.items() if name != "notes"} if isinstance(value, dict) else value


def flat(value, place=""):
    """Return the numbers and words of a value by their places, which pytest can compare with a tolerance."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    below = {key: each for name, part in items for key, each in flat(part, f"{place}/{name}").items()}
    return below if isinstance(value, dict | list) else {place: value}


@pytest.mark.parametrize("folder", RUNS, ids=lambda folder: folder.name)
def test_numbers_of_an_earlier_run_are_as_they_were(folder, tmp_path):
    frozen = flat(json.loads((folder / "numbers.json").read_text()))
    # One CPU's logarithm may differ from another's in its last bit.
    assert flat(numbers(folder, tmp_path)) == {
        place: pytest.approx(value, rel=1e-9) if isinstance(value, float) else value for place, value in frozen.items()}


def test_each_version_of_the_format_has_a_run():
    assert {json.loads((folder / "run.json").read_text())["version"] for folder in RUNS} == {*range(1, VERSION + 1)}
