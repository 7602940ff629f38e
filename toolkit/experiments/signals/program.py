"""Measure the time from sending SIGINT to a process until its main thread handles KeyboardInterrupt.

Both ends read the monotonic clock, which all processes of a machine share.  This program sends the signals, each at a
chosen moment, to `interrupted_process` and reads when they were handled.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import signal
import sys
import time
from statistics import median

from gilscope.toolkit.experiments.signals import interrupted_process
from gilscope.toolkit.measure.child.base import gil_enabled
from gilscope.toolkit.measure.child.program import ProgramValue, sibling

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from gilscope.toolkit.measure.child.program import ProgramTrial

START_SECONDS = 60.0    # for the target to start and to begin its activity on a busy machine
SETTLE_SECONDS = 0.02   # several switch intervals, after the main thread reports that it begins
BLIND_SECONDS = 0.25    # the same where the system does not show whether a thread has blocked
POLL_SECONDS = 0.001    # between two readings of the page; the times in it are the target's own
BESIDE = frozenset({"beside-calls", "beside-releasing-calls"})
BLOCKED = BESIDE | {"join", "lock", "event", "queue", "sleep", "select"}   # the main thread sleeps in the kernel
CALLS = BESIDE | {"calls", "releasing-calls", "same-list"}
AT_ONCE = "lock-at-once"   # the signal comes while the wait for a lock begins
AT_ONCE_LIMIT = 0.5        # seconds; a signal missed then stays unseen, and every signal may be missed


def measure(trial: ProgramTrial) -> ProgramValue:
    """Send `attempts` signals to one process, one after the other; return the median time until one is handled.

    A signal that is not handled within `limit` seconds counts as `limit`, and a second one follows it.
    """
    if os.name != "posix":
        trial.stop("one process can send another a Ctrl-C of its own on POSIX systems alone")
    limit = min(trial.number("limit"), AT_ONCE_LIMIT) if _activity(trial) == AT_ONCE else trial.number("limit")
    with _target(trial) as target, trial.measuring() as clock:
        taken = list(_interrupt(trial, target, limit))
    late = sum(seconds >= limit for seconds in taken)
    return ProgramValue(
        seconds=median(taken), cpu=clock.cpu,
        metrics={
            "best": min(taken), "worst": max(taken), "signals": len(taken), "late": late, "limit": limit,
            "call": trial.number("call"), "all": " ".join(f"{seconds:.6f}" for seconds in taken),
        },
        wanted_cores=_wanted_cores(trial.count("cpu")),
    )


def _interrupt(trial: ProgramTrial, target: SignalTarget, limit: float) -> Iterator[float]:
    """Yield the seconds that each signal took; stop if even a second one was not handled."""
    for attempt, delay in enumerate(_delays(trial), 1):
        target.await_begin(attempt)
        if _activity(trial) != AT_ONCE:
            time.sleep(SETTLE_SECONDS)
        if _activity(trial) in BLOCKED:
            target.await_sleep()
        time.sleep(delay)
        yield (took := target.interrupt(attempt, limit))
        trial.progress()
        if took >= limit and target.interrupt(attempt, limit) >= limit:
            return


def _activity(trial: ProgramTrial) -> str:
    return trial.parameters["main"]


def _wanted_cores(cpu_threads: int) -> float:
    """Return one core for the woken thread and one for each other running thread: with the GIL, a single one.

    Two at least, since the signal has a sender.  A time in seconds has no baseline that a busy machine slows as much.
    """
    return 1.0 + max(1, cpu_threads if gil_enabled() is False else 0)


def _delays(trial: ProgramTrial) -> list[float]:
    """Return the delay of each signal, in seconds after the main thread has blocked.

    Delays are spread evenly over a C call or two switch intervals, with a random part and in random order.  The seed is
    derived from the cell's parameters, so every build has the same delays.
    """
    numbers = random.Random(" ".join(map(str, sorted(trial.parameters.items()))))
    attempts = trial.count("attempts")
    span = trial.number("call") if _activity(trial) in CALLS else 2 * sys.getswitchinterval()
    delays = [span * (place + numbers.random()) / attempts for place in range(attempts)]
    numbers.shuffle(delays)
    return delays


class SignalTarget:
    """The process to interrupt."""

    def __init__(self, trial: ProgramTrial, process: subprocess.Popen[str], page: mmap.mmap) -> None:
        """`process` runs `interrupted_process` with `page`."""
        self._trial = trial
        self._process = process
        self._numbers = memoryview(page).cast("q")

    def await_begin(self, attempt: int) -> None:
        """Wait until the main thread begins its activity."""
        if not self._await(interrupted_process.BEGUN, attempt, START_SECONDS):
            self._trial.stop(f"the process to interrupt was not ready within {START_SECONDS:g} s", "hang")

    def await_sleep(self) -> None:
        """Wait until the main thread sleeps, since it may spin before, and for long beside busy cores."""
        end = time.monotonic() + START_SECONDS
        while (state := self._state()) != "S":
            if not state:
                time.sleep(BLIND_SECONDS)
                return
            if time.monotonic() > end:
                self._trial.stop(f"the main thread did not block within {START_SECONDS:g} s", "hang")
            time.sleep(POLL_SECONDS)

    def _state(self) -> str:
        """Return the kernel's name of the main thread's state, "" where the system does not show it."""
        try:
            with open(f"/proc/{self._process.pid}/stat", "rb") as file:
                return file.read().rpartition(b") ")[2][:1].decode()
        except OSError:
            return ""

    def interrupt(self, attempt: int, limit: float) -> float:
        """Send SIGINT and return the seconds until it was handled, `limit` if it was not by then."""
        sent = time.monotonic_ns()
        os.kill(self._process.pid, signal.SIGINT)
        if not self._await(attempt, 1, limit):
            return limit
        return min(limit, (self._numbers[attempt] - sent) / 1e9)

    def close(self) -> None:
        """Release the shared page."""
        self._numbers.release()

    def _await(self, place: int, least: int, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self._numbers[place] < least:
            if (code := self._process.poll()) is not None:
                self._trial.stop(f"the process to interrupt ended by itself ({code})", "exception")
            if time.monotonic() > end:
                return False
            time.sleep(POLL_SECONDS)
        return True


@contextlib.contextmanager
def _target(trial: ProgramTrial) -> Iterator[SignalTarget]:
    """Start the process to interrupt, and kill it on leaving."""
    attempts = trial.count("attempts")
    path = os.path.join(trial.folder, "page")
    with open(path, "w+b") as file:
        file.truncate(8 * (1 + attempts))
        page = mmap.mmap(file.fileno(), 0)
    process = sibling(
        os.path.abspath(interrupted_process.__file__),
        path, _activity(trial), str(trial.count("cpu")), str(attempts), str(trial.number("call")), stdin=-1,
    )
    target = SignalTarget(trial, process, page)
    try:
        yield target
    finally:
        process.kill()
        process.communicate()
        target.close()
        page.close()
