"""Whether the kernel killed a process for lack of memory: certain by our control group, probable by the machine."""

from __future__ import annotations

import pytest

from gilscope.toolkit.measure import measured_process
from gilscope.toolkit.measure.out_of_memory import OomCounts, OomEvidence
from tests.measure.test_measured_process import run


@pytest.fixture
def counts(tmp_path):
    """A function that writes the counters of control groups and of the machine, and reads them."""
    inner = tmp_path / "root" / "user" / "job"
    inner.mkdir(parents=True)
    (tmp_path / "listing").write_text("0::/user/job\n")

    def read(inside=None, around=None, machine=None):
        files = {inner: inside, inner.parent: around}
        for folder, count in files.items():
            (folder / "memory.events").unlink(missing_ok=True)
            if count is not None:
                (folder / "memory.events").write_text(f"low 0\noom 5\noom_kill {count}\noom_group_kill 7\n")
        (tmp_path / "vmstat").unlink(missing_ok=True)
        if machine is not None:
            (tmp_path / "vmstat").write_text(f"nr_free_pages 1\noom_kill {machine}\n")
        return OomCounts.now(*(str(tmp_path / name) for name in ("root", "listing", "vmstat")))

    return read


@pytest.mark.parametrize(("before", "after", "evidence"), [
    ({"inside": 0, "machine": 0}, {"inside": 1, "machine": 1}, OomEvidence.OWN_GROUP),
    ({"inside": 3, "machine": 3}, {"inside": 3, "machine": 4}, OomEvidence.NOT_OURS),   # another group's process
    ({"around": 0}, {"around": 2}, OomEvidence.OWN_GROUP),          # the memory controller is off in the inner one
    ({"machine": 3}, {"machine": 4}, OomEvidence.MACHINE),
    ({"machine": 3}, {"machine": 3}, OomEvidence.NONE),
    ({}, {}, OomEvidence.NONE),
    ({"inside": 0, "machine": 3}, {"machine": 4}, OomEvidence.MACHINE),   # we were moved meanwhile
])
def test_our_group_decides_and_the_machine_is_a_hint(before, after, evidence, counts):
    first = counts(**before)
    assert counts(**after).since(first) is evidence


@pytest.mark.parametrize(("first", "last", "words"), [
    (OomCounts(0, 0), OomCounts(1, 1), "killed by SIGKILL: out of memory"),
    (OomCounts(0, 0), OomCounts(0, 1), "killed by SIGKILL, not by gilscope, nor by the kernel for lack of memory"),
    (OomCounts(None, 0), OomCounts(None, 1),
     "killed by SIGKILL, probably out of memory: the kernel killed a process of the machine for it meanwhile"),
    (OomCounts(None, None), OomCounts(None, None),
     "killed by SIGKILL, not by gilscope; the machine may have run out of memory"),
])
def test_killed_process_is_out_of_memory_only_if_that_is_certain(first, last, words, monkeypatch, tmp_path):
    answers = iter([first, last])
    monkeypatch.setattr(measured_process.OomCounts, "now", classmethod(lambda _: next(answers)))
    answer = run("kill_itself", tmp_path)
    assert (answer.kind, answer.reason) == ("killed", words)
