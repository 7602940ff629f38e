"""Tables and figures of `channels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.experiments import channels_cells as cells
from toolkit.experiments.channels_cells import PING_PONG, POLLED, SMALLEST
from toolkit.experiments.results import shown_duration, shown_quantity
from toolkit.report.document import Column, Entry, Table
from toolkit.report.figure import Axis, LineFigure, LinePanel, Rule, Series, seconds_axis
from toolkit.report.footnotes import Footnotes
from toolkit.stats.sample import summarize
from toolkit.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.experiments.channels_cells import Shape, Way
    from toolkit.experiments.results import Results
    from toolkit.model import Build, Cell
    from toolkit.report.document import Value
    from toolkit.report.figure import Figure
    from toolkit.stats.sample import Summary

MIB = 1 << 20
BULK = 64 << 10   # bytes of a message from which bytes per second say something


def tables(results: Results) -> tuple[Table, ...]:
    """Return seconds per message of rings, messages per second of many-to-one, bytes per second, and round trips."""
    rings = [shape for shape in cells.shapes(results) if shape.pattern != "fan-in"]
    many = [shape for shape in cells.shapes(results) if shape.pattern == "fan-in"]
    found = [
        _table(results, "Time per message, from one to the next", rings, 0, results.duration),
        _table(results, "Messages per second, from all senders together", many, 0, results.rate),
        _table(results, "Bytes per second", [*rings, *many], BULK, lambda cell: _bulk(results, cell)),
        _round_trips(results),
    ]
    return tuple(table for table in found if table.rows)


def _table(
    results: Results, title: str, shapes: list[Shape], least: int, show: Callable[[Cell], Value | None],
) -> Table:
    notes = Footnotes()
    rows = [
        (Entry(shape.label), Entry(size_text(size)), Entry(way.between), Entry(way.label),
         *(results.entry(cells.find(results, build, shape, size, way), show, notes) for build in results.builds))
        for shape in shapes for size in cells.sizes(results, shape) if size >= least
        for way in cells.ways(results, shape, size)
    ]
    columns = [Column(title="pattern", key=True, align="left"), Column(title="message", key=True),
               Column(title="between", key=True, align="left"), Column(title="through", key=True, align="left")]
    columns += [Column(title=build.label) for build in results.builds]
    return Table(title=title, columns=tuple(columns), rows=tuple(rows), footnotes=notes.texts())


def size_text(size: int) -> str:
    """Return "8 B", "64 KiB"."""
    return format_bytes(size).replace(".0 ", " ")


def _bulk(results: Results, cell: Cell) -> Value | None:
    size = int(dict(cell.parameters)["bytes"])
    return shown_quantity(_over(results, cell, size / MIB), " MiB/s")


def _over(results: Results, cell: Cell | None, numerator: float) -> Summary | None:
    found = results.values(cell)
    return summarize([numerator / each for each in found.values()]) if found else None


def _round_trips(results: Results) -> Table:
    """Return the spread of a round trip beside how long the queue sleeps: what polling looks like."""
    notes = Footnotes()
    rows = []
    for build in results.builds:
        for way in cells.ways(results, PING_PONG, SMALLEST):
            if (cell := cells.find(results, build, PING_PONG, SMALLEST, way)) is None:
                continue
            shown = (results.entry(cell, _metric(results, name), notes)
                     for name in ("poll", "lap_p50", "lap_p99", "lap_max"))
            rows.append((Entry(build.label), Entry(way.between), Entry(way.label), *shown))
    return Table(
        title=f"Round trips of {SMALLEST} bytes", rows=tuple(rows), footnotes=notes.texts(),
        columns=(Column(title="build", key=True, align="left"), Column(title="between", key=True, align="left"),
                 Column(title="through", key=True, align="left"), Column(title="get() sleeps"), Column(title="p50"),
                 Column(title="p99"), Column(title="max")),
    )


def _metric(results: Results, name: str) -> Callable[[Cell], Value | None]:
    return lambda cell: shown_duration(results.metric(cell, name))


def figures(results: Results) -> tuple[Figure, ...]:
    """Return time per message over its size in ping-pong, and messages per second over it in many-to-one."""
    many = [shape for shape in cells.shapes(results) if shape.pattern == "fan-in"]
    found = [
        _figure(results, "channels", PING_PONG, "Ping-pong: time from one to the other",
                seconds_axis("time per message", log=True), lambda seconds: seconds),
        *(_figure(results, "channels-fan-in", shape, f"{shape.workers} senders to one receiver",
                  Axis("messages per second (1/s)", log=True), lambda seconds: 1 / seconds) for shape in many[-1:]),
    ]
    return tuple(figure for figure in found if any(panel.series for panel in figure.panels))


def _figure(
    results: Results, name: str, shape: Shape, title: str, y: Axis, value: Callable[[float], float],
) -> LineFigure:
    sizes = cells.sizes(results, shape)
    return LineFigure(
        name=name, title=title, x=Axis("length of a message (bytes)", log=True,
                                       ticks=tuple((float(size), size_text(size)) for size in sizes)),
        y=y, panels=tuple(_panel(results, build, shape, sizes, value) for build in results.builds),
        note="A cross: no number, see the table.",
    )


def _panel(
    results: Results, build: Build, shape: Shape, sizes: list[int], value: Callable[[float], float],
) -> LinePanel:
    known = dict.fromkeys(way for size in sizes for way in cells.ways(results, shape, size)
                          if cells.find(results, build, shape, size, way) is not None)
    series = tuple(_line(results, build, shape, way, value) for way in known)
    poll = _poll(results, build) if shape == PING_PONG else None
    return LinePanel(build.label, series, () if poll is None else (Rule(poll, "get() looks again", "y"),))


def _line(results: Results, build: Build, shape: Shape, way: Way, value: Callable[[float], float]) -> Series:
    planned = [(size, cell) for size in cells.sizes(results, shape)
               if (cell := cells.find(results, build, shape, size, way)) is not None]
    nothing = float("nan")
    found = [results.value(cell) for _, cell in planned]
    ends = [sorted((value(each.lo), value(each.hi))) if each else [nothing, nothing] for each in found]
    return Series(
        f"{way.between.partition('-')[0]}: {way.label}", tuple(float(size) for size, _ in planned),
        tuple(value(each.center) if each else nothing for each in found),
        lo=tuple(lo for lo, _ in ends), hi=tuple(hi for _, hi in ends),
    )


def _poll(results: Results, build: Build) -> float | None:
    for cell in results.cells(build=build.label, channel=POLLED):
        if (found := results.metric(cell, "poll")) is not None:
            return found.center
    return None
