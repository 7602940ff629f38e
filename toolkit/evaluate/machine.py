"""What this machine can tell about parallel work: how many cores' work it really does at once, and who waits."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from toolkit.evaluate.evaluation import MachineFacts, Missing
from toolkit.measure.noise import usable_cores

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = 5
SPIN_SECONDS = 0.25
START_SECONDS = 30.0
MOST_QUEUED = 0.15      # share of a spinning process's life: more, and no word on speed is said
LEAST_EFFECTIVE = 1.5   # cores
# Says that it is ready, spins from a byte on, and says how often it went round and what the scheduler did to it.
SPINNER = f"""
import sys, time
sys.stdout.write("r\\n"); sys.stdout.flush()
sys.stdin.readline()
def scheduled():
    try:
        with open("/proc/thread-self/schedstat") as file:
            return [int(field) for field in file.read().split()[:2]]
    except OSError:
        return [0, 0]
before, count = scheduled(), 0
end = time.perf_counter() + {SPIN_SECONDS}
while time.perf_counter() < end:
    for _ in range(1000):
        count += 1
ran, waited = (b - a for a, b in zip(before, scheduled()))
print(count, ran, waited)
"""


def calibrate() -> MachineFacts | Missing:
    """Return what spinning processes show: as many as there are cores against one, in turns.

    Source: the method of gil-load and of ftscalingbench's effective cores, with processes, which share nothing.
    """
    cores = usable_cores()
    try:
        rounds = [(_spin(1), _spin(cores)) for _ in range(ROUNDS)]
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return Missing(reason=f"the machine could not be calibrated: {error}")
    effective = median(sum(count for count, _, _ in many) / one[0][0] for one, many in rounds)
    lives = [(ran, waited) for _, many in rounds for _, ran, waited in many]
    total = sum(ran + waited for ran, waited in lives)
    queued = sum(waited for _, waited in lives) / total if total else None
    return MachineFacts(
        cores=cores, effective=effective, run_queue=queued, governor=_governor(), libc=" ".join(platform.libc_ver()),
        doubts=tuple(doubts(cores, effective, queued)),
    )


def doubts(cores: int, effective: float, run_queue: float | None) -> Iterator[str]:
    """Yield why no word on speed can be said on such a machine."""
    if cores == 1:
        yield "one core only: nothing can run at the same time"
    elif effective < LEAST_EFFECTIVE:
        yield (f"{cores} cores do only {effective:.2f} cores' work at once; something else is running, or they share "
               "one core's units")
    if run_queue is not None and run_queue > MOST_QUEUED:
        yield f"processes wait {run_queue * 100:.0f} % of their time for a core: something else keeps the machine busy"


def _spin(count: int) -> list[tuple[int, int, int]]:
    """Return rounds made, nanoseconds run and nanoseconds waited for a core, of `count` processes at once."""
    started: list[subprocess.Popen[str]] = []
    try:
        for _ in range(count):
            started.append(_started())  # noqa: PERF401 - one by one: those before a failure must be ended
        for process in started:   # all are up before one spins
            assert process.stdout is not None
            process.stdout.readline()
        for process in started:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        told = [process.communicate(timeout=START_SECONDS)[0].split() for process in started]
        return [(int(made), int(ran), int(waited)) for made, ran, waited in told]
    finally:
        for process in started:
            process.kill()
            with contextlib.suppress(ValueError):   # its pipes are closed already
                process.communicate()


def _started() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", SPINNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _governor() -> str | None:
    with contextlib.suppress(OSError):
        cpu = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor").read_text().strip()
    return None
