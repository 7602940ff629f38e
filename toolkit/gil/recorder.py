"""Run a program with the shim in front of it, and read what it leaves."""

from __future__ import annotations

import resource
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.gil import preload
from gilscope.toolkit.gil.records import BadRecordError, read_folder
from gilscope.toolkit.gil.summary import summarize
from gilscope.toolkit.units import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gilscope.toolkit.gil.records import Process

BUSY = 0.15      # share of its threads' CPU demand that waited for a core, from which on a machine is too busy
OVERLAP = 1.2    # cores in use at once on average, below which threads hardly ran at the same time
LESS = 0.95      # times the CPU time, below which the run without the GIL cannot have done the same work at a price
MORE = 1.1       # likewise, from which on there is a price
SAME = 0.05      # share by which two runs differ that took equally long


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One run of a program."""

    ended: int                      # exit code, or minus the signal that ended it
    wall: float                     # seconds
    cpu: float                      # seconds of all its processes that were waited for
    processes: tuple[Process, ...]  # those that were Python; none where the shim could not be loaded
    problem: str = ""               # why what was recorded cannot be read

    @property
    def free_threaded(self) -> bool:
        """Whether the build is free-threaded, with its GIL on or off."""
        return any(process.free_threaded for process in self.processes)

    @property
    def gil_used(self) -> bool:
        """Whether its threads took a GIL once the interpreter was up."""
        return not self.processes or any(process.gil_used for process in self.processes)


def record(
    run: Callable[[dict[str, str]], int], environ: Mapping[str, str], *, all_holds: bool = False
) -> Recording:
    """Run a program and return what was recorded of it.

    Args:
        run: Runs it to its end with the environment that it is given, and returns how it ended.
        environ: The environment that it would have otherwise.
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
        except BadRecordError as error:   # the program knows where its recording is
            problem = str(error)
        return Recording(ended=ended, wall=wall, cpu=cpu, processes=processes, problem=problem)


def inflation(free: Recording, with_gil: Recording) -> float | str:
    """Return how many times the CPU time the program takes when its threads run at the same time.

    The same work on the same build, without the GIL against with it: what is more is the price of sharing objects, of
    their reference counts and cache lines for instance, which no wait shows.  Two runs of a program need not do the
    same work: one that works until a time is over does more with more cores.

    Returns:
        The ratio, or the reason why it would mean nothing.
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
    """Return why the CPU time of the two runs is not that of the same work, or None."""
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
    """Return how much of the time in which the threads wanted a core they waited for one; None when it is not known."""
    summary = summarize(recording.processes)
    if summary.cpu is None or summary.run_queue is None or summary.killed:   # what had no end told neither
        return None
    wanted = summary.cpu + summary.run_queue
    return summary.run_queue / wanted if wanted else None


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
