"""Evidence of other load on the machine while a cell was measured.

It runs inside the measured process and imports little.  A window is open while a value is taken; the windows of a
process add up, so that load between its turns does not count.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from gilscope.toolkit.cores import allowed_cpus
from gilscope.toolkit.measure.child.process_tree import cpu_seconds, running_cpu_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# A cell may lack this share of the cores it needs: up to it, two free threads on two cores still measured 1.9x.
STARVED_SHARE = 0.15
SHORTEST_WINDOW = 0.1  # seconds; the kernel counts CPU time in ticks of 10 ms, two CPUs and eight kinds of it


def is_starved(wanted: float, others_cores: float | None, cores: int, allowed: int | None = None) -> bool:
    """Return True if a cell lacked more than STARVED_SHARE of the cores that it needs, however many workers it has.

    Args:
        wanted: Cores the workers could use at once.
        others_cores: Cores' worth of CPU time that other processes used; None if unknown.
        cores: CPUs this process may use at once.
        allowed: CPUs in its affinity mask, more than `cores` under a quota; None: as many.
    """
    bearable = bearable_others(wanted, cores, allowed)
    return others_cores is not None and bearable is not None and others_cores > bearable


def bearable_others(wanted: float, cores: int, allowed: int | None = None) -> float | None:
    """Return the cores' worth of CPU time that others may use before a cell is starved; None: any, it needs no core.

    A cell needs none if its workers wait nearly all of the time: what it may lack is less than clock ticks can show.
    The arguments are those of `is_starved`.
    """
    if wanted <= STARVED_SHARE:
        return None
    return (cores if allowed is None else allowed) - (1 - STARVED_SHARE) * min(wanted, cores)


def starvation(wanted: float, others_cores: float | None, cores: int, allowed: int) -> dict[str, float | None]:
    """Return the fields of an answer that say if the cell was starved; the arguments are those of `is_starved`."""
    return {
        "starved": is_starved(wanted, others_cores, cores, allowed),
        "bearable": bearable_others(wanted, cores, allowed),
        "wanted": wanted,
    }


def wanted_cores(
    kind: str | None, workers: int, *, parallel: bool, own: float, left: float, demand: float | None = None
) -> float:
    """Return the number of cores that a cell could use at once.

    Args:
        kind: The kind of the workload; None for the user's function, of which only `demand` is known.
        workers: The workers of the cell.
        parallel: True if the runner's workers run Python code at the same time.
        own: Cores' worth of CPU time that it used.
        left: Cores' worth that other processes left to it.
        demand: Cores' worth that one worker keeps busy, measured on the serial baseline; None: unknown.
    """
    if parallel and demand is not None:
        return workers * demand
    if kind in {"io", "mixed"} and demand is None:
        return min(workers, own)
    if kind in {"cpu", "contention", "transfer"}:
        return workers if parallel else 1
    if kind == "native":
        return workers
    # The user's function can use several cores in threads only if it releases the GIL, which is unknown.  But a cell
    # that left cores idle did not lack any beyond what one worker needs.
    most = workers * (1.0 if demand is None else demand)
    return min(most, max(own, demand or 0.0)) if own < (1 - STARVED_SHARE) * left else most


def core_demand(wall: float, cpu: float, queued: float) -> float:
    """Return the cores' worth that a thread keeps busy if it never waits for a core: 1.0 computes, 0.0 waits.

    Args:
        wall: Seconds that passed.
        cpu: CPU seconds that it used; more than `wall` if it has threads or processes of its own.
        queued: The part of `wall` in which it was runnable and had no CPU.
    """
    return cpu / max(wall - queued, 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowLoad:
    """The load while one or several windows were open, added up.  None: the system does not provide it."""

    elapsed: float           # seconds
    own: float               # CPU seconds of the measurement's own processes
    ours: float              # CPU seconds of gilscope's other processes, which are no other load
    busy: float | None       # CPU seconds of all processes, including the hypervisor's other guests
    stolen: float | None     # CPU seconds taken by the hypervisor, a part of `busy`
    total: float | None      # CPU seconds available
    waited: float | None     # seconds in which some task waited for a CPU
    windows: int = 1

    def __add__(self, other: WindowLoad) -> WindowLoad:
        """Return the load of both together."""
        return WindowLoad(
            elapsed=self.elapsed + other.elapsed, own=self.own + other.own, ours=self.ours + other.ours,
            busy=_sum(self.busy, other.busy), stolen=_sum(self.stolen, other.stolen),
            total=_sum(self.total, other.total), waited=_sum(self.waited, other.waited),
            windows=self.windows + other.windows,
        )

    @property
    def others_cores(self) -> float | None:
        """Cores' worth of CPU time that other programs used; None if the windows are too short to know."""
        return None if self.elapsed < SHORTEST_WINDOW else self._others(0.0)

    @property
    def likely_others_cores(self) -> float:
        """`others_cores`, or what others used at least if the windows are too short to know."""
        known = self.others_cores
        return self.least_others_cores if known is None else known

    @property
    def least_others_cores(self) -> float:
        """A lower bound of `others_cores`, as the kernel counts in ticks; 0.0 if nothing is known."""
        cpus = 0.0 if self.total is None else self.total / self.elapsed
        return self._others(max(1.0, cpus) * self.windows / os.sysconf("SC_CLK_TCK")) or 0.0

    def _others(self, doubt: float) -> float | None:
        return None if self.busy is None else max(0.0, (self.busy - doubt - self.own - self.ours) / self.elapsed)

    def evidence(self, load: float | None) -> dict[str, float | int | None]:
        """Return the fields of `model.Evidence`."""
        steal = None
        if self.stolen is not None and self.total is not None and self.elapsed >= SHORTEST_WINDOW:
            steal = self.stolen / self.total if self.total else 0.0
        return {
            "others_cores": self.others_cores,
            "steal": steal,
            "pressure": None if self.waited is None else min(1.0, self.waited / self.elapsed),
            "load": load,
        }


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


class LoadWindow:
    """Counters of the machine's load from the creation of the window on."""

    def __init__(self, pids: Sequence[int], ours: Sequence[int] = ()) -> None:
        """Open the window.

        Args:
            pids: The processes whose CPU time is the measurement's own.
            ours: gilscope's other processes; none of them starts or ends processes meanwhile.
        """
        self._pids, self._ours_pids = list(pids), list(ours)
        self._ours = running_cpu_seconds(self._ours_pids)
        self._own = cpu_seconds(self._pids)
        self._stat = _cpu_ticks()
        self._pressure = _pressure_microseconds()
        self._began = time.perf_counter()
        self.load = load_average()

    def span(self) -> WindowLoad:
        """Return the load so far."""
        elapsed = max(time.perf_counter() - self._began, 1e-9)
        own = cpu_seconds(self._pids) - self._own
        stat, tick = _cpu_ticks(), os.sysconf("SC_CLK_TCK")
        busy = stolen = total = None
        if stat and self._stat:
            busy, stolen, total = ((after - before) / tick for after, before in zip(stat, self._stat, strict=True))
            # Ticks may round up.  Beside a cell that had its core, nobody used that core.
            busy = min(busy, elapsed * allowed_cpus())
        waited = _pressure_microseconds()
        return WindowLoad(
            elapsed=elapsed, own=own, ours=max(0.0, running_cpu_seconds(self._ours_pids) - self._ours), busy=busy,
            stolen=stolen, total=total,
            waited=None if waited is None or self._pressure is None else (waited - self._pressure) / 1e6,
        )


def others_now(seconds: float = 0.3) -> float | None:
    """Return the cores' worth of CPU time that others use, watched for so long; None where the system does not tell."""
    window = LoadWindow([os.getpid()])
    time.sleep(seconds)
    return window.span().others_cores


def _cpu_ticks() -> tuple[int, int, int] | None:
    """Return (busy, stolen, all) clock ticks since boot of the CPUs this process may use, None without procfs.

    Stolen ticks count as busy.  Load on other CPUs takes nothing from us.
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


def load_average() -> float | None:
    """Return the 1-minute load average; None if the system does not provide it."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None
