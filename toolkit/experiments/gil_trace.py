"""`gil-trace`: how the lock changes hands, with every wait counted and drawn."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.base import Effort, Experiment, Level, sorted_out
from gilscope.toolkit.experiments.intervals import SECONDS as INTERVAL
from gilscope.toolkit.experiments.results import shown_duration, shown_quantity
from gilscope.toolkit.experiments.sources import BEAZLEY
from gilscope.toolkit.gil import preload
from gilscope.toolkit.gil.chrome import NAMES
from gilscope.toolkit.gil.records import Kind
from gilscope.toolkit.report.document import Column, Entry, Lines, Share, Table
from gilscope.toolkit.report.figure import Lane, TimelineFigure, TimelinePanel, seconds_axis
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.wording import quantity_text
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from gilscope.toolkit.experiments.base import Setting
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.measure.plan import Plan
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Value
    from gilscope.toolkit.report.figure import Figure

    Show = Callable[[Cell], Value | None]

SOURCE = replace(
    BEAZLEY,
    headline="hundreds of failed attempts before a thread gets the GIL; 3.3 million system calls on one CPU and 9.5 "
    "million on two for 2 threads that count down from 100,000,000",
)
WORKS = {
    "cpu": "2 CPU threads", "io": "I/O beside a CPU thread", "lock": "2 threads, one Lock",
    "list": "2 threads, one list",
}
EXCERPT = 0.06            # seconds of the trace that the picture shows: a dozen switch intervals
PARKED_EXCERPT = 0.001    # of threads that are parked for microseconds
OFTEN = 0.5               # waits for each request from which on they make its time
MANY_FAILED = 100         # tries in vain for each handover from which one may speak of 2009's hundreds
WORKERS = ("CPU", "I/O")  # what the program calls the threads that do the work
RUNS = "runs, or could run"


class GilTrace(Experiment):
    """Beazley's traces of a lock that is fought for."""

    name = "gil-trace"
    title = "GIL trace: how the lock changes hands"
    summary = "waits for the GIL, handovers, tries in vain, system calls; parked threads where there is no GIL"
    sources = (SOURCE,)
    claim = (
        "Beazley traced in 2009 how a thread that is signalled after every 100 ticks finds the GIL taken again, "
        "hundreds of times in a row, and counted millions of system calls that did nothing else."
    )
    program = "gil_trace"
    levels = {  # noqa: RUF012 - never changed
        Effort.SMOKE: Level(rounds=1, seconds=8, scales={"cpu": 5e6, "lock": 4e4, "list": 4e4, "seconds": 0.1}),
        Effort.QUICK: Level(rounds=3, seconds=25, scales={"cpu": 12e6, "lock": 8e5, "list": 6e5, "seconds": 0.5}),
        Effort.FULL: Level(rounds=8, seconds=300, scales={"cpu": 1e8, "lock": 5e6, "list": 3e6, "seconds": 5}),
    }

    @override
    def plan(self, setting: Setting) -> Plan:
        missing = preload.unavailable()

        def cells() -> Iterator[tuple[Cell, str | None]]:
            for build in setting.builds:
                for model in setting.threads(build, control=setting.full()):
                    for work in WORKS:
                        cell = self.cell(build, model, 2, work=work)
                        yield cell, missing or setting.runner_reason(build, model)

        return sorted_out(cells())

    @override
    def environment(self, cell: Cell) -> dict[str, str]:
        return preload.environment(all_holds=True)

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        return (_waits(results), _parks(results), COUNTED)

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        return tuple(sentence for build in results.builds for sentence in _findings(results, build))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        return tuple(figure for figure in (_gil_figure(results), _parked_figure(results)) if figure.panels)


X = seconds_axis("time since the start of the stretch shown")
COUNTED = Lines("What is counted", (
    "A wait lasts from when a thread finds the GIL taken to when it has it.",
    "A try in vain is a wake-up, or the end of a switch interval, that finds it taken still.",
    "System calls: one for each try, each wake-up of a waiting thread, each yield; not the program's own.",
    "Nor those of the C library's mutexes around the GIL, which strace shows to be about as many again.",
    "Waiting for each other: parked for a lock or an object, or yielding the CPU until one is free.",
))


def _has_gil(cell: Cell) -> bool:
    return cell.runner == "threads"


def _cells(results: Results) -> list[Cell]:
    """Return the cells in the order of the tables: by work, then as planned."""
    return [cell for work in WORKS for cell in results.cells(work=work)]


def _work(cell: Cell) -> str:
    return dict(cell.parameters)["work"]


def _arm(results: Results, cell: Cell) -> str:
    free = next(build.free_threaded for build in results.builds if build.label == cell.build)
    return f"{cell.build}, GIL on" if free and _has_gil(cell) else cell.build


def _share(results: Results, name: str) -> Show:
    def show(cell: Cell) -> Value | None:
        found = results.metric(cell, name)
        return None if found is None else Share(found.center)

    return show


def _seconds(results: Results, name: str) -> Show:
    return lambda cell: shown_duration(results.metric(cell, name))


def _number(results: Results, name: str, unit: str = "") -> Show:
    return lambda cell: shown_quantity(results.metric(cell, name), unit)


def _value(results: Results) -> Show:
    """Show what the work took: requests a second, or the time of the whole."""
    return lambda cell: results.rate(cell) if _work(cell) == "io" else results.duration(cell)


def _table(results: Results, title: str, cells: list[Cell], columns: dict[str, Show], then: list[str] | None) -> Table:
    notes = Footnotes()
    heads = [Column(title="work", key=True, align="left"), Column(title="build", key=True, align="left")]
    heads += [Column(title=each) for each in columns]
    rows = [
        (Entry(WORKS[_work(cell)]), Entry(_arm(results, cell)),
         *(results.entry(cell, show, notes) for show in columns.values()))
        for cell in cells
    ]
    if then is not None:
        rows.append((Entry(WORKS["cpu"]), Entry("2009: Python 2.6"), *map(Entry, then)))
    return Table(title=title, columns=tuple(heads), rows=tuple(rows), footnotes=notes.texts())


def _waits(results: Results) -> Table:
    columns = {
        "time or rate": _value(results), "waits": _number(results, "waits"), "waiting": _share(results, "waited"),
        "longest": _seconds(results, "longest"), "tries in vain": _number(results, "failed"),
        "handovers": _number(results, "handovers", "/s"), "system calls": _number(results, "calls", "/s"),
    }
    cells = [cell for cell in _cells(results) if _work(cell) in {"cpu", "io"}]
    then = ["45.5 s", "-", "-", "-", "hundreds in a row", "-", "9.5 million in all"]
    return _table(results, "Waits for the GIL", cells, columns, then)


def _parks(results: Results) -> Table:
    columns = {
        "time": _value(results), "waiting for the GIL": _share(results, "waited"),
        "for each other": _share(results, "blocked"), "parked": _number(results, "parks"),
        "yields": _number(results, "yields"), "system calls": _number(results, "calls", "/s"),
    }
    cells = [cell for cell in _cells(results) if _work(cell) in {"lock", "list"}]
    return _table(results, "Threads that wait for what they share", cells, columns, None)


def _find(results: Results, build: Build, work: str) -> Cell | None:
    model = "free-threaded" if build.free_threaded else "threads"
    return results.find(build=build.label, runner=model, workers=2, work=work)


def _center(results: Results, cell: Cell | None, name: str) -> float | None:
    found = results.metric(cell, name)
    return None if found is None else found.center


def _findings(results: Results, build: Build) -> Iterator[str]:
    if build.free_threaded:
        yield from _on_parking(results, build)
    else:
        yield from _on_cpu(results, build)
        yield from _on_io(results, build)


def _on_cpu(results: Results, build: Build) -> Iterator[str]:
    cell = _find(results, build, "cpu")
    names = ("waits", "waited", "longest", "failed", "handovers", "calls", "lasted")
    waits, waited, longest, failed, handovers, calls, lasted = (_center(results, cell, name) for name in names)
    if not waits or waited is None or longest is None or failed is None or not handovers or calls is None or not lasted:
        return
    in_vain = failed / waits
    text = (f"{build.label}: two CPU threads spend {waited:.0%} of their time waiting for the GIL, at most "
            f"{format_seconds(longest)} at once; it changes hands {handovers:,.0f} times a second, and a wait has "
            f"{in_vain:.1f} tries in vain")
    if in_vain >= MANY_FAILED:
        yield f"{text}: the hundreds of 2009 are seen here."
        return
    yield (f"{text}. In 2009 it was hundreds: since 3.2 a thread that waits sleeps for the switch interval, then asks "
           "once, and the one that gives the GIL away waits until another has it. "
           f"All of it takes some {calls * lasted:,.0f} system calls in {format_seconds(lasted)}; in 2009 it was "
           "9.5 million in 45.5 s.")


def _on_io(results: Results, build: Build) -> Iterator[str]:
    cell = _find(results, build, "io")
    wait, waits, rate = _center(results, cell, "io-wait"), _center(results, cell, "io-waits"), (
        results.rate(cell) if cell is not None else None)
    if wait is None or waits is None or rate is None:
        return
    text = (f"{build.label}: beside one CPU thread, requests are answered at {quantity_text(rate)}; for each, the "
            f"thread that answers waits for the GIL {waits:.2g} times, {format_seconds(wait)} at a time")
    if wait > INTERVAL / 2 and waits > OFTEN:
        text += (f": it gives the GIL away with each system call, and the CPU thread lets go only after the switch "
                 f"interval of {format_seconds(INTERVAL)}, the convoy effect")
    elif waits < OFTEN:
        text += ": mostly it has the GIL back before the CPU thread, which it woke when it let go, runs on a core"
    yield f"{text}."


def _on_parking(results: Results, build: Build) -> Iterator[str]:
    cpu, shared, lock = (_find(results, build, work) for work in ("cpu", "list", "lock"))
    waits, on_list, on_lock = _center(results, cpu, "waits"), *(
        _center(results, cell, "blocked") for cell in (shared, lock))
    if waits is None or on_list is None or on_lock is None:
        return
    gil = "there is no GIL to wait for" if not waits else f"the GIL was waited for {waits:,.0f} times"
    text = (f"{build.label}: {gil}; threads wait for what they share instead: two that append to one list wait "
            f"{on_list:.0%} of their time, two that take one Lock {on_lock:.0%}. That is not all that sharing costs: "
            "what is shared also travels between the caches of the cores.")
    yield text


def _gil_figure(results: Results) -> TimelineFigure:
    states = tuple(NAMES[kind] for kind in (Kind.HOLD, Kind.WAIT, Kind.SWITCH))
    panels = [_panel(results, cell, EXCERPT, states, "") for cell in _cells(results)
              if _has_gil(cell) and _work(cell) in {"cpu", "io"}]
    return TimelineFigure(
        name="gil-trace", title="How the GIL changes hands", x=X, states=states, counted=states[0],
        panels=tuple(panel for panel in panels if panel is not None),
        note=f"{1e3 * EXCERPT:g} ms out of the latest round. Where a lane is empty the thread neither has nor "
        "wants the GIL: it waits in a system call, or for a core while it gives the GIL away.",
    )


def _parked_figure(results: Results) -> TimelineFigure:
    states = (RUNS, NAMES[Kind.PARK], NAMES[Kind.SPIN])
    panels = [_panel(results, cell, PARKED_EXCERPT, states, RUNS) for cell in _cells(results)
              if not _has_gil(cell) and _work(cell) in {"lock", "list"}]
    return TimelineFigure(
        name="gil-trace-parked", title="Without a GIL: threads wait for what they share", x=X,
        states=states, counted=RUNS, panels=tuple(panel for panel in panels if panel is not None),
        note=f"{1e3 * PARKED_EXCERPT:g} ms out of the latest round. A thread that spins yields its core until the "
        "lock is free; after 40 times it is parked.",
    )


def _panel(results: Results, cell: Cell, length: float, states: tuple[str, ...], rest: str) -> TimelinePanel | None:
    """Return the middle of the cell's trace; None where there is none.

    Args:
        results: Where its trace is kept.
        cell: What was traced.
        length: Seconds to show.
        states: Those to show.
        rest: The state between two others; "": none.
    """
    path = results.file(cell, "trace.json")
    if path is None:
        return None
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events
             if event["name"] == "thread_name" and event["args"]["name"].startswith(WORKERS)}
    spans = [event for event in events if event["ph"] == "X" and event["name"] in states and event["tid"] in lanes]
    begin = _begin(spans, length)
    if begin is None:
        return None
    shown = [
        Lane(name, _lane([event for event in spans if event["tid"] == tid], begin, length, rest))
        for tid, name in lanes.items()
    ]
    return TimelinePanel(f"{WORKS[_work(cell)]}, {_arm(results, cell)}", tuple(lane for lane in shown if lane.spans))


def _begin(spans: list[dict[str, Any]], length: float) -> float | None:
    """Return where the excerpt begins, in seconds: at the middle span's begin, or earlier when the trace ends soon."""
    if not spans:
        return None
    first, last = spans[0]["ts"] / 1e6, max(event["ts"] + event["dur"] for event in spans) / 1e6
    return float(max(first, min(spans[len(spans) // 2]["ts"] / 1e6, last - length)))


def _lane(spans: list[dict[str, Any]], begin: float, length: float, rest: str) -> tuple[tuple[float, float, str], ...]:
    """Return what lies within the excerpt, in seconds from its begin, with `rest` between where it is something."""
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
