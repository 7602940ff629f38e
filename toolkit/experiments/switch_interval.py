"""`switch-interval`: what it costs threads to hand the GIL over more often than every 5 ms."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, override

from toolkit.experiments.base import Effort, Experiment, Level, sorted_out
from toolkit.experiments.countdown import SKVORTSOV
from toolkit.report.document import Column, Entry, Ratio, Table
from toolkit.report.figure import Axis as ValueAxis
from toolkit.report.figure import LineFigure, LinePanel, Rule, Series, seconds_axis
from toolkit.report.footnotes import Footnotes
from toolkit.report.wording import ratio_number
from toolkit.units import parse_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.experiments.base import Setting
    from toolkit.experiments.results import Results
    from toolkit.measure.plan import Plan
    from toolkit.model import Build, Cell
    from toolkit.report.document import Section, Value
    from toolkit.report.figure import Figure
    from toolkit.stats.paired import Comparison

DEFAULT = "5ms"  # sys.getswitchinterval() of every CPython since 3.2
SHORTEST = "1us"  # the finest that CPython keeps
FINE = "1ns"  # the timer slack that leaves an interval as short as it was asked for
USUAL_SLACK = "50 us"  # of Linux, prctl(2): PR_SET_TIMERSLACK
HOLDS = 2  # a slow-down within this factor of the one of 2021 is called the same

INTERVALS = {
    Effort.SMOKE: (DEFAULT, SHORTEST),
    Effort.QUICK: ("100ms", DEFAULT, "100us", "10us", SHORTEST),
    Effort.FULL: ("100ms", "10ms", DEFAULT, "1ms", "100us", "10us", SHORTEST),
}
UNCHANGING = (DEFAULT, SHORTEST)  # enough where nobody waits for a GIL, unless everything is asked for
FINE_CELLS = {
    Effort.SMOKE: ((SHORTEST, 2),),
    Effort.QUICK: ((SHORTEST, 8),),
    Effort.FULL: (("10us", 8), (SHORTEST, 2), (SHORTEST, 8)),
}
THREADS = {Effort.SMOKE: (2,), Effort.QUICK: (2, 8), Effort.FULL: (1, 2, 4, 8)}

SOURCE = replace(
    SKVORTSOV, headline="6.9 s with one thread, 86 s with 8 threads at a switch interval of 1 us (on macOS)"
)
# Seconds for 100,000,000 decrements by interval, for 1, 2, 4 and 8 threads: the article's table.
THEN = {
    "100ms": {1: 7.29, 2: 6.80, 4: 6.50, 8: 6.61},
    "10ms": {1: 6.62, 2: 6.61, 4: 7.15, 8: 6.71},
    "5ms": {1: 6.53, 2: 6.58, 4: 7.20, 8: 7.19},
    "1ms": {1: 7.02, 2: 7.36, 4: 7.56, 8: 7.12},
    "100us": {1: 6.77, 2: 9.20, 4: 9.36, 8: 9.84},
    "10us": {1: 6.68, 2: 12.29, 4: 19.15, 8: 30.53},
    "1us": {1: 6.89, 2: 17.16, 4: 31.68, 8: 86.44},
}


class SwitchInterval(Experiment):
    """The second table of the 2021 article."""

    name = "switch-interval"
    title = "Switch interval: the price of handing the GIL over more often"
    summary = "the countdown in 1, 2, 4 and 8 threads at switch intervals from 0.1 s down to 1 us"
    sources = (SOURCE,)
    claim = (
        "In 2021 the interval made no difference down to 1 ms; below, every hand-over cost more than it gave: with 8 "
        "threads 100,000,000 decrements took 86 s at 1 us, against 6.9 s with one."
    )
    program = "switch_interval"
    levels = {  # noqa: RUF012 - never changed
        Effort.SMOKE: Level(rounds=1, seconds=5, scales={"count": 200_000}),
        Effort.QUICK: Level(rounds=5, seconds=45, scales={"count": 5_000_000}),
        Effort.FULL: Level(rounds=5, seconds=2400, scales={"count": 100_000_000}),
    }
    timeout = 300.0  # 100,000,000 decrements at 1 us with a fine timer

    @override
    def plan(self, setting: Setting) -> Plan:
        return sorted_out(cell for build in setting.builds for cell in self._cells(setting, build))

    def _cells(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        yield self.cell(build, "serial", 1), None
        for model in setting.threads(build, control=setting.full()):
            reason = setting.runner_reason(build, model)
            for interval in _intervals(setting, model):
                for count in THREADS[setting.effort]:
                    yield self.cell(build, model, count, interval=interval), reason
        if not build.free_threaded:
            for interval, count in FINE_CELLS[setting.effort]:
                yield self.cell(build, "threads", count, interval=interval, slack=FINE), _no_slack()

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        arms = list(_arms(results))
        return (
            *(_seconds(results, build, model) for build, model in arms),
            *(_ratios(results, build, model) for build, model in arms),
        )

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        return tuple(sentence for build in results.builds for sentence in _findings(results, build))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        panels = [_panel(results, build, model) for build, model in _arms(results)]
        return (
            LineFigure(
                name=self.name, title="Countdown: time in threads relative to none, by switch interval",
                x=seconds_axis("switch interval", log=True),
                y=ValueAxis("time in threads / sequential (1 = no gain, lower is better)", log=True,
                            ticks=tuple((each, f"{each:g}") for each in (0.5, 1.0, 2.0, 5.0, 10.0))),
                panels=tuple(panel for panel in panels if panel.series),
                note=f"fine timer: timed waits end within {FINE}, not within Linux's usual "
                f"{USUAL_SLACK}; 2021 was measured on macOS.",
            ),
        )


def _intervals(setting: Setting, model: str) -> tuple[str, ...]:
    every = INTERVALS[setting.effort]
    return every if model == "threads" or setting.full() else UNCHANGING


def _no_slack() -> str | None:
    return None if sys.platform == "linux" else "only Linux lets a process choose how late its timers may be"


def _arms(results: Results) -> list[tuple[Build, str]]:
    """Return the builds with the names under which threads ran in them, in the order of the tables."""
    return [
        (build, model)
        for build in results.builds
        for model in dict.fromkeys(cell.runner for cell in results.cells(build=build.label) if cell.runner != "serial")
    ]


def _rows(results: Results, build: Build, model: str) -> list[dict[str, str]]:
    """Return the parameters that cells of the arm have, each once, in the order of the plan."""
    found = [dict(cell.parameters) for cell in results.cells(build=build.label, runner=model)]
    return [each for place, each in enumerate(found) if each not in found[:place]]


def _counts(results: Results, build: Build, model: str) -> list[int]:
    return sorted({cell.workers for cell in results.cells(build=build.label, runner=model)})


def _row_name(parameters: dict[str, str]) -> str:
    number = parameters["interval"].rstrip("mus")
    name = f"{number} {parameters['interval'].removeprefix(number)}"
    return f"{name}, fine timer" if "slack" in parameters else name


def _serial(results: Results, build: Build) -> Cell | None:
    return results.find(build=build.label, runner="serial", workers=1)


def _seconds(results: Results, build: Build, model: str) -> Table:
    """Return the wall times, beside those of 2021; they do not depend on the interval where there are no threads."""
    notes, counts = Footnotes(), _counts(results, build, model)
    then = sorted({1, *counts})
    columns = [Column(title="switch interval", key=True), Column(title="no threads", group="now")]
    columns += [Column(title=_threads(count), group="now") for count in counts]
    columns += [Column(title=_threads(count), group="2021") for count in then]
    rows = []
    for row in _rows(results, build, model):
        serial = _serial(results, build) if row == {"interval": DEFAULT} else None
        cells = [results.find(build=build.label, runner=model, workers=count, **row) for count in counts]
        rows.append((
            Entry(_row_name(row)),
            *(results.entry(cell, results.duration, notes) for cell in (serial, *cells)),
            *(_then_seconds(row, count) for count in then),
        ))
    return Table(title=f"{build.label}, {model}: wall time of the whole count", columns=tuple(columns),
                 rows=tuple(rows), footnotes=notes.texts())


def _then_seconds(row: dict[str, str], count: int) -> Entry:
    return Entry() if "slack" in row else Entry(f"{THEN[row['interval']][count]:.2f} s")


def _ratios(results: Results, build: Build, model: str) -> Table:
    """Return how many times faster threads are than none, beside the same of 2021."""
    notes, counts = Footnotes(), _counts(results, build, model)
    then = [count for count in counts if count > 1]
    columns = [Column(title="switch interval", key=True)]
    columns += [Column(title=_threads(count), group="now") for count in counts]
    columns += [Column(title=_threads(count), group="2021") for count in then]

    def shown(cell: Cell) -> Value | None:
        found = results.compare(_serial(results, build), cell)
        return None if found is None else Ratio(found)

    rows = []
    for row in _rows(results, build, model):
        cells = [results.find(build=build.label, runner=model, workers=count, **row) for count in counts]
        rows.append((
            Entry(_row_name(row)),
            *(results.entry(cell, shown, notes) for cell in cells),
            *(_then_ratio(row, count) for count in then),
        ))
    return Table(title=f"{build.label}, {model}: speed-up, sequential / threads", columns=tuple(columns),
                 rows=tuple(rows), footnotes=notes.texts())


def _then_ratio(row: dict[str, str], count: int) -> Entry:
    times = THEN[row["interval"]]
    return Entry() if "slack" in row else Entry(f"{ratio_number(times[1] / times[count])}x")


def _panel(results: Results, build: Build, model: str) -> LinePanel:
    series = [
        each
        for fine in (False, True)
        for count in _counts(results, build, model)
        if (each := _line(results, build, model, count, fine=fine)) is not None
    ]
    if series and model == "threads":
        counts = [count for count in _counts(results, build, model) if count > 1]
        series += [_then_line(count) for count in counts[-1:]]
    return LinePanel(f"{build.label}, {model}", tuple(series), rules=(Rule(1.0, "sequential", "y"),))


def _line(results: Results, build: Build, model: str, count: int, *, fine: bool) -> Series | None:
    points: list[tuple[float, Comparison]] = []
    for cell in results.cells(build=build.label, runner=model, workers=count):
        found = results.compare(_serial(results, build), cell)
        if found is not None and ("slack" in dict(cell.parameters)) is fine:
            points.append((parse_seconds(dict(cell.parameters)["interval"]), found))
    if not points:
        return None
    points.sort(key=lambda point: point[0])
    return Series(
        _line_name(count, fine=fine), tuple(x for x, _ in points), tuple(1 / each.ratio for _, each in points),
        lo=tuple(1 / each.hi for _, each in points), hi=tuple(1 / each.lo for _, each in points),
    )


def _line_name(count: int, *, fine: bool) -> str:
    return f"{_threads(count)}, fine timer" if fine else _threads(count)


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def _then_line(count: int) -> Series:
    points = sorted((parse_seconds(interval), times[count] / times[1]) for interval, times in THEN.items())
    return Series(f"{_threads(count)}, 2021", tuple(x for x, _ in points), tuple(y for _, y in points),
                  style="history")


def _findings(results: Results, build: Build) -> Iterator[str]:
    model = "free-threaded" if build.free_threaded else "threads"
    counts = [count for count in _counts(results, build, model) if count > 1]
    if not counts:
        return
    most = counts[-1]

    def against_none(**parameters: str) -> Comparison | None:
        cell = results.find(build=build.label, runner=model, workers=most, **parameters)
        return results.compare(_serial(results, build), cell)

    usual, short = against_none(interval=DEFAULT), against_none(interval=SHORTEST)
    if usual is None or short is None or "unknown" in {usual.verdict(), short.verdict()}:
        return
    if build.free_threaded:
        yield _free_threaded(build, most, usual, short)
        return
    yield _with_gil(build, most, usual, short)
    if (fine := against_none(interval=SHORTEST, slack=FINE)) is not None:
        yield _with_fine_timer(build, most, short, fine)


def _free_threaded(build: Build, most: int, usual: Comparison, short: Comparison) -> str:
    return (
        f"{build.label}: {most} threads take {_times(usual)} the time of none at 5 ms and {_times(short)} at 1 us: "
        "nobody waits for a GIL here, so nobody asks for it after an interval either."
    )


def _with_gil(build: Build, most: int, usual: Comparison, short: Comparison) -> str:
    then = THEN[SHORTEST][most] / THEN[SHORTEST][1]
    verdict = "the claim holds" if 1 / short.ratio > then / HOLDS else "the claim does not hold here as it stands"
    return (
        f"{build.label}: {most} threads take {_times(usual)} the time of none at 5 ms and {_times(short)} at 1 us, "
        f"where it was {ratio_number(then)} times in 2021: {verdict}."
    )


def _with_fine_timer(build: Build, most: int, short: Comparison, fine: Comparison) -> str:
    """Say why: below Linux's timer slack an interval is not shorter than it, whatever was asked for."""
    text = f"{build.label}: with timers that end on time, {most} threads take {_times(fine)} the time of none at 1 us"
    if 1 / fine.hi <= 1 / short.lo:
        return f"{text}: the timer is not what separates this machine from the one of 2021."
    return (
        f"{text}. So the price of 2021 is still there; Linux does not charge it because a thread that waits for the "
        f"GIL sleeps at least {USUAL_SLACK} (the timer slack), however short the interval."
    )


def _times(comparison: Comparison) -> str:
    return f"{ratio_number(1 / comparison.ratio)} times"
