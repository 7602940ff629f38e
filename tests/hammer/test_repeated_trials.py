"""Trials that end late, and what that is called: real forks, threads and hangs, with small limits.

The functions behave by the number of threads that make calls.
"""

import json
import sys

import pytest

from tests.conformance.builds import run_child
from tests.patience import PATIENCE

STANDIN = """
import os, threading, time

threads = 0     # that make this fork's calls, whether they have begun or not: one may end before the next begins

def others():
    return threads > 1

def in_first_fork():
    mark, own = os.environ["FOLDER"] + "/mark", str(os.getpid())
    try:
        os.symlink(own, mark)
    except FileExistsError:
        return os.readlink(mark) == own
    return True

def blocks():
    if others():
        threading.Event().wait()

def spins():
    while others():
        pass

def spins_always():
    while True:
        pass

def spins_in_one_fork():
    while others() and in_first_fork():
        pass

def crashes_in_the_second_fork():
    while others():
        if not in_first_fork():
            os.abort()

def creeps():
    if others():
        time.sleep(0.01)

def works():
    pass
"""
TRIAL = """
import json, os, sys
from gilscope.toolkit.hammer import meeting, repeated_trials
from gilscope.toolkit.hammer.calls import CallRecipe
from gilscope.toolkit.hammer.candidates import CallCandidate
from gilscope.toolkit.hammer.repeated_trials import RepeatedTrial, hammer_trials, make_trial, prepare
from gilscope.toolkit.hammer.targets import RepeatableCall
from gilscope.toolkit.hammer.trial_budget import TrialBudget
from gilscope.toolkit.hammer.trials import Trial
from gilscope.toolkit.processes import forks

name, kind, rounds, alone, mode = json.loads(sys.argv[1])
sys.path.insert(0, os.environ["FOLDER"])
repeated_trials.TRIAL_SECONDS, repeated_trials.WATCH_SECONDS = 1.0, 2.0
repeated_trials.ALONE_SECONDS = alone
meeting.LIFE_SECONDS = 0.2
run_threads = meeting._run_threads

def run_threads_and_say(run, count, *more):
    sys.modules["standin"].threads = count
    run_threads(run, count, *more)

meeting._run_threads = run_threads_and_say
forks.IDLE_SHARE = forks.IDLE_SHARE if name == "blocks" else 0.0    # a busy machine gives little CPU time

class Journal:
    records = []
    def write(self, event, **fields):
        self.records.append({"event": event, **fields})

recipe = CallRecipe(imports=("import standin",), setup=(), callee=f"standin.{name}", place="test_a.py:1")
candidate = CallCandidate(call=RepeatableCall(recipe), name=name, seconds=1e-6, text_seconds=1e-6,
                          setup_seconds=1e-6, vary=False,
                          containers=False, made="", reached=frozenset({name}))
trial = Trial(kind=kind, threads=2, rounds=rounds, meet=False)
repeated = RepeatedTrial(trial=trial, candidates=[candidate])
if mode == "prepare":
    repeated_trials.TRIAL_SECONDS = repeated_trials.GLANCE_SECONDS = repeated_trials.WATCH_SECONDS = alone
    prepare(repeated, [repeated], Journal())
elif mode == "hammer":
    repeated.ready = True
    hammer_trials([repeated], TrialBudget(float("inf"), float("inf")), 1, Journal())
else:
    make_trial(repeated, trial, [repeated], Journal())
print(json.dumps({"trials": repeated.trials, "slow": repeated.slow, "failures": repeated.failures,
                  "waits": repeated.waits, "records": Journal.records}))
"""


def made(folder, name, *, kind="same", rounds=1, alone=60.0, mode="trial"):
    (folder / "standin.py").write_text(STANDIN)
    done = run_child(sys.executable, "-c", TRIAL, json.dumps([name, kind, rounds, alone, mode]), timeout=PATIENCE,
                     FOLDER=str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_trial_that_ends_is_neither(tmp_path):
    assert made(tmp_path, "works") == {"trials": 1, "slow": 0, "failures": {}, "waits": False, "records": []}


def test_trial_whose_threads_all_wait_is_a_hang_at_once(tmp_path):
    found = made(tmp_path, "blocks")
    assert (found["trials"], found["slow"], found["failures"]) == (1, 0, {"hang": 1})
    (record,) = found["records"]
    assert (record["what"], record["names"], record["count"]) == ("hang", ["blocks"], 1)
    assert record["reason"] == "did not end within 1 s, and all its threads wait"
    assert "in blocks" in record["output"]    # its stack


@pytest.mark.parametrize("kind", ["same", "mix"])
def test_trial_that_spins_in_two_forks_is_a_hang_if_one_thread_returns(kind, tmp_path):
    found = made(tmp_path, "spins", kind=kind)
    assert (found["trials"], found["slow"], found["failures"]) == (2, 0, {"hang": 2})
    (record,) = found["records"]
    assert (record["what"], record["count"]) == ("hang", 2)
    assert record["reason"].startswith("did not end within 1 s, twice, while its threads ran; one thread makes the "
                                       "calls in ")


def test_trial_that_spins_in_one_fork_alone_is_slow(tmp_path):
    found = made(tmp_path, "spins_in_one_fork")
    assert (found["trials"], found["slow"], found["failures"]) == (2, 1, {})
    assert found["records"] == [{"event": "slow", "names": ["spins_in_one_fork"]}]
    assert (tmp_path / "mark").is_symlink()


def test_crash_of_the_second_fork_is_one(tmp_path):
    found = made(tmp_path, "crashes_in_the_second_fork")
    assert (found["trials"], found["slow"], found["failures"]) == (2, 1, {"crash": 1})


def test_trial_that_spins_in_one_thread_too_is_slow(tmp_path):
    found = made(tmp_path, "spins_always", alone=1.0)
    assert (found["trials"], found["slow"], found["failures"]) == (1, 1, {})


def test_trial_whose_calls_still_return_is_slow(tmp_path):
    found = made(tmp_path, "creeps", rounds=1000)
    assert (found["trials"], found["slow"], found["failures"]) == (1, 1, {})


def test_slow_trial_is_not_repeated_for_ever(tmp_path):
    found = made(tmp_path, "creeps", rounds=1000, mode="hammer")
    assert (found["trials"], found["slow"]) == (2, 2)


@pytest.mark.slow     # takes long limits, as a busy machine is not what it is about
@pytest.mark.parametrize(("name", "waits"), [("spins", True), ("blocks", True), ("spins_in_one_fork", False)])
def test_calls_of_a_mix_wait_for_others_if_they_hang_again_where_no_two_overlap(name, waits, tmp_path):
    found = made(tmp_path, name, kind="mix", alone=5.0, mode="prepare")
    assert found["waits"] is waits
    assert [each["event"] for each in found["records"]] == ["waits"] * waits
    assert (tmp_path / "mark").is_symlink() is not waits
