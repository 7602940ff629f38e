"""How long Ctrl-C takes: from sending SIGINT to a process until its main thread handles KeyboardInterrupt.

Both ends read the monotonic clock, which all processes of a machine share.  The parts: `interrupted_process` is that;
this sends the signals, each at a chosen moment, and reads when they were handled.
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
from gilscope.toolkit.measure.program.interface import Taken, sibling

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from gilscope.toolkit.measure.program.interface import Trial

START_SECONDS = 60.0    # for the target to start and to be where it is to be interrupted, beside a busy machine
SETTLE_SECONDS = 0.02   # after the main thread said that it begins: several switch intervals
BLIND_SECONDS = 0.25    # likewise, where the system does not tell whether it has blocked
POLL_SECONDS = 0.001    # how often the page is read; the times in it are the target's own
BESIDE = frozenset({"beside-calls", "beside-releasing-calls"})
BLOCKED = BESIDE | {"join", "lock", "event", "queue", "sleep", "select"}   # the main thread sleeps in the kernel
CALLS = BESIDE | {"calls", "releasing-calls", "same-list"}
AT_ONCE = "lock-at-once"   # the signal comes while the wait for a lock begins
AT_ONCE_LIMIT = 0.5        # seconds: what is not seen then is not seen later either, and every signal may be such a one


def measure(trial: Trial) -> Taken:
    """Send `attempts` signals to one process, one after the other; the value is the median time until one is handled.

    A signal that is not handled within `limit` seconds counts as that long, and is followed by a second one.
    """
    if os.name != "posix":
        trial.stop("one process can send another a Ctrl-C of its own on POSIX systems alone")
    limit = min(trial.number("limit"), AT_ONCE_LIMIT) if _doing(trial) == AT_ONCE else trial.number("limit")
    with _target(trial) as target, trial.measuring() as clock:
        taken = list(_interrupt(trial, target, limit))
    late = sum(seconds >= limit for seconds in taken)
    return Taken(
        seconds=median(taken), cpu=clock.cpu,
        metrics={
            "best": min(taken), "worst": max(taken), "signals": len(taken), "late": late, "limit": limit,
            "call": trial.number("call"), "all": " ".join(f"{seconds:.6f}" for seconds in taken),
        },
        wanted_cores=_wanted_cores(trial.count("cpu")),
    )


def _interrupt(trial: Trial, target: Target, limit: float) -> Iterator[float]:
    """Yield how long each signal took; end when even a second one was not handled."""
    for attempt, delay in enumerate(_delays(trial), 1):
        target.await_begin(attempt)
        if _doing(trial) != AT_ONCE:
            time.sleep(SETTLE_SECONDS)
        if _doing(trial) in BLOCKED:
            target.await_sleep()
        time.sleep(delay)
        yield (took := target.interrupt(attempt, limit))
        trial.progress()
        if took >= limit and target.interrupt(attempt, limit) >= limit:
            return


def _doing(trial: Trial) -> str:
    return trial.parameters["main"]


def _wanted_cores(cpu_threads: int) -> float:
    """One for the thread that is woken, and those for what runs meanwhile: with the GIL that is a single thread.

    Never less than two: the signal has a sender.  A time in seconds has no baseline that a busy machine slows as much.
    """
    on = getattr(sys, "_is_gil_enabled", lambda: True)()
    return 1.0 + max(1, 0 if on else cpu_threads)


def _delays(trial: Trial) -> list[float]:
    """Return when to send each signal, in seconds after the main thread has blocked.

    They lie evenly over a C call, or over two switch intervals, with a random part, in random order.  The seed is made
    of the cell's parameters, so that every build has the same moments.
    """
    numbers = random.Random(" ".join(map(str, sorted(trial.parameters.items()))))
    attempts = trial.count("attempts")
    span = trial.number("call") if _doing(trial) in CALLS else 2 * sys.getswitchinterval()
    delays = [span * (place + numbers.random()) / attempts for place in range(attempts)]
    numbers.shuffle(delays)
    return delays


class Target:
    """A process to interrupt."""

    def __init__(self, trial: Trial, process: subprocess.Popen[str], page: mmap.mmap) -> None:
        """`process` runs `interrupted_process` with `page`."""
        self._trial = trial
        self._process = process
        self._numbers = memoryview(page).cast("q")

    def await_begin(self, attempt: int) -> None:
        """Wait until the main thread begins what it is to be interrupted in."""
        if not self._await(interrupted_process.BEGUN, attempt, START_SECONDS):
            self._trial.stop(f"the process to interrupt was not ready within {START_SECONDS:g} s", "hang")

    def await_sleep(self) -> None:
        """Wait until the main thread sleeps: first it may spin, for long beside busy cores."""
        end = time.monotonic() + START_SECONDS
        while (state := self._state()) != "S":
            if not state:
                time.sleep(BLIND_SECONDS)
                return
            if time.monotonic() > end:
                self._trial.stop(f"the main thread did not block within {START_SECONDS:g} s", "hang")
            time.sleep(POLL_SECONDS)

    def _state(self) -> str:
        """Return the main thread's state as the kernel names it, "" where it does not."""
        try:
            with open(f"/proc/{self._process.pid}/stat", "rb") as file:
                return file.read().rpartition(b") ")[2][:1].decode()
        except OSError:
            return ""

    def interrupt(self, attempt: int, limit: float) -> float:
        """Send SIGINT and return the seconds until it was handled, `limit` when it was not by then."""
        sent = time.monotonic_ns()
        os.kill(self._process.pid, signal.SIGINT)
        if not self._await(attempt, 1, limit):
            return limit
        return min(limit, (self._numbers[attempt] - sent) / 1e9)

    def close(self) -> None:
        """Give the page back."""
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
def _target(trial: Trial) -> Iterator[Target]:
    """Start the process that is interrupted, and kill it on leaving."""
    attempts = trial.count("attempts")
    path = os.path.join(trial.folder, "page")
    with open(path, "w+b") as file:
        file.truncate(8 * (1 + attempts))
        page = mmap.mmap(file.fileno(), 0)
    process = sibling(
        os.path.abspath(interrupted_process.__file__),
        path, _doing(trial), str(trial.count("cpu")), str(attempts), str(trial.number("call")), stdin=-1,
    )
    target = Target(trial, process, page)
    try:
        yield target
    finally:
        process.kill()
        process.communicate()
        target.close()
        page.close()
