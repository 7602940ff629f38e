"""What this machine can tell about parallel work: how many cores' work it really does at once, and who waits."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.packages.environment import harness_path
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.evaluate.sections import MachineFacts, Missing
from gilscope.toolkit.measure.process.inherited import inherited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LEAST_SPINS = 5
SPIN_SECONDS = 0.25
START_SECONDS = 30.0
MOST_QUEUED = 0.15      # share of a spinning process's life: more, and no word on speed is said
LEAST_EFFECTIVE = 1.5   # cores
QUIET_LOOKS = 3         # in a row: other programs come and go
QUIET_PAUSE = 10.0      # seconds between looks at a busy machine
# Says that it is ready, goes round as often as it is told, or for SPIN_SECONDS (0), and says how often that was,
# nanoseconds that it ran, waited for a core (-1: the system does not tell), and took.  The scheduler's own count of
# what a thread ran lags by a tick.  Its line is standard input: who waits there when we are gone ends, who spins is
# done in a moment, and who has something to say ends without a word.
SPINNER = f"""
import signal, time
from gilscope.toolkit.cores import scheduled
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
sys.stdout.write("r\\n"); sys.stdout.flush()
told = sys.stdin.readline()
if not told:
    sys.exit(1)
wanted = int(told)
def waited():
    told = scheduled()
    return None if told is None else told[1]
before, ran, count = waited(), time.process_time_ns(), 0
began = time.perf_counter_ns()
end = began + {int(SPIN_SECONDS * 1e9)}
while count < wanted if wanted else time.perf_counter_ns() < end:
    for _ in range(1000):
        count += 1
lasted, ran = time.perf_counter_ns() - began, time.process_time_ns() - ran
print(count, ran, -1 if before is None else waited() - before, lasted)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spin:
    """One moment of the machine: a spinning process for each core, against one alone that does as much as each."""

    cores: int
    effective: float       # times the work of one in the same time
    ran: int               # nanoseconds that they had a core, all of them together
    waited: int | None     # nanoseconds that they waited for one; None: the system does not tell
    lasted: int            # nanoseconds until the last one was done

    @property
    def given(self) -> float:
        """How many cores they had until all were done: others' load and uneven ends are in it, slower cores are not."""
        return self.ran / self.lasted


def spin(cores: int) -> Spin:
    """Return what `cores` spinning processes do now, against one.

    Raises:
        OSError, ValueError, subprocess.SubprocessError: they cannot be started, or do not answer.
    """
    ((rounds, _, _, alone),) = _spun(1, 0)
    many = _spun(cores, rounds)
    waits = [waited for _, _, waited, _ in many]
    lives = [lasted for *_, lasted in many]
    return Spin(cores=cores, effective=sum(alone / lasted for lasted in lives), ran=sum(ran for _, ran, _, _ in many),
                waited=None if min(waits) < 0 else sum(waits), lasted=max(lives))


class Calibration:
    """What spinning processes show, now and then while something else is measured.

    Source: the method of gil-load and of ftscalingbench's effective cores, with processes, which share nothing.
    """

    def __init__(self, spinning: Callable[[int], Spin] = spin) -> None:
        """Nothing is started."""
        self._spin = spinning
        self._cores = usable_cores()
        self.spins: dict[int, Spin] = {}   # by round
        self.failure = ""

    def take(self, number: int) -> None:
        """Look at the machine in the round `number`."""
        if self.failure:
            return
        try:
            self.spins[number] = self._spin(self._cores)
        except (OSError, ValueError, IndexError, ZeroDivisionError, subprocess.SubprocessError) as error:
            self.failure = f"the machine could not be calibrated: {error}"

    def facts(self) -> MachineFacts | Missing:
        """Return what all looks together say; there are more of them when there were few."""
        for number in range(-1, -1 - LEAST_SPINS + len(self.spins), -1):
            self.take(number)
        return Missing(reason=self.failure) if self.failure else facts(list(self.spins.values()))


def wait_quiet(
    limit: float, say: Callable[[str], None], *, spinning: Callable[[int], Spin] = spin,
    pause: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Wait until the machine gives as many processes as it has cores what they want; return whether it does.

    Args:
        limit: Seconds to wait at most.
        say: Is told what keeps it busy, at each look.
        spinning: Looks at it.
        pause: Waits for the next look.
        clock: Seconds.
    """
    began, cores, quiet = clock(), usable_cores(), 0
    while quiet < QUIET_LOOKS:
        seen = Calibration(spinning)
        seen.take(0)
        if seen.failure or cores == 1:   # waiting does not help
            return False
        told = facts([*seen.spins.values()])
        quiet = 0 if told.doubts else quiet + 1
        if not told.doubts:
            continue
        if clock() - began >= limit:
            say(f"the machine did not become quiet in {limit:.0f} s: {told.doubts[0]}")
            return False
        say(f"wait for the machine to become quiet: {told.doubts[0]}")
        pause(QUIET_PAUSE)
    return True


def facts(spins: Sequence[Spin]) -> MachineFacts:
    """Return what the machine can tell after so many looks at it, at least one."""
    cores = spins[0].cores
    effective = median(each.effective for each in spins)
    told = [(each.ran, each.waited) for each in spins if each.waited is not None]
    queued = sum(waited for _, waited in told) / sum(map(sum, told)) if told else None
    return MachineFacts(
        cores=cores, effective=effective, run_queue=queued, governor=_governor(), libc=" ".join(platform.libc_ver()),
        doubts=tuple(doubts(cores, effective, queued)), inherited=inherited().sentence(),
    )


def doubts(cores: int, effective: float, run_queue: float | None) -> Iterator[str]:
    """Yield why no word on speed can be said on such a machine."""
    if cores == 1:
        yield "one core only: nothing can run at the same time"
    elif effective < LEAST_EFFECTIVE:
        yield (f"{cores} cores do only {effective:.2f} cores' work at once; something else is running, or they share "
               "one core's units")
    if run_queue is not None and run_queue > MOST_QUEUED:
        yield f"processes wait {run_queue * 100:.0f} % of their time for a core: something else keeps the machine busy"


def _spun(count: int, rounds: int) -> list[tuple[int, int, int, int]]:
    """Return rounds made, and nanoseconds run, waited for a core and lived, of `count` processes at once.

    Each makes `rounds`; 0: as many as it can in SPIN_SECONDS.
    """
    started: list[subprocess.Popen[str]] = []
    try:
        for _ in range(count):
            started.append(_started())  # noqa: PERF401 - one by one: those before a failure must be ended
        for process in started:   # all are up before one spins
            assert process.stdout is not None
            process.stdout.readline()
        for process in started:
            assert process.stdin is not None
            process.stdin.write(f"{rounds}\n")
            process.stdin.flush()
        told = [process.communicate(timeout=START_SECONDS)[0].split() for process in started]
        return [(int(made), int(ran), int(waited), int(lasted)) for made, ran, waited, lasted in told]
    finally:
        for process in started:
            process.kill()
            with contextlib.suppress(ValueError):   # its pipes are closed already
                process.communicate()


def _started() -> subprocess.Popen[str]:
    code = f"import sys; sys.path.insert(0, {str(harness_path())!r})\n{SPINNER}"
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        process_group=0)   # a Ctrl-C is for us, who end it


def _governor() -> str | None:
    with contextlib.suppress(OSError):
        cpu = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor").read_text().strip()
    return None
