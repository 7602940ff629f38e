"""The core finds in random programs what the oracle finds: plans that nobody thought of, others each night."""

import json
import os
import random

import pytest

from tests.race.core import fuzz
from tests.race.core.tracing import contradictions, run_traced

FEW, MANY = 100, 2000


@pytest.mark.parametrize(("seed", "number"), [
    ("same", FEW), pytest.param(os.environ.get("GILSCOPE_SEED", ""), MANY, marks=pytest.mark.nightly)],
    ids=["same", "new"])
@pytest.mark.builds("gil", "free")
def test_core_and_oracle_agree_on_random_plans(seed, number, python, tmp_path):
    seed = seed or str(random.SystemRandom().randrange(10**6))
    plans = [fuzz.plan(f"{seed} {plan}") for plan in range(number)]
    differing = differing_plans(python, plans, tmp_path / "all", seed)
    for plan, what in differing.items():
        words = f"GILSCOPE_SEED={seed}: plan {plan}: {what}\n"
        if differing_plans(python, [plans[plan]], tmp_path / "alone"):
            pytest.fail(f"{words}for PLANS in test_plans.py: {json.dumps(shrunk(python, plans[plan], tmp_path))}")
        pytest.fail(f"{words}but not alone, so that it is due to what is left of the plans before it")


def differing_plans(python, plans, folder, seed=""):
    """Return the plans by number on which core and oracle disagree, with what they disagree on."""
    done = run_traced(python, folder, "-m", "tests.race.core.fuzz",
                      text="".join(f"{json.dumps(steps)}\n" for steps in plans))
    ended = len(done.stdout.splitlines())
    assert (done.returncode, done.stderr, ended) == (0, "", len(plans)), (
        f"GILSCOPE_SEED={seed}: the core ended in the plan\n{json.dumps(plans[ended:][:1])}\n{done.stderr}")
    found = contradictions(folder)
    for path in folder.glob("*.trace"):
        path.unlink()
    return {start - 1: what for start, what in reversed(found)}


def shrunk(python, steps, folder):
    """Return a part of the plan on which core and oracle still disagree: no step of it can be left out."""
    at = 0
    while at < len(steps):
        shorter = steps[:at] + steps[at + 1:]
        if differing_plans(python, [shorter], folder / "shrunk"):
            steps = shorter
        else:
            at += 1
    return steps
