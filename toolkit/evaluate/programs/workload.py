"""The user's workload, once: a script as it is, or a function called many times, shared out among threads."""

from __future__ import annotations

import importlib
import os
import resource
import runpy
import sys
import threading
import time
from typing import TYPE_CHECKING

from toolkit.experiments.trial import Taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.experiments.trial import Trial


def measure(trial: Trial) -> Taken:
    """Return the wall seconds of the script, or of `calls` calls of the function in `trial.workers` threads.

    Metrics: "rss", bytes of this process at its highest, and "import", seconds of the function's module.
    """
    name = trial.parameters["name"]
    taken = _script(trial, name) if trial.parameters["kind"] == "script" else _function(trial, name)
    taken.metrics["rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0   # Linux: in KiB
    return taken


def _script(trial: Trial, name: str) -> Taken:
    sys.argv = [name]
    sys.path.insert(0, os.path.dirname(name))
    with trial.measuring() as clock:
        try:
            runpy.run_path(name, run_name="__main__")
        except SystemExit as ending:
            if ending.code not in {None, 0}:
                trial.stop(f"the script ended with exit code {ending.code!r}", "exit")
    # How many threads it starts is its own business, so it may want all cores.
    return Taken(seconds=clock.wall, cpu=clock.cpu, wanted_cores=trial.number("cores"))


def _function(trial: Trial, name: str) -> Taken:
    module, _, attribute = name.partition(":")
    began = time.perf_counter()
    found = importlib.import_module(module)
    seconds = time.perf_counter() - began
    for part in attribute.split("."):
        found = getattr(found, part)
    taken = _called(trial, found)  # type: ignore[arg-type]  # what the user named
    taken.metrics["import"] = seconds
    return taken


def _called(trial: Trial, function: Callable[[], object]) -> Taken:
    function()   # what is made at the first call is no part of the others
    trial.progress()
    calls = trial.count("calls")
    if trial.workers == 1:
        with trial.measuring() as clock:
            for _ in range(calls):
                function()
        return Taken(seconds=clock.wall, cpu=clock.cpu)
    share, rest = divmod(calls, trial.workers)
    begin = threading.Barrier(trial.workers + 1)
    failures: list[BaseException] = []

    def call(count: int) -> None:
        begin.wait()
        try:
            for _ in range(count):
                function()
        except BaseException as error:  # noqa: BLE001 - the workload's failure is the cell's result
            failures.append(error)

    threads = [threading.Thread(target=call, args=(share + (number < rest),)) for number in range(trial.workers)]
    for thread in threads:
        thread.start()
    with trial.measuring() as clock:
        begin.wait()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return Taken(seconds=clock.wall, cpu=clock.cpu, wanted_cores=trial.workers if trial.model != "threads" else 1)
