"""Tables and figures of `channels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.base import Effort
from gilscope.toolkit.experiments.channels import cells
from gilscope.toolkit.experiments.channels.cells import PING_PONG, POLLED, SMALLEST
from gilscope.toolkit.experiments.results import shown_duration, shown_quantity
from gilscope.toolkit.report.document import Column, Duration, Entry, Table
from gilscope.toolkit.report.figures.figure import (
    Axis,
    CategoryFigure,
    CategoryPanel,
    LineFigure,
    LinePanel,
    Rule,
    Series,
    seconds_axis,
)
from gilscope.toolkit.report.figures.plots.look.palette import family
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.stats.sample import summarize
from gilscope.toolkit.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from gilscope.toolkit.experiments.channels.cells import Shape, Way
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Value
    from gilscope.toolkit.report.figures.figure import Figure
    from gilscope.toolkit.stats.sample import Summary

MIB = 1 << 20
LAPS = ("lap_p50", "lap_p99", "lap_max")
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
            shown = (results.entry(cell, show, notes) for show in (
                lambda cell: _pause(results, cell), *(_metric(results, name) for name in LAPS)))
            rows.append((Entry(build.label), Entry(way.between), Entry(way.label), *shown))
    return Table(
        title=f"Round trips of {SMALLEST} bytes", rows=tuple(rows), footnotes=notes.texts(),
        columns=(Column(title="build", key=True, align="left"), Column(title="between", key=True, align="left"),
                 Column(title="through", key=True, align="left"), Column(title="get() sleeps"), Column(title="p50"),
                 Column(title="p99"), Column(title="max")),
    )


def _pause(results: Results, cell: Cell) -> Value | None:
    """Return how long the queue's get() sleeps: a number of its source, so it has no spread."""
    found = results.metric(cell, "poll")
    return None if found is None else Duration(found.center)


def _metric(results: Results, name: str) -> Callable[[Cell], Value | None]:
    return lambda cell: shown_duration(results.metric(cell, name))


def figures(results: Results) -> tuple[Figure, ...]:
    """Return time per message over its size and over a ring's length, and messages per second of many-to-one."""
    many = [shape for shape in cells.shapes(results) if shape.pattern == "fan-in"]
    found: list[LineFigure | CategoryFigure] = [_over_sizes(results), _over_members(results)]
    found += [_many(results, shape) for shape in many[-1:]]
    return tuple(figure for figure in found if any(panel.series for panel in figure.panels))


def _over_sizes(results: Results) -> LineFigure:
    sizes = cells.sizes(results, PING_PONG)
    panels = tuple(
        LinePanel(build.label, _lines(results, build, [(float(size), PING_PONG, size) for size in sizes], _seconds),
                  _rules(results, build)) for build in results.builds)
    return LineFigure(
        name="channels", title="Ping-pong: how long a message takes from one to the other", x=_size_axis(sizes),
        y=seconds_axis("time per message", log=True), panels=panels, note=_note(results),
    )


def _over_members(results: Results) -> LineFigure:
    rings = [shape for shape in cells.shapes(results) if shape.pattern in {"ping-pong", "ring"}]
    places = [(float(shape.workers), shape, SMALLEST) for shape in rings]
    panels = tuple(LinePanel(build.label, _lines(results, build, places, _seconds), _rules(results, build))
                   for build in results.builds) if len(rings) > 1 else ()
    return LineFigure(
        name="channels-ring", title=f"A token of {SMALLEST} bytes in a ring: how long it takes from one to the next",
        x=Axis("members of the ring (number; 2: ping-pong)",
               ticks=tuple((place, f"{place:.0f}") for place, *_ in places)),
        y=seconds_axis("time per message", log=True), panels=panels, note=_note(results),
    )


def _many(results: Results, shape: Shape) -> LineFigure | CategoryFigure:
    """Return lines over sizes, or bars when there is only one."""
    sizes = cells.sizes(results, shape)
    places = [(float(size), shape, size) for size in sizes]
    title = f"{shape.workers} senders to one receiver: messages per second"
    y = Axis("messages per second (1/s)", log=True)
    if len(sizes) > 1:
        panels = tuple(LinePanel(build.label, _lines(results, build, places, _rate)) for build in results.builds)
        return LineFigure(
            name="channels-fan-in", title=title, x=_size_axis(sizes), y=y, panels=panels, note=_note(results))
    ways = [way for way in cells.ways(results, shape, sizes[0]) if way not in cells.CONTROLS]
    return CategoryFigure(
        name="channels-fan-in", title=f"{title}, {size_text(sizes[0])} each", y=y, x_title="through what",
        panels=tuple(CategoryPanel(build.label, tuple(way.label for way in ways), _dots(results, build, shape, ways))
                     for build in results.builds), note=_note(results))


def _dots(results: Results, build: Build, shape: Shape, ways: list[Way]) -> tuple[Series, ...]:
    """Return the rates of the ways, which stand side by side: one series for each model."""
    size = cells.sizes(results, shape)[0]
    found: dict[str, list[tuple[float, Cell]]] = {}
    for place, way in enumerate(ways):
        cell = cells.find(results, build, shape, size, way)
        if cell is not None:
            found.setdefault(cell.runner, []).append((float(place), cell))
    return tuple(_line(results, family(model), model, known, _rate) for model, known in found.items())


def _note(results: Results) -> str:
    """Return what an empty place stands for."""
    left_out = results.run.options.get("effort") != Effort.FULL
    return "Where there is no mark, only the full experiment measures." if left_out else ""


def _size_axis(sizes: list[int]) -> Axis:
    return Axis("length of a message (bytes)", log=True, ticks=tuple((float(size), size_text(size)) for size in sizes))


def _rules(results: Results, build: Build) -> tuple[Rule, ...]:
    for cell in results.cells(build=build.label, channel=POLLED):
        if (found := results.metric(cell, "poll")) is not None:
            return (Rule(found.center, "the queue's get() looks again", "y"),)
    return ()


def _lines(
    results: Results, build: Build, places: list[tuple[float, Shape, int]], value: Callable[[float], float],
) -> tuple[Series, ...]:
    """Return one line per way, over the places (where on the axis, shape, size) that the plan has of it."""
    lines = []
    for way in cells.WAYS:
        if way in cells.CONTROLS:
            continue  # in the tables alone: lines that lie on others
        found = [(place, cell) for place, shape, size in places
                 if (cell := cells.find(results, build, shape, size, way)) is not None]
        if found:
            model = cells.runner_of(build, way) or way.between
            lines.append(_line(results, f"{family(model)}: {way.label}", model, found, value))
    return tuple(lines)


def _line(
    results: Results, name: str, model: str, found: list[tuple[float, Cell]], value: Callable[[float], float],
) -> Series:
    known = [results.value(cell) for _, cell in found]
    nothing = float("nan")
    ends = [sorted((value(each.lo), value(each.hi))) if each else [nothing, nothing] for each in known]
    return Series(
        name, tuple(place for place, _ in found), tuple(value(each.center) if each else nothing for each in known),
        lo=tuple(lo for lo, _ in ends), hi=tuple(hi for _, hi in ends), model=model,
    )


def _seconds(seconds: float) -> float:
    return seconds


def _rate(seconds: float) -> float:
    return 1 / seconds
