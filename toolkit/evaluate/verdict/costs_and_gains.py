"""What a build costs and gains, as reasons: CPU time, memory, contention, speed; if it may be told.  Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.packages.judge.status import Status
from gilscope.toolkit.evaluate.packages.wording import named
from gilscope.toolkit.evaluate.project.machine_calibration import MOST_QUEUED
from gilscope.toolkit.evaluate.sections import Interval, Missing
from gilscope.toolkit.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.evaluation import BuildEvaluation
    from gilscope.toolkit.evaluate.sections import Cost, Forced, Gain, MachineFacts

# PEP 779's targets for supported free-threading, and twice the first of them.
COST_WARN = 1.15       # times the CPU time of one thread
COST_RED = 1.4
RSS_WARN = 1.2
LEAST_RSS = 2**24      # bytes more: an empty interpreter takes a quarter more, which is 4 MiB
WORTH = 1.2            # a predicted gain below that is not worth a migration
WAITS_LITTLE = 0.05    # share of thread time waiting for the GIL below which there is nothing to gain
WAITS_NEVER = 0.01     # likewise, on a machine that is too busy for a word on speed
ALONE = 0.95           # share of the CPU time above which one thread does all the work
SLOW_SHARE = 1.5       # CPU inflation above which threads are in each other's way
PARKED_MUCH = 0.1      # share of thread time, likewise
WIDER = 2.0            # times the interval of CPU time on a busy machine, by its logarithm
NO_COST = "what it costs one thread was not measured"   # how a reason begins; why comes next
WHO = {"workload": "one thread takes", "script": "the script takes", "tests": "the tests take"}


def may_tell_speed(machine: MachineFacts | Missing) -> bool:
    """Return whether the machine is quiet and large enough for a word on speed."""
    return not isinstance(machine, Missing) and not machine.doubts


def times(cost: Cost, *, told: bool) -> Interval:
    """Return how many times the CPU time it takes, in a wide interval where no word on speed may be told.

    CPU time is steady beside other load, but not untouched by it: caches and units of a core are shared.
    """
    more = cost.cpu.inverted()
    if told:
        return Interval(value=more.ratio, lo=more.lo, hi=more.hi)
    noise = 1 + (more.floor or 0.0)
    lo, hi = min(more.between[0], more.ratio / noise), max(more.between[1], more.ratio * noise)
    return Interval(value=more.ratio, lo=more.ratio * (lo / more.ratio) ** WIDER,
                    hi=more.ratio * (hi / more.ratio) ** WIDER)


def cost_doubt(cost: Cost | Missing, *, told: bool) -> str:
    """Return why nobody can say that one thread costs little or much more; "": it is known."""
    if isinstance(cost, Missing):
        return f"{NO_COST}: {cost.reason}"
    if told:
        return ""
    seen = times(cost, told=told)
    if not seen.lo <= COST_WARN <= seen.hi:
        return ""
    return f"{wide_cost(cost, seen)}: it may cost more than {(COST_WARN - 1) * 100:.0f} %"


def wide_cost(cost: Cost, seen: Interval) -> str:
    """Return what one thread takes, where no word on speed may be told."""
    return (f"{WHO[cost.by]} {seen.value:.2f} [{seen.lo:.2f}, {seen.hi:.2f}] times the CPU time of {cost.against}, "
            "measured on a busy or small machine")


def worth(forced: Forced | Missing | None) -> str:
    """Return how fast threads are with the GIL forced off; "" where that is not known, or may not be told."""
    if forced is None or isinstance(forced, Missing) or isinstance(forced.measured, Missing):
        return ""
    # That no difference was shown is worth a word where none that matters is left to be shown.
    known = {threads: each for threads, each in forced.measured.items()
             if each.verdict() in {"faster", "slower"} or (each.verdict() == "same" and each.hi < WORTH)}
    if not known or not may_tell_speed(forced.machine):
        return ""
    threads, best = max(known.items(), key=lambda item: item[1].ratio)
    with_threads = f" with {threads} threads" if threads else ""
    return f"{best.ratio:.2f}x [{best.lo:.2f}, {best.hi:.2f}] as fast as on {forced.against}{with_threads}"


def costs(found: BuildEvaluation, *, told: bool) -> Iterator[str]:
    """Yield what the build costs: lost C code, CPU time, memory, contention."""
    if not isinstance(found.readiness, Missing):
        for finding in found.readiness.findings:
            if finding.verdict.status is Status.LOST:
                yield f"{named(finding)} loses its C code: {'; '.join(finding.verdict.reasons[:2])}"
    if not isinstance(found.cost, Missing):
        factor = 1 / found.cost.cpu.ratio
        if told and factor > COST_WARN and found.cost.cpu.verdict() == "slower":
            red = ", far beyond PEP 779's 15 %" if factor > COST_RED else ""
            yield f"{WHO[found.cost.by]} {factor:.2f} times the CPU time of {found.cost.against}{red}"
        if not told and (seen := times(found.cost, told=told)).lo > COST_WARN:
            yield wide_cost(found.cost, seen)
        yield from _memory(found.cost)
    if told and not isinstance(found.contention, Missing):
        yield from _contention(found)


def _memory(cost: Cost) -> Iterator[str]:
    of = cost.memory
    share, more = (of.here / of.there, of.here - of.there) if of else (cost.rss, cost.more_bytes)
    if share is None or share <= RSS_WARN or (more is not None and more < LEAST_RSS):
        return
    which = f": {format_bytes(of.here)} instead of {format_bytes(of.there)}, {of.process}" if of else ""
    yield f"{(share - 1) * 100:.0f} % more memory than on {cost.against}{which}"


def _contention(found: BuildEvaluation) -> Iterator[str]:
    assert not isinstance(found.contention, Missing)
    where = found.contention.places[0] if found.contention.places else None
    at = f", most at {where.file}:{where.line}" if where else ""
    if found.contention.inflation is not None and found.contention.inflation > SLOW_SHARE:
        yield f"threads get in each other's way: {found.contention.inflation:.1f} times the CPU time per operation{at}"
    if found.contention.parked is not None and found.contention.parked > PARKED_MUCH:
        yield f"threads are parked {found.contention.parked * 100:.0f} % of their time{at}"


def not_worth(gain: Gain, *, told: bool) -> str | None:
    """Return why there is no gain; None when there is one, or when it is not known.

    That threads hardly wait for the GIL is no word on speed: it is true on a busy machine, too, where threads that wait
    for a core instead wait less for the GIL, so the bound is lower.
    """
    measured = {} if isinstance(gain.measured, Missing) or not told else dict(gain.measured)
    known = {threads: each for threads, each in measured.items() if each.verdict() != "unknown"}
    if known:
        best = max(known.values(), key=lambda each: each.ratio)
        if best.hi < WORTH:
            return f"the workload is {best.ratio:.2f}x [{best.lo:.2f}, {best.hi:.2f}] as fast as on {gain.against}"
        return None
    sure = told and (gain.queued or 0.0) <= MOST_QUEUED
    if gain.wait_share is not None and gain.wait_share < (WAITS_LITTLE if sure else WAITS_NEVER):
        alone = "; all the work is one thread's" if gain.busiest and gain.busiest > ALONE else ""
        return f"threads wait for the GIL {gain.wait_share * 100:.1f} % of their time on {gain.against}: no gain{alone}"
    if told and not isinstance(gain.predicted, Missing) and gain.predicted.hi < WORTH:
        return f"predicted {gain.predicted.value:.2f}x [{gain.predicted.lo:.2f}, {gain.predicted.hi:.2f}]"
    return None


def gains(gain: Gain) -> Iterator[str]:
    """Yield by how much the workload is faster, by its number of threads."""
    if not isinstance(gain.measured, Missing):
        for threads, each in gain.measured.items():
            if each.verdict() == "faster":
                with_threads = f" with {threads} threads" if threads else ""
                yield f"{each.ratio:.2f}x [{each.lo:.2f}, {each.hi:.2f}] as fast as {gain.against}{with_threads}"
