"""Programs of `fuzz.py` on which the core once differed from another one: a reference model, or the oracle."""

import json
import sys

import pytest

from tests.race.core.oracle import differences
from tests.race.core.tracing import contradictions, run_traced

PLANS = {
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
    # The poll is ordered after the store that it finds, and may see the next one, of thread 1, all the same.
    "a store after a poll that has found another thread's": (
        [[1, "set", 0], [2, "constant", 0], [0, "poll", 0], [1, "recheck", 0], [0, "proxy", 0]],
        ["order: one attr 'n'"]),
    # Thread 2 reads its own store, and so learns nothing of thread 1.
    "a store after one of another thread that orders loads, in an epoch with an earlier store": (
        [[2, "write", 0], [1, "recheck", 0], [2, "plain", 0], [2, "update", 0]], ["order: one attr 'n'"]),
    "the same store before another thread's poll is over": (
        [[2, "update", 0], [0, "each", 0], [1, "poll", 0], [0, "recheck", 0], [2, "plain", 0], [1, "pop", 0]],
        ["order: list structure None", "order: one attr 'n'"]),
    "a step that is repeated in one epoch, on both sides of a span": (
        [[1, "len", 0], [0, "sort", 1], [1, "append", 0], [0, "sort", 0]],
        ["order: list structure None", "span: list structure None: GROW after its read and RESHAPE"]),
    # Thread 2 reads the last store, and so learns nothing of thread 1.
    "a store after another thread's literal store, in an epoch with an earlier store": (
        [[1, "read", 0], [0, "update", 0], [1, "plain", 1], [1, "constant", 0], [0, "plain", 0], [2, "poll", 0],
         [2, "plain", 1]],
        ["order: one attr 'n'", "order: two attr 'n'"]),
    # Thread 1 stores twice in one epoch, so that the store of thread 2 stays the last one that the core knows.
    "a read of all items, after a store that was repeated in one epoch": (
        [[0, "slice", 1], [1, "store", 0], [2, "store", 0], [1, "store", 0], [1, "each", 0]],
        ["order: list item 0"]),
    # A removal is the last store, so that the one before it is not compared with the values.
    "a read of all values, after a store and a removal": (
        [[0, "insert", 0], [0, "del", 0], [2, "values", 1]], ["order: table structure None"]),
    # What thread 1 inserted is gone when thread 2 gets what thread 0 has inserted since.
    "a deletion that is repeated in one epoch, after another thread's insertion": (
        [[0, "del", 0], [1, "plain", 1], [1, "setdefault", 0], [0, "del", 0], [0, "set", 0], [2, "get", 0],
         [2, "plain", 1]],
        ["order: two attr 'n'"]),
}


@pytest.mark.builds("gil", "free")
def test_core_and_oracle_agree_on_plans(python, tmp_path):
    done = run_traced(python, tmp_path, "-m", "tests.race.core.fuzz",
                      text="".join(f"{json.dumps(steps)}\n" for steps, _ in PLANS.values()))
    assert (done.returncode, done.stderr) == (0, "")
    told = dict(zip(PLANS, map(json.loads, done.stdout.splitlines()), strict=True))
    assert told == {name: conflicts for name, (_, conflicts) in PLANS.items()}
    assert contradictions(tmp_path) == []


def test_oracle_contradicts_a_core_that_finds_too_little_or_too_much(tmp_path):
    steps, _ = PLANS["a span after an equal access of the same thread and epoch"]
    run_traced(sys.executable, tmp_path / "true", "-m", "tests.race.core.fuzz", text=f"{json.dumps(steps)}\n")
    [path] = (tmp_path / "true").iterdir()
    lines = path.read_text().splitlines()
    found = [line for line in lines if line.startswith("found")]
    silent, other = tmp_path / "silent.trace", tmp_path / "other.trace"
    silent.write_text("\n".join(line for line in lines if line not in found))
    other.write_text("\n".join([*lines, *(f"{line}7" for line in found)]))
    assert {what.partition(":")[0] for _, what in differences(silent)} == {"only the oracle"}
    assert {what.partition(":")[0] for _, what in differences(other)} == {"only the core"}
