"""Every runner, for real: what its pool must do whatever the task does, with the GIL and without."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gilscope.runners import base
from gilscope.runners.catalog import PACKAGES, RUNNERS, find
from tests.conformance.builds import ROOT, environment, run_child
from tests.conformance.cases import cases_of
from tests.measure.children import python_of
from tests.patience import PATIENCE, wait_until

HERE = Path("tests/conformance")
ALL = [runner.name for runner in RUNNERS]
NAMES = [name for name in ALL if name not in PACKAGES]   # tests/conformance/test_dask.py has the others


@pytest.fixture(scope="session")
def python(build):
    """Return the interpreter of `build`, with the packages that runners need."""
    return python_of(build)


def finish(done):
    """Pass when the child said ok, skip when it said why not, and show what it wrote otherwise."""
    last = done.stdout.strip().rpartition("\n")[2]
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    if last.startswith("n/a: "):
        pytest.skip(last)
    return last


def run_cases(python, name, cases, folder):
    """Pass when each of the cases does, in one process that leaves nothing in its temporary folder."""
    try:
        done = run_child(python, str(HERE / "cases.py"), name, *cases, timeout=PATIENCE, TMPDIR=str(folder))
    except subprocess.TimeoutExpired as error:
        pytest.fail(f"it hangs: {error.stdout}\n{error.stderr}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if reason := lines and lines[0].get("unavailable"):
        pytest.skip(reason)
    ended = {line["case"]: line["error"] for line in lines if "error" in line}
    failed = {case: ended.get(case, "not ended") for case in cases if ended.get(case, "not ended")}
    report = "\n".join(f"{case}: {error}" for case, error in failed.items())
    assert not failed, f"{report}\nlast: {lines[-1:]}\n{done.stderr}"
    assert done.returncode == 0, done.stderr
    if "thread_left_behind" not in cases:   # which leaves as it must then, and nothing is cleared away
        assert list(folder.iterdir()) == []


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("name", NAMES)
def test_cases_of_one_process(name, python, tmp_path):
    together, _ = cases_of(name)
    run_cases(python, name, together, tmp_path)


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize(("name", "case"), [(name, case) for name in NAMES for case in cases_of(name)[1]])
def test_case_of_its_own_process(name, case, python, tmp_path):
    run_cases(python, name, [case], tmp_path)


QUICK = {"asyncio", "subinterpreters", "processes-forkserver"}   # one of each kind: all take a second and a half


class Stillness:
    """Whether the main thread of a process has slept, and has not run, since some looks ago."""

    LOOKS = 6

    def __init__(self, pid):
        self.status, self.seen = Path(f"/proc/{pid}/task/{pid}/status"), []

    def look(self):
        text = self.status.read_text(encoding="utf-8")
        self.seen.append(re.findall(r"^(?:State|\w+_ctxt_switches):\s+(\w+)", text, re.MULTILINE))
        return self.seen[-1][0] == "S" and self.seen[-self.LOOKS:] == [self.seen[-1]] * self.LOOKS


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
                                  for name in NAMES])
def test_ctrl_c_in_map_ends_everything(name, python, tmp_path):
    # What the killed one leaves there goes with the test; the test's own path is too long for the name of a socket.
    temporary = tempfile.mkdtemp()
    child = subprocess.Popen(
        [python, str(HERE / "interrupted.py"), name, str(tmp_path / "busy")], cwd=ROOT,
        env=environment(TMPDIR=temporary),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        begun = 1 if name == "serial" else 2
        assert wait_until(lambda: child.poll() is not None or len(list(tmp_path.iterdir())) == begun)
        if child.poll() is None:
            # A signal in the moment before a wait begins is noticed only at its end: CPython checks, then waits.
            still = Stillness(child.pid)
            assert wait_until(lambda: name == "serial" or still.look(), child)
            os.kill(child.pid, signal.SIGINT)  # the caller alone: workers get no signal of their own
        output, errors = child.communicate(timeout=PATIENCE)  # a task takes 600 s
        done = subprocess.CompletedProcess(child.args, child.returncode, output, errors)
        assert finish(done) == "interrupted", errors
        assert wait_until(lambda: not session_members(child.pid))
    finally:
        for pid in session_members(child.pid):
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(temporary)


@pytest.mark.parametrize("name", ["processes-spawn", "processes-forkserver"])
def test_main_is_not_run_again_in_workers(name):
    done = run_child(sys.executable, str(HERE / "unguarded.py"), name)
    assert done.stdout.splitlines() == ["top level", "[1, 4, 9]"], done.stderr
    as_module = run_child(sys.executable, "-m", "tests.conformance.unguarded", name)
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
