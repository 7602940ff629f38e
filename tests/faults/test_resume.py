"""kill -9 of any process of a run at a random moment, then --resume: no finished round is lost or changed."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT
from tests.conftest import SEED
from tests.faults.commands import HOST, Disturbed, project
from tests.measure.children import still_alive
from tests.patience import PATIENCE

pytestmark = pytest.mark.newest

TRIES = 100 if os.environ.get("GILSCOPE_FAULTS") == "full" else 3
ROUNDS = 3
RUN = ("run", "mine:work", "--payload", "20000", "--tasks", "2", "--models", "threads,processes-forkserver",
       "--workers", "2", "--quick", "--rounds", str(ROUNDS), "--label", "one", *HOST)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(TRIES))
def test_finished_rounds_outlive_kills(number, tmp_path):
    chance = random.Random(f"{SEED} resume {number}")
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
    assert not still_alive(disturbed.mark)
    resumed = subprocess.run(
        [sys.executable, "-m", "gilscope", "run", "--resume", "one"], cwd=tmp_path, capture_output=True, text=True,
        check=False, timeout=PATIENCE, env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(disturbed.temporary)})
    assert "Traceback" not in resumed.stderr
    after = values(stored)
    assert {place: after.get(place) for place in before} == before
    assert load_run(stored).rounds_done >= ROUNDS, resumed.stderr   # more, where one failed
    assert not disturbed.left()
    disturbed.temporary.rmdir()


def wait_for_a_round(stored, disturbed):
    deadline = time.monotonic() + PATIENCE
    while not (stored / "run.json").exists() or not json.loads((stored / "run.json").read_text())["rounds_done"]:
        assert disturbed.process.poll() is None, disturbed.said()
        assert time.monotonic() < deadline
        time.sleep(0.01)   # polled: another process's file


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
