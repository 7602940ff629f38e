"""The cores that this process may use, and for how long its threads had to wait for one.

Measured processes import it: it imports `os` alone.
"""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return the number of CPUs this process may run on: its affinity, cut down by a cgroup's quota."""
    allowed, quota = allowed_cpus(), _cgroup_quota()
    return allowed if quota is None else max(1, min(allowed, round(quota)))


def allowed_cpus() -> int:
    """Return the number of CPUs in this process's affinity, whatever share of their time a quota leaves."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _cgroup_quota() -> float | None:
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return None


def scheduled(task: str = "thread-self") -> tuple[int, int] | None:
    """Return for how many nanoseconds a thread ran, and was ready to run and had no core; None where nobody tells.

    Args:
        task: The calling thread, or the id of a process: of its main thread.

    Source: Documentation/scheduler/sched-stats.rst, the first two fields of /proc/<pid>/schedstat.
    """
    try:
        with open(f"/proc/{task}/schedstat", "rb") as file:
            ran, waited = file.read().split()[:2]
        return int(ran), int(waited)
    except (OSError, ValueError):
        return None


def queued_seconds() -> float:
    """Return for how long the calling thread was ready to run and had no core; 0.0 where the kernel does not tell."""
    told = scheduled()
    return 0.0 if told is None else told[1] / 1e9
