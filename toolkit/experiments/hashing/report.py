"""Tables and figures of `hashing`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.hashing import cells
from gilscope.toolkit.experiments.hashing.cells import (
    HUGE,
    OBJECTS,
    SHORTEST_TASK,
    THEN,
    THEN_LABEL,
    THREADS,
)
from gilscope.toolkit.experiments.results import relative_speed
from gilscope.toolkit.report.document import Column, Entry, Ratio, Table
from gilscope.toolkit.report.figures.figure import Axis, LineFigure, LinePanel, Rule, Series
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.wording import ratio_number
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from gilscope.toolkit.experiments.arms import Arm
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Cell
    from gilscope.toolkit.report.document import Value
    from gilscope.toolkit.stats.words import Comparison




def seconds_table(results: Results) -> Table:
    """Return the wall times, and those of 2021 beside."""
    notes = Footnotes()
    arms = cells.arms(results)
    rows = []
    for size in cells.sizes(results):
        alone = (results.find(build=arm.build.label, runner="serial", workers=1, bytes=str(size))
                 if arm.free_threaded or not arm.build.free_threaded else None for arm in arms)
        serial = (results.entry(cell, results.duration, notes) for cell in alone)
        rows.append((*_key(size, "", "serial"), *serial, Entry()))
        for how, count in _threads_of(results, size):
            found = (cells.find(results, arm, size, how, count) for arm in arms)
            entries = (results.entry(cell, results.duration, notes) for cell in found)
            rows.append((*_key(size, how, str(count)), *entries, _history(size, how, count, format_seconds)))
    rows += [] if HUGE in cells.sizes(results) else [
        (*_key(HUGE, "shared", str(count)), *_left_out(arms, notes), Entry(format_seconds(seconds)))
        for count, seconds in THEN.items()
    ]
    return Table(title="Wall time of hashing the eight messages once", columns=_columns(arms), rows=tuple(rows),
                 footnotes=notes.texts())


def speedup_table(results: Results) -> Table:
    """Return how many times faster threads are than none, and what 2021 had."""
    notes = Footnotes()
    arms = cells.arms(results)
    rows = []
    for size in cells.sizes(results):
        for how, count in _threads_of(results, size):
            entries = (_speedup(results, arm, size, how, count, notes) for arm in arms)
            rows.append((*_key(size, how, str(count)), *entries, _history(size, how, count, _gain)))
    rows += [] if HUGE in cells.sizes(results) else [
        (*_key(HUGE, "shared", str(count)), *_left_out(arms, notes), Entry(_gain(seconds)))
        for count, seconds in THEN.items() if count > 1
    ]
    return Table(title="Speed-up: one after the other / threads", columns=_columns(arms), rows=tuple(rows),
                 footnotes=notes.texts())


def _columns(arms: list[Arm]) -> tuple[Column, ...]:
    year, _, version = THEN_LABEL.partition(": ")
    return (
        Column(title="message", key=True), Column(title="bytes object", key=True, align="left"),
        Column(title="threads", key=True), *(Column(title=arm.title, group="now") for arm in arms),
        Column(title=version, group=year),
    )


def _key(size: int, how: str, threads: str) -> tuple[Entry, ...]:
    return Entry(cells.size_text(size)), Entry(OBJECTS.get(how, "")), Entry(threads)


def _threads_of(results: Results, size: int) -> list[tuple[str, int]]:
    known = [cell for cell in results.cells(bytes=str(size)) if cell.runner != "serial"]
    return sorted({(dict(cell.parameters)["object"], cell.workers) for cell in known}, key=_object_then_threads)


def _object_then_threads(row: tuple[str, int]) -> tuple[int, int]:
    return list(OBJECTS).index(row[0]), row[1]


def _left_out(arms: list[Arm], notes: Footnotes) -> list[Entry]:
    marks = notes.marks(["the source's size; only the full experiment has it"])
    return [Entry("-", marks) for _ in arms]


def _history(size: int, how: str, count: int, shown: Callable[[float], str]) -> Entry:
    return Entry(shown(THEN[count])) if (size, how) == (HUGE, "shared") else Entry()


def _gain(seconds: float) -> str:
    return f"{ratio_number(THEN[1] / seconds)}x"


def _speedup(results: Results, arm: Arm, size: int, how: str, count: int, notes: Footnotes) -> Entry:
    def shown(cell: Cell) -> Value | None:
        found = results.compare(cells.baseline(results, arm, size), cell)
        return None if found is None else Ratio(found)

    cell = cells.find(results, arm, size, how, count)
    entry = results.entry(cell, shown, notes)
    short = _task_seconds(results, arm, size, cell)
    if short is None or short >= SHORTEST_TASK:
        return entry
    text = f"less than {format_seconds(SHORTEST_TASK)} of work per thread: the speed-up of short bursts may not show"
    return Entry(entry.value, (*entry.marks, *notes.marks([text])))


def _task_seconds(results: Results, arm: Arm, size: int, cell: Cell | None) -> float | None:
    """Return how long each thread would work if it had a core for itself; None where it was not measured."""
    serial = results.value(cells.baseline(results, arm, size))
    passes = results.metric(cell, "passes")
    return None if cell is None or serial is None or passes is None else serial.center * passes.center / cell.workers


def over_sizes(results: Results, count: int) -> LineFigure:
    """Return the speed-up of `count` threads over the length of a message, one object and a copy each.

    Lengths stand side by side, as on a scale 2047 and 2048 would be one place, and the step between them unseen.
    """
    sizes = cells.sizes(results)
    places = [float(place) for place in range(len(sizes))]
    panels = []
    for arm in cells.arms(results):
        series = [_line(name, places, [cells.compare(results, arm, size, how, count) for size in sizes])
                  for how, name in OBJECTS.items()]
        then = float(len({*sizes, HUGE}) - 1)
        series.append(Series(f"{THEN_LABEL}, one object", (then,), (THEN[1] / THEN[count],), style="history"))
        panels.append(LinePanel(arm.title, tuple(series), rules=(Rule(1.0, "no gain", "y"),)))
    ticks = tuple((float(place), _tick(size)) for place, size in enumerate(sorted({*sizes, HUGE})))
    return LineFigure(
        name="hashing", title=f"SHA-256 of eight messages: what {count} threads gain",
        x=Axis("length of a message (bytes; not to scale)", ticks=ticks),
        y=Axis("speed-up against no threads (x)", lo=0.0), panels=tuple(panels),
    )


def _tick(size: int) -> str:
    return cells.size_text(size).removesuffix("B").strip()


def over_threads(results: Results) -> LineFigure:
    """Return the speed-up over the number of threads, all of which hash one object."""
    counts = [count for count in THREADS if results.cells(workers=count, object="shared")]
    panels = []
    for arm in cells.arms(results):
        series = [_line(cells.size_text(size), [float(count) for count in counts], [
            cells.compare(results, arm, size, "shared", count) for count in counts]) for size in cells.sizes(results)]
        series.append(Series(f"{THEN_LABEL}, 128 MiB", tuple(float(count) for count in THEN),
                             tuple(THEN[1] / seconds for seconds in THEN.values()), style="history"))
        panels.append(LinePanel(arm.title, tuple(series), rules=(Rule(1.0, "no gain", "y"),)))
    return LineFigure(
        name="hashing-threads", title="SHA-256 of eight messages in one bytes object: what threads gain",
        x=Axis("threads (number)", log=True, ticks=tuple((float(count), str(count)) for count in THREADS)),
        y=Axis("speed-up against no threads (x)", lo=0.0), panels=tuple(panels),
    )


def _line(name: str, places: list[float], found: list[Comparison | None]) -> Series:
    ratios, lo, hi = zip(*map(relative_speed, found), strict=True)
    return Series(name, tuple(places), ratios, lo=lo, hi=hi)
