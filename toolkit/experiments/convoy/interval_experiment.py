"""`convoy-interval`: the convoy under other switch intervals than 5 ms; measured by the same program."""

from __future__ import annotations

from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.arms import Arm
from gilscope.toolkit.experiments.base import Effort, Experiment, Level
from gilscope.toolkit.experiments.convoy.rates_and_latencies import (
    ARTICLE,
    doubted,
    latency,
    latency_marks,
    own_first,
    rate_entry,
    rate_of,
    thread_arms,
)
from gilscope.toolkit.experiments.results import middle
from gilscope.toolkit.experiments.short_switch_intervals import DEFAULT, FINE, USUAL_SLACK, no_slack, row_name
from gilscope.toolkit.report.document import Column, Entry, Table
from gilscope.toolkit.report.figures.figure import Axis, LineFigure, LinePanel, Rule, Series, seconds_axis
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.wording import number_text
from gilscope.toolkit.units import counted, parse_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.base import Setting
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section
    from gilscope.toolkit.report.figures.figure import Figure

ROSE = 2.0              # a rate that changes less between two intervals is called the same

# CPU threads by switch interval.
GRID: dict[Effort, dict[str, tuple[int, ...]]] = {
    Effort.SMOKE: {DEFAULT: (1,), "100us": (1,)},
    Effort.QUICK: {"100ms": (1,), DEFAULT: (0, 1, 4), "100us": (1, 4), "10us": (1, 4)},
    Effort.FULL: dict.fromkeys(("100ms", "10ms", DEFAULT, "1ms", "100us", "10us", "1us"), (0, 1, 2, 4)),
}
# Where nobody waits for a GIL, unless everything is asked for.
UNCHANGING: dict[Effort, dict[str, tuple[int, ...]]] = {
    Effort.SMOKE: {DEFAULT: (1,)},
    Effort.QUICK: {DEFAULT: (0, 1, 4), "10us": (1,)},
    Effort.FULL: GRID[Effort.FULL],
}
FINE_GRID: dict[Effort, dict[str, tuple[int, ...]]] = {
    Effort.SMOKE: {},
    Effort.QUICK: {"10us": (1,)},
    Effort.FULL: {"10us": (1, 2, 4), "1us": (1, 2, 4)},
}
# Requests per second by interval, for 0, 1, 2 and 4 CPU threads: the article's table.
THEN = {
    "100ms": {0: 30_000, 1: 5, 2: 2, 4: 0},
    "10ms": {0: 30_000, 1: 50, 2: 30, 4: 15},
    "5ms": {0: 30_000, 1: 100, 2: 50, 4: 30},
    "1ms": {0: 30_000, 1: 500, 2: 280, 4: 200},
    "100us": {0: 30_000, 1: 3_200, 2: 1_700, 4: 1_000},
    "10us": {0: 30_000, 1: 11_000, 2: 5_500, 4: 2_800},
    "1us": {0: 30_000, 1: 10_000, 2: 4_500, 4: 2_500},
}


class ConvoyInterval(Experiment):
    """The table of 28 cells of the 2021 article."""

    name = "convoy-interval"
    title = "Convoy: an echo server beside CPU threads, by switch interval"
    summary = "requests/s of the echo server beside 0 to 4 CPU threads at switch intervals from 0.1 s down to 1 µs"
    sources = (ARTICLE,)
    claim = (
        "In 2021 a shorter switch interval brought the requests back nearly in proportion, from 100/s at 5 ms to "
        "11,000/s at 10 µs beside one CPU thread, and twice as many CPU threads halved them."
    )
    program = "convoy"
    levels = {  # noqa: RUF012 - never changed
        Effort.SMOKE: Level(rounds=1, seconds=5, scales={
            "closed": 0.1, "open": 0.1, "least": 20, "bound": 1, "rate": 1000}),
        Effort.QUICK: Level(rounds=3, seconds=50, scales={
            "closed": 0.25, "open": 0.25, "least": 5, "bound": 1.5, "rate": 2000}),
        Effort.FULL: Level(rounds=5, seconds=2400, scales={
            "closed": 2, "open": 2, "least": 50, "bound": 20, "rate": 2000}),
    }
    timeout = 120.0   # two loops to their bounds, with all their patience, say nothing meanwhile

    @override
    def candidates(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        for model in setting.threads(build, control=setting.full()):
            grid = (UNCHANGING if model == "free-threaded" else GRID)[setting.effort]
            for interval, counts in grid.items():
                for count in counts:
                    yield self.cell(build, model, count, interval=interval), setting.runner_reason(build, model)
        if not build.free_threaded:
            for interval, counts in FINE_GRID[setting.effort].items():
                for count in counts:
                    yield self.cell(build, "threads", count, interval=interval, slack=FINE), no_slack()

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        arms = thread_arms(results)
        return (*(_rates(results, arm) for arm in arms), *(_latencies(results, arm) for arm in arms))

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        return tuple(sentence for build in results.builds for sentence in _findings(results, build))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        panels = [_panel(results, arm) for arm in thread_arms(results)]
        if not any(results.value(cell) for cell in results.cells()):
            return ()
        return (
            LineFigure(
                name=self.name, title="Echo server beside CPU threads: requests per second by switch interval",
                x=seconds_axis("switch interval", log=True), y=Axis("requests per second (1/s)", log=True),
                panels=tuple(panels),
                note=f"fine timer: timed waits end within 1 ns, not within Linux's usual {USUAL_SLACK}; 2021 was "
                "measured on macOS. Its 0 requests at 0.1 s beside 4 CPU threads cannot be drawn."
                + doubted(((cell, _cell_name(cell)) for cell in results.cells()), results),
            ),
        )


def _rows(results: Results, arm: Arm) -> list[dict[str, str]]:
    """Return the parameters that cells of the arm have, from the longest interval down, fine timers last."""
    found = {cell.parameters for cell in results.cells(build=arm.build.label, runner=arm.model)}
    return sorted(map(dict, found), key=lambda row: ("slack" in row, -parse_seconds(row["interval"])))


def _counts(results: Results, arm: Arm) -> list[int]:
    return sorted({cell.workers for cell in results.cells(build=arm.build.label, runner=arm.model)})


def _find(results: Results, arm: Arm, count: int, row: dict[str, str]) -> Cell | None:
    return results.find(build=arm.build.label, runner=arm.model, workers=count, **row)


def _cell_name(cell: Cell) -> str:
    return f"{cell.build}, {_threads(cell.workers)}, {row_name(dict(cell.parameters))}"


def _rates(results: Results, arm: Arm) -> Table:
    """Return requests a second by interval and number of CPU threads, beside those of 2021."""
    notes, counts = Footnotes(), _counts(results, arm)
    columns = [Column(title="switch interval", key=True)]
    columns += [Column(title=_threads(count), group="now") for count in counts]
    columns += [Column(title=_threads(count), group="2021: 3.9") for count in counts]
    rows = [
        (
            Entry(row_name(row)),
            *(rate_entry(results, _find(results, arm, count, row), notes) for count in counts),
            *(Entry() if "slack" in row else _then(row, count) for count in counts),
        )
        for row in _rows(results, arm)
    ]
    return Table(title=f"{arm.title}: requests per second, closed loop", columns=tuple(columns), rows=tuple(rows),
                 footnotes=notes.texts())


def _then(row: dict[str, str], count: int) -> Entry:
    return Entry(f"{number_text(THEN[row['interval']][count])}/s")


def _threads(count: int) -> str:
    return "no CPU threads" if not count else counted(count, "CPU thread")


def _latencies(results: Results, arm: Arm) -> Table:
    """Return the median latency, and with a GIL how many intervals that is."""
    notes, counts = Footnotes(), [count for count in _counts(results, arm) if count]
    waits = arm.model == "threads"
    columns = [Column(title="switch interval", key=True)]
    columns += [Column(title=_threads(count), group="p50") for count in counts]
    columns += [Column(title=_threads(count), group="p50 / interval") for count in counts if waits]
    rows = []
    for row in _rows(results, arm):
        cells = [_find(results, arm, count, row) for count in counts]
        rows.append((
            Entry(row_name(row)),
            *(_latency(results, cell, notes) for cell in cells),
            *(_waits(results, cell, row) for cell in cells if waits),
        ))
    return Table(title=f"{arm.title}: median latency in an open loop, from the time a request was due",
                 columns=tuple(columns), rows=tuple(rows), footnotes=notes.texts())


def _latency(results: Results, cell: Cell | None, notes: Footnotes) -> Entry:
    shown = results.entry(cell, lambda each: latency(results, each, "p50"), notes)
    return shown if cell is None or results.absence(cell) else Entry(
        shown.value, shown.marks + latency_marks(results, cell, notes))


def _waits(results: Results, cell: Cell | None, row: dict[str, str]) -> Entry:
    p50 = middle(results.metrics(cell, "p50"))
    return Entry("" if p50 is None else f"{p50 / parse_seconds(row['interval']):.1f}")


def _panel(results: Results, arm: Arm) -> LinePanel:
    counts = _counts(results, arm)
    series = [each for fine in (False, True) for count in counts
              if (each := _line(results, arm, count, fine=fine)) is not None]
    if series and arm.model == "threads" and not arm.build.free_threaded:
        series += [_then_line(count) for count in counts]
    return LinePanel(arm.title, tuple(series), rules=(Rule(parse_seconds(DEFAULT), "default 5 ms"),))


def _line(results: Results, arm: Arm, count: int, *, fine: bool) -> Series | None:
    points = []
    for row in reversed(_rows(results, arm)):
        cell = _find(results, arm, count, row)
        if cell is not None and ("slack" in row) is fine:
            points.append((parse_seconds(row["interval"]), results.value(cell)))
    if not points:
        return None
    nan = float("nan")
    return Series(
        f"{_threads(count)}{', fine timer' if fine else ''}", tuple(interval for interval, _ in points),
        tuple(nan if value is None else 1 / value.center for _, value in points),
        lo=tuple(nan if value is None else 1 / value.hi for _, value in points),
        hi=tuple(nan if value is None else 1 / value.lo for _, value in points),
    )


def _then_line(count: int) -> Series:
    points = sorted((parse_seconds(interval), float(rates[count])) for interval, rates in THEN.items() if rates[count])
    return Series(f"{_threads(count)}, 2021", tuple(x for x, _ in points), tuple(y for _, y in points),
                  style="history")


def _findings(results: Results, build: Build) -> Iterator[str]:
    arm = Arm(build, own_first(build)[0])
    rates = {interval: rate for interval in THEN
             if (rate := rate_of(results, _find(results, arm, 1, {"interval": interval}))) is not None}
    if DEFAULT not in rates or len(rates) < 2:  # noqa: PLR2004 - there is nothing to compare it with
        return
    shortest = min(rates, key=parse_seconds)
    said = (f"{build.label}: beside one CPU thread {number_text(rates[DEFAULT])} requests/s at 5 ms, "
            f"{number_text(rates[shortest])} at {row_name({'interval': shortest})}")
    grew = rates[shortest] > ROSE * rates[DEFAULT]
    if build.free_threaded:
        yield (f"{said}: nobody waits for a GIL, so the interval makes no difference." if not grew else
               f"{said}: there is no GIL to wait for, so this is the machine's doing.")
        return
    yield (f"{said}; in 2021 it was {number_text(THEN[DEFAULT][1])} and {number_text(THEN[shortest][1])}: "
           + ("a shorter interval still is what brings requests back." if grew else
              "a shorter interval does not bring requests back here."))
    yield from _timer(results, arm, shortest, rates[shortest])


def _timer(results: Results, arm: Arm, shortest: str, usual: float) -> Iterator[str]:
    fine = rate_of(results, _find(results, arm, 1, {"interval": shortest, "slack": FINE}))
    if fine is None:
        return
    yield (f"{arm.build.label}: Linux ends timed waits up to {USUAL_SLACK} late, so intervals below that are not what "
           f"they say; with a timer as fine as the interval it is {number_text(fine)} requests/s at "
           f"{row_name({'interval': shortest})} instead of {number_text(usual)}.")
