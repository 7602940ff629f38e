"""Count the time that other programs leave trials: threads that wait for a core overlap in nothing.

Runs in the build under test: imports little.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    type Clock = Callable[[], float]
    type CoreSeconds = Callable[[], tuple[float, int]]


def core_seconds() -> tuple[float, int]:
    """Return the CPU time that other processes have used since boot on the cores of this one, and how many these are.

    Time that a hypervisor took counts as used.  Without procfs no other process is known: 0 seconds.
    """
    own = sum(os.times()[:4])    # with the forks that have ended
    try:
        wanted = {b"cpu%d" % core for core in os.sched_getaffinity(0)}
        with open("/proc/stat", "rb") as file:
            rows = [fields[1:9] for line in file if (fields := line.split()) and fields[0] in wanted]
        columns = [sum(map(int, each)) for each in zip(*rows, strict=True)]
        user, nice, system, _idle, _iowait, irq, softirq, steal = columns
    except (OSError, ValueError, AttributeError):
        return 0.0, 1
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") - own, len(rows)


class TrialBudget:
    """Seconds for trials, of which those count that other programs leave them; begins when it is made."""

    def __init__(self, seconds: float, limit: float, *, clock: Clock = time.monotonic,
                 used: CoreSeconds = core_seconds) -> None:
        """Take so many seconds of the cores, and `limit` seconds by the clock at most."""
        self._seconds = seconds
        self._limit = limit
        self._clock = clock
        self._used = used
        self._began = clock()
        self._before, _ = used()

    def spent(self) -> float:
        """Return the seconds of all cores that there were for the trials so far."""
        others, cores = self._used()
        return max(0.0, self._elapsed() - max(0.0, others - self._before) / cores)

    def is_spent(self) -> bool:
        """Return True if no trial is to begin any more."""
        return self._elapsed() >= self._limit or self.spent() >= self._seconds

    def missing(self) -> float:
        """Return the seconds that others had the cores, of those that there should have been; 0 before the limit."""
        return max(0.0, self._seconds - self.spent()) if self._elapsed() >= self._limit else 0.0

    def _elapsed(self) -> float:
        return self._clock() - self._began
