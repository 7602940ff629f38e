"""Count down in pure Python, in one thread or divided among several: the same total work."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.helpers.timers import set_timer_slack
from gilscope.toolkit.measure.child.program import ProgramValue

if TYPE_CHECKING:
    from gilscope.toolkit.measure.child.program import ProgramTrial


def countdown(count: int) -> None:
    """Decrement `count` to 0, as Beazley's program does."""
    while count > 0:
        count -= 1


def measure(trial: ProgramTrial) -> ProgramValue:
    """Return the wall seconds of `count` decrements in `trial.workers` threads, or without threads when serial.

    The parameter "interval" sets the switch interval, "slack" the timer slack of Linux.
    """
    if "slack" in trial.parameters:
        set_timer_slack(trial)
    if "interval" in trial.parameters:
        sys.setswitchinterval(trial.number("interval"))
    total = trial.count("count")
    if trial.model == "serial":
        with trial.measuring() as clock:
            countdown(total)
        return ProgramValue(seconds=clock.wall, cpu=clock.cpu)
    share, rest = divmod(total, trial.workers)
    begin = threading.Barrier(trial.workers + 1)

    def count_down(count: int) -> None:
        begin.wait()
        countdown(count)

    threads = [
        threading.Thread(target=count_down, args=(share + (number < rest),)) for number in range(trial.workers)
    ]
    for thread in threads:
        thread.start()
    with trial.measuring() as clock:
        begin.wait()
        for thread in threads:
            thread.join()
    parallel = trial.model == "free-threaded"
    return ProgramValue(seconds=clock.wall, cpu=clock.cpu, wanted_cores=trial.workers if parallel else 1)
