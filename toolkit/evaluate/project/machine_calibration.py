"""Measure how much parallel work this machine can do: the cores that it effectively has, and waiting for them."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.environment import harness_path
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.evaluate.sections import MachineFacts, Missing
from gilscope.toolkit.measure.busy_programs import busy_programs
from gilscope.toolkit.measure.inherited_limits import inherited_limits
from gilscope.toolkit.processes.helper_process import HelperFailedError, HelperProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LEAST_SPINS = 5
SPIN_SECONDS = 0.25
START_SECONDS = 30.0
MOST_QUEUED = 0.15      # share of a spinning process's life; above it no statement on speed is made
LEAST_EFFECTIVE = 1.5   # cores
QUIET_LOOKS = 3         # in a row, because the load of other programs comes and goes
QUIET_PAUSE = 10.0      # seconds between looks at a busy machine
# Print a line when ready; spin as many rounds as the input says, or for SPIN_SECONDS (0); print the number of rounds
# and the nanoseconds of running, of waiting for a core (-1 if unknown), and in total.  The scheduler's own count of a
# thread's run time lags by a tick.  The process reads commands from standard input: when we are gone, it ends or
# finishes its short spin and ends silently.
SPINNER = f"""
import signal, time
from gilscope.toolkit.cores import scheduled
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
sys.stdout.write("true\\n"); sys.stdout.flush()
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
print([count, ran, -1 if before is None else waited() - before, lasted])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spin:
    """One look at the machine: a spinning process for each core, compared with one that does as much as each."""

    cores: int
    effective: float       # times the work of a single process in the same time
    ran: int               # nanoseconds that all processes together had a core
    waited: int | None     # nanoseconds that they waited for one; None if unknown
    lasted: int            # nanoseconds until the last process was done

    @property
    def given(self) -> float:
        """Number of cores that the processes had until all were done; it includes other load, but not slower cores."""
        return self.ran / self.lasted


def spin(cores: int) -> Spin:
    """Return the result of `cores` spinning processes, compared with one.

    Raises:
        OSError, ValueError, TypeError, HelperFailedError: The processes cannot be started, or do not answer.
    """
    ((rounds, _, _, alone),) = _spun(1, 0)
    many = _spun(cores, rounds)
    waits = [waited for _, _, waited, _ in many]
    lives = [lasted for *_, lasted in many]
    return Spin(cores=cores, effective=sum(alone / lasted for lasted in lives), ran=sum(ran for _, ran, _, _ in many),
                waited=None if min(waits) < 0 else sum(waits), lasted=max(lives))


class Calibration:
    """Repeated looks at the machine while something else is measured.

    Source: the method of gil-load and of ftscalingbench's effective cores, with processes, which share nothing.
    """

    def __init__(self, spinning: Callable[[int], Spin] = spin) -> None:
        """Start nothing yet."""
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
        except (OSError, ValueError, TypeError, ZeroDivisionError, HelperFailedError) as error:
            self.failure = f"the machine could not be calibrated: {error}"

    def facts(self) -> MachineFacts | Missing:
        """Return the facts from all looks, after more looks if there were few."""
        for number in range(-1, -1 - LEAST_SPINS + len(self.spins), -1):
            self.take(number)
        return Missing(reason=self.failure) if self.failure else facts(list(self.spins.values()))


def wait_quiet(
    limit: float, say: Callable[[str], None], *, spinning: Callable[[int], Spin] = spin,
    programs: Callable[[], str] = busy_programs, pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Wait until the machine gives every core to as many processes; return True if it does.

    Args:
        limit: The longest wait in seconds.
        say: Callback for what keeps the machine busy, at each look.
        spinning: Takes a look at the machine.
        programs: Returns the programs that use its cores, as text.
        pause: Waits for the next look.
        clock: Returns seconds.
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
        busy = "; ".join(filter(None, (told.doubts[0], programs())))
        if clock() - began >= limit:
            say(f"the machine did not become quiet in {limit:.0f} s: {busy}")
            return False
        say(f"wait for the machine to become quiet: {busy}")
        pause(QUIET_PAUSE)
    return True


def facts(spins: Sequence[Spin]) -> MachineFacts:
    """Return the facts about the machine from at least one look."""
    cores = spins[0].cores
    effective = median(each.effective for each in spins)
    told = [(each.ran, each.waited) for each in spins if each.waited is not None]
    queued = sum(waited for _, waited in told) / sum(map(sum, told)) if told else None
    return MachineFacts(
        cores=cores, effective=effective, run_queue=queued, governor=_governor(), libc=" ".join(platform.libc_ver()),
        doubts=tuple(doubts(cores, effective, queued)), inherited=inherited_limits().sentence(),
    )


def doubts(cores: int, effective: float, run_queue: float | None) -> Iterator[str]:
    """Yield the reasons why no statement on speed can be made on such a machine."""
    if cores == 1:
        yield "one core only: nothing can run at the same time"
    elif effective < LEAST_EFFECTIVE:
        yield (f"{cores} cores do only {effective:.2f} cores' work at once; something else is running, or they share "
               "one core's units")
    if run_queue is not None and run_queue > MOST_QUEUED:
        yield f"processes wait {run_queue * 100:.0f} % of their time for a core: something else keeps the machine busy"


def _spun(count: int, rounds: int) -> list[tuple[int, int, int, int]]:
    """Return the rounds done, and the nanoseconds of running, waiting and living, of `count` processes at once.

    Each does `rounds` rounds; 0 means as many as it can in SPIN_SECONDS.
    """
    with contextlib.ExitStack() as stack:
        started = [stack.enter_context(_started()) for _ in range(count)]
        for process in started:   # all are ready before one spins
            process.wait_until_ready(START_SECONDS)
        for process in started:
            process.send(rounds)
        answers = [process.receive(START_SECONDS) for process in started]
    return [(int(made), int(ran), int(waited), int(lasted)) for made, ran, waited, lasted in answers]


def _started() -> HelperProcess:
    code = f"import sys; sys.path.insert(0, {str(harness_path())!r})\n{SPINNER}"
    return HelperProcess([sys.executable, "-I", "-S", "-c", code], process_group=0)   # Ctrl-C is for us


def _governor() -> str | None:
    with contextlib.suppress(OSError):
        cpu = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor").read_text().strip()
    return None
