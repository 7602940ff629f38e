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
    for number, steps in enumerate(plans):
        reference, native = told[0][number], told[1][number]
        if reference == native:
            continue
        words = (f"GILSCOPE_SEED={seed}: plan {number} told the cores apart:\n"
                 f"reference {reference}\nC         {native}\n")
        if differ(python, steps):
            pytest.fail(f"{words}for TOLD_APART in test_plans.py: {json.dumps(shrunk(python, steps))}")
        pytest.fail(f"{words}but not alone, so that it is due to what is left of the plans before it")


def conflicts_of(core, python, plans, seed):
    """Return what a core tells of each plan."""
    done = subprocess.run(
        [python, "-W", "error", "-m", "tests.race.core.fuzz", core], cwd=ROOT, env=environment(), text=True,
        input="".join(f"{json.dumps(steps)}\n" for steps in plans), capture_output=True, timeout=PATIENCE, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr, len(told)) == (0, "", len(plans)), (
        f"GILSCOPE_SEED={seed}: the {core} core ended in the plan\n{json.dumps(plans[len(told):][:1])}\n{done.stderr}")
    return told


def differ(python, steps):
    """Return True if the cores tell different things of a plan in new processes."""
    return conflicts_of("Python", python, [steps], "") != conflicts_of("C", python, [steps], "")


def shrunk(python, steps):
    """Return a part of the plan that still tells the cores apart: no step of it can be left out."""
    at = 0
    while at < len(steps):
        shorter = steps[:at] + steps[at + 1:]
        if differ(python, shorter):
            steps = shorter
        else:
            at += 1
    return steps
