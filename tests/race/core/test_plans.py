"""Programs of `fuzz.py` that once told the two cores apart."""

import json
import subprocess
import sys

import pytest

from tests.conformance.builds import ROOT
from tests.patience import PATIENCE

TOLD_APART = {
    "a span after an equal access of the same thread and epoch": (
        [[1, "update", 0], [2, "recheck", 0], [1, "update", 0]],
        ["order: one attr 'n'", "span: one attr 'n': WRITE and WRITE after its read"]),
    # Thread 1 sees what thread 2 has stored last, so it comes after what thread 2 did before.
    "the edge of a load after an equal access of the same thread and epoch": (
        [[1, "update", 0], [2, "plain", 1], [2, "recheck", 0], [1, "update", 0], [1, "update", 1]],
        ["order: one attr 'n'", "span: one attr 'n': WRITE and WRITE after its read"]),
    # The poll of thread 1 may see the second store, which thread 0 makes in the epoch of the first.
    "a store after a poll and after another store of the same epoch": (
        [[0, "del", 0], [0, "plain", 1], [1, "poll", 1], [0, "recheck", 1], [1, "values", 0]],
        ["order: two attr 'n'"]),
    "the same before an item is taken": (
        [[2, "get", 0], [2, "set", 0], [2, "plain", 1], [0, "poll", 1], [2, "constant", 1], [0, "keypop", 0]],
        ["order: two attr 'n'"]),
    # Thread 2 reads its own store, and so learns nothing of thread 1.
    "a store after one of another thread that orders loads, in an epoch with an earlier store": (
        [[2, "write", 0], [1, "recheck", 0], [2, "plain", 0], [2, "update", 0]], ["order: one attr 'n'"]),
    "the same store before another thread's poll is over": (
        [[2, "update", 0], [0, "each", 0], [1, "poll", 0], [0, "recheck", 0], [2, "plain", 0], [1, "pop", 0]],
        ["order: list structure None", "order: one attr 'n'"]),
    "a step that is repeated in one epoch, on both sides of a span": (
        [[1, "len", 0], [0, "sort", 1], [1, "append", 0], [0, "sort", 0]],
        ["order: list structure None", "span: list structure None: GROW after its read and RESHAPE"]),
}


def told_by(core, steps):
    """Return the conflicts that a core reports for a plan."""
    done = subprocess.run([sys.executable, "-W", "error", "-m", "tests.race.core.fuzz", core], cwd=ROOT, check=False,
                          input=f"{json.dumps(steps)}\n", capture_output=True, text=True, timeout=PATIENCE)
    if "UnavailableError" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("core", ["Python", "C"])
@pytest.mark.parametrize("name", TOLD_APART)
def test_plan_that_told_the_cores_apart(name, core):
    steps, told = TOLD_APART[name]
    assert told_by(core, steps) == told
