"""What `gilscope gil` shares with others: the cache, the terminal, and the disk."""

import json
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gilscope.toolkit.builds.compile_library import c_compiler
from gilscope.toolkit.gil import preload
from tests.conformance.builds import ROOT
from tests.gil.programs import SPIN
from tests.gil.traces import checked
from tests.measure.children import gil_on
from tests.patience import PATIENCE, wait_until

GIL = (sys.executable, "-P", "-m", "gilscope", "gil")


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a program of three threads; skip where it cannot be recorded."""
    if reason := preload.unavailable():
        pytest.skip(reason)
    (tmp_path / "spin.py").write_text(f"{SPIN}\nprint('done')\nsys.exit(7)\n")
    return tmp_path


def environment(folder, **variables):
    return {**os.environ, "PYTHONPATH": str(ROOT), "GILSCOPE_MACHINE": str(folder), **variables}


def test_two_first_uses_at_once_compile_one_library(folder):
    compiler, begun, go, library = folder / "compiler", folder / "begun", folder / "go", folder / "cache" / "gil-shim"
    compiler.write_text(
        f"#!/bin/sh\necho yes > '{begun}'\nread line < '{go}'\nexec {shlex.join(c_compiler())} \"$@\"\n")
    compiler.chmod(0o755)
    for fifo in (begun, go):
        os.mkfifo(fifo)
    reading, writing = (os.open(fifo, os.O_RDWR | os.O_NONBLOCK) for fifo in (begun, go))

    def start():
        return subprocess.Popen([*GIL, "--once", "spin.py", "2"], cwd=folder, stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.PIPE, env=environment(
                                    folder, CC=str(compiler), GILSCOPE_CACHE=str(folder / "cache")))

    def waits_for_the_first():
        inode = str((library / "lock").stat().st_ino)
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        return any(words[1] == "->" and words[6].rpartition(":")[2] == inode for words in locks)

    with start() as first:
        assert select.select([reading], [], [], PATIENCE)[0]
        assert os.read(reading, 100) == b"yes\n"
        with start() as second:
            in_the_way = wait_until(lambda: waits_for_the_first() or select.select([reading], [], [], 0)[0], second)
            os.write(writing, b"\n\n")
            answers = [each.communicate(timeout=PATIENCE) for each in (first, second)]
    assert in_the_way
    assert not select.select([reading], [], [], 0)[0], "it was compiled twice"
    for process, (out, err) in zip((first, second), answers, strict=True):
        assert (process.returncode, out) == (7, "done\n"), err
        assert "3 threads" in err
    assert {path.name for path in library.iterdir()} == {"lock", preload.file_name()}
    os.close(reading)
    os.close(writing)


# What a shell does for a job in the foreground: it tells how the job stopped or ended, and continues it when asked to.
SHELL = """
import fcntl, os, signal, sys, termios

said, asked, *command = sys.argv[1:]
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)       # whoever names the foreground need not be in it
job = os.fork()
if not job:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(command[0], command)
while True:
    status = os.waitpid(job, os.WUNTRACED)[1]
    os.tcsetpgrp(0, os.getpgrp())
    if not os.WIFSTOPPED(status):
        os.write(int(said), f"ended {os.waitstatus_to_exitcode(status)}\\n".encode())
        break
    os.write(int(said), f"stopped {os.WSTOPSIG(status) == signal.SIGTSTP} {job}\\n".encode())
    os.read(int(asked), 1)
    os.tcsetpgrp(0, job)
    os.killpg(job, signal.SIGCONT)
"""
# Two threads take turns, before and after the line that is typed.
TYPED = """
import os, sys, threading

def spin(number):
    global last, turns
    while not ended:
        if last != number:
            last, turns = number, turns + 1
        if turns >= goal:
            reached.set()

last, turns, goal, ended, reached = None, 0, 20, False, threading.Event()
threads = [threading.Thread(target=spin, args=(number,)) for number in range(2)]
for thread in threads:
    thread.start()
reached.wait()
print("begun", os.getpid(), flush=True)
word = sys.stdin.readline()
goal = turns + 20
reached.clear()
reached.wait()
ended = True
for thread in threads:
    thread.join()
print("typed", word)
sys.exit(7)
"""


def state(pid):
    """Return the letter of a process's state."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def read_until(fd, pattern):
    """Read up to a text that matches, and return the match."""
    text = ""
    while not (found := re.search(pattern, text)):
        assert select.select([fd], [], [], PATIENCE)[0], text
        text += os.read(fd, 1000).decode()
    return found


def test_ctrl_z_stops_the_program_and_gilscope_and_both_go_on(folder):
    (folder / "typed.py").write_text(TYPED)
    (near, far), (told, said), (asked, asking) = pty.openpty(), os.pipe(), os.pipe()
    command = [sys.executable, "-c", SHELL, str(said), str(asked), *GIL, "--once", "--json", "out.json", "--trace",
               "trace.json", "typed.py"]
    with subprocess.Popen(command, cwd=folder, stdin=far, stdout=far, stderr=far, start_new_session=True,
                          pass_fds=(said, asked), env=environment(folder)) as shell:
        for each in (far, said, asked):
            os.close(each)
        try:
            program = read_until(near, r"begun (\d+)\s")[1]
            os.write(near, b"\x1a")
            gilscope = read_until(told, r"stopped True (\d+)\n")[1]
            assert wait_until(lambda: state(program) == state(gilscope) == "T")
            os.write(asking, b"\n")
            os.write(near, b"on\n")
            read_until(near, "typed on")
            assert read_until(told, r"(.*)\n")[1] == "ended 7"
            assert shell.wait(PATIENCE) == 0
        finally:
            os.close(near)      # who is still there gets SIGHUP
    for each in (told, asking):
        os.close(each)
    found = json.loads((folder / "out.json").read_text())
    assert (found["exit"], found["processes"], len(found["threads"])) == (7, 1, 3)
    assert not gil_on() or 0 < found["share"] < 1
    checked(json.loads((folder / "trace.json").read_text()))


@pytest.fixture(scope="module")
def tiny_disk():
    """Return the beginning of a command that runs the rest with a tmpfs of N KiB at a folder, for it alone."""
    script = 'mount -t tmpfs -o size="$1"k none "$2" && shift 2 && exec "$@"'
    for options in ("-Urm", "-m"):     # the second as root where users may make no namespaces
        command = ("unshare", options, "sh", "-c", script, "sh")
        tried = [*command, "64", "/tmp", "true"]
        if shutil.which("unshare") and not subprocess.run(tried, capture_output=True, check=False).returncode:
            return command
    pytest.skip("no file system can be mounted here, as in most containers")


@pytest.mark.parametrize(("size", "missing"), [
    (4, "3 threads are missing"), (8, "waits lack their place"),    # 4: the header alone
    (32, "waits lack their place")])
def test_full_disk_is_no_end_of_the_program(size, missing, folder, tiny_disk):
    disk = folder / "disk"
    disk.mkdir()
    done = subprocess.run([*tiny_disk, str(size), str(disk), *GIL, "--once", "spin.py", "2"], cwd=folder, text=True,
                          capture_output=True, check=False, timeout=PATIENCE, env=environment(folder, TMPDIR=str(disk)))
    assert (done.returncode, done.stdout) == (7, "done\n"), done.stderr
    said = " ".join(done.stderr.split())
    assert f"{missing}: " in said
    assert "the temporary folder's disk (TMPDIR) is full" in said


def test_disk_without_room_for_a_recording_is_told_as_that(folder, tiny_disk):
    disk, full = folder / "disk", folder / "full"
    disk.mkdir()
    full.write_text(f'#!/bin/sh\ncat /dev/zero > {disk}/full 2> /dev/null\nexec {sys.executable} "$@"\n')
    full.chmod(0o755)
    done = subprocess.run([*tiny_disk, "8", str(disk), *GIL, "--once", "--build", f"full={full}", "spin.py", "2"],
                          cwd=folder, text=True, capture_output=True, check=False, timeout=PATIENCE,
                          env=environment(folder, TMPDIR=str(disk)))
    assert (done.returncode, done.stdout) == (7, "done\n"), done.stderr
    assert done.stderr == ("gilscope: nothing was recorded: no file for it could be made in the temporary folder "
                           "(TMPDIR): No space left on device\n")
