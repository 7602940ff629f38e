"""What became of Beazley's "never", in sentences that follow the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.experiments.signals_times import AT_ONCE, WAITING, call_text, find_cell, rows_of, times_of
from toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.experiments.arms import Arm
    from toolkit.experiments.results import Results

SWITCH_INTERVAL = 0.005   # seconds, the default, which the measured processes keep
SHORT = 0.2   # below this share of another wait, one is not of its kind


def findings(results: Results, arm: Arm) -> Iterator[str]:
    """Yield what can be said of one arm: nothing of what was not measured."""
    yield from _on_blocked(results, arm)
    yield from _on_late(results, arm)
    yield from _on_calls(results, arm)


def _on_blocked(results: Results, arm: Arm) -> Iterator[str]:
    """Say how long a blocked main thread takes beside the most CPU threads."""
    busiest = max((count for doing, count in rows_of(results, WAITING) if doing == "join"), default=0)
    alone, beside = (times_of(results, find_cell(results, arm, "join", count)) for count in (0, busiest))
    if alone is None or beside is None or not busiest:
        return
    if beside.late:
        yield (f"{arm.title}: beside {busiest} CPU threads, {beside.late} of {beside.signals} signals did not reach a "
               f"main thread blocked in join within {format_seconds(beside.limit)}: the claim of 2009 is seen here.")
        return
    text = (f"{arm.title}: Ctrl-C reaches a main thread blocked in join after {format_seconds(alone.typical)}, beside "
            f"{busiest} CPU threads after {format_seconds(beside.typical)} (slowest {format_seconds(beside.worst)}); "
            "in 2009 never. Since 3.2 a signal ends the wait for a lock;")
    if arm.free_threaded:
        yield f"{text} without a GIL the main thread then just runs, as soon as the system gives it a core."
    else:
        yield (f"{text} the main thread then asks for the GIL, which it gets within the switch interval of "
               f"{format_seconds(SWITCH_INTERVAL)}, or later where others wait for it too.")


def _on_late(results: Results, arm: Arm) -> Iterator[str]:
    """Say what becomes of a signal that comes while the wait begins."""
    counts = [count for doing, count in rows_of(results, WAITING) if doing == AT_ONCE]
    known = (times_of(results, find_cell(results, arm, AT_ONCE, count)) for count in counts)
    found = [times for times in known if times is not None]
    late, signals = sum(each.late for each in found), sum(each.signals for each in found)
    if not late:
        return
    text = (f"{arm.title}: something of 2009 is left: {late} of {signals} signals that came while the main thread "
            f"began to wait for a lock were not handled within {format_seconds(max(each.limit for each in found))}. A "
            "signal ends the wait only when the thread sleeps already; one that comes between the last look and the "
            "sleep is seen when the next signal comes.")
    if arm.free_threaded:
        text += (" Without the GIL a lock first yields its core 40 times before it sleeps, which beside busy cores "
                 "takes tens of milliseconds.")
    yield text


def _on_calls(results: Results, arm: Arm) -> Iterator[str]:
    """Say what a C call that looks for no signals delays."""
    own, beside, same = (times_of(results, find_cell(results, arm, doing, 0))
                         for doing in ("calls", "beside-calls", "same-list"))
    if own is None or beside is None or own.late or beside.late:
        return
    call = call_text(results)
    text = (f"{arm.title}: a C call of {call} that looks for no signals keeps Ctrl-C waiting to its end, from "
            f"moments all over it {format_seconds(own.typical)}, slowest {format_seconds(own.worst)}.")
    text += f" In another thread, the same call costs {format_seconds(beside.typical)}"
    if beside.typical > SHORT * own.typical:
        text += ", as it holds the GIL" if not arm.free_threaded else ""
    elif arm.free_threaded:
        text += ", as there is no GIL to wait for"
    if arm.free_threaded and same is not None and same.typical * SHORT > beside.typical:
        text += (f"; where it holds the lock of a list that the main thread wants to write to, it costs "
                 f"{format_seconds(same.typical)}, as that wait does not end for a signal")
    yield f"{text}."
