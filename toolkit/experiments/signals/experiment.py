"""`signals`: how long Ctrl-C takes until the main thread handles it."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.arms import arms_of
from gilscope.toolkit.experiments.base import Effort, Experiment, Level
from gilscope.toolkit.experiments.citations import BEAZLEY
from gilscope.toolkit.experiments.short_switch_intervals import SECONDS as SWITCH_INTERVAL
from gilscope.toolkit.experiments.signals.findings import on_blocked, on_calls, on_missed
from gilscope.toolkit.experiments.signals.times import (
    AT_ONCE,
    CALLING,
    NEVER,
    WAITING,
    call_text,
    find_cell,
    rows_of,
    times_of,
)
from gilscope.toolkit.report.document import Column, Entry, Table
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
from gilscope.toolkit.report.figures.plots.ticks import seconds_text
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.arms import Arm
    from gilscope.toolkit.experiments.base import Setting
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.experiments.signals.times import Times
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Value
    from gilscope.toolkit.report.figures.figure import Figure

SOURCE = replace(
    BEAZLEY,
    headline="never, when the main thread waits for a lock or joins a thread",
)
THEN = "2009: Python 2.6"
NOTE = "Median over rounds of each process's median. One that was not handled in time counts as the limit."
WHISKERS = "from the fastest to the slowest"

class Signals(Experiment):
    """Beazley's question why Ctrl-C does not work in a program with threads."""

    name = "signals"
    title = "Signals: how long Ctrl-C takes"
    summary = "from SIGINT to KeyboardInterrupt in the main thread: blocked, computing, in one long C call"
    sources = (SOURCE,)
    claim = (
        "Beazley showed in 2009 that Ctrl-C does nothing in a program with threads: the main thread, the only one that "
        "runs signal handlers, cannot be woken from a lock or a join, while all others try to hand the GIL to it after "
        "every single tick."
    )
    program = "signals"
    levels = {  # noqa: RUF012 - never changed
        Effort.SMOKE: Level(rounds=1, seconds=8, scales={"attempts": 2, "limit": 30, "call": 0.05}),
        Effort.QUICK: Level(rounds=3, seconds=30, scales={"attempts": 4, "limit": 2, "call": 0.1}),
        Effort.FULL: Level(rounds=6, seconds=2400, scales={"attempts": 10, "limit": 10, "call": 0.5}),
    }

    @override
    def candidates(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        for model in setting.threads(build, control=setting.full()):
            for doing, cpu_threads in _grid(setting.effort):
                cell = self.cell(build, model, cpu_threads + 1, main=doing, cpu=str(cpu_threads))
                yield cell, setting.runner_reason(build, model)

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        return (
            _table(results, WAITING, "The main thread is blocked or computes, beside threads that compute"),
            _table(results, CALLING, f"One C call of about {call_text(results)}"),
        )

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        arms = arms_of(results)
        return (*on_blocked(results, arms), *on_missed(results, arms), *on_calls(results, arms))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        pictures = (
            ("signals", "How long Ctrl-C takes to reach the main thread", WAITING,
             "what the main thread does (how many CPU threads run beside it)"),
            ("signals-c-calls", f"How long Ctrl-C takes while one C call lasts about {call_text(results)}", CALLING,
             "what the main thread does"),
        )
        dots = tuple(
            CategoryFigure(name=name, title=title, y=_axis(), panels=(panel,), note=NOTE, whiskers=WHISKERS,
                           x_title=x_title)
            for name, title, doings, x_title in pictures if (panel := _panel(results, doings)).series
        )
        return (*dots, *_by_threads(results))


def _grid(effort: Effort) -> list[tuple[str, int]]:
    """Return what the main thread does with how many CPU threads beside it."""
    if effort is Effort.SMOKE:
        return [("join", 0), ("join", 1), ("computing", 1), ("calls", 0), ("beside-calls", 0)]
    if effort is Effort.QUICK:
        return [("join", 0), ("join", 2), ("computing", 2), (AT_ONCE, 2),
                *((doing, 0) for doing in ("calls", "looking-call", "beside-calls", "same-list"))]
    return [*((doing, count) for doing in WAITING for count in (0, 1, 2, 4)), *((doing, 0) for doing in CALLING)]


def _table(results: Results, doings: dict[str, str], title: str) -> Table:
    notes, arms = Footnotes(), arms_of(results)
    columns = [Column(title="the main thread", key=True, align="left"), Column(title="CPU threads", key=True)]
    for arm in arms:
        columns += [Column(title="median", group=arm.title), Column(title="slowest", group=arm.title)]
    if doings is WAITING:
        columns.append(Column(title=THEN))

    def typical(cell: Cell) -> Value | None:
        times = times_of(results, cell)
        if times is not None and times.typical >= times.limit:
            return f"> {format_seconds(times.limit)}"
        return results.duration(cell)

    def slowest(cell: Cell) -> Value | None:
        return _slowest(times_of(results, cell))

    rows = []
    for doing, cpu_threads in rows_of(results, doings):
        cells = [find_cell(results, arm, doing, cpu_threads) for arm in arms]
        now = [results.entry(cell, show, notes) for cell in cells for show in (typical, slowest)]
        then = [Entry("never" if doing in NEVER and cpu_threads else "-")] if doings is WAITING else []
        rows.append((Entry(doings[doing]), Entry(str(cpu_threads)), *now, *then))
    return Table(title=f"Time from SIGINT to KeyboardInterrupt. {title}", columns=tuple(columns), rows=tuple(rows),
                 footnotes=notes.texts())


def _slowest(times: Times | None) -> str | None:
    if times is None:
        return None
    if times.late:
        return f"{times.late} of {times.signals} not within {format_seconds(times.limit)}"
    return format_seconds(times.worst)


def _axis() -> Axis:
    return seconds_axis("time until KeyboardInterrupt", log=True)


def _pictured(rows: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the rows that a picture has room for: each with the most CPU threads, and one without."""
    most = {doing: max(count for other, count in rows if other == doing) for doing, _ in rows}
    return [row for row in rows if row[1] == most[row[0]] or row == ("join", 0)]


def _panel(results: Results, doings: dict[str, str]) -> CategoryPanel:
    rows = _pictured(rows_of(results, doings))
    series = [_series(arm, [(float(place), times_of(results, find_cell(results, arm, *row)))
                            for place, row in enumerate(rows)]) for arm in arms_of(results)]
    rule = Rule(SWITCH_INTERVAL, f"switch interval {seconds_text(SWITCH_INTERVAL)}", "y")
    return CategoryPanel("", tuple(_category(doings, *row) for row in rows),
                    tuple(each for each in series if not all(map(isnan, each.y))),
                    rules=(rule,) if doings is WAITING else ())


def _by_threads(results: Results) -> tuple[Figure, ...]:
    """Return how it grows with the number of CPU threads, where there are enough numbers of them."""
    counts = sorted({count for doing, count in rows_of(results, WAITING) if doing == "join"})
    if len(counts) < 3:  # noqa: PLR2004 - two points are in the other picture
        return ()
    series = [
        _series(arm, [(float(count), times_of(results, find_cell(results, arm, "join", count))) for count in counts])
        for arm in arms_of(results)
    ]
    return (
        LineFigure(
            name="signals-threads", title="How long Ctrl-C takes to reach a main thread that joins another",
            x=Axis("CPU threads (number)", ticks=tuple((float(count), str(count)) for count in counts)), y=_axis(),
            panels=(LinePanel("", tuple(series)),), note=NOTE, whiskers=WHISKERS,
        ),
    )


def _series(arm: Arm, points: list[tuple[float, Times | None]]) -> Series:
    found = [times for _, times in points]
    return Series(
        arm.title, tuple(x for x, _ in points), tuple(_or_nan(each, "typical") for each in found),
        lo=tuple(_or_nan(each, "best") for each in found), hi=tuple(_or_nan(each, "worst") for each in found),
        model=arm.model,
    )


def _or_nan(times: Times | None, name: str) -> float:
    return float("nan") if times is None else float(getattr(times, name))


def _category(doings: dict[str, str], doing: str, cpu_threads: int) -> str:
    return f"{doings[doing]} ({cpu_threads})" if doings is WAITING else doings[doing]
