"""kill -9 of a run at any place, then --resume: no finished round is lost or changed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT
from tests.faults.calling import draw
from tests.faults.commands import HOST, Disturbed, project
from tests.measure.children import still_alive
from tests.patience import PATIENCE, wait_until

pytestmark = pytest.mark.newest

ROUNDS = 3
RUN = ("run", "mine:work", "--payload", "20000", "--tasks", "2", "--models", "threads,processes-forkserver",
       "--workers", "2", "--quick", "--rounds", str(ROUNDS), "--label", "one", *HOST)


@pytest.mark.slow
@pytest.mark.parametrize(("place", "number"), [    # of the second round, which has five processes or more
    ("store/keeping.py:Store.add", 2),
    ("store/keeping.py:Store._save_suite", 1),
    ("store/header.py:replace_file", 1),          # the values are saved, and run.json is not
    ("measure/measured_process.py:end_all", 5),
])
def test_finished_rounds_outlive_a_kill_at_a_point(place, number, tmp_path):
    point = f"measure/scheduler.py:Scheduler._round 2 then {place} {number} {int(signal.SIGKILL)}"
    disturbed = Disturbed(project(tmp_path), RUN, point=point)
    assert disturbed.process.wait(PATIENCE) == -signal.SIGKILL, disturbed.said()
    stored = tmp_path / "results" / "one"
    before = values(stored)
    rounds = load_run(stored).rounds_done
    assert rounds == 1
    assert before.keys() == {(cell, each) for cell, _ in before for each in range(rounds)}
    assert_goes_on(disturbed, stored, before)


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(100))
def test_finished_rounds_outlive_kills_at_random_moments(number, tmp_path):
    chance = draw("resume", number)
    disturbed = Disturbed(project(tmp_path), RUN)
    stored = tmp_path / "results" / "one"
    wait_for_a_round(stored, disturbed)
    time.sleep(chance.uniform(0, 5))
    victims = [disturbed.process.pid] if chance.random() < 0.5 else disturbed.tree()
    if victims:
        kill(chance.choice(victims))
    before = values(stored)        # of a run that may go on: what is there now must be there at the end
    if chance.random() < 0.5:
        disturbed.send(signal.SIGTERM)
    if disturbed.process.wait(PATIENCE) < 0:
        before = values(stored)
    assert_goes_on(disturbed, stored, before)


def assert_goes_on(disturbed, stored, before):
    """Resume the run to its end; the observations `before` are there, and nothing is left of it."""
    assert not still_alive(disturbed.mark)
    resumed = subprocess.run(
        [sys.executable, "-m", "gilscope", "run", "--resume", "one"], cwd=disturbed.folder, capture_output=True,
        text=True, check=False, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(disturbed.temporary)})
    assert "Traceback" not in resumed.stderr
    after = values(stored)
    assert {place: after.get(place) for place in before} == before
    assert load_run(stored).rounds_done >= ROUNDS, resumed.stderr   # more, where one failed
    assert not disturbed.left()
    disturbed.temporary.rmdir()


def wait_for_a_round(stored, disturbed):
    def has_one():
        assert disturbed.process.poll() is None, disturbed.said()
        return (stored / "run.json").exists() and json.loads((stored / "run.json").read_text())["rounds_done"]

    assert wait_until(has_one)


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return   # its own end was quicker


def values(stored):
    """Return every observation of a finished round, by its cell and round; one under way may be taken again."""
    run = load_run(stored)
    return {(str(each.cell), one.round): repr(one) for each in run.measurements for one in each.observations
            if one.round < run.rounds_done}
