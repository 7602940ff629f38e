"""What the shim saw of a workload: shares of the time of the threads that do its work, and lines of the project's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.builds.packages.environment import is_ours
from gilscope.toolkit.evaluate.sections import Place
from gilscope.toolkit.gil.bottleneck import HARDLY
from gilscope.toolkit.gil.summary import SPINNING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.gil.summary import Place as WaitingPlace
    from gilscope.toolkit.gil.summary import Summary, ThreadSummary

MAIN = "main"          # the summary's name of it


def by_line(places: Iterable[WaitingPlace]) -> list[Place]:
    """Return one place per line, the worst first: what threads wait for there by the most seconds that tell it.

    A thread that got its lock while it was spinning does not tell which.
    """
    lines: dict[tuple[str, int], list[WaitingPlace]] = {}
    for each in places:
        lines.setdefault((each.file, each.line), []).append(each)
    found = []
    for (file, line), here in lines.items():
        worst = max(here, key=lambda each: (each.what != SPINNING, each.seconds))
        found.append(Place(file=file, line=line, what=worst.what, seconds=sum(each.seconds for each in here)))
    return sorted(found, key=lambda place: -place.seconds)


def working(watched: Summary) -> list[ThreadSummary]:
    """Return the threads that the work is shared out among: not the main one, where it has started others.

    Nor those that hardly want to run beside the others, as a library's thread that looks for changed files now and
    then: all the time that it is there would count as time in which nobody has to wait.  One that has little to do but
    waits for the GIL nearly always, as I/O beside a CPU thread does, wants to run all that time.
    """
    others = [each for each in watched.threads if each.name != MAIN] or list(watched.threads)
    least = HARDLY * max(map(_wanted, others), default=0.0)
    return [each for each in others if _wanted(each) >= least]


def _wanted(thread: ThreadSummary) -> float:
    """Return the seconds in which a thread ran or wanted to run."""
    ran = thread.held if thread.cpu is None else thread.cpu
    return ran + thread.waited + thread.handing_over + thread.parked + thread.spun


def wait_share(watched: Summary) -> float:
    """Return waits for the GIL as a share of the time of threads, without that in which they wait for each other.

    A thread that sleeps or reads wants no GIL then, and would not be faster without: its time counts.  The main
    thread's does not where there are others: it starts the process, and them.
    """
    time = sum(each.seconds - each.idle for each in working(watched))
    return sum(each.waited for each in working(watched)) / time if time > 0 else 0.0


def parked_share(watched: Summary) -> float:
    """Return time parked or spinning in contention for locks and objects, likewise as a share."""
    time = sum(each.seconds - each.idle for each in working(watched))
    return sum(each.parked + each.spun for each in working(watched)) / time if time > 0 else 0.0


def queued_share(watched: Summary) -> float | None:
    """Return how much of the time in which these threads wanted a core they waited for one; None: not known."""
    known = [(each.cpu, each.run_queue) for each in working(watched)
             if each.cpu is not None and each.run_queue is not None]
    wanted = sum(cpu + queued for cpu, queued in known)
    return sum(queued for _, queued in known) / wanted if wanted else None


def busiest(watched: Summary) -> float | None:
    """Return the share of the CPU time of all threads that the busiest took; None where it is not known.

    The main thread counts where it took more than all others: starting the process and them is no work of theirs.
    """
    known = [(each.name == MAIN, each.cpu) for each in watched.threads if each.cpu is not None]
    others = [cpu for main, cpu in known if not main]
    mains = [cpu for main, cpu in known if main]
    times = others if sum(others) >= sum(mains) else [*others, *mains]
    return max(times) / sum(times) if sum(times) else None


def contended(places: Iterable[WaitingPlace]) -> list[WaitingPlace]:
    """Return where threads are in each other's way: not where they wait by the program's will, nor in our own code.

    What is frozen into the interpreter imports modules, before there are any threads.
    """
    return [each for each in places
            if not each.idle and each.file and not is_ours(each.file)
            and not (each.inside or each).file.startswith("<frozen")]
