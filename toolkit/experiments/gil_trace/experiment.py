"""`gil-trace`: how the lock changes hands, with every wait counted and drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.base import Effort, Experiment, Level
from gilscope.toolkit.experiments.citations import BEAZLEY
from gilscope.toolkit.experiments.gil_trace.lanes import (
    WORKS,
    arm_text,
    cells_of,
    gil_figure,
    parked_figure,
    work_of,
)
from gilscope.toolkit.experiments.results import shown_duration, shown_quantity
from gilscope.toolkit.experiments.short_switch_intervals import SECONDS as INTERVAL
from gilscope.toolkit.gil import preload
from gilscope.toolkit.report.document import Column, Entry, Lines, Share, Table
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.wording import quantity_text
from gilscope.toolkit.units import format_seconds, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gilscope.toolkit.experiments.base import Setting
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Value
    from gilscope.toolkit.report.figures.figure import Figure

    Show = Callable[[Cell], Value | None]

SOURCE = replace(
    BEAZLEY,
    headline="hundreds of failed attempts before a thread gets the GIL; 3.3 million system calls on one CPU and 9.5 "
    "million on two for 2 threads that count down from 100,000,000",
)
OFTEN = 0.5               # waits for each request from which on they make its time
MANY_FAILED = 100         # tries in vain for each handover from which one may speak of 2009's hundreds


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
    def candidates(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        missing = preload.unavailable()
        for model in setting.threads(build, control=setting.full()):
            for work in WORKS:
                yield self.cell(build, model, 2, work=work), missing or setting.runner_reason(build, model)

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
        return tuple(figure for figure in (gil_figure(results), parked_figure(results)) if figure.panels)


COUNTED = Lines("What is counted", (
    "A wait lasts from when a thread finds the GIL taken to when it has it.",
    "A try in vain is a wake-up, or the end of a switch interval, that finds it taken still.",
    "System calls: one for each try, each wake-up of a waiting thread, each yield; not the program's own.",
    "Nor those of the C library's mutexes around the GIL, which strace shows to be about as many again.",
    "Waiting for each other: parked for a lock or an object, or yielding the CPU until one is free.",
))


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
    return lambda cell: results.rate(cell) if work_of(cell) == "io" else results.duration(cell)


def _table(results: Results, title: str, cells: list[Cell], columns: dict[str, Show], then: list[str] | None) -> Table:
    notes = Footnotes()
    heads = [Column(title="work", key=True, align="left"), Column(title="build", key=True, align="left")]
    heads += [Column(title=each) for each in columns]
    rows = [
        (Entry(WORKS[work_of(cell)]), Entry(arm_text(results, cell)),
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
    cells = [cell for cell in cells_of(results) if work_of(cell) in {"cpu", "io"}]
    then = ["45.5 s", "-", "-", "-", "hundreds in a row", "-", "9.5 million in all"]
    return _table(results, "Waits for the GIL", cells, columns, then)


def _parks(results: Results) -> Table:
    columns = {
        "time": _value(results), "waiting for the GIL": _share(results, "waited"),
        "for each other": _share(results, "blocked"), "parked": _number(results, "parks"),
        "yields": _number(results, "yields"), "system calls": _number(results, "calls", "/s"),
    }
    cells = [cell for cell in cells_of(results) if work_of(cell) in {"lock", "list"}]
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
    text = (f"{build.label}: two CPU threads spend {percent(waited)} of their time waiting for the GIL, at most "
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
            f"{percent(on_list)} of their time, two that take one Lock {percent(on_lock)}. That is not all that "
            "sharing costs: what is shared also travels between the caches of the cores.")
    yield text
