"""`switch-interval` shown: its tables and its picture, with the numbers of 2021 beside."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.results import relative_time
from gilscope.toolkit.experiments.short_switch_intervals import DEFAULT, USUAL_SLACK, row_name
from gilscope.toolkit.report.document import Column, Entry, Ratio, Table
from gilscope.toolkit.report.figures.figure import Axis, LineFigure, LinePanel, Rule, Series, seconds_axis
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.wording import ratio_number
from gilscope.toolkit.units import counted, parse_seconds

if TYPE_CHECKING:
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Value

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


def arms(results: Results) -> list[tuple[Build, str]]:
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


def counts_of(results: Results, build: Build, model: str) -> list[int]:
    """Return the numbers of threads there are, ascending."""
    return sorted({cell.workers for cell in results.cells(build=build.label, runner=model)})


def serial_of(results: Results, build: Build) -> Cell | None:
    """Return the cell that all are compared with."""
    return results.find(build=build.label, runner="serial", workers=1)


def seconds_table(results: Results, build: Build, model: str) -> Table:
    """Return the wall times, beside those of 2021; they do not depend on the interval where there are no threads."""
    notes, counts = Footnotes(), counts_of(results, build, model)
    then = sorted({1, *counts})
    columns = [Column(title="switch interval", key=True), Column(title="no threads", group="now")]
    columns += [Column(title=counted(count, "thread"), group="now") for count in counts]
    columns += [Column(title=counted(count, "thread"), group="2021") for count in then]
    rows = []
    for row in _rows(results, build, model):
        serial = serial_of(results, build) if row == {"interval": DEFAULT} else None
        cells = [results.find(build=build.label, runner=model, workers=count, **row) for count in counts]
        rows.append((
            Entry(row_name(row)),
            *(results.entry(cell, results.duration, notes) for cell in (serial, *cells)),
            *(_then_seconds(row, count) for count in then),
        ))
    return Table(title=f"{build.label}, {model}: wall time of the whole count", columns=tuple(columns),
                 rows=tuple(rows), footnotes=notes.texts())


def _then_seconds(row: dict[str, str], count: int) -> Entry:
    return Entry() if "slack" in row else Entry(f"{THEN[row['interval']][count]:.2f} s")


def ratios_table(results: Results, build: Build, model: str) -> Table:
    """Return how many times faster threads are than none, beside the same of 2021."""
    notes, counts = Footnotes(), counts_of(results, build, model)
    then = [count for count in counts if count > 1]
    columns = [Column(title="switch interval", key=True)]
    columns += [Column(title=counted(count, "thread"), group="now") for count in counts]
    columns += [Column(title=counted(count, "thread"), group="2021") for count in then]

    def shown(cell: Cell) -> Value | None:
        found = results.compare(serial_of(results, build), cell)
        return None if found is None else Ratio(found)

    rows = []
    for row in _rows(results, build, model):
        cells = [results.find(build=build.label, runner=model, workers=count, **row) for count in counts]
        rows.append((
            Entry(row_name(row)),
            *(results.entry(cell, shown, notes) for cell in cells),
            *(_then_ratio(row, count) for count in then),
        ))
    return Table(title=f"{build.label}, {model}: speed-up, sequential / threads", columns=tuple(columns),
                 rows=tuple(rows), footnotes=notes.texts())


def _then_ratio(row: dict[str, str], count: int) -> Entry:
    times = THEN[row["interval"]]
    return Entry() if "slack" in row else Entry(f"{ratio_number(times[1] / times[count])}x")


def _panel(results: Results, build: Build, model: str) -> LinePanel:
    counts = counts_of(results, build, model)
    series = [
        line for fine in (False, True) for count in counts
        if (line := _line(results, build, model, count, fine=fine)) is not None
    ]
    if model == "threads":
        series += [_then_line(count) for count in counts[-1:] if count > 1]
    return LinePanel(f"{build.label}, {model}", tuple(series), rules=(Rule(1.0, "without threads", "y"),))


def _line(results: Results, build: Build, model: str, count: int, *, fine: bool) -> Series | None:
    """Return the times of one number of threads; None where the plan has none of them."""
    points = []
    for cell in results.cells(build=build.label, runner=model, workers=count):
        if ("slack" in dict(cell.parameters)) is fine:
            found = results.compare(serial_of(results, build), cell)
            points.append((parse_seconds(dict(cell.parameters)["interval"]), *relative_time(found)))
    if not points:
        return None
    x, y, lo, hi = zip(*sorted(points), strict=True)
    return Series(_line_name(count, fine=fine), x, y, lo=lo, hi=hi)


def _line_name(count: int, *, fine: bool) -> str:
    return f"{counted(count, 'thread')}, fine timer" if fine else counted(count, "thread")




def _then_line(count: int) -> Series:
    points = sorted((parse_seconds(interval), times[count] / times[1]) for interval, times in THEN.items())
    return Series(f"{counted(count, 'thread')}, 2021", tuple(x for x, _ in points), tuple(y for _, y in points),
                  style="history")


def figure(results: Results) -> LineFigure | None:
    """Return the times in threads relative to none by interval; None when there is nothing to show."""
    panels = tuple(_panel(results, build, model) for build, model in arms(results))
    if all(isnan(y) for panel in panels for each in panel.series if each.style == "measured" for y in each.y):
        return None
    return LineFigure(
        name="switch-interval", title="Countdown: how long the same work takes in threads, by switch interval",
        x=seconds_axis("switch interval", log=True),
        y=Axis("time (1 = without threads; lower is better)", log=True,
               ticks=tuple((each, f"{each:g}") for each in (0.5, 1.0, 2.0, 5.0, 10.0))),
        panels=panels,
        note=f"fine timer: timed waits end within 1 ns, not within Linux's usual {USUAL_SLACK}; 2021 was measured on "
        "macOS.",
    )
