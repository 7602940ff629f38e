"""Trials that end late, and what that is called: real forks, threads and hangs, with small limits.

The functions behave by the number of threads that make calls.  On a busy machine, threads may not get a core within a
small limit: then it is tried with a longer one.
"""

import json
import sys

import pytest

from tests.conformance.builds import run_child
from tests.patience import PATIENCE

LIMITS = (0.1, 1.0, 10.0, 60.0)   # seconds that a trial may take

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
        time.sleep(float(os.environ["SECONDS"]) / 100)

def works():
    pass
"""
TRIAL = """
import json, os, sys
from gilscope.toolkit.hammer import meeting
from gilscope.toolkit.hammer.calls import CallRecipe
from gilscope.toolkit.hammer.candidates import CallCandidate
from gilscope.toolkit.hammer.repeated_trials import (
    RepeatedTrial, TrialLimits, hammer_trials, make_trial, prepare)
from gilscope.toolkit.hammer.targets import RepeatableCall
from gilscope.toolkit.hammer.trial_budget import TrialBudget
from gilscope.toolkit.hammer.trials import Trial

name, kind, mode, limits = json.loads(sys.argv[1])
sys.path.insert(0, os.environ["FOLDER"])
meeting.LIFE_SECONDS = limits["trial"] / 5     # its thread runs at each look
run_threads = meeting._run_threads

def run_threads_and_say(run, count, *more):
    sys.modules["standin"].threads = count
    run_threads(run, count, *more)

meeting._run_threads = run_threads_and_say

class Journal:
    records = []
    def write(self, event, **fields):
        self.records.append({"event": event, **fields})

recipe = CallRecipe(imports=("import standin",), setup=(), callee=f"standin.{name}", place="test_a.py:1")
candidate = CallCandidate(call=RepeatableCall(recipe), name=name, seconds=1e-6, text_seconds=1e-6,
                          setup_seconds=1e-6, vary=False,
                          containers=False, made="", reached=frozenset({name}))
trial = Trial(kind=kind, threads=2, rounds=1000 if name == "creeps" else 1, meet=False)
repeated = RepeatedTrial(trial=trial, candidates=[candidate], limits=TrialLimits(**limits))
if mode == "prepare":
    prepare(repeated, [repeated], Journal())
elif mode == "hammer":
    repeated.ready = True
    hammer_trials([repeated], TrialBudget(float("inf"), float("inf")), 1, Journal())
else:
    make_trial(repeated, trial, [repeated], Journal())
print(json.dumps({"trials": repeated.trials, "slow": repeated.slow, "failures": repeated.failures,
                  "waits": repeated.waits, "marked": os.path.islink(os.environ["FOLDER"] + "/mark"),
                  "records": Journal.records}))
"""



def made(folder, name, expected, *, kind="same", mode="trial", alone=PATIENCE):
    """Return the limit in which the trial comes out as expected, and its records; fail if it never does."""
    for seconds in LIMITS:
        (own := folder / f"{seconds:g}").mkdir()
        (own / "standin.py").write_text(STANDIN)
        limits = {"trial": seconds, "watch": 3 * seconds, "glance": 3 * seconds, "alone": alone or seconds}
        done = run_child(sys.executable, "-c", TRIAL, json.dumps([name, kind, mode, limits]), timeout=PATIENCE,
                         FOLDER=str(own), SECONDS=str(seconds))
        assert (done.returncode, done.stderr) == (0, "")
        found = json.loads(done.stdout)
        if {field: found[field] for field in expected} == expected:
            return seconds, found["records"]
    raise AssertionError(found)


def test_trial_that_ends_is_neither(tmp_path):
    made(tmp_path, "works", {"trials": 1, "slow": 0, "failures": {}, "waits": False, "records": []})


def test_trial_whose_threads_all_wait_is_a_hang_at_once(tmp_path):
    seconds, (record,) = made(tmp_path, "blocks", {"trials": 1, "slow": 0, "failures": {"hang": 1}})
    assert (record["what"], record["names"], record["count"]) == ("hang", ["blocks"], 1)
    assert record["reason"] == f"did not end within {seconds:g} s, and all its threads wait"
    assert "in blocks" in record["output"]    # its stack


@pytest.mark.parametrize("kind", ["same", "mix"])
def test_trial_that_spins_in_two_forks_is_a_hang_if_one_thread_returns(kind, tmp_path):
    seconds, (record,) = made(tmp_path, "spins", {"trials": 2, "slow": 0, "failures": {"hang": 2}}, kind=kind)
    assert (record["what"], record["count"]) == ("hang", 2)
    assert record["reason"].startswith(f"did not end within {seconds:g} s, twice, while its threads ran; one thread "
                                       "makes the calls in ")


def test_trial_that_spins_in_one_fork_alone_is_slow(tmp_path):
    made(tmp_path, "spins_in_one_fork", {"trials": 2, "slow": 1, "failures": {}, "records": [
        {"event": "slow", "names": ["spins_in_one_fork"]}]})


def test_crash_of_the_second_fork_is_one(tmp_path):
    made(tmp_path, "crashes_in_the_second_fork", {"trials": 2, "slow": 1, "failures": {"crash": 1}})


def test_trial_that_spins_in_one_thread_too_is_slow(tmp_path):
    made(tmp_path, "spins_always", {"trials": 1, "slow": 1, "failures": {}}, alone=None)


def test_trial_whose_calls_still_return_is_slow(tmp_path):
    made(tmp_path, "creeps", {"trials": 1, "slow": 1, "failures": {}})


def test_slow_trial_is_not_repeated_for_ever(tmp_path):
    made(tmp_path, "creeps", {"trials": 2, "slow": 2}, mode="hammer")


@pytest.mark.parametrize(("name", "waits"), [
    ("blocks", True), pytest.param("spins", True, marks=pytest.mark.slow),
    pytest.param("spins_in_one_fork", False, marks=pytest.mark.slow)])
def test_calls_of_a_mix_wait_for_others_if_they_hang_again_where_no_two_overlap(name, waits, tmp_path):
    _, records = made(tmp_path, name, {"waits": waits, "marked": not waits}, kind="mix", mode="prepare", alone=None)
    assert [each["event"] for each in records] == ["waits"] * waits
