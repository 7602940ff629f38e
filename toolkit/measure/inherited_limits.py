"""Limits that measured processes inherit from the process that started gilscope: niceness, CPUs, resource limits.

The user may have set them on purpose (nice, taskset, ulimit), so they are left unchanged and reported with the numbers.
Inherited state that no measured process may have, such as an ignored Ctrl-C, is reset there: see `lifeline`.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass

from gilscope.toolkit.processes.lifeline import OPEN_FILES, open_files

_DEFAULT_STACK = 8 << 20  # bytes, also of new threads
_POLICIES = {"SCHED_BATCH": "batch", "SCHED_IDLE": "idle", "SCHED_FIFO": "real-time", "SCHED_RR": "real-time"}
_LIMITS = (("RLIMIT_AS", "address space"), ("RLIMIT_DATA", "data"), ("RLIMIT_FSIZE", "written files"))


@dataclass(frozen=True, slots=True, kw_only=True)
class InheritedLimits:
    """The limits that measured processes inherit."""

    nice: int
    policy: str               # of the scheduler; "" for the default
    cpus: tuple[int, ...]     # usable ones
    online: int               # CPUs that the machine has
    files: int                # open at once, at most
    limits: dict[str, int]    # bytes by limited resource
    cpu_seconds: int | None   # after which a process is killed

    def sentence(self) -> str | None:
        """Return the limits as a sentence for the reader; None if there are no unusual ones."""
        parts = [f"with nice {self.nice}"] if self.nice else []
        parts += [f"with the {self.policy} scheduling policy"] if self.policy else []
        if len(self.cpus) < self.online:
            parts.append(f"on {len(self.cpus)} of the machine's {self.online} CPUs ({_ranges(self.cpus)})")
        parts += [f"with at most {self.files} open files"] if self.files < OPEN_FILES else []
        parts += [f"with {what} limited to {_mebibytes(size)}" for what, size in self.limits.items()]
        parts += [f"with {self.cpu_seconds} s of CPU time per process"] if self.cpu_seconds is not None else []
        return f"gilscope was started {', '.join(parts)}; so were the measured processes" if parts else None


def inherited_limits() -> InheritedLimits:
    """Return the limits that child processes inherit from this one."""
    endless = resource.RLIM_INFINITY
    limits = {what: resource.getrlimit(getattr(resource, name))[0] for name, what in _LIMITS}
    stack, _ = resource.getrlimit(resource.RLIMIT_STACK)
    if stack != _DEFAULT_STACK:
        limits["the stack"] = stack
    seconds, _ = resource.getrlimit(resource.RLIMIT_CPU)
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    online = os.sysconf("SC_NPROCESSORS_ONLN")
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(online)
    return InheritedLimits(
        nice=os.getpriority(os.PRIO_PROCESS, 0), policy=_policy(), cpus=tuple(cpus), online=online,
        files=open_files(files), limits={what: size for what, size in limits.items() if size != endless},
        cpu_seconds=None if seconds == endless else seconds,
    )


def _policy() -> str:
    if not hasattr(os, "sched_getscheduler"):
        return ""
    number = os.sched_getscheduler(0)
    return next((words for name, words in _POLICIES.items() if getattr(os, name, None) == number), "")


def _ranges(numbers: tuple[int, ...]) -> str:
    """Return "0-2,5" for (0, 1, 2, 5)."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:g} MiB"
