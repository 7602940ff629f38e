"""Evidence of what else ran on the machine while a cell was measured.

Runs inside the measured process: imports little.  A number is only as good as the cores it got.  The window opens
before the first timed value and closes after the last, so the start of the process does not blur it.
"""

from __future__ import annotations

import os
import time

from gilscope.toolkit.measure.machine.tree import cpu_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# A cell may miss this share of the cores it needs: up to it, two free threads on two cores still measured 1.9x.
STARVED_SHARE = 0.15
SHORTEST_WINDOW = 0.1  # seconds; the kernel counts CPU time in ticks of 10 ms, two CPUs and eight kinds of it


def is_starved(wanted: float, others_cores: float | None, cores: int, allowed: int | None = None) -> bool:
    """Return whether parallel workers missed more than STARVED_SHARE of the cores they need.

    One worker is never starved: sharing its core slows its baseline in the same round as much, and its CPU time not at
    all.  Several show no speed-up on cores they do not get.

    Args:
        wanted: Cores the workers could use at once.
        others_cores: Cores' worth of CPU time that other processes used; None when the system does not tell.
        cores: CPUs this process may use at once.
        allowed: CPUs in its affinity, more than `cores` under a quota; None: no more.
    """
    if others_cores is None or wanted <= 1:
        return False
    needed = min(wanted, cores)
    got = min(cores, (cores if allowed is None else allowed) - others_cores)
    return needed - got > STARVED_SHARE * needed


def wanted_cores(
    kind: str | None, workers: int, *, parallel: bool, own: float, left: float, demand: float | None = None
) -> float:
    """Return how many cores a cell could use at once.

    Args:
        kind: The workload's; None: the user's function, of which only `demand` is known.
        workers: Of the cell.
        parallel: Whether the runner's workers run Python code at the same time.
        own: Cores' worth of CPU time that it used.
        left: Cores' worth that others left to it.
        demand: Cores' worth that one worker keeps busy, measured on the serial baseline; None: not known.

    Returns:
        1 for one worker, also where its task has threads of its own: its baseline has them, too.
    """
    if workers == 1:
        return 1
    if parallel and demand is not None:
        return workers * demand
    if kind in {"io", "mixed"} and demand is None:
        return min(workers, own)
    if kind in {"cpu", "contention", "transfer"}:
        return workers if parallel else 1
    if kind == "native":
        return workers
    # Does the user's function drop the GIL?  Only then could its threads use more than one core.  Nobody knows, but
    # who left cores idle was not short of them.
    most = workers * (1.0 if demand is None else demand)
    return min(most, own) if own < (1 - STARVED_SHARE) * left else most


def core_demand(wall: float, cpu: float, queued: float) -> float:
    """Return the cores' worth that a thread keeps busy while nobody is in its way: 1.0 computes, 0.0 waits.

    Args:
        wall: Seconds that passed.
        cpu: CPU seconds that it used; more than `wall` where it has threads or processes of its own.
        queued: Of `wall`, the seconds that it stood in line for a CPU: not its own waiting.
    """
    return cpu / max(wall - queued, 1e-9)


class Window:
    """From its creation to `close`: how much CPU everybody else took."""

    def __init__(self, pids: Sequence[int]) -> None:
        """Open the window; `pids` are the processes whose CPU time is the measurement's own."""
        self._pids = list(pids)
        self._own = cpu_seconds(self._pids)
        self._stat = _cpu_ticks()
        self._pressure = _pressure_microseconds()
        self._switches = _involuntary_switches()
        self._began = time.perf_counter()
        self._load = _load()

    def close(self) -> dict[str, float | int | None]:
        """Return the fields of `model.Evidence`, and the cores' worth of CPU time that was the measurement's own."""
        elapsed = max(time.perf_counter() - self._began, 1e-9)
        own = cpu_seconds(self._pids) - self._own
        others = steal = pressure = None
        stat = _cpu_ticks()
        if stat and self._stat and elapsed >= SHORTEST_WINDOW:
            busy, stolen, total = (after - before for after, before in zip(stat, self._stat, strict=True))
            others = max(0.0, (busy / os.sysconf("SC_CLK_TCK") - own) / elapsed)
            steal = stolen / total if total else 0.0
        waited = _pressure_microseconds()
        if waited is not None and self._pressure is not None:
            pressure = min(1.0, (waited - self._pressure) / 1e6 / elapsed)
        switches = _involuntary_switches()
        return {
            "own_cores": own / elapsed,
            "others_cores": others,
            "steal": steal,
            "pressure": pressure,
            "load": self._load,
            "involuntary_switches": None if switches is None or self._switches is None else switches - self._switches,
        }


def _cpu_ticks() -> tuple[int, int, int] | None:
    """Return (busy, stolen, all) clock ticks since boot of the CPUs this process may use, None without procfs.

    Stolen ones are busy: nobody here had them.  What runs on the other CPUs takes nothing from us.
    """
    try:
        wanted = {b"cpu%d" % cpu for cpu in os.sched_getaffinity(0)}
        with open("/proc/stat", "rb") as file:
            lines = [fields for line in file if (fields := line.split()) and fields[0] in wanted]
        ticks = [sum(int(field) for field in column) for column in zip(*(line[1:9] for line in lines), strict=True)]
        user, nice, system, _idle, _iowait, irq, softirq, steal = ticks
    except (OSError, ValueError, AttributeError):
        return None
    return user + nice + system + irq + softirq + steal, steal, sum(ticks)


def _pressure_microseconds() -> int | None:
    try:
        with open("/proc/pressure/cpu", "rb") as file:
            return int(file.readline().rpartition(b"total=")[2])
    except (OSError, ValueError):
        return None


def _involuntary_switches() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _load() -> float | None:
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None
