"""Name the programs that use the cores now: for messages to the user, never for what is stored."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from gilscope.toolkit.measure.child.process_tree import descendants

LOOK_SECONDS = 0.5
LEAST = 0.1    # cores' worth of CPU time; a program that uses less is not named
MOST = 3       # programs that are named


@dataclass(frozen=True, slots=True)
class ProcessTime:
    """One process at one moment."""

    name: str        # of the program
    seconds: float   # CPU time so far


Read = Callable[[], Mapping[int, ProcessTime]]   # returns all processes by their ids


def process_times() -> dict[int, ProcessTime]:
    """Return every process that can be seen; none without procfs.

    Source: proc_pid_stat(5); the name is in parentheses and may hold spaces and parentheses itself.
    """
    found: dict[int, ProcessTime] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            start, _, rest = (folder / "stat").read_bytes().rpartition(b")")
        except OSError:
            continue   # it has ended
        user, system = rest.split()[11:13]
        name = start.partition(b"(")[2].decode(errors="replace")
        found[int(folder.name)] = ProcessTime(name, (int(user) + int(system)) / os.sysconf("SC_CLK_TCK"))
    return found


def busy_programs(
    read: Read = process_times, *, pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """Return "make (process 12: 1.0 cores), cc1 (4 processes: 0.8 cores)", the busiest first; "" if none is seen.

    Programs of another container or virtual machine are not seen.
    """
    ours = {os.getpid(), *descendants(os.getpid())}
    before, began = read(), clock()
    pause(LOOK_SECONDS)
    return _busiest(before, read(), clock() - began, ours)


def _busiest(
    before: Mapping[int, ProcessTime], after: Mapping[int, ProcessTime], elapsed: float, ours: Container[int],
) -> str:
    programs: dict[str, dict[int, float]] = {}   # cores' worth by process
    for pid, now in after.items():
        used = (now.seconds - (before[pid].seconds if pid in before else 0.0)) / elapsed
        if pid not in ours and used > 0:
            programs.setdefault(now.name, {})[pid] = used
    busiest = sorted(programs.items(), key=lambda each: -sum(each[1].values()))
    return ", ".join(
        f"{name} ({f'{len(used)} processes' if len(used) > 1 else f'process {next(iter(used))}'}: "
        f"{sum(used.values()):.1f} cores)"
        for name, used in busiest[:MOST] if sum(used.values()) >= LEAST)
