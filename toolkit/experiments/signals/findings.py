"""What became of Beazley's "never": one sentence of numbers for each build, then why it is so, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.short_switch_intervals import SECONDS as SWITCH_INTERVAL
from gilscope.toolkit.experiments.signals.times import AT_ONCE, WAITING, call_text, find_cell, rows_of, times_of
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.experiments.arms import Arm
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.experiments.signals.times import Times

SHORT = 0.2               # below this share of another wait, one is not of its kind


def on_blocked(results: Results, arms: Sequence[Arm]) -> Iterator[str]:
    """Yield how long a blocked main thread takes alone and beside the most CPU threads."""
    busiest = max((count for doing, count in rows_of(results, WAITING) if doing == "join"), default=0)
    reached = []
    for arm in arms:
        alone, beside = (times_of(results, find_cell(results, arm, "join", count)) for count in (0, busiest))
        if alone is None or beside is None or not busiest:
            continue
        if beside.late:
            yield (f"{arm.title}: beside {busiest} CPU threads, {beside.late} of {beside.signals} signals did not "
                   f"reach a main thread blocked in join within {format_seconds(beside.limit)}: the claim of 2009 is "
                   "seen here.")
            continue
        reached.append(arm)
        yield (f"{arm.title}: Ctrl-C reaches a main thread blocked in join after {format_seconds(alone.typical)}, "
               f"beside {busiest} CPU threads after {format_seconds(beside.typical)} (slowest "
               f"{format_seconds(beside.worst)}).")
    if reached:
        yield _why_reached(reached)


def _why_reached(arms: Sequence[Arm]) -> str:
    text = "The claim of 2009 no longer holds: since 3.2 a signal ends the wait for a lock."
    if not all(arm.free_threaded for arm in arms):
        text += (" With the GIL, the main thread then asks for it and gets it within the switch interval of "
                 f"{format_seconds(SWITCH_INTERVAL)}, or later where others wait for it too.")
    if any(arm.free_threaded for arm in arms):
        text += " Without the GIL it just runs, as soon as the system gives it a core."
    return text


def on_missed(results: Results, arms: Sequence[Arm]) -> Iterator[str]:
    """Yield what becomes of signals that come while the wait for a lock begins, where some are missed."""
    counts = [count for doing, count in rows_of(results, WAITING) if doing == AT_ONCE]
    missing = []
    for arm in arms:
        known = (times_of(results, find_cell(results, arm, AT_ONCE, count)) for count in counts)
        found = [times for times in known if times is not None]
        if late := sum(each.late for each in found):
            missing.append(arm)
            yield (f"{arm.title}: {late} of {sum(each.signals for each in found)} signals that came while the main "
                   "thread began to wait for a lock, beside CPU threads, were not handled within "
                   f"{format_seconds(max(each.limit for each in found))}.")
    if missing:
        text = ("So something of 2009 is left: a signal ends the wait only when the thread sleeps already; one that "
                "comes between the last look and the sleep is seen when the next signal comes.")
        if any(arm.free_threaded for arm in missing):
            text += (" Without the GIL that time is long, as a lock first yields its core up to 40 times before it "
                     "sleeps.")
        yield text


def on_calls(results: Results, arms: Sequence[Arm]) -> Iterator[str]:
    """Yield what a C call that looks for no signals delays, in the main thread and in another one."""
    told: list[tuple[Arm, Times, Times, Times | None]] = []
    for arm in arms:
        own, beside, same = (times_of(results, find_cell(results, arm, doing, 0))
                             for doing in ("calls", "beside-calls", "same-list"))
        if own is None or beside is None or own.late or beside.late:
            continue
        told.append((arm, own, beside, same))
        sorting = "" if same is None else (
            f", {format_seconds(same.typical)} while it wants to write to a list that another thread sorts")
        yield (f"{arm.title}: in a C call of about {call_text(results)} that looks for no signals, Ctrl-C waits "
               f"{format_seconds(own.typical)} (slowest {format_seconds(own.worst)}); beside such a call in another "
               f"thread {format_seconds(beside.typical)}{sorting}.")
    if told:
        yield _why_late(told)


def _why_late(told: Sequence[tuple[Arm, Times, Times, Times | None]]) -> str:
    """Say only those reasons that the numbers of all arms bear out."""
    text = "Only the main thread handles signals, between two instructions: a C call delays them to its end."
    with_gil = [beside.typical > SHORT * own.typical for arm, own, beside, _ in told if not arm.free_threaded]
    without = [beside.typical < SHORT * own.typical for arm, own, beside, _ in told if arm.free_threaded]
    locked = [same.typical > SHORT * own.typical for arm, own, _, same in told if arm.free_threaded and same]
    if with_gil and all(with_gil):
        text += " One in another thread does so, too, as it holds the GIL."
    if without and all(without):
        text += " Without the GIL, one in another thread does not matter"
        if locked and all(locked):
            text += ", unless it holds a lock that the main thread needs: that wait does not end for a signal"
        text += "."
    return text
