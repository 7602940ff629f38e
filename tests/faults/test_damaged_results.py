"""Saved runs, damaged: each is refused in a sentence, or its numbers are what they were."""

import functools
import json
import shutil

import pytest

from tests.faults.calling import CHOSEN, call, draw, faults_of
from tests.faults.damage import SOURCES, damage

BATCH, BATCHES = 25, 40   # 1,000 cases; the first batch every time
NUMBERS = ("time", "cpu_time", "speedup", "cpu_inflation", "efficiency", "value", "values", "metrics", "floors")


@functools.cache
def undamaged(source):
    return numbers_of(call("report", str(source), "--json").out)


def numbers_of(text):
    """Return the numbers of a report's cells, by cell, without words: notes and reasons may differ."""
    document = json.loads(text)
    found = {}
    for run in document.get("experiments", [document]):
        for cell in run["cells"]:
            key = tuple(str(cell.get(name)) for name in (
                "workload", "phase", "task_seconds", "model", "workers", "build", "parameters", "twin"))
            found[key] = {name: cell[name] for name in NUMBERS if name in cell}
    return found


@pytest.mark.newest
@pytest.mark.parametrize("batch", [0, *(pytest.param(batch, marks=pytest.mark.nightly) for batch in range(1, BATCHES))])
def test_damaged_run_is_refused_or_says_what_it_said(batch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = []
    for number in range(BATCH):
        target = tmp_path / "results" / "damaged"
        target.parent.mkdir(exist_ok=True)
        done = damage(draw("damage", batch, number), target)
        wrong += [f"{done.words}: {each}" for each in wrong_with(done)]
        shutil.rmtree(target)
    assert not wrong, f"seed {CHOSEN}\n" + "\n".join(wrong)


def wrong_with(done):
    for words in (("report", "damaged", "--json"), ("report",)):
        called = call(*words)
        yield from faults_of(called)
        if called.code == 3:
            yield "exit code 3"
    called = call("report", "damaged", "--json")
    if called.code == 0 and not done.believable and (now := numbers_of(called.out)) != (
            before := undamaged(done.source)):
        changed = [key for key in before.keys() | now.keys() if before.get(key) != now.get(key)]
        yield f"the numbers of {changed[0]} are others without a word"


@pytest.mark.parametrize("source", SOURCES, ids=lambda each: each.name)
def test_undamaged_runs_are_read(source):
    assert undamaged(source)
