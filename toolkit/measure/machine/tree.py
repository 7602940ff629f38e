"""CPU time and memory of a process and everything it started.  Runs inside the measured process: imports little.

`resource.getrusage(RUSAGE_CHILDREN)` alone knows only children that were waited for, which a live pool's workers are
not, and psutil does not load everywhere we measure; procfs and the per-process CPU clocks need neither.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CPUCLOCK_SCHED = 2  # include/linux/posix-timers.h: the nanosecond clock of run time


def descendants(pid: int) -> list[int]:
    """Return the ids of all living processes below `pid`, `pid` itself not among them; [] where there is no procfs."""
    children: dict[int, list[int]] = {}
    try:
        entries = os.listdir("/proc")
    except OSError:
        return []
    for entry in entries:
        if entry.isdigit() and (parent := _parent(int(entry))) is not None:
            children.setdefault(parent, []).append(int(entry))
    found: list[int] = []
    queue = [pid]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def _parent(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The command name is in parentheses and may hold spaces and parentheses itself.
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU seconds that the processes `pids` have used so far, all their threads together.

    The children of each that have ended and were waited for count with it: a task may start processes, and so does a
    pool that is opened again.  A process of `pids` itself that has ended counts as 0: call it while they live.

    Source: clock_getcpuclockid(3); the id is made as MAKE_PROCESS_CPUCLOCK does in the kernel's posix-timers.h.
    """
    return sum(_own_cpu_seconds() if pid == os.getpid() else _cpu_seconds_of(pid) for pid in pids)


def _own_cpu_seconds() -> float:
    import resource

    ended = resource.getrusage(resource.RUSAGE_CHILDREN)  # in microseconds, where procfs and os.times count in 10 ms
    return time.process_time() + ended.ru_utime + ended.ru_stime


def _cpu_seconds_of(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            user, system = file.read().rpartition(b")")[2].split()[13:15]  # cutime and cstime, see proc_pid_stat(5)
        ended = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED) + ended
    except (OSError, ValueError):
        return 0.0


def memory(pids: Iterable[int]) -> tuple[int | None, int | None]:
    """Return (peak resident bytes, proportional bytes now), each summed over `pids`.

    None where the system has no such file.  The resident peak counts shared pages once for each process; the
    proportional set divides them among their users, so its sum is what the processes really take.
    """
    resident = proportional = 0
    seen = False
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status", "rb") as file:
                resident += _kib(file.read(), b"VmHWM:")
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                proportional += _kib(file.read(), b"Pss:")
            seen = True
        except OSError:
            continue
    return (resident, proportional) if seen else (None, None)


def _kib(text: bytes, field: bytes) -> int:
    for line in text.splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0
