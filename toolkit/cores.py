"""The cores that this process may use, and for how long its threads had to wait for one.

Measured processes import it: it imports `os` alone.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


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


def on_cores_apart(threads: int) -> list[int]:
    """Return the CPUs to pin so many threads to: one of each core, or all where there are fewer cores.

    Where the system does not report which CPUs are hyperthreads of one core, each counts as a core of its own.
    """
    cpus = sorted(os.sched_getaffinity(0))
    apart = first_of_each_core(cpus)
    return apart if len(apart) >= threads else cpus


def first_of_each_core(cpus: Iterable[int]) -> list[int]:
    """Return the first of `cpus` on each core, ascending; each is a core of its own where nobody tells."""
    cores: dict[str, int] = {}
    for cpu in sorted(cpus):
        cores.setdefault(_hyperthreads(cpu) or f"cpu{cpu}", cpu)
    return sorted(cores.values())


def _hyperthreads(cpu: int) -> str:
    """Return which CPUs share the core of `cpu`, as Linux writes them; "" where nobody tells."""
    try:
        with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as file:
            return file.read().strip()
    except OSError:
        return ""


def own_control_groups(root: str = "/sys/fs/cgroup", listing: str = "/proc/self/cgroup") -> list[str]:
    """Return the folders of the control group of this process and of all groups around it, the innermost first.

    The limits of all of them apply.  In a container, the own group often is the root.

    Source: Documentation/admin-guide/cgroup-v2.rst, "Organizing Processes and Threads".
    """
    path = ""
    try:
        with open(listing) as file:
            path = next((line[3:].strip().strip("/") for line in file if line.startswith("0::/")), "")
    except OSError:
        pass   # no control groups, or no /proc
    parts = [part for part in path.split("/") if part not in {"", ".."}]
    return [os.path.join(root, *parts[:count]) for count in range(len(parts), -1, -1)]


def _cgroup_quota(groups: list[str] | None = None) -> float | None:
    """Return the CPUs' worth of time that the tightest quota leaves; None without a quota."""
    quotas = []
    for group in own_control_groups() if groups is None else groups:
        try:
            with open(os.path.join(group, "cpu.max")) as file:
                quota, period = file.read().split()
            if quota != "max":
                quotas.append(int(quota) / int(period))
        except (OSError, ValueError):
            continue   # the root has no limits
    return min(quotas, default=None)


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
