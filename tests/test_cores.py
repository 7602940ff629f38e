"""What a process learns of the cores that it may use, and of the time that it waited for one."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gilscope.toolkit import cores
from gilscope.toolkit.cores import _cgroup_quota, own_control_groups, queued_seconds, scheduled, usable_cores


def test_usable_cores_follow_affinity():
    first = min(os.sched_getaffinity(0))
    code = ("import os, sys; os.sched_setaffinity(0, [int(sys.argv[1])]); "
            "from gilscope.toolkit.cores import usable_cores; print(usable_cores())")
    done = subprocess.run([sys.executable, "-c", code, str(first)], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
    assert 1 <= usable_cores() <= os.cpu_count()


@pytest.mark.parametrize(("siblings", "first"), [
    ({0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}, (0, 2)),   # hyper-threads side by side
    ({0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}, (0, 1)),   # and as Intel numbers them
    ({1: "0-1", 2: "2-3", 3: "2-3"}, (1, 2)),             # the first of a core may be forbidden
    ({0: "", 1: ""}, (0, 1)),                             # the system does not say
])
def test_one_cpu_of_each_core(monkeypatch, siblings, first):
    monkeypatch.setattr(cores, "_hyperthreads", siblings.__getitem__)
    assert cores.first_of_each_core(siblings) == list(first)


@pytest.mark.parametrize(("threads", "chosen"), [(1, [0, 2]), (2, [0, 2]), (3, [0, 1, 2, 3])])
def test_threads_are_pinned_to_cores_of_their_own_while_there_are_enough(monkeypatch, threads, chosen):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(cores, "_hyperthreads", lambda cpu: "0-1" if cpu < 2 else "2-3")
    assert cores.on_cores_apart(threads) == chosen


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not tell")
def test_scheduled_counts_what_the_thread_ran():
    before, end = scheduled(), time.thread_time() + 0.05   # the kernel's count lags by a tick
    while time.thread_time() < end:
        pass
    after = scheduled()
    assert after[0] > before[0]
    assert after[1] >= before[1]
    assert queued_seconds() >= after[1] / 1e9


def test_of_a_process_that_is_not_there_nothing_is_known():
    assert scheduled("0") is None


@pytest.fixture
def groups(tmp_path):
    """A service in a slice that has half of two CPUs, in the tree of a whole machine."""
    service = tmp_path / "system.slice" / "measure.service"
    service.mkdir(parents=True)
    (service / "cpu.max").write_text("max 100000\n")
    (service.parent / "cpu.max").write_text("150000 100000\n")   # the root has no such file
    listing = tmp_path / "listing"
    listing.write_text("0::/system.slice/measure.service\n")
    return own_control_groups(str(tmp_path), str(listing))


def test_control_groups_are_all_around_this_process(groups, tmp_path):
    assert groups == [str(tmp_path / "system.slice" / "measure.service"), str(tmp_path / "system.slice"), str(tmp_path)]


def test_tightest_quota_of_all_groups_counts(groups, tmp_path):
    assert _cgroup_quota(groups) == 1.5
    (tmp_path / "system.slice" / "measure.service" / "cpu.max").write_text("50000 100000\n")
    assert _cgroup_quota(groups) == 0.5


def test_without_control_groups_there_is_no_quota(tmp_path):
    assert own_control_groups(str(tmp_path), str(tmp_path / "absent")) == [str(tmp_path)]
    assert _cgroup_quota([str(tmp_path)]) is None
