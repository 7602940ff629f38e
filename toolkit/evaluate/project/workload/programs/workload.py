"""The user's workload: a script as it is, once, or a function called many times, shared out among threads, in turn."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import runpy
import sys
import threading
import time
from importlib.machinery import EXTENSION_SUFFIXES
from typing import TYPE_CHECKING

from gilscope.toolkit.cores import queued_seconds
from gilscope.toolkit.evaluate.project.workload.programs.calls import (
    NoWorkError,
    call_often,
    function_called,
    refuse_unawaited,
    shown,
)
from gilscope.toolkit.evaluate.project.workload.programs.native_thread_pools import pools
from gilscope.toolkit.measure.program.interface import Taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from gilscope.toolkit.measure.program.interface import Trial

ELSEWHERE = {"subinterpreters": "subinterpreters", "processes": "processes-spawn"}   # model -> runner
LOOKS = 64   # at the clock, by each thread: a function may take a microsecond
SAMPLES = 2  # calls whose results are compared: one that gives something else each time cannot be
SUFFIXES = tuple(EXTENSION_SUFFIXES)
FEW = 7      # calls of a worker, at least, beside which one more is short: before each value, untimed


def measure(trial: Trial) -> list[Taken]:
    """Return the wall seconds of the script, or of `calls` calls of the function in `trial.workers` threads, each turn.

    Metrics of the last: "rss", bytes of this process at its highest; "pools", the libraries' thread pools as
    "OpenBLAS=2 OpenMP=2"; of what runs in this process "compiled", the extension modules that it has loaded from the
    folders of the parameter "folders"; of a function in threads also "import", seconds of its module.  Of each value of
    a function in threads: "queued", seconds that its threads waited for a core; "made", the share of the calls that
    were made until `limit` seconds were over: the value and the CPU time are those of all calls, at the same pace.
    Where the parameter "results" asks several threads for it, also "given": as JSON what it gave in the main thread,
    then in another.
    """
    name = trial.parameters["name"]
    try:
        if trial.parameters["kind"] == "script":
            values = [_script(trial, name)]
        elif trial.model in ELSEWHERE:
            values = _elsewhere(trial, name)
        else:
            values = _function(trial, name)
    except NoWorkError as error:
        trial.stop(str(error), "exception")
    values[-1].metrics["rss"] = _resident()
    values[-1].metrics["pools"] = " ".join(f"{library}={threads}" for library, threads in pools().items())
    if "folders" in trial.parameters and trial.model not in ELSEWHERE:
        values[-1].metrics["compiled"] = " ".join(loaded(json.loads(trial.parameters["folders"])))
    return values


def loaded(folders: list[str]) -> list[str]:
    """Return the names of the extension modules that are loaded from files below these folders."""
    below = tuple(os.path.join(folder, "") for folder in folders)
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    return sorted(name for name, file in files.items() if isinstance(file, str) and file.startswith(below)
                  and file.endswith(SUFFIXES) and "/site-packages/" not in file)


def _script(trial: Trial, name: str) -> Taken:
    sys.argv = [name, *json.loads(trial.parameters["words"])]
    sys.path.insert(0, os.path.dirname(name))
    with trial.measuring() as clock:
        try:
            runpy.run_path(name, run_name="__main__")
        except SystemExit as ending:
            if ending.code not in {None, 0}:
                trial.stop(f"the script ended with exit code {ending.code!r}", "exit")
    # How many threads it starts is its own business, so it may want all cores.
    return Taken(seconds=clock.wall, cpu=clock.cpu, wanted_cores=trial.number("cores"))


def _elsewhere(trial: Trial, name: str) -> list[Taken]:
    """Share the calls out among interpreters or processes; at the first time, untimed, each imports what it needs."""
    from gilscope.runners.catalog import find

    runner = find(ELSEWHERE[trial.model])
    if reason := runner.unavailable():
        trial.stop(reason)
    payloads = [(name, share) for share in _shares(trial)]
    with runner.pool(trial.workers) as pool:
        def take() -> Taken:
            with trial.measuring() as clock:
                pool.map(call_often, payloads)
            return Taken(seconds=clock.wall, cpu=clock.cpu, wanted_cores=trial.workers)

        began = time.perf_counter()
        pool.map(call_often, payloads)
        trial.progress()
        few = [(name, 1)] * trial.workers
        return trial.values(take, time.perf_counter() - began,
                            lambda: _is_short(trial) and pool.map(call_often, few))


def _is_short(trial: Trial) -> bool:
    """Return whether one call takes little beside a value."""
    return min(_shares(trial)) >= FEW


def _shares(trial: Trial) -> list[int]:
    share, rest = divmod(trial.count("calls"), trial.workers)
    return [share + (number < rest) for number in range(trial.workers)]


def _function(trial: Trial, name: str) -> list[Taken]:
    began = time.perf_counter()
    importlib.import_module(name.partition(":")[0])
    seconds = time.perf_counter() - began
    function = function_called(name)
    began = time.perf_counter()
    result = function()   # what is made at the first call is no part of the others
    refuse_unawaited(name, result)
    one = time.perf_counter() - began
    trial.progress()
    given = [shown(result)]
    del result   # it would count as what the process takes
    if "results" in trial.parameters and trial.workers > 1 and given[0] is not None:
        given += _given_elsewhere(function)
        trial.progress()
    values = trial.values(lambda: _called(trial, name), one * trial.count("calls"),
                          lambda: _is_short(trial) and function())
    values[-1].metrics["import"] = seconds
    if len(given) > 1:
        values[-1].metrics["given"] = json.dumps(given)
    return values


def _given_elsewhere(function: Callable[[], object]) -> list[str | None]:
    """Return what stands for the results of two calls in a thread of their own; of none where one fails."""
    found: list[str | None] = []

    def call() -> None:
        with contextlib.suppress(BaseException):   # the same calls fail again where that is told
            for _ in range(SAMPLES):
                found.append(shown(function()))  # noqa: PERF401 - what came before the failure is of no use either

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    return found if len(found) == SAMPLES else []


class Caller:
    """The calls of one thread."""

    def __init__(self, name: str, count: int) -> None:
        """Nothing is called; `name` is looked up by each, so that threads share no more than the program lets them."""
        self._function = function_called(name)
        self._count = count
        self.made = 0
        self.queued = 0.0   # seconds that the thread waited for a core
        self.failure: BaseException | None = None

    def work(self, limit: float) -> None:
        """Make the calls, at least one, until `limit` seconds are over."""
        end, before = time.perf_counter() + limit, queued_seconds()
        try:
            self._make(end)
        except BaseException as error:  # noqa: BLE001 - the workload's failure is the cell's result
            self.failure = error
        self.queued = queued_seconds() - before

    def _make(self, end: float) -> None:
        function, count = self._function, self._count
        chunk = max(1, count // LOOKS)
        made = 0
        while made < count and (not made or time.perf_counter() < end):
            size = min(chunk, count - made)
            for _ in range(size):
                function()
            made += size
        self.made = made


def _called(trial: Trial, name: str) -> Taken:
    callers = [Caller(name, share) for share in _shares(trial)]
    limit = trial.number("limit")
    if trial.workers == 1:
        with trial.measuring() as clock:
            callers[0].work(limit)
    else:
        begin = threading.Barrier(trial.workers + 1)
        threads = [threading.Thread(target=_begun, args=(begin, each, limit)) for each in callers]
        for thread in threads:
            thread.start()
        with trial.measuring() as clock:
            begin.wait()
            for thread in threads:
                thread.join()
    for each in callers:
        if each.failure:
            raise each.failure
    made = sum(each.made for each in callers) / trial.count("calls")
    return Taken(
        seconds=clock.wall / made, cpu=clock.cpu / made,
        wanted_cores=trial.workers if trial.model != "threads" else 1,
        metrics={"made": made, "queued": sum(each.queued for each in callers) / made})


def _begun(begin: threading.Barrier, caller: Caller, limit: float) -> None:
    begin.wait()
    caller.work(limit)


def _resident() -> float:
    """Return the most bytes that were resident in this process."""
    try:
        with open("/proc/self/status", "rb") as file:
            return next(int(line.split()[1]) * 1024.0 for line in file if line.startswith(b"VmHWM:"))
    except (OSError, StopIteration):   # no Linux; there the kernel's number starts with that of the process before exec
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
