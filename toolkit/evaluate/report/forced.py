"""What a workload, or the tests, did with the GIL forced off, in words: for the screen and --explain.  Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.sections import Missing
from gilscope.toolkit.evaluate.verdict.costs_and_gains import WHO, may_tell_speed
from gilscope.toolkit.report.wording import ratio_number, ratio_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gilscope.toolkit.evaluate.evaluation import BuildEvaluation
    from gilscope.toolkit.evaluate.sections import Cost, Forced

TITLE = "With the GIL forced off (PYTHON_GIL=0)"
RULE = ("not safe to use, and no part of the verdict: it shows what mending could bring; what turned the GIL on did "
        "not say that it can do without, so it may crash or give wrong results")


def lines(builds: Iterable[BuildEvaluation]) -> Iterator[str]:
    """Yield what was measured on each build on which something turns the GIL on, and what to think of it."""
    told = {each.build.label: each.forced for each in builds if each.forced is not None}
    yield from (f"{label}: {said(forced)}" for label, forced in told.items())
    if any(not isinstance(forced, Missing) for forced in told.values()):
        yield RULE


def said(forced: Forced | Missing) -> str:
    """Return what was measured on one build, in one line."""
    return f"not measured: {forced.reason}" if isinstance(forced, Missing) else "; ".join(_parts(forced))


def _parts(forced: Forced) -> Iterator[str]:
    if forced.failure:
        who = "" if forced.by == "tests" else "the workload fails, and does not with the GIL: "
        yield f"{who}{forced.failure}"
    elif forced.by == "tests":
        yield "the tests pass"
    measured = {} if isinstance(forced.measured, Missing) else dict(forced.measured)
    if not may_tell_speed(forced.machine) and (measured or not isinstance(forced.cost, Missing)):
        # Not the machine of the other rounds, which has a section of its own.
        why = forced.machine.reason if isinstance(forced.machine, Missing) else forced.machine.doubts[0]
        yield f"no word on speed: {why}"
        return
    if not isinstance(forced.cost, Missing):
        yield f"{_cost(forced.cost)} ({forced.cost.cpu.rounds} rounds)"
    elif not forced.failure:
        yield f"cost not measured: {forced.cost.reason}"
    if measured:
        yield f"measured against {forced.against} " + ", ".join(
            ratio_text(each) + (f" with {threads} threads" if threads else "") for threads, each in measured.items())
    if isinstance(forced.measured, Missing) and not forced.failure and forced.by != "tests":   # those gain nothing
        yield f"gain not measured: {forced.measured.reason}"


def _cost(cost: Cost) -> str:
    more = cost.cpu.inverted()
    times, lo, hi = map(ratio_number, (more.ratio, more.lo, more.hi))
    return f"{WHO[cost.by]} {times} [{lo}, {hi}] times the CPU time of {cost.against}"
