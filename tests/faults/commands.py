"""Commands to disturb, each in a folder of its own, and what must be left of them afterwards: nothing."""

import contextlib
import os
import subprocess
import sys
import tempfile
import textwrap
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from gilscope.toolkit.gil import preload
from tests.conformance.builds import ROOT
from tests.measure.children import MARK, still_alive
from tests.patience import wait_until

POINTS = Path(__file__).with_name("points")   # what sends signals at a point of a command
HOST = ("--build", f"host={sys.executable}")

MINE = """
    def work(number):
        return sum(range(number))
"""
PROGRAM = """
    import threading, time

    def wait():
        for _ in range(30):
            time.sleep(0.1)

    try:
        threads = [threading.Thread(target=wait, daemon=True) for _ in range(2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    except KeyboardInterrupt:
        pass
"""
TEST = """
    import mine

    def test_work():
        assert mine.work(3) == 3
"""
LITTLE = ("--quick", "--rounds", "3", "--workers", "2", *HOST)


@dataclass(frozen=True)
class Command:
    """One command, and what it is disturbed for."""

    words: tuple[str, ...]
    seconds: float            # about as long as it takes: moments are drawn from these
    codes: frozenset[int] = frozenset({0})   # of one that ended before the signal came
    runs: bool = False        # whether it runs a program of the user's


COMMANDS = {
    "run": Command(("run", "mine:work", "--payload", "20000", "--tasks", "2", "--models",
                    "threads,subinterpreters,processes-spawn,processes-forkserver", "--label", "one", *LITTLE), 12.0),
    "race": Command(("race", "program.py"), 2.0, runs=True),
    "gil": Command(("gil", "program.py"), 2.0, frozenset({0, 3}), runs=True),
    "experiment": Command(("experiment", "run", "countdown", "--smoke", "--no-figures", "--rounds", "3", *HOST), 6.0),
    "evaluate": Command(("evaluate", ".", "--offline", "--budget", "20s", "--workload", "mine:call", *HOST), 10.0,
                        frozenset({0, 1, 2, 3})),
    "doctor": Command(("doctor", "packaging", "--offline", *HOST), 3.0, frozenset({0, 1, 2, 3})),
    "builds": Command(("builds",), 1.0),
    "report": Command(("report", str(ROOT / "results" / "example")), 1.0),
    "compare": Command(("compare", str(ROOT / "results" / "example"), "--models", "threads,subinterpreters"), 0.5),
}


class Disturbed:
    """A command that has been started in `folder`; it handles signals."""

    def __init__(self, folder, words, temporary=None, *, point=None, **options):
        self.folder = folder
        # Not in `folder`: multiprocessing's sockets are there, whose names must be short.
        self.temporary = Path(tempfile.mkdtemp(prefix="f-", dir="/tmp")) if temporary is None else temporary
        self.mark = uuid.uuid4().hex
        self.errors = folder / f"{self.mark}.err"
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.temporary), MARK: self.mark}
        if point is not None:
            environ |= {"PYTHONPATH": f"{POINTS}{os.pathsep}{ROOT}", "POINT": point}
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gilscope", *words], cwd=folder, env=environ, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True, **options)

    def wait_until_it_handles_signals(self, last):
        """Wait for our own first act; before it Python itself starts, and says of a Ctrl-C what it likes."""
        assert wait_until(lambda: self.process.poll() is not None or handled(self.process.pid) >> last - 1 & 1)

    def send(self, number, *, group=False):
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.process.pid, number)

    def tree(self):
        """Return the processes that belong to it."""
        mark = f"{MARK}={self.mark}".encode()
        found = []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in environ.read_bytes().split(b"\0"):
                    found.append(int(environ.parent.name))
        return found

    def said(self):
        return self.errors.read_text(errors="replace")

    def left(self):
        """Return what is there of it although it has ended: processes, folders, semaphores."""
        pid = f"-{self.process.pid}-"
        semaphores = [each.name for each in Path("/dev/shm").glob("sem.gilscope-*") if pid in each.name]
        return [*still_alive(self.mark), *(str(each) for each in self.temporary.iterdir()), *semaphores]


def needs_shim(command):
    """Skip where the library that `gil` needs cannot be had."""
    if command == "gil" and (reason := preload.unavailable()):
        pytest.skip(reason)


def handled(pid):
    """Return the mask of the signals that a process handles."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt")), 0)


def project(folder):
    """Write what the commands work on into `folder`."""
    (folder / "mine.py").write_text(textwrap.dedent(MINE) + "\ndef call():\n    return work(20000)\n")
    (folder / "program.py").write_text(textwrap.dedent(PROGRAM))
    (folder / "test_mine.py").write_text(textwrap.dedent(TEST))
    (folder / "pyproject.toml").write_text('[project]\nname = "mine"\nversion = "1"\n')
    return folder
