"""Evaluate the shim's record of a workload: shares of the worker threads' time, and lines of the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.builds.environment import is_ours
from gilscope.toolkit.evaluate.sections import Place
from gilscope.toolkit.gil.bottleneck import HARDLY
from gilscope.toolkit.gil.records import WaitReason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.gil.summary import RecordingSummary, ThreadSummary, WaitPlace

MAIN = "main"          # name of the main thread in the summary


def by_line(places: Iterable[WaitPlace]) -> list[Place]:
    """Return one place for each line, worst first, with the object on which threads waited there for the longest time.

    A thread that got its lock while spinning does not know the object.
    """
    lines: dict[tuple[str, int], list[WaitPlace]] = {}
    for each in places:
        lines.setdefault((each.file, each.line), []).append(each)
    found = []
    for (file, line), here in lines.items():
        worst = max(here, key=lambda each: (each.reason is not WaitReason.SPIN, each.seconds))
        found.append(Place(file=file, line=line, what=worst.what, wait=worst.reason,
                           seconds=sum(each.seconds for each in here)))
    return sorted(found, key=lambda place: -place.seconds)


def working(watched: RecordingSummary) -> list[ThreadSummary]:
    """Return the threads that share the work: not the main one if it has started others.

    Threads that hardly want to run are left out, such as a library's thread that checks files for changes: their
    lifetime would count as time in which nobody waits.  A thread that has little to do but nearly always waits for the
    GIL, such as I/O beside CPU work, wants to run all that time.
    """
    others = [each for each in watched.threads if each.name != MAIN] or list(watched.threads)
    least = HARDLY * max(map(_wanted, others), default=0.0)
    return [each for each in others if _wanted(each) >= least]


def _wanted(thread: ThreadSummary) -> float:
    """Return the seconds in which a thread ran or wanted to run."""
    ran = thread.held if thread.cpu is None else thread.cpu
    return ran + thread.waited + thread.handing_over + thread.parked + thread.spun


def wait_share(watched: RecordingSummary) -> float:
    """Return waits for the GIL as a share of the threads' time, without the time in which they wait for each other.

    Time in which a thread sleeps or reads counts, because it does not want the GIL and would not be faster without it.
    The main thread's time does not count if there are others: it starts the process and the threads.
    """
    time = sum(each.seconds - each.idle for each in working(watched))
    return sum(each.waited for each in working(watched)) / time if time > 0 else 0.0


def parked_share(watched: RecordingSummary) -> float:
    """Return the time parked or spinning on contended locks and objects, as a share in the same sense."""
    time = sum(each.seconds - each.idle for each in working(watched))
    return sum(each.parked + each.spun for each in working(watched)) / time if time > 0 else 0.0


def queued_share(watched: RecordingSummary) -> float | None:
    """Return the share of these threads' demand for cores in which they waited for one; None if unknown."""
    known = [(each.cpu, each.run_queue) for each in working(watched)
             if each.cpu is not None and each.run_queue is not None]
    wanted = sum(cpu + queued for cpu, queued in known)
    return sum(queued for _, queued in known) / wanted if wanted else None


def busiest(watched: RecordingSummary) -> float | None:
    """Return the share of the busiest thread in the CPU time of all threads; None if unknown.

    The main thread counts if it took more than all others together; otherwise it only starts the others.
    """
    known = [(each.name == MAIN, each.cpu) for each in watched.threads if each.cpu is not None]
    others = [cpu for main, cpu in known if not main]
    mains = [cpu for main, cpu in known if main]
    times = others if sum(others) >= sum(mains) else [*others, *mains]
    return max(times) / sum(times) if sum(times) else None


def contended(places: Iterable[WaitPlace]) -> list[WaitPlace]:
    """Return the places where threads contend, without deliberate waiting and without our own code.

    Modules frozen into the interpreter import others, before there are any threads.
    """
    return [each for each in places
            if not each.idle and each.file and not is_ours(each.file)
            and not (each.inside or each).file.startswith("<frozen")]
