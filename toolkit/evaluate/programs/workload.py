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

from toolkit.evaluate.programs.calls import call_often, function_called
from toolkit.experiments.trial import Taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.experiments.trial import Trial

ELSEWHERE = {"subinterpreters": "subinterpreters", "processes": "processes-spawn"}   # model -> runner


def measure(trial: Trial) -> Taken:
    """Return the wall seconds of the script, or of `calls` calls of the function in `trial.workers` threads.

    Metrics: "rss", bytes of this process at its highest, and "import", seconds of the function's module.
    """
    name = trial.parameters["name"]
    if trial.parameters["kind"] == "script":
        taken = _script(trial, name)
    elif trial.model in ELSEWHERE:
        taken = _elsewhere(trial, name)
    else:
        taken = _function(trial, name)
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


def _elsewhere(trial: Trial, name: str) -> Taken:
    """Share the calls out among interpreters or processes, twice: at the first time each imports what it needs."""
    from runners.catalog import find

    runner = find(ELSEWHERE[trial.model])
    if reason := runner.unavailable():
        trial.stop(reason)
    share, rest = divmod(trial.count("calls"), trial.workers)
    payloads = [(name, share + (number < rest)) for number in range(trial.workers)]
    with runner.pool(trial.workers) as pool:
        pool.map(call_often, payloads)
        trial.progress()
        with trial.measuring() as clock:
            pool.map(call_often, payloads)
    return Taken(seconds=clock.wall, cpu=clock.cpu, wanted_cores=trial.workers)


def _function(trial: Trial, name: str) -> Taken:
    began = time.perf_counter()
    importlib.import_module(name.partition(":")[0])
    seconds = time.perf_counter() - began
    taken = _called(trial, function_called(name))
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
