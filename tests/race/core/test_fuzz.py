"""The two cores tell the same of random programs: plans that nobody thought of, others each night."""

import json
import os
import random
import subprocess

import pytest

from tests.conformance.builds import ROOT, environment
from tests.patience import PATIENCE
from tests.race.core import fuzz

PLANS = 2000


@pytest.mark.nightly
@pytest.mark.builds("gil", "free")
def test_cores_tell_the_same_of_random_plans(python):
    seed = int(os.environ.get("GILSCOPE_SEED") or random.SystemRandom().randrange(10**6))
    plans = [fuzz.plan(f"{seed} {number}") for number in range(PLANS)]
    told = [conflicts_of(core, python, plans, seed) for core in ("Python", "C")]
    for steps, reference, native in zip(plans, *told, strict=True):
        if reference != native:
            least = shrunk(python, steps)
            pytest.fail(f"GILSCOPE_SEED={seed} told the cores apart; a plan for TOLD_APART in test_plans.py:\n"
                        f"{json.dumps(least)}\nreference {conflicts_of('Python', python, [least], seed)[0]}\n"
                        f"C         {conflicts_of('C', python, [least], seed)[0]}")


def conflicts_of(core, python, plans, seed):
    """Return what a core tells of each plan."""
    done = subprocess.run(
        [python, "-W", "error", "-m", "tests.race.core.fuzz", core], cwd=ROOT, env=environment(), text=True,
        input="".join(f"{json.dumps(steps)}\n" for steps in plans), capture_output=True, timeout=PATIENCE, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr, len(told)) == (0, "", len(plans)), (
        f"GILSCOPE_SEED={seed}: the {core} core ended in the plan\n{json.dumps(plans[len(told):][:1])}\n{done.stderr}")
    return told


def shrunk(python, steps):
    """Return a part of the plan that still tells the cores apart: no step of it can be left out."""
    at = 0
    while at < len(steps):
        shorter = steps[:at] + steps[at + 1:]
        if conflicts_of("Python", python, [shorter], 0) != conflicts_of("C", python, [shorter], 0):
            steps = shorter
        else:
            at += 1
    return steps
