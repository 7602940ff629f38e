"""Count down in pure Python, in one thread or shared out among several: the same total work."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from gilscope.toolkit.measure.program.interface import Taken

if TYPE_CHECKING:
    from gilscope.toolkit.measure.program.interface import Trial


def countdown(count: int) -> None:
    """Decrement `count` to 0, as Beazley's program does."""
    while count > 0:
        count -= 1


def measure(trial: Trial) -> Taken:
    """Return the wall seconds of `count` decrements in `trial.workers` threads, or without threads when serial.

    With the parameter "interval", under that switch interval.
    """
    if "interval" in trial.parameters:
        sys.setswitchinterval(trial.number("interval"))
    total = trial.count("count")
    if trial.model == "serial":
        with trial.measuring() as clock:
            countdown(total)
        return Taken(seconds=clock.wall, cpu=clock.cpu)
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
    return Taken(seconds=clock.wall, cpu=clock.cpu, wanted_cores=trial.workers if parallel else 1)
