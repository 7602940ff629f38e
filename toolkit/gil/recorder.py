"""Run a program with the shim preloaded, and read its recording."""

from __future__ import annotations

import os
import resource
import select
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.gil import preload
from gilscope.toolkit.gil.records import BadRecordError, read_folder, refusal
from gilscope.toolkit.gil.summary import summarize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gilscope.toolkit.gil.records import Process

BUSY = 0.15      # share of the threads' core demand spent waiting for a core, from which on the machine is too busy
LINGER = 2.0     # seconds, at most, that other processes of a program are given to end after it
SAME = 0.05      # relative difference of wall times up to which two runs took equally long


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One run of a program."""

    ended: int                      # exit code, or minus the signal that ended it
    wall: float                     # seconds
    cpu: float                      # CPU seconds of all processes that were waited for
    processes: tuple[Process, ...]  # those that ran Python; none if the shim could not be loaded
    problem: str = ""               # why there is none, or why it cannot be read; "" also if the shim was not loaded

    @property
    def gil_used(self) -> bool:
        """True if its threads used a GIL after the start of the interpreter."""
        return not self.processes or any(process.gil_used for process in self.processes)


def record(
    run: Callable[[dict[str, str]], int], environ: Mapping[str, str], *, all_holds: bool = False
) -> Recording:
    """Run a program and return its recording.

    Args:
        run: Runs the program to its end in the given environment, and returns its exit code.
        environ: The environment without the shim.
        all_holds: As in `preload.environment`.

    Raises:
        UnavailableError: the shim cannot be had here.
    """
    with tempfile.TemporaryDirectory(prefix=temporary.prefix("gil")) as folder:
        variables = preload.environment(folder, all_holds=all_holds)
        before, begin = _children_cpu(), time.perf_counter()
        ended = run({**environ, **variables})
        wall, cpu, until = time.perf_counter() - begin, _children_cpu() - before, time.monotonic_ns()
        processes: tuple[Process, ...] = ()
        problem = ""
        try:
            processes = tuple(read_folder(folder, until))
            if _wait_for_ends(processes):
                processes = tuple(read_folder(folder, until))
        except BadRecordError as error:   # the program can write into its recording
            problem = str(error)
        if not processes and (reason := refusal(folder)):
            problem = f"no file for it could be made in the temporary folder (TMPDIR): {reason}"
        return Recording(ended=ended, wall=wall, cpu=cpu, processes=processes, problem=problem)


def _wait_for_ends(processes: Iterable[Process]) -> bool:
    """Wait for processes that end after the program, as multiprocessing's resource tracker; return if any did."""
    until, ended = time.monotonic() + LINGER, False
    for process in processes:
        if process.ended:
            continue
        try:
            running = os.pidfd_open(process.pid)
        except OSError:      # it has ended, or this kernel has no such call
            continue
        try:
            ended |= bool(select.select([running], [], [], max(0.0, until - time.monotonic()))[0])
        finally:
            os.close(running)
    return ended


def queued_share(recording: Recording) -> float | None:
    """Return the share of the threads' core demand in which they waited for a core; None if it is unknown."""
    summary = summarize(recording.processes)
    if summary.cpu is None or summary.run_queue is None or summary.killed:   # killed processes report neither
        return None
    wanted = summary.cpu + summary.run_queue
    return summary.run_queue / wanted if wanted else None


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
