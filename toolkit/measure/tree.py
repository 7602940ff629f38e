"""CPU time and memory of a process and everything it started.  Runs inside the measured process: imports little.

`resource.getrusage(RUSAGE_CHILDREN)` knows only children that were waited for, which a live pool's workers are not, and
psutil does not load everywhere we measure; procfs and the per-process CPU clocks need neither.
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

    A process that has ended counts as 0: call it while they live.

    Source: clock_getcpuclockid(3); the id is made as MAKE_PROCESS_CPUCLOCK does in the kernel's posix-timers.h.
    """
    total = 0.0
    for pid in pids:
        try:
            total += time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
        except OSError:
            continue
    return total


def memory(pids: Iterable[int]) -> tuple[int | None, int | None]:
    """Return (peak resident bytes, proportional bytes now), each summed over `pids`; None where the system has no such file.

    The resident peak counts shared pages once for each process; the proportional set divides them among their users, so
    its sum is what the processes really take.
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
