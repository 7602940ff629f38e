"""CPU time and memory of a process and its descendants.  Runs inside the measured process and imports little.

`resource.getrusage(RUSAGE_CHILDREN)` covers only children that were waited for, which excludes the workers of a live
pool, and psutil does not load in every build; procfs and the per-process CPU clocks have neither limit.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CPUCLOCK_SCHED = 2  # include/linux/posix-timers.h: the nanosecond clock of run time


def descendants(pid: int) -> list[int]:
    """Return the ids of all living descendants of `pid`; [] without procfs."""
    children: dict[int, list[int]] = {}
    try:
        entries = os.listdir("/proc")
    except OSError:
        return []
    for entry in entries:
        if entry.isdigit() and (parent := _parent(int(entry))) is not None:
            children.setdefault(parent, []).append(int(entry))
    ids: list[int] = []
    queue = [pid]
    while queue:
        below = children.get(queue.pop(), [])
        ids += below
        queue += below
    return ids


def _parent(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The command name is in parentheses and may hold spaces and parentheses itself.
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU seconds that the processes `pids` have used so far, in all their threads.

    Children that have ended and were waited for are included: a task may start processes, and so does a pool that is
    opened again.  A process of `pids` that has ended counts as 0, so call this while they are alive.

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
        return _clock_of(pid) + ended
    except (OSError, ValueError):
        return 0.0


def _clock_of(pid: int) -> float:
    return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)


def running_cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU seconds of the processes `pids` without their children: quick to read."""
    seconds = 0.0
    for pid in pids:
        try:
            seconds += _clock_of(pid)
        except OSError:
            continue  # it has ended
    return seconds


def memory(pids: Iterable[int]) -> tuple[int | None, int | None]:
    """Return (peak resident bytes, current proportional bytes), each summed over `pids`; None without procfs.

    The resident peak counts shared pages once for each process.  The proportional size counts them once: pages shared
    with workers are divided among them (the kernel's Pss), and file pages, which any process may share, count as if
    only these processes had them.  Otherwise a process would seem smaller the more processes of its build are alive.

    Source: proc_pid_smaps(5); Documentation/filesystems/proc.rst.
    """
    own, readable = 0, False
    files: dict[tuple[bytes, bytes, bytes], int] = {}
    pids = list(pids)
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                rollup = file.read()
            with open(f"/proc/{pid}/smaps", "rb") as file:
                mapped = _file_pages(file)
        except OSError:
            continue
        readable = True
        if b"Pss_Anon:" not in rollup:  # before Linux 5.4: nothing better is known
            own += _kib(rollup, b"Pss:")
            continue
        own += _kib(rollup, b"Pss_Anon:") + _kib(rollup, b"Pss_Shmem:")
        for place, size in mapped.items():
            files[place] = max(files.get(place, 0), size)
    return (peak_resident(pids), own + sum(files.values())) if readable else (None, None)


def peak_resident(pids: Iterable[int]) -> int:
    """Return the peak resident bytes, summed over `pids`; shared pages count once for each process."""
    peak = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status", "rb") as file:
                peak += _kib(file.read(), b"VmHWM:")
        except OSError:
            continue
    return peak


# Named memory without a file: the kernel counts it as Pss_Shmem.
_NO_FILES = (b"/dev/shm/", b"/dev/zero", b"/memfd:", b"/SYSV", b"/[aio]")


def _file_pages(smaps: Iterable[bytes]) -> dict[tuple[bytes, bytes, bytes], int]:
    """Return the resident file bytes of one process by (device, inode, offset), without private copies."""
    sizes: dict[tuple[bytes, bytes, bytes], int] = {}
    place: tuple[bytes, bytes, bytes] | None = None
    for line in smaps:
        if line.startswith(b"Rss:"):
            if place is not None:
                sizes[place] = sizes.get(place, 0) + int(line.split()[1]) * 1024
        elif line.startswith(b"Anonymous:"):
            if place is not None:
                sizes[place] -= int(line.split()[1]) * 1024
        elif line[:1] in b"0123456789abcdef":  # of a mapping; fields begin with capitals
            fields = line.split(None, 5)
            named = len(fields) > 5 and fields[4] != b"0" and not fields[5].startswith(_NO_FILES)  # see proc
            place = (fields[3], fields[4], fields[2]) if named else None
    return sizes


def _kib(text: bytes, field: bytes) -> int:
    for line in text.splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0
