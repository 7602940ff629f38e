"""Both cores give the same verdicts: every case, in one child process per core."""

import functools
import json
import subprocess
import sys

import pytest

from tests.conformance.builds import ROOT
from tests.patience import PATIENCE
from tests.race.core.cases.run import cases


@functools.cache
def outcomes(core):
    """Run all cases on a core; return outcome by case, how the child ended, and why there is no such core."""
    child = subprocess.run([sys.executable, "-W", "error", "-m", "tests.race.core.cases.run", core], cwd=ROOT,
                           capture_output=True, text=True, timeout=PATIENCE, check=False)
    lines = [json.loads(line) for line in child.stdout.splitlines()]
    missing = next((line["unavailable"] for line in lines if "unavailable" in line), None)
    found = {line["case"]: line["outcome"] for line in lines if "outcome" in line}
    started = [line["case"] for line in lines if "case" in line]
    last = started[-1] if started else "start"
    return found, f"the child ended with {child.returncode} in {last}\n{child.stderr}", missing


@pytest.mark.parametrize("core", ["Python", "C"])
@pytest.mark.parametrize("case", cases())
def test_core(core, case):
    found, end, missing = outcomes(core)
    if missing is not None:
        pytest.skip(missing)
    outcome = found.get(case, end)
    if outcome.startswith("skipped: "):
        pytest.skip(outcome)
    assert outcome == "passed", outcome


def test_core_runs_to_its_end():
    found, end, _ = outcomes("Python")
    assert set(found) == set(cases()), end
    assert " with 0 in " in end, end
