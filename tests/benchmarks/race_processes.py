"""Run a program plain or checked, and measure its time and memory."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOOK_EVERY = 0.002       # seconds between looks at a process's memory


@dataclass(frozen=True, slots=True)
class Cost:
    """One run: CPU seconds of the process and its children, wall seconds, and output."""

    cpu: float
    wall: float
    stdout: str


@dataclass(frozen=True, slots=True)
class Command:
    """A program and how it is run."""

    words: tuple[str, ...]
    folder: Path

    def start(self) -> subprocess.Popen[str]:
        """Start it and discard its standard error."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(self.words, env=environment, cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def run(self) -> Cost:
        """Run it to its end."""
        began = time.perf_counter()
        process = self.start()
        stdout = process.stdout.read()
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - began, stdout)

    def peak_bytes(self) -> int:
        """Return the peak resident memory of the largest process of the run, 0 if the system does not provide it.

        Looked at while it runs: `ru_maxrss` begins with what the process had that started it.
        """
        process, largest = self.start(), 0
        while process.poll() is None:
            largest = max(largest, *(high_water(pid) for pid in (process.pid, *children(process.pid))))
            time.sleep(LOOK_EVERY)
        process.stdout.close()
        return largest


def plain_command(python: str, program: Path) -> Command:
    """Return the program without the checker."""
    return Command((python, str(program)), program.parent)


def checked_command(python: str, program: Path) -> Command:
    """Return the program under a gilscope in the same build, as in a project's own environment."""
    return Command((python, "-m", "gilscope", "race", str(program)), program.parent)


def children(pid: int) -> list[int]:
    """Return the children of a process's main thread."""
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def high_water(pid: int) -> int:
    """Return the peak resident bytes of a process until now, 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
