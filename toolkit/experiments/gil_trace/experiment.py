"""`gil-trace`: how the lock changes hands, with every wait counted and drawn."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, override

from gilscope.toolkit.bounded_reading import RESULTS, parse_json, read_text
from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.experiments.base import BEAZLEY, EffortLevel, EffortSettings, Experiment, threads_model
from gilscope.toolkit.experiments.helpers.timers import DEFAULT_SECONDS
from gilscope.toolkit.experiments.results import as_quantity, parameter
from gilscope.toolkit.experiments.round_texts import round_ratios
from gilscope.toolkit.experiments.tables_and_figures import (
    TableBuilder,
    label_column,
    show_longest,
    show_metric,
    value_columns,
)
from gilscope.toolkit.gil import preload
from gilscope.toolkit.gil.chrome import NAMES
from gilscope.toolkit.gil.records import SpanKind
from gilscope.toolkit.records import is_number
from gilscope.toolkit.report.document import Lines, Quantity
from gilscope.toolkit.report.figures.figure import Lane, TimelineFigure, TimelinePanel, seconds_axis
from gilscope.toolkit.report.wording import number_text, quantity_text
from gilscope.toolkit.stats.sample import summarize
from gilscope.toolkit.units import format_seconds, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Any

    from gilscope.toolkit.experiments.base import PlanningContext
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.experiments.tables_and_figures import Show
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Table, Value
    from gilscope.toolkit.report.figures.figure import Figure

SOURCE = replace(
    BEAZLEY,
    headline="hundreds of failed attempts before a thread gets the GIL; 3.3 million system calls on one CPU and 9.5 "
    "million on two for 2 threads that count down from 100,000,000",
)
WORKS = {
    "cpu": "2 CPU threads", "io": "I/O beside a CPU thread", "lock": "2 threads, one Lock",
    "list": "2 threads, one list",
}
OFTEN = 0.5               # waits per request from which on they dominate its time
MANY_FAILED = 100         # failed attempts per wait that count as 2009's "hundreds"
EXCERPT = 0.06            # seconds of the trace that the figure shows: a dozen switch intervals
PARKED_EXCERPT = 0.001    # the same for threads that are parked for microseconds
WORKERS = ("CPU", "I/O")  # the program's names for the threads that do the work
RUNS = "runs, or could run"
X = seconds_axis("time since the start of the stretch shown")
COUNTED = Lines("What is counted", (
    "A wait lasts from the moment a thread finds the GIL taken until it holds it.",
    "A failed try is a wake-up, or the end of a switch interval, that finds the GIL still taken.",
    ("System calls: one for each try, each wake-up of a waiting thread and each yield, in all; the program's own do "
     "not count."),
    "Nor do those of the C library's mutexes around the GIL, of which strace shows about as many.",
    "Waiting for each other: parked for a lock or an object, or yielding the CPU until one is free.",
    "Recording: the CPU time that recording the waits took, estimated, as a share of the time. It lengthens the times.",
))


class GilTraceExperiment(Experiment):
    """Beazley's traces of a lock that is fought for."""

    name = "gil-trace"
    title = "GIL trace: how the lock changes hands"
    summary = "waits for the GIL, handovers, failed tries, system calls; parked threads where there is no GIL"
    sources = (SOURCE,)
    claim = (
        "Beazley traced in 2009 how a thread that is signalled after every 100 ticks finds the GIL taken again, "
        "hundreds of times in a row, and counted millions of system calls that did nothing else."
    )
    program = "gil_trace"
    levels = {
        EffortLevel.SMOKE: EffortSettings(
            rounds=1, seconds=8, scales={"cpu": 5e6, "lock": 4e4, "list": 4e4, "seconds": 0.1}),
        EffortLevel.QUICK: EffortSettings(
            rounds=3, seconds=25, scales={"cpu": 12e6, "lock": 8e5, "list": 6e5, "seconds": 0.5}),
        EffortLevel.FULL: EffortSettings(
            rounds=8, seconds=300, scales={"cpu": 1e8, "lock": 5e6, "list": 3e6, "seconds": 5}),
    }

    @override
    def candidates(self, context: PlanningContext, build: Build) -> Iterator[tuple[Cell, str | None]]:
        missing = preload.unavailable()
        for model in context.threads(build, control=context.full()):
            for work in WORKS:
                yield self.cell(build, model, 2, work=work), missing or context.runner_reason(build, model)

    @override
    def environment(self, cell: Cell) -> dict[str, str]:
        return preload.environment(all_holds=True)

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        return (_wait_table(results), _park_table(results), COUNTED)

    @override
    def build_findings(self, results: Results, build: Build) -> Iterator[str]:
        if build.free_threaded:
            yield from _on_parking(results, build)
        else:
            yield from _on_cpu(results, build)
            yield from _on_io(results, build)

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        return (_gil_figure(results), _parked_figure(results))


# Cells


def _cells(results: Results, *works: str) -> list[Cell]:
    return [cell for work in works for cell in results.cells(work=work)]


def _find(results: Results, build: Build, work: str) -> Cell | None:
    return results.find(build=build.label, runner=threads_model(build), workers=2, work=work)


def _has_gil(cell: Cell) -> bool:
    return cell.runner == "threads"


def _arm_text(results: Results, cell: Cell) -> str:
    """Return the cell's build, with "GIL on" where a free-threaded build ran with its GIL."""
    free = next(build.free_threaded for build in results.builds if build.label == cell.build)
    return f"{cell.build}, GIL on" if free and _has_gil(cell) else cell.build


# Tables


def _wait_table(results: Results) -> Table:
    shown = {
        "time or rate": _time_or_rate(results), "waits": _number(results, "waits"),
        "waiting": _share(results, "waited"), "longest": show_longest(results, "longest"),
        "failed tries": _number(results, "failed"), "handovers": _number(results, "handovers", "/s"),
        "system calls": _calls(results), "recording": _share(results, "overhead"),
    }
    table = _table(results, "Waits for the GIL", shown, "cpu", "io")
    table.add(WORKS["cpu"], "2009: Python 2.6", "45.5 s", "-", "-", "-", "hundreds in a row", "-", "9.5 million", "-")
    return table.build()


def _park_table(results: Results) -> Table:
    shown = {
        "time": _time_or_rate(results), "waiting for the GIL": _share(results, "waited"),
        "for each other": _share(results, "blocked"), "parked": _number(results, "parks"),
        "yields": _number(results, "yields"), "system calls": _calls(results),
        "recording": _share(results, "overhead"),
    }
    return _table(results, "Threads that wait for what they share", shown, "lock", "list").build()


def _table(results: Results, title: str, shown: dict[str, Show], *works: str) -> TableBuilder:
    table = TableBuilder(results, title, label_column("work"), label_column("build"), *value_columns(shown))
    for cell in _cells(results, *works):
        table.add(WORKS[parameter(cell, "work")], _arm_text(results, cell),
                  *(table.entry(cell, show) for show in shown.values()))
    return table


def _time_or_rate(results: Results) -> Show:
    """Return a function that shows requests a second for I/O, and the time of the whole for other work."""
    def show(cell: Cell) -> Value | None:
        return results.rate(cell) if parameter(cell, "work") == "io" else results.duration(cell)

    return show


def _share(results: Results, name: str) -> Show:
    return show_metric(results, name, lambda found: Quantity(found.center, "share"))


def _number(results: Results, name: str, unit: str = "") -> Show:
    return show_metric(results, name, lambda found: as_quantity(found, unit))


def _calls(results: Results) -> Show:
    """Return a function that shows the system calls of a whole process: some belong to its start and end alone."""
    def show(cell: Cell) -> Value | None:
        rates, lasted = results.metrics(cell, "calls"), results.metrics(cell, "lasted")
        counts = [rate * lasted[key] for key, rate in rates.items() if key in lasted]
        return as_quantity(summarize(counts), "") if counts else None

    return show


# Findings


def _on_cpu(results: Results, build: Build) -> Iterator[str]:
    cell = _find(results, build, "cpu")
    waited, handovers, calls = (results.center(cell, name) for name in ("waited", "handovers", "calls"))
    longest = results.longest(cell, "longest")
    in_vain = round_ratios(results.metrics(cell, "failed"), results.metrics(cell, "waits"))
    if waited is None or longest is None or not in_vain or not handovers or calls is None:
        return
    text = (f"{build.label}: two CPU threads spend {percent(waited)} of their time waiting for the GIL; the longest of "
            f"all waits was {format_seconds(longest.value)}. The GIL changes hands {handovers:,.0f} times a second, "
            f"and a wait has {median(in_vain):.1f} failed tries")
    if min(in_vain) >= MANY_FAILED:
        yield f"{text}: in 2009 there were hundreds, as here."
        return
    yield (f"{text}. In 2009 there were hundreds: since 3.2 a waiting thread sleeps for the switch interval, then "
           "requests the GIL once, and the thread that releases it waits until another one holds it. "
           f"All of this takes about {number_text(calls)} system calls a second, without those of mutexes; "
           "in 2009 it took 9.5 million in 45.5 s, counted otherwise.")


def _on_io(results: Results, build: Build) -> Iterator[str]:
    cell = _find(results, build, "io")
    wait, waits = results.center(cell, "io-wait"), results.center(cell, "io-waits")
    rate = None if cell is None else results.rate(cell)
    if wait is None or waits is None or rate is None:
        return
    text = (f"{build.label}: beside one CPU thread, requests are answered at {quantity_text(rate)}; for each, the "
            f"thread that answers waits for the GIL {waits:.2g} times, {format_seconds(wait)} at a time")
    if wait > DEFAULT_SECONDS / 2 and waits > OFTEN:
        text += (f": it releases the GIL with each system call, and the CPU thread gives it back only after the "
                 f"switch interval of {format_seconds(DEFAULT_SECONDS)}, the convoy effect")
    elif waits < OFTEN:
        text += ": mostly it has the GIL again before the CPU thread, which it woke by releasing it, runs on a core"
    yield f"{text}."


def _on_parking(results: Results, build: Build) -> Iterator[str]:
    waits = results.center(_find(results, build, "cpu"), "waits")
    on_list, on_lock = (results.center(_find(results, build, work), "blocked") for work in ("list", "lock"))
    if waits is None or on_list is None or on_lock is None:
        return
    gil = "there is no GIL to wait for" if not waits else f"the GIL was waited for {waits:,.0f} times"
    yield (f"{build.label}: {gil}; threads wait for what they share instead: two that append to one list wait "
           f"{percent(on_list)} of their time, two that take one Lock {percent(on_lock)}. That is not all that "
           "sharing costs: what is shared also travels between the caches of the cores.")


# Figures: an excerpt of the traces that the cells left, a lane for each thread


def _gil_figure(results: Results) -> TimelineFigure:
    """Return the holders of the GIL and the waiting threads over time; without panels if no trace was stored."""
    states = tuple(NAMES[kind] for kind in (SpanKind.HOLD, SpanKind.WAIT, SpanKind.SWITCH))
    panels = [_panel(results, cell, EXCERPT, states, "") for cell in _cells(results, "cpu", "io") if _has_gil(cell)]
    return TimelineFigure(
        name="gil-trace", title="How the GIL changes hands", x=replace(X, hi=EXCERPT), states=states,
        counted=states[0], strip="how many hold the GIL at once",
        panels=tuple(panel for panel in panels if panel is not None),
        note=f"{1e3 * EXCERPT:g} ms out of the latest round. Where a lane is empty the thread neither has nor "
        "wants the GIL: it waits in a system call, or for a core while it gives the GIL away.",
    )


def _parked_figure(results: Results) -> TimelineFigure:
    """Return the waits of threads without a GIL for a lock and a list; without panels if no trace was stored."""
    states = (RUNS, NAMES[SpanKind.PARK], NAMES[SpanKind.SPIN])
    panels = [_panel(results, cell, PARKED_EXCERPT, states, RUNS) for cell in _cells(results, "lock", "list")
              if not _has_gil(cell)]
    return TimelineFigure(
        name="gil-trace-parked", title="Without a GIL: threads wait for what they share",
        x=replace(X, hi=PARKED_EXCERPT), states=states,
        counted=RUNS, strip="how many run, or could run, at once",
        panels=tuple(panel for panel in panels if panel is not None),
        note=f"{1e3 * PARKED_EXCERPT:g} ms out of the latest round. A thread that spins yields its core until the "
        "lock is free; after 40 times it is parked.",
    )


def _panel(results: Results, cell: Cell, length: float, states: tuple[str, ...], rest: str) -> TimelinePanel | None:
    """Return the middle of the cell's trace, or None if it left none.

    Args:
        results: The run.
        cell: The traced cell.
        length: Seconds to show.
        states: The states to show.
        rest: The state between two others, "" for none.
    """
    path = results.file(cell, "trace.json")
    if path is None:
        return None
    lanes, spans = read_trace(path, states)
    begin = _excerpt_begin(spans, length)
    if begin is None:
        return None
    shown = [
        Lane(name, _lane([event for event in spans if event["tid"] == tid], begin, length, rest))
        for tid, name in lanes.items()
    ]
    title = f"{WORKS[parameter(cell, 'work')]}, {_arm_text(results, cell)}"
    return TimelinePanel(title, tuple(lane for lane in shown if lane.spans))


def read_trace(path: Path, states: Sequence[str]) -> tuple[dict[int, str], list[dict[str, Any]]]:
    """Return the names of the threads that do the work, by thread id, and their spans in `states`.

    Raises:
        BadFileError: the file is no trace as `gilscope gil --trace` writes it.
    """
    try:
        events = parse_json(read_text(path, RESULTS))["traceEvents"]
        lanes = {event["tid"]: event["args"]["name"] for event in events
                 if event["name"] == "thread_name" and event["args"]["name"].startswith(WORKERS)}
        spans = [event for event in events if event["ph"] == "X" and event["name"] in states and event["tid"] in lanes]
        timed = all(is_number(event[name]) for event in spans for name in ("ts", "dur"))
    except OSError as error:
        raise BadFileError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadFileError(f"{path} is cut off or no trace of `gil` ({type(error).__name__}: {error})") from error
    if not timed:
        raise BadFileError(f"{path} has a span without its time")
    return lanes, spans


def _excerpt_begin(spans: list[dict[str, Any]], length: float) -> float | None:
    """Return the start of the excerpt in seconds: that of the middle span, or earlier if the trace ends soon after."""
    if not spans:
        return None
    first, last = spans[0]["ts"] / 1e6, max(event["ts"] + event["dur"] for event in spans) / 1e6
    return float(max(first, min(spans[len(spans) // 2]["ts"] / 1e6, last - length)))


def _lane(spans: list[dict[str, Any]], begin: float, length: float, rest: str) -> tuple[tuple[float, float, str], ...]:
    """Return the states within the excerpt, in seconds from its start; `rest`, unless empty, fills the gaps."""
    cut = [
        (max(0.0, event["ts"] / 1e6 - begin), min(length, (event["ts"] + event["dur"]) / 1e6 - begin), event["name"])
        for event in spans
        if event["ts"] / 1e6 < begin + length and (event["ts"] + event["dur"]) / 1e6 > begin
    ]
    if not rest:
        return tuple(cut)
    filled, position = [], 0.0
    for start, end, state in sorted(cut):
        if start > position:
            filled.append((position, start, rest))
        filled.append((start, end, state))
        position = max(position, end)
    return tuple([*filled, (position, length, rest)] if position < length else filled)
