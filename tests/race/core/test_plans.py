"""Programs of `fuzz.py` that once told the two cores apart."""

import json
import subprocess
import sys

import pytest

from tests.conformance.builds import ROOT

TOLD_APART = {
    "a span after an equal access of the same thread and epoch": (
        [[1, "update", 0], [2, "recheck", 0], [1, "update", 0]],
        ["order: one attr 'n'", "span: one attr 'n': WRITE, then WRITE after its read"]),
    # Thread 1 sees what thread 2 has stored last, so it comes after what thread 2 did before.
    "the edge of a load after an equal access of the same thread and epoch": (
        [[1, "update", 0], [2, "plain", 1], [2, "recheck", 0], [1, "update", 0], [1, "update", 1]],
        ["order: one attr 'n'", "span: one attr 'n': WRITE, then WRITE after its read"]),
}


def told_by(core, steps):
    """Return the conflicts that a core reports for a plan."""
    done = subprocess.run([sys.executable, "-W", "error", "-m", "tests.race.core.fuzz", core], cwd=ROOT, check=False,
                          input=f"{json.dumps(steps)}\n", capture_output=True, text=True, timeout=300)
    if "UnavailableError" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("core", ["Python", "C"])
@pytest.mark.parametrize("name", TOLD_APART)
def test_plan_that_told_the_cores_apart(name, core):
    steps, told = TOLD_APART[name]
    assert told_by(core, steps) == told
