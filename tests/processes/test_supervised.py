"""Commands of ours: they end as they would alone, and never outlive us."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gilscope.toolkit.children.at_once import at_once
from gilscope.toolkit.processes.supervised import Supervised, run
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE, wait_until

PYTHON = sys.executable
# A command that leaves a daemon in its group, tells both numbers, and waits.
FAMILY = """import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
with open(sys.argv[1] + '.part', 'w') as file:
    file.write(f'{os.getpid()} {child.pid}')
os.rename(sys.argv[1] + '.part', sys.argv[1])
time.sleep(600)
"""
STARTS = """import sys
from gilscope.toolkit.processes.supervised import run
run([sys.executable, '-c', {family!r}, {told!r}])
"""


def told(path):
    """Return the numbers in a file as soon as it is there."""
    assert wait_until(path.exists)
    return [int(each) for each in path.read_text().split()]


def gone(pid):
    """Return whether a process ends, or has ended and nobody has waited for it."""
    def ended():
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    return wait_until(ended)


@pytest.mark.parametrize(("code", "status"), [
    ("", 0), ("raise SystemExit(7)", 7), ("import os; os._exit(255)", 255),
    *((f"import os; os.kill(os.getpid(), {number:d})", -number) for number in (
        signal.SIGKILL, signal.SIGTERM, signal.SIGABRT, signal.SIGSEGV, signal.SIGHUP, signal.SIGPIPE)),
])
def test_a_command_ends_as_it_does_alone(code, status):
    # Python itself ignores a SIGPIPE; the command must not be born like that.
    assert run(["sh", "-c", f"exec {PYTHON} -c '{code}'"]).returncode == (0 if status == -signal.SIGPIPE else status)


def test_a_command_is_not_born_ignoring_signals():
    assert run(["sh", "-c", "kill -PIPE $$"]).returncode == -signal.SIGPIPE


def test_what_it_prints_is_kept_apart_and_its_input_is_empty():
    done = run(["sh", "-c", "cat; echo out; printf '\\377' >&2"])
    assert (done.stdout, done.stderr) == ("out\n", "\N{REPLACEMENT CHARACTER}")


def test_it_has_no_descriptor_of_ours():
    done = run(["sh", "-c", "ls /proc/self/fd | wc -l"])
    assert int(done.stdout) <= 4   # the three, and the folder that is read


@pytest.mark.parametrize(("word", "error"), [("/nowhere/program", FileNotFoundError),
                                             ("no-such-program", FileNotFoundError),
                                             (str(ROOT / "README.md"), PermissionError)])
def test_what_cannot_be_started_is_an_error(word, error):
    with pytest.raises(error):
        run([word])


def test_a_program_that_is_none_says_so(tmp_path):
    (tmp_path / "program").write_bytes(b"\0\0\0")
    (tmp_path / "program").chmod(0o755)
    done = run([tmp_path / "program"])
    assert (done.returncode, "cannot start" in done.stderr) == (126, True)


def test_a_daemon_in_its_group_does_not_hold_it_up_and_ends_with_it(tmp_path):
    daemon = f"({PYTHON} -c 'import time; time.sleep(600)' & echo $! >{tmp_path / 'pid'})"
    assert run(["sh", "-c", daemon], timeout=PATIENCE).returncode == 0
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_limit_ends_it_with_all_that_it_started(tmp_path):
    with Supervised([PYTHON, "-c", FAMILY, str(tmp_path / "told")]) as process:
        pids = told(tmp_path / "told")
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
    assert all(map(gone, pids))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_who_started_it(tmp_path, number):
    program = STARTS.format(family=FAMILY, told=str(tmp_path / "told"))
    with subprocess.Popen([PYTHON, "-c", program], cwd=ROOT, stderr=subprocess.DEVNULL) as starter:
        pids = told(tmp_path / "told")
        starter.send_signal(number)
        assert starter.wait(PATIENCE) in {-number, 130}
        assert all(map(gone, pids))


def test_a_command_that_closes_every_descriptor_ends_with_us_all_the_same(tmp_path):
    program = STARTS.format(family=f"import os; os.closerange(0, 300)\n{FAMILY}", told=str(tmp_path / "told"))
    with subprocess.Popen([PYTHON, "-c", program], cwd=ROOT, stderr=subprocess.DEVNULL) as starter:
        pids = told(tmp_path / "told")
        starter.kill()
        starter.wait(PATIENCE)
        assert all(map(gone, pids))


def test_ctrl_c_ends_what_other_threads_wait_for_and_their_folders(tmp_path):
    program = f"""import sys, tempfile
from pathlib import Path
from gilscope.toolkit.children.at_once import at_once
from gilscope.toolkit.processes.supervised import run
def work(number):
    with tempfile.TemporaryDirectory(dir={str(tmp_path)!r}, prefix='room-'):
        while True:   # as an installer that is tried again
            run([sys.executable, '-c', {FAMILY!r}, {str(tmp_path)!r} + f'/told-{{number}}'])
at_once(work, [1, 2, 3], 2)
"""
    with subprocess.Popen([PYTHON, "-c", program], cwd=ROOT, stderr=subprocess.PIPE) as starter:
        pids = [*told(tmp_path / "told-1"), *told(tmp_path / "told-2")]
        starter.send_signal(signal.SIGINT)
        try:
            _, complaint = starter.communicate(timeout=PATIENCE)
        finally:
            starter.kill()
    assert b"KeyboardInterrupt" in complaint
    assert all(map(gone, pids))
    assert not list(tmp_path.glob("room-*"))
    assert not (tmp_path / "told-3").exists()


def test_an_error_lets_the_others_come_to_their_end():
    def work(number):
        if number == 0:
            raise ValueError
        return run([PYTHON, "-c", "print(1)"]).stdout

    with pytest.raises(ValueError):
        at_once(work, [0, 1], 2)
    assert at_once(work, [1, 2, 3], 2) == ["1\n"] * 3
    assert os.getpid()
