"""Run a program with the shim preloaded, and read its recording."""

from __future__ import annotations

import resource
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.gil import preload
from gilscope.toolkit.gil.records import BadRecordError, read_folder, refusal
from gilscope.toolkit.gil.summary import summarize
from gilscope.toolkit.units import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gilscope.toolkit.gil.records import Process

BUSY = 0.15      # share of the threads' core demand spent waiting for a core, from which on the machine is too busy
OVERLAP = 1.2    # cores in use on average, below which threads hardly ran at the same time
LESS = 0.95      # CPU time without the GIL relative to with it, below which the runs did different work
MORE = 1.1       # that ratio, from which on sharing objects has a price
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
    def free_threaded(self) -> bool:
        """True if the build is free-threaded, with its GIL on or off."""
        return any(process.free_threaded for process in self.processes)

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
        wall, cpu = time.perf_counter() - begin, _children_cpu() - before
        processes: tuple[Process, ...] = ()
        problem = ""
        try:
            processes = tuple(read_folder(folder))
        except BadRecordError as error:   # the program can write into its recording
            problem = str(error)
        if not processes and (reason := refusal(folder)):
            problem = f"no file for it could be made in the temporary folder (TMPDIR): {reason}"
        return Recording(ended=ended, wall=wall, cpu=cpu, processes=processes, problem=problem)


def inflation(free: Recording, with_gil: Recording) -> float | str:
    """Return the CPU time of the program without the GIL relative to its CPU time with it, on the same build.

    A ratio above 1 is the price of sharing objects, their reference counts and cache lines for instance, which causes
    no waits.  Two runs need not do the same work: a program that works for a fixed time does more with more cores.

    Returns:
        The ratio, or the reason why it would be meaningless.
    """
    if free.gil_used:
        return "the GIL was on in the run without it: an extension module has turned it on"
    if free.ended or with_gil.ended:
        return "the program did not end well each time"
    queued = queued_share(free)
    if queued is None or with_gil.cpu == 0:
        return "its CPU time is not known"
    if queued > BUSY:
        return f"the machine was busy: its threads waited for a core {percent(queued)} of the time"
    return _other_work(free, with_gil) or free.cpu / with_gil.cpu


def _other_work(free: Recording, with_gil: Recording) -> str | None:
    """Return the reason why the two runs cannot have done the same work, or None."""
    ratio = free.cpu / with_gil.cpu
    if ratio < LESS:
        return (f"it took less CPU time without the GIL ({ratio:.2f} times): it did less work then, or to hand the GIL "
                "over costs it more than to share objects")
    if free.cpu < OVERLAP * free.wall:
        return f"its threads hardly ran at the same time ({free.cpu / free.wall:.1f} cores on average)"
    if ratio > MORE and abs(free.wall / with_gil.wall - 1) < SAME:
        return (f"it took equally long with the GIL and without ({with_gil.wall:.2f} s): it works until a time is "
                "over, or sharing costs all that more cores give")
    return None


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
