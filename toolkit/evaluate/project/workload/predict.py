"""How many times faster a threaded workload would be without the GIL: a ceiling, and a prediction.  Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, hypot, log
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.sections import Interval, Missing
from gilscope.toolkit.stats.sample import summarize
from gilscope.toolkit.stats.words import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.evaluate.sections import MachineFacts

# What the formula is off by beside what the rounds differ by, as a share: ten programs on 3.14t were within 14 %, most
# of them within 9 %.  Without it a quiet machine would promise more than the formula can hold.
FORMULA_ERROR = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round measured of a workload: everything within the same minute of the machine.  Seconds."""

    wall: float        # with the GIL, with all threads
    cpu: float         # CPU time with the GIL, with one thread
    cost: float        # CPU time of one thread without the GIL / with
    inflation: float   # CPU time of all threads / of one, without the GIL
    cores: float       # that as many spinning processes as there are cores were given at once
    idle: float = 0.0  # that one thread neither ran nor waited for a core: it slept, or waited for a server


def ceiling(wait_share: float, effective: float | None) -> float:
    """Return what the GIL costs at most: with no wait left, and no more than the cores can do.

    Args:
        wait_share: Of the time in which threads want to run Python code, 0..1.
        effective: Cores' worth of work that the machine does at once; None: not known.
    """
    free = 1 / max(1e-9, 1 - wait_share)
    return free if effective is None else min(free, effective)


def predict(rounds: Sequence[Round], threads: int, machine: MachineFacts | Missing) -> Interval | Missing:
    """Return the predicted speed-up of a workload with `threads` threads, or why there is none.

    T = CPU x s x inflation / min(threads, E) + idle / threads: the CPU time it takes with the GIL, times what one
    thread costs more without it, times what threads get in each other's way, shared out among the cores; and what a
    thread waits for beside, which threads do at the same time with the GIL, too.

    E is the cores that were given until the last one was done, by time: threads, too, end one after the other.  That
    two cores are each slower than one alone, since they share units or a cache, is in the inflation already.

    Args:
        rounds: What was measured.
        threads: How many.
        machine: What it can do.

    Returns:
        The median of the rounds' speed-ups; the interval holds what the rounds differ by and FORMULA_ERROR.

    Source: measured against the truth in the research for this project: 2 to 4.5 times too high without inflation.
    """
    if isinstance(machine, Missing):
        return machine
    if machine.doubts:
        return Missing(reason=machine.doubts[0])
    if threads < 2:  # noqa: PLR2004 - one thread waits for nobody
        return Missing(reason="it takes two threads to predict what several do")
    if len(rounds) < MIN_ROUNDS:
        return Missing(reason=f"threads got the cores that they needed in {len(rounds)} rounds only")
    speedups = [each.wall / seconds(each, threads) for each in rounds]
    seen = summarize(speedups)
    below, above = (exp(hypot(log(seen.center / end), log(1 + FORMULA_ERROR))) for end in (seen.lo, seen.hi))
    return Interval(value=seen.center, lo=seen.center / below, hi=seen.center * above)


def seconds(measured: Round, threads: int) -> float:
    """Return how long the workload is predicted to take without the GIL."""
    work = measured.cpu * measured.cost * measured.inflation
    return work / min(threads, measured.cores) + measured.idle / threads
