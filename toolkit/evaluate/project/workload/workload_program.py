"""The measured process of the user's workload: a script run once, or a function called many times by several threads.

Also reports the thread pools of C libraries (BLAS, OpenMP) as threadpoolctl does, without another package in the
user's environment.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import resource
import runpy
import sys
import threading
import time
from importlib.machinery import EXTENSION_SUFFIXES
from typing import TYPE_CHECKING

from gilscope.toolkit.cores import queued_seconds
from gilscope.toolkit.measure.child.calls import (
    NoWorkError,
    call_often,
    function_called,
    refuse_unawaited,
    shown,
)
from gilscope.toolkit.measure.child.program import ProgramValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gilscope.toolkit.measure.child.program import ProgramTrial

ELSEWHERE = {"subinterpreters": "subinterpreters", "processes": "processes-spawn"}   # model -> runner
LOOKS = 64   # checks of the clock by each thread, because a function may take a microsecond
SAMPLES = 2  # calls whose results are compared: a result that varies between calls cannot be
SUFFIXES = tuple(EXTENSION_SUFFIXES)
# File name, name of the pool, and the functions that return its number of threads, whose names differ between builds.
LIBRARIES = (
    (re.compile(r"lib(scipy_)?openblas"), "OpenBLAS", (
        "openblas_get_num_threads", "openblas_get_num_threads64_", "scipy_openblas_get_num_threads",
        "scipy_openblas_get_num_threads64_")),
    (re.compile(r"libmkl_rt"), "MKL", ("MKL_Get_Max_Threads",)),
    (re.compile(r"libblis"), "BLIS", ("bli_thread_get_num_threads",)),
    (re.compile(r"lib(g|i)?omp\d*[-.]"), "OpenMP", ("omp_get_max_threads",)),
)
FEW = 7      # with at least so many calls by a worker, one more is short: made before each value, untimed


def measure(trial: ProgramTrial) -> list[ProgramValue]:
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
    """Return the names of the loaded extension modules with files below these folders."""
    below = tuple(os.path.join(folder, "") for folder in folders)
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    return sorted(name for name, file in files.items() if isinstance(file, str) and file.startswith(below)
                  and file.endswith(SUFFIXES) and "/site-packages/" not in file)


def _script(trial: ProgramTrial, name: str) -> ProgramValue:
    sys.argv = [name, *json.loads(trial.parameters["words"])]
    sys.path.insert(0, os.path.dirname(name))
    with trial.measuring() as clock:
        try:
            runpy.run_path(name, run_name="__main__")
        except SystemExit as ending:
            if ending.code not in {None, 0}:
                trial.stop(f"the script ended with exit code {ending.code!r}", "exit")
    # The number of threads is the script's choice, so it may need all cores.
    return ProgramValue(seconds=clock.wall, cpu=clock.cpu, wanted_cores=trial.number("cores"))


def _elsewhere(trial: ProgramTrial, name: str) -> list[ProgramValue]:
    """Share the calls among interpreters or processes; an untimed first call in each imports what it needs."""
    from gilscope.runners.catalog import find

    runner = find(ELSEWHERE[trial.model])
    if reason := runner.unavailable():
        trial.stop(reason)
    payloads = [(name, share) for share in _shares(trial)]
    with runner.pool(trial.workers) as pool:
        def take() -> ProgramValue:
            with trial.measuring() as clock:
                pool.map(call_often, payloads)
            return ProgramValue(seconds=clock.wall, cpu=clock.cpu, wanted_cores=trial.workers)

        began = time.perf_counter()
        pool.map(call_often, payloads)
        trial.progress()
        few = [(name, 1)] * trial.workers
        return trial.values(take, time.perf_counter() - began,
                            lambda: _is_short(trial) and pool.map(call_often, few))


def _is_short(trial: ProgramTrial) -> bool:
    """Return True if one call is short compared with a value."""
    return min(_shares(trial)) >= FEW


def _shares(trial: ProgramTrial) -> list[int]:
    share, rest = divmod(trial.count("calls"), trial.workers)
    return [share + (number < rest) for number in range(trial.workers)]


def _function(trial: ProgramTrial, name: str) -> list[ProgramValue]:
    began = time.perf_counter()
    importlib.import_module(name.partition(":")[0])
    seconds = time.perf_counter() - began
    function = function_called(name)
    began = time.perf_counter()
    result = function()   # the first call may initialise things, so its result is not compared
    refuse_unawaited(name, result)
    one = time.perf_counter() - began
    trial.progress()
    given = [shown(result)]
    del result   # it would count as memory of the process
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
    """Return texts for the results of two calls in a thread; none if a call fails."""
    found: list[str | None] = []

    def call() -> None:
        with contextlib.suppress(BaseException):   # the same calls fail again later, where the failure is reported
            for _ in range(SAMPLES):
                found.append(shown(function()))  # noqa: PERF401 - results before a failure are of no use either

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    return found if len(found) == SAMPLES else []


class WorkloadCaller:
    """The calls of one thread."""

    def __init__(self, name: str, count: int) -> None:
        """Start nothing; each thread looks up `name`, so that threads share only what the program shares."""
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


def _called(trial: ProgramTrial, name: str) -> ProgramValue:
    callers = [WorkloadCaller(name, share) for share in _shares(trial)]
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
    return ProgramValue(
        seconds=clock.wall / made, cpu=clock.cpu / made,
        wanted_cores=trial.workers if trial.model != "threads" else 1,
        metrics={"made": made, "queued": sum(each.queued for each in callers) / made})


def _begun(begin: threading.Barrier, caller: WorkloadCaller, limit: float) -> None:
    begin.wait()
    caller.work(limit)


def _resident() -> float:
    """Return the maximum resident memory of this process in bytes."""
    try:
        with open("/proc/self/status", "rb") as file:
            return next(int(line.split()[1]) * 1024.0 for line in file if line.startswith(b"VmHWM:"))
    except (OSError, StopIteration):   # not Linux; on Linux the kernel's number includes the process before exec
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def pools() -> dict[str, int]:
    """Return the maximum number of threads of each kind of pool, for the libraries that are loaded now."""
    found: dict[str, int] = {}
    for path, name, functions in _loaded():
        if (threads := _asked(path, functions)) is not None:
            found[name] = max(threads, found.get(name, 0))
    return found


def _loaded() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        paths = {line.split(maxsplit=5)[5].strip() for line in file if line.count("/") and len(line.split()) > 5}
        for path in sorted(paths):
            for pattern, name, functions in LIBRARIES:
                if pattern.match(os.path.basename(path)):
                    yield path, name, functions


def _asked(path: str, functions: tuple[str, ...]) -> int | None:
    import ctypes  # only after such a library was found: the measured process imports as little as possible

    try:
        library = ctypes.CDLL(path)
    except OSError:
        return None
    for name in functions:
        if function := getattr(library, name, None):
            return int(function())
    return None
