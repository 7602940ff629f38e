"""CPU time and memory of a cell are those of all its processes, and of nobody else."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.measure.children import BUILDS, make_spec, measure, python_of, target
from toolkit.measure.child import wanted_cores
from toolkit.measure.noise import Window, is_starved, usable_cores
from toolkit.measure.tree import cpu_seconds, descendants, memory

METHODS = ["processes-spawn", "processes-forkserver", "processes-fork"]
TICK = 0.01   # the clock of /proc counts in 10 ms


@pytest.fixture(params=BUILDS)
def python(request):
    return python_of(request.param)


@pytest.fixture
def truth(tmp_path, monkeypatch):
    path = tmp_path / "truth"
    monkeypatch.setenv("TRUTH", str(path))
    return path


@pytest.mark.parametrize("runner", METHODS)
def test_memory_is_that_of_all_processes(runner, tmp_path, truth, monkeypatch, python):
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    monkeypatch.setenv("MEETING_PLACE", str(meeting))
    user = target("hoarding:hold", payloads="hoarding:two_places", check="hoarding:write_memory")
    answer = measure(make_spec(tmp_path, user, runner=runner, workers=2), python)
    assert answer.kind == "measured", answer.output
    rows = json.loads(truth.read_text())
    assert answer.fields["rss_bytes"] == pytest.approx(sum(row["rss"] for row in rows.values()), rel=0.05)
    assert answer.fields["pss_bytes"] == pytest.approx(sum(row["pss"] for row in rows.values()), rel=0.05)
    assert answer.fields["pss_bytes"] > 2 * 60 * 2**20


@pytest.mark.parametrize(("runner", "function"), [
    ("processes-spawn", "burn"), ("processes-forkserver", "burn"), ("processes-fork", "burn"),
    ("threads", "burn_in_a_child"),
    ("processes-fork", "burn_in_a_child"),
])
@pytest.mark.parametrize("phase", ["steady", "startup"])
def test_cpu_seconds_are_those_of_all_processes(phase, runner, function, tmp_path, truth):
    user = target(f"hoarding:{function}", payload="0.2", tasks=2, check="hoarding:write_sum")
    answer = measure(make_spec(tmp_path, user, runner=runner, workers=2, phase=phase))
    assert answer.kind == "measured", answer.output
    (counted,) = answer.fields["cpu"]
    # A start-up cell times one of the two tasks; the check sees none of its timed passes.
    burnt = 0.2 if phase == "startup" else float(truth.read_text())
    (wall,) = json.loads((tmp_path / "values.json").read_text())["benchmarks"][0]["runs"][0]["values"]
    # An interpreter's start, twice or four times, is the rest; the workers' ticks may round either way.  Who counts
    # somebody twice comes to more than the machine has; of who ends in the pass, all that it used counts.
    assert burnt - 4 * TICK <= counted <= wall * os.cpu_count() + 20 * TICK


@pytest.mark.parametrize("phase", ["steady", "startup"])
@pytest.mark.parametrize("runner", METHODS)
def test_own_workers_are_not_others(runner, phase, tmp_path):
    user = target("hoarding:burn", payload="0.2", tasks=2)
    answer = measure(make_spec(tmp_path, user, runner=runner, workers=2, phase=phase))
    (wall,) = json.loads((tmp_path / "values.json").read_text())["benchmarks"][0]["runs"][0]["values"]
    own = answer.fields["cpu"][0] / wall
    # All cores together are the machine; own work counted as others' would make it more than that.
    assert own + answer.fields["evidence"]["others_cores"] <= os.cpu_count() + 6 * TICK / wall


@pytest.fixture
def spinner():
    """A process that does nothing but use CPU time."""
    process = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def use_cpu(pid, seconds):
    """Wait until process `pid` has used that many more CPU seconds."""
    goal = cpu_seconds([pid]) + seconds
    while cpu_seconds([pid]) < goal:
        time.sleep(0.01)


def test_busy_process_beside_is_counted_as_others(spinner):
    window, began = Window([os.getpid()]), time.perf_counter()
    use_cpu(spinner.pid, 0.5)
    elapsed = time.perf_counter() - began
    others = window.close()["others_cores"]
    assert others >= (0.5 - 3 * TICK) / elapsed
    assert others <= os.cpu_count() + 3 * TICK / elapsed


def test_busy_process_of_ours_is_not_others(spinner):
    window, began = Window([os.getpid(), spinner.pid]), time.perf_counter()
    use_cpu(spinner.pid, 0.5)
    elapsed = time.perf_counter() - began
    own = 0.5 / elapsed
    assert window.close()["others_cores"] <= os.cpu_count() - own + 6 * TICK / elapsed


def test_window_tells_all_that_the_system_tells():
    found = Window([os.getpid()]).close()
    assert set(found) >= {"others_cores", "steal", "pressure", "load", "involuntary_switches"}
    assert found["steal"] is None or 0 <= found["steal"] <= 1
    assert found["pressure"] is None or 0 <= found["pressure"] <= 1


def test_ended_process_counts_as_nothing_and_its_parent_has_its_time(spinner):
    use_cpu(spinner.pid, 0.1)
    before = cpu_seconds([os.getpid()])
    spinner.kill()
    spinner.wait()
    assert cpu_seconds([spinner.pid]) == 0.0
    assert cpu_seconds([os.getpid()]) - before >= 0.1 - 2 * TICK


def test_memory_of_nothing_is_unknown():
    assert memory([]) == (None, None)


def test_descendants_are_found_at_every_depth():
    script = "sleep 600 & echo $! && wait"
    outer = subprocess.Popen(["sh", "-c", f"sh -c '{script}' & wait"], stdout=subprocess.PIPE, start_new_session=True)
    innermost = int(outer.stdout.readline())
    try:
        found = descendants(os.getpid())
        assert outer.pid in found
        assert innermost in found
        assert innermost in descendants(outer.pid)
        assert os.getpid() not in found
        assert descendants(innermost) == []
    finally:
        os.killpg(outer.pid, signal.SIGKILL)
        outer.communicate()


@pytest.mark.parametrize(("wanted", "others", "cores", "starved"), [
    (1, 2.0, 2, False),      # its baseline in the same round shared the core as well
    (2, 0.0, 2, False),
    (2, 0.29, 2, False),     # 0.29 of two cores are missing: 14.5 %, less than 15 %
    (2, 0.31, 2, True),
    (4, 0.29, 2, False),     # nobody has more than the machine's two
    (4, 0.31, 2, True),
    (2, 6.0, 8, False),      # two are left, and two are wanted
    (2, 6.31, 8, True),
    (1.5, 0.7, 2, False),    # 0.2 of 1.5 are missing: 13 %
    (1.5, 0.8, 2, True),
    (2, None, 2, False),     # where the system does not tell, nothing is claimed
])
def test_starved_is_who_misses_cores(wanted, others, cores, starved):
    assert is_starved(wanted, others, cores) is starved


def test_under_a_quota_others_may_use_the_cpus_that_it_leaves_idle():
    assert is_starved(2, 30.0, 2, 64) is False
    assert is_starved(2, 63.0, 2, 64) is True


def test_usable_cores_follow_affinity():
    first = min(os.sched_getaffinity(0))
    code = ("import os, sys; os.sched_setaffinity(0, [int(sys.argv[1])]); "
            "from toolkit.measure.noise import usable_cores; print(usable_cores())")
    done = subprocess.run([sys.executable, "-c", code, str(first)], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
    assert 1 <= usable_cores() <= os.cpu_count()


@pytest.mark.parametrize(("kind", "parallel", "wanted"), [
    ("cpu", True, 4),        # a core for each worker
    ("cpu", False, 1),       # the GIL lets one run
    ("native", False, 4),    # C code drops it
    (None, False, 4),        # a user's function may
    ("io", True, 0.3),       # waiting takes no core: what it used is what it wants
])
def test_wanted_cores_are_those_the_work_can_use(kind, parallel, wanted):
    assert wanted_cores(kind, 4, 0.3, parallel=parallel) == wanted
