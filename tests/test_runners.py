"""Every runner, for real: what its pool must do whatever the task does, each case in a fresh process per build."""

import functools
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from gilscope.runners import base
from gilscope.runners.catalog import PACKAGES, RUNNERS, find
from tests.conformance.builds import ROOT, builds, environment, run_child
from tests.patience import PATIENCE

HERE = Path("tests/conformance")
CASES = re.findall(r"^def case_(\w+)", (ROOT / HERE / "cases.py").read_text(encoding="utf-8"), re.MULTILINE)
BUILDS = builds()
ALL = [runner.name for runner in RUNNERS]
NAMES = [name for name in ALL if name not in PACKAGES]   # tests/conformance/test_dask.py has the others


def finish(done):
    """Pass when the child said ok, skip when it said why not, and show what it wrote otherwise."""
    last = done.stdout.strip().rpartition("\n")[2]
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    if last.startswith("n/a: "):
        pytest.skip(last)
    return last


@functools.cache
def run_nothing(name, build):
    """Ask the build whether it has the runner at all: once, not for every case."""
    return run_child(BUILDS[build], str(HERE / "cases.py"), "nothing", name)


@pytest.mark.sample(80)
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", CASES)
def test_case(case, name, build, tmp_path):
    finish(run_nothing(name, build))
    done = run_child(BUILDS[build], str(HERE / "cases.py"), case, name, TMPDIR=str(tmp_path))
    assert finish(done) == "ok", done.stderr


def sleeps(pid):
    """Return True if the main thread of a process sleeps, and did not run for a moment."""
    def looked():
        status = Path(f"/proc/{pid}/task/{pid}/status").read_text(encoding="utf-8")
        return re.findall(r"^(?:State|\w+_ctxt_switches):\s+(\w+)", status, re.MULTILINE)

    before = looked()
    time.sleep(0.1)
    return before[0] == "S" and looked() == before


@pytest.mark.sample(6)
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", NAMES)
def test_ctrl_c_in_map_ends_everything(name, build, tmp_path):
    # What the killed one leaves there goes with the test; the test's own path is too long for the name of a socket.
    temporary = tempfile.mkdtemp()
    child = subprocess.Popen(
        [BUILDS[build], str(HERE / "interrupted.py"), name, str(tmp_path / "busy")], cwd=ROOT,
        env=environment(TMPDIR=temporary),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        wait_until(lambda: child.poll() is not None or len(list(tmp_path.iterdir())) == (1 if name == "serial" else 2))
        if child.poll() is None:
            # A signal in the moment before a wait begins is noticed only at its end: CPython checks, then waits.
            wait_until(lambda: child.poll() is not None or name == "serial" or sleeps(child.pid))
            os.kill(child.pid, signal.SIGINT)  # the caller alone: workers get no signal of their own
        output, errors = child.communicate(timeout=PATIENCE)  # a task takes 600 s
        done = subprocess.CompletedProcess(child.args, child.returncode, output, errors)
        assert finish(done) == "interrupted", errors
        wait_until(lambda: not session_members(child.pid))
    finally:
        for pid in session_members(child.pid):
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(temporary)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", ["processes-spawn", "processes-forkserver"])
def test_main_is_not_run_again_in_workers(name, build):
    done = run_child(BUILDS[build], str(HERE / "unguarded.py"), name)
    assert done.stdout.splitlines() == ["top level", "[1, 4, 9]"], done.stderr
    as_module = run_child(BUILDS[build], "-m", "tests.conformance.unguarded", name)
    assert as_module.stdout.splitlines() == ["top level", "[1, 4, 9]"], as_module.stderr


def test_names_are_found_and_unique():
    assert [find(name).name for name in ALL] == ALL
    assert len(set(ALL)) == len(ALL)
    with pytest.raises(KeyError):
        find("subinterp")


def test_every_runner_says_what_it_is():
    for runner in RUNNERS:
        assert runner.summary
        assert runner.shares <= set(base.Shared.__args__)
        assert runner.gil in (True, False, None)


def test_serial_has_one_worker():
    with pytest.raises(ValueError, match="one worker"), find("serial").pool(2):
        pass


def test_threads_and_free_threaded_exclude_each_other():
    assert (find("threads").unavailable() is None) != (find("free-threaded").unavailable() is None)


def wait_until(condition, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def session_members(session):
    """Return the processes of a session that still run."""
    members = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, sid = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
        if int(sid) == session and state != "Z":
            members.append(int(entry.name))
    return members
