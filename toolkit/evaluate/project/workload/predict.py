"""Predict how much faster a threaded workload would be without the GIL: an upper bound and an estimate.  Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, hypot, log
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.sections import Missing, ValueRange
from gilscope.toolkit.stats.sample import summarize
from gilscope.toolkit.stats.verdict import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.evaluate.sections import MachineFacts

# Error of the formula in addition to the spread of the rounds, as a share: ten programs on 3.14t were within 14 %, most
# of them within 9 %.  Without it a quiet machine would promise more than the formula can keep.
FORMULA_ERROR = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRound:
    """The measurements of a workload in one round, all taken within a minute.  Seconds."""

    wall: float        # wall time with the GIL, with all threads
    cpu: float         # CPU time with the GIL, with one thread
    cost: float        # CPU time of one thread, without the GIL / with
    inflation: float   # CPU time without the GIL, all threads / one
    cores: float       # number of cores that spinning processes, one for each core, got
    idle: float = 0.0  # time that one thread neither ran nor waited for a core: it slept, or waited for a server


def ceiling(wait_share: float, effective: float | None) -> float:
    """Return an upper bound for the cost of the GIL: no waits left, limited by what the cores can do.

    Args:
        wait_share: Share of the time in which threads want to run Python code, 0..1.
        effective: Cores' worth of work that the machine does at once; None if unknown.
    """
    free = 1 / max(1e-9, 1 - wait_share)
    return free if effective is None else min(free, effective)


def predict(rounds: Sequence[MeasuredRound], threads: int, machine: MachineFacts | Missing) -> ValueRange | Missing:
    """Return the predicted speed-up of a workload with `threads` threads, or the reason why there is none.

    T = CPU x s x inflation / min(threads, E) + idle / threads: the CPU time with the GIL, times the overhead of one
    thread without it, times the slowdown by threads that contend, divided among the cores; plus the idle time, which
    threads spend in parallel with the GIL, too.

    E is the number of cores available until the last process was done, by time, as threads do not end at the same time
    either.  The slowdown of cores that share units or a cache is part of the inflation.

    Args:
        rounds: The measurements.
        threads: The number of threads.
        machine: The facts about the machine.

    Returns:
        The median of the rounds' speed-ups; the interval covers their spread and FORMULA_ERROR.

    Source: compared with measurements in this project's research: 2 to 4.5 times too high without inflation.
    """
    if isinstance(machine, Missing):
        return machine
    if machine.doubts:
        return Missing(reason=machine.doubts[0])
    if threads < 2:  # a single thread never waits for another
        return Missing(reason="it takes two threads to predict what several do")
    if len(rounds) < MIN_ROUNDS:
        return Missing(reason=f"threads got the cores that they needed in {len(rounds)} rounds only")
    speedups = [each.wall / seconds(each, threads) for each in rounds]
    seen = summarize(speedups)
    below, above = (exp(hypot(log(seen.center / end), log(1 + FORMULA_ERROR))) for end in (seen.lo, seen.hi))
    return ValueRange(value=seen.center, lo=seen.center / below, hi=seen.center * above)


def seconds(measured: MeasuredRound, threads: int) -> float:
    """Return the predicted duration of the workload without the GIL."""
    work = measured.cpu * measured.cost * measured.inflation
    return work / min(threads, measured.cores) + measured.idle / threads
