"""Facts about the workload, or the tests, with the GIL forced off: what a fix could gain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import FREE_THREADING, Codes, Effect, Fact, Kind, Topic
from gilscope.toolkit.evaluate.readings import cpu_time_factor, forced_speed, is_quiet, times_cpu_time, with_threads
from gilscope.toolkit.evaluate.sections import Forced, Missing, known, reason_of
from gilscope.toolkit.report.wording import ratio_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.sections import Cost

RULE = ("not safe to use, and no part of the verdict: it shows what mending could bring; what turned the GIL on did "
        "not say that it can do without, so it may crash or give wrong results")
CODES = Codes({
    "forced.fails": Kind(Effect.NOTE),
    "forced.gain": Kind(Effect.NOTE),
    "forced.not-measured": Kind(Effect.NOTE, heading=Topic.FORCED),
    "forced.not-safe": Kind(Effect.NOTE, heading=Topic.FORCED),
    "forced.result": Kind(Effect.NOTE, heading=Topic.FORCED),
}, subject="the GIL forced off")
fact = CODES.fact


def facts(found: Evaluation) -> Iterator[Fact]:
    """Yield the measurements with the GIL forced off, for each build on which something turns it on."""
    looks = [(label, speed.forced) for label, speed in found.speed.items() if speed.forced is not None]
    for label, forced in looks:
        missing = forced if isinstance(forced, Missing) else None
        yield fact("forced.not-measured" if missing else "forced.result", label, described(forced),
                   missing=missing)
        if measured := known(forced):
            yield from _to_weigh(label, measured)
    if any(known(forced) for _, forced in looks):
        yield fact("forced.not-safe", FREE_THREADING, RULE)


def _to_weigh(label: str, forced: Forced) -> Iterator[Fact]:
    """Yield the possible gain of a fix, or that declaring the modules safe would not be enough."""
    if forced.failure:
        broke = forced.failure if forced.by == "tests" else f"the workload fails: {forced.failure}"
        where = "" if forced.by == "tests" else "with it forced off, "   # which the tests' failure says
        yield fact("forced.fails", label, broke,
                   action="it takes more than packages that declare that they can do without the GIL: "
                          f"{where}{broke}")
    if faster := forced_speed(forced):
        yield fact("forced.gain", label, faster,
                   action="weigh what it takes to keep the GIL off against what that could bring: with the GIL forced "
                          f"off, which is not safe, the workload is {faster}")


def described(forced: Forced | Missing) -> str:
    """Return the measurements on one build, in one line."""
    match forced:
        case Missing(reason=reason):
            return f"not measured: {reason}"
        case _:
            return "; ".join(_parts(forced))


def _parts(forced: Forced) -> Iterator[str]:
    if forced.failure:
        who = "" if forced.by == "tests" else "the workload fails, and does not with the GIL: "
        yield f"{who}{forced.failure}"
    elif forced.by == "tests":
        yield "the tests pass"
    cost, measured = known(forced.cost), known(forced.measured)
    if not is_quiet(forced.machine) and (measured or cost):
        # These rounds had a machine of their own; that of the others has a section.
        machine = known(forced.machine)
        yield f"speed was not judged: {machine.doubts[0] if machine else reason_of(forced.machine)}"
        return
    if cost:
        yield f"{_cost(cost)} ({cost.cpu.rounds} rounds)"
    elif not forced.failure:
        yield f"cost not measured: {reason_of(forced.cost)}"
    if measured:
        yield f"measured against {forced.against} " + ", ".join(
            ratio_text(each) + with_threads(threads) for threads, each in measured.items())
    # Tests gain nothing, and a workload that fails has no gain.
    if (why := reason_of(forced.measured)) and not forced.failure and forced.by != "tests":
        yield f"gain not measured: {why}"


def _cost(cost: Cost) -> str:
    return times_cpu_time(cost.by, cpu_time_factor(cost, sure=True), cost.against)
