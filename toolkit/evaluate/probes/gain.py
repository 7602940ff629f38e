"""Facts about the gain from threads without the GIL: measured, or a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.decision import Gained
from gilscope.toolkit.evaluate.facts import Codes, Effect, Fact, Kind, PlanStep, Topic
from gilscope.toolkit.evaluate.project.machine_calibration import MOST_QUEUED
from gilscope.toolkit.evaluate.readings import WORTHWHILE_GAIN, as_fast_as, is_quiet, with_threads
from gilscope.toolkit.evaluate.sections import NOT_THE_SAME, Forced, Missing, Remedy, known, reason_of
from gilscope.toolkit.report.wording import ratio_number, ratio_text
from gilscope.toolkit.stats.verdict import SpeedVerdict
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gilscope.toolkit.evaluate.decision import How
    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.sections import Cost, Gain
    from gilscope.toolkit.stats.verdict import Comparison

WAITS_LITTLE = 0.05    # share of thread time waiting for the GIL below which there is nothing to gain
WAITS_NEVER = 0.01     # the same on a machine that is too busy to compare speeds
ALONE = 0.95           # share of the CPU time above which one thread does all the work
UNEVEN = 1.6           # times an even share of the CPU time, from which on it is worth a word
NOT_QUIET = "the machine was too busy or too small to judge speed"
NOT_QUIET_BELOW = "the machine is too busy or too small, see below"
CODES = Codes({
    "gain.none": Kind(Effect.NO_GAIN),
    "gain.measured": Kind(Effect.GAINS),
    "gain.not-looked-at": Kind(Effect.NOT_LOOKED_AT, step=PlanStep.COST_AND_GAIN),
    "gain.details": Kind(Effect.NOTE, heading=Topic.GAIN),
    "gain.known": Kind(Effect.NOTE, step=PlanStep.COST_AND_GAIN, state="done"),
    "gain.not-known": Kind(Effect.NOTE, step=PlanStep.COST_AND_GAIN, state="not known"),
}, subject="gain")
fact = CODES.fact


def facts(found: Evaluation) -> Iterator[Fact]:
    """Yield the gain from threads of the workload on each build."""
    for label in found.labels:
        match found.speed[label].gain:
            case Missing() as missing:
                remedy = None if found.request.workload else Remedy.WORKLOAD
                yield fact("gain.not-looked-at", label, missing.reason, missing=missing, remedy=remedy,
                           gain=best_known_gain(found, label))
            case gain:
                yield from _looked_at(found, label, gain)


def _looked_at(found: Evaluation, label: str, gain: Gain) -> Iterator[Fact]:
    sure = is_quiet(found.machine)
    machine = known(found.machine)
    if why := reason_of(gain.measured):
        yield _not_known(label, why)
    elif not sure:
        yield _not_known(label, "the machine was too busy or too small")
    else:
        yield fact("gain.known", label, "the gain was measured")
    if nothing := _not_worth(gain, sure=sure):
        yield fact("gain.none", label, nothing)
    for threads, each in (known(gain.measured) or {}).items() if sure else ():
        if each.verdict() == SpeedVerdict.FASTER:
            yield fact("gain.measured", label, as_fast_as(each, gain.against, threads))
    parts = [*_parts(gain, sure=sure), *(_import_parts(found.speed[label].cost) if sure else ())]
    yield fact("gain.details", label, "; ".join(parts), gain=best_known_gain(found, label),
               remedy=Remedy.QUIET if machine and machine.may_get_quiet else None)


def _not_known(label: str, reason: str) -> Fact:
    return fact("gain.not-known", label, f"gain: {reason}")


def _not_worth(gain: Gain, *, sure: bool) -> str:
    """Return why there is no gain; "" if there is one, or if it is not known.

    Short waits for the GIL also count on a busy machine, but with a lower bound: a thread that waits for a core does
    not wait for the GIL meanwhile.
    """
    measured = (known(gain.measured) or {}) if sure else {}
    told = [each for each in measured.values() if each.judgeable]
    if told:
        best = max(told, key=lambda each: each.ratio)
        return f"the workload is {as_fast_as(best, f'on {gain.against}')}" if best.hi < WORTHWHILE_GAIN else ""
    relied = sure and (gain.queued or 0.0) <= MOST_QUEUED
    if gain.wait_share is not None and gain.wait_share < (WAITS_LITTLE if relied else WAITS_NEVER):
        alone = "; all the work is one thread's" if gain.busiest and gain.busiest > ALONE else ""
        return f"threads wait for the GIL {gain.wait_share * 100:.1f} % of their time on {gain.against}: no gain{alone}"
    return ""


def _import_parts(cost: Cost | Missing) -> Iterator[str]:
    seen = known(cost)
    if seen and seen.import_seconds is not None and seen.import_there is not None:
        yield (f"importing it takes {format_seconds(seen.import_seconds)}, {format_seconds(seen.import_there)} on "
               f"{seen.against}")


def _parts(gain: Gain, *, sure: bool) -> Iterator[str]:
    yield from _waits(gain)
    if gain.threads and gain.busiest and gain.threads * gain.busiest > UNEVEN:
        yield f"the busiest of {gain.threads + 1} threads takes {gain.busiest * 100:.0f} % of the CPU time"
    if gain.lacking:
        yield f"not measured: {gain.lacking.reason}"
        return
    if not sure:
        yield f"not measured: {NOT_QUIET_BELOW}"
        return
    match gain.measured:
        case Missing(reason=reason):
            yield f"not measured: {reason}"
        case measured:
            yield "measured " + ", ".join(ratio_text(each) + with_threads(threads)
                                          for threads, each in measured.items())


def _waits(gain: Gain) -> Iterator[str]:
    """Yield the share of time for which threads wait for the GIL, and the bound that follows."""
    if gain.wait_share is None:
        return
    share = f"threads wait for the GIL {gain.wait_share * 100:.0f} % of their time on {gain.against}"
    if gain.queued is not None and gain.queued > MOST_QUEUED:
        yield f"{share}, which is not to be relied on: they waited {gain.queued * 100:.0f} % of theirs for a core"
        return
    yield share
    if gain.ceiling is not None:
        yield f"so at most {ratio_number(gain.ceiling)}x"


def best_known_gain(found: Evaluation, label: str) -> Gained | Missing:
    """Return the best that is known of a build's gain: with the GIL forced off, measured, or a bound."""
    speed = found.speed[label]
    gain = speed.gain
    if speed.differs:
        return Missing(reason=NOT_THE_SAME)
    match speed.forced:
        case Forced(machine=where, measured=measured, against=against) if is_quiet(where) and (best := _best(measured)):
            return _compared("forced off", *best, known(gain), against)
    if isinstance(gain, Missing):
        return gain
    if not is_quiet(found.machine):
        return gain.lacking or Missing(reason=NOT_QUIET)
    if best := _best(gain.measured):
        return _compared("measured", *best, gain, gain.against)
    return _bound(gain)


def _bound(gain: Gain) -> Gained | Missing:
    """Return the most that the waits for the GIL allow, as the gain was not measured."""
    if gain.ceiling is not None:
        return Gained(how="at most", ratio=gain.ceiling, lo=None, hi=None, threads=0, against=gain.against,
                      today=gain.threads, busiest=gain.busiest)
    return gain.measured if isinstance(gain.measured, Missing) else Missing(reason="too few rounds were measured")


def _best(measured: Mapping[int, Comparison] | Missing) -> tuple[int, Comparison] | None:
    """Return the fastest number of threads with a conclusive comparison."""
    sure = {threads: each for threads, each in (known(measured) or {}).items()
            if each.judgeable}
    return max(sure.items(), key=lambda item: item[1].ratio) if sure else None


def _compared(how: How, threads: int, best: Comparison, gain: Gain | None, against: str) -> Gained:
    today, busiest = (gain.threads, gain.busiest) if gain else (None, None)
    return Gained(how=how, ratio=best.ratio, lo=best.lo, hi=best.hi, threads=threads, against=against, today=today,
                  busiest=busiest)
