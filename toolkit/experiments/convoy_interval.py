"""`convoy-interval`: the convoy at other switch intervals than 5 ms; convoy's program measures it."""

from __future__ import annotations

from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.base import EffortLevel, EffortSettings, Experiment, threads_model
from gilscope.toolkit.experiments.convoy.experiment import (
    ARTICLE,
    doubtful_rates,
    is_faster,
    latency_doubts,
    percentile,
    rate_entry,
    rate_of,
    thread_arms,
)
from gilscope.toolkit.experiments.helpers.timers import (
    DEFAULT_INTERVAL,
    FINE_SLACK,
    USUAL_SLACK,
    interval_label,
    slack_reason,
)
from gilscope.toolkit.experiments.results import BuildArm
from gilscope.toolkit.experiments.round_texts import every_round, range_words, round_ratios
from gilscope.toolkit.experiments.tables_and_figures import (
    TableBuilder,
    bounded,
    key_column,
    measured_series,
    published_series,
    value_columns,
)
from gilscope.toolkit.report.figures.figure import Axis, LineFigure, LinePanel, Rule, seconds_axis
from gilscope.toolkit.report.wording import number_text
from gilscope.toolkit.units import counted, parse_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.base import PlanningContext
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Table
    from gilscope.toolkit.report.figures.figure import Figure, Series
    from gilscope.toolkit.stats.verdict import Comparison

ROSE = 2.0   # a rate that changes by less than this factor between two intervals counts as unchanged

# Numbers of CPU threads by switch interval.
GRID: dict[EffortLevel, dict[str, tuple[int, ...]]] = {
    EffortLevel.SMOKE: {DEFAULT_INTERVAL: (1,), "100us": (1,)},
    EffortLevel.QUICK: {"100ms": (1,), DEFAULT_INTERVAL: (0, 1, 4), "100us": (1, 4), "10us": (1, 4)},
    EffortLevel.FULL: dict.fromkeys(("100ms", "10ms", DEFAULT_INTERVAL, "1ms", "100us", "10us", "1us"), (0, 1, 2, 4)),
}
# The same without a GIL, where the interval has no effect.
WITHOUT_GIL: dict[EffortLevel, dict[str, tuple[int, ...]]] = {
    EffortLevel.SMOKE: {DEFAULT_INTERVAL: (1,)},
    EffortLevel.QUICK: {DEFAULT_INTERVAL: (0, 1, 4), "10us": (1,)},
    EffortLevel.FULL: GRID[EffortLevel.FULL],
}
FINE_GRID: dict[EffortLevel, dict[str, tuple[int, ...]]] = {
    EffortLevel.SMOKE: {},
    EffortLevel.QUICK: {"10us": (1,)},
    EffortLevel.FULL: {"10us": (1, 2, 4), "1us": (1, 2, 4)},
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


class ConvoyIntervalExperiment(Experiment):
    """The table of 28 cells of the 2021 article."""

    name = "convoy-interval"
    title = "Convoy: an echo server beside CPU threads, by switch interval"
    summary = "requests/s of the echo server beside 0 to 4 CPU threads at switch intervals from 0.1 s down to 1 µs"
    sources = (ARTICLE,)
    claim = (
        "In 2021 a shorter switch interval brought the requests back, from 100/s at 5 ms to 3,200/s at 100 µs and "
        "11,000/s at 10 µs beside one CPU thread; beside four CPU threads there were a quarter to a third as many."
    )
    program = "convoy"
    levels = {
        EffortLevel.SMOKE: EffortSettings(rounds=1, seconds=5, scales={
            "closed": 0.1, "open": 0.1, "least": 20, "bound": 1, "rate": 1000}),
        EffortLevel.QUICK: EffortSettings(rounds=3, seconds=50, scales={
            "closed": 0.25, "open": 0.25, "least": 5, "bound": 1.5, "rate": 2000}),
        EffortLevel.FULL: EffortSettings(rounds=5, seconds=2400, scales={
            "closed": 2, "open": 2, "least": 50, "bound": 20, "rate": 2000}),
    }
    timeout = 120.0   # two loops that run to their bounds report no progress meanwhile

    @override
    def candidates(self, context: PlanningContext, build: Build) -> Iterator[tuple[Cell, str | None]]:
        for model in context.threads(build, control=context.full()):
            grid = (WITHOUT_GIL if model == "free-threaded" else GRID)[context.effort]
            for interval, counts in grid.items():
                for count in counts:
                    yield self.cell(build, model, count, interval=interval), context.runner_reason(build, model)
        if not build.free_threaded:
            for interval, counts in FINE_GRID[context.effort].items():
                for count in counts:
                    yield self.cell(build, "threads", count, interval=interval, slack=FINE_SLACK), slack_reason()

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        arms = thread_arms(results)
        return (*(_rate_table(results, arm) for arm in arms), *(_latency_table(results, arm) for arm in arms))

    @override
    def build_findings(self, results: Results, build: Build) -> Iterator[str]:
        arm = BuildArm(build, threads_model(build))
        cells = {interval: arm.find(results, 1, interval=interval) for interval in THEN}
        rates = {interval: rate for interval, cell in cells.items() if (rate := rate_of(results, cell)) is not None}
        shortest = min(rates, key=parse_seconds, default=DEFAULT_INTERVAL)
        if DEFAULT_INTERVAL not in rates or shortest == DEFAULT_INTERVAL:   # there is nothing to compare
            return
        name, usual, short = interval_label({"interval": shortest}), rates[DEFAULT_INTERVAL], rates[shortest]
        text = (f"{build.label}: beside one CPU thread {number_text(usual)} requests/s at 5 ms, {number_text(short)} "
                f"at {name}")
        if build.free_threaded:
            yield f"{text}: {_without_gil(results.compare(cells[DEFAULT_INTERVAL], cells[shortest]))}"
            return
        yield (f"{text}; in 2021 it was {number_text(THEN[DEFAULT_INTERVAL][1])} and {number_text(THEN[shortest][1])}: "
               + _with_gil(round_ratios(results.values(cells[DEFAULT_INTERVAL]), results.values(cells[shortest]))))
        finest = arm.find(results, 1, interval=shortest, slack=FINE_SLACK)
        fine = rate_of(results, finest)
        if fine is not None and is_faster(results, finest, cells[shortest]):
            yield (f"{build.label}: Linux ends timed waits up to {USUAL_SLACK} late, so it does not keep shorter "
                   f"intervals; with a timer as fine as the interval it is {number_text(fine)} requests/s at {name} "
                   f"instead of {number_text(short)}, more {every_round(len(results.values(finest)))}.")

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        return (
            LineFigure(
                name=self.name, title="Echo server beside CPU threads: requests per second by switch interval",
                x=seconds_axis("switch interval", log=True), y=Axis("requests per second (1/s)", log=True),
                panels=tuple(_panel(results, arm) for arm in thread_arms(results)),
                whiskers=range_words(results.value(cell) for cell in results.cells()),
                note=f"fine timer: timed waits end within 1 ns, not within Linux's usual {USUAL_SLACK}; 2021 was "
                "measured on macOS. Its 0 requests at 0.1 s beside 4 CPU threads cannot be drawn."
                + doubtful_rates(results, lambda cell: f"{cell.build}, {_threads_text(cell.workers)}, "
                                 f"{interval_label(dict(cell.parameters))}"),
            ),
        )


def _with_gil(rose: list[float]) -> str:
    """Return the effect of a shorter interval where threads wait for the GIL; `rose`: the rate's factor by round."""
    if not rose or min(rose) <= ROSE < max(rose):
        return "the rounds do not agree whether a shorter interval brings requests back."
    if min(rose) > ROSE:
        return f"a shorter interval still brings requests back, {every_round(len(rose))}."
    return "a shorter interval does not bring requests back here" + (
        "; there are fewer of them." if max(rose) < 1 / ROSE else ".")


def _without_gil(found: Comparison | None) -> str:
    """Return what the interval does where no thread waits for the GIL, as surely as the numbers show it."""
    if found is None or not found.judgeable:
        return "there is no GIL to wait for; this run is too short to say whether the two differ."
    if found.differs:
        more = "more" if found.ratio > 1 else "fewer"
        return f"{more} requests, though there is no GIL to wait for; something other than the interval is the cause."
    return "no thread waits for a GIL, and no difference beyond the noise is shown."


def _rows(results: Results, arm: BuildArm) -> list[dict[str, str]]:
    """Return the distinct parameters of the arm's cells, from the longest interval down, fine timers last."""
    found = {cell.parameters for cell in arm.cells(results)}
    return sorted(map(dict, found), key=lambda row: ("slack" in row, -parse_seconds(row["interval"])))


def _threads_text(count: int) -> str:
    return "no CPU threads" if not count else counted(count, "CPU thread")


def _rate_table(results: Results, arm: BuildArm) -> Table:
    """Return requests a second by interval and number of CPU threads, beside those of 2021."""
    counts = arm.worker_counts(results)
    titles = list(map(_threads_text, counts))
    table = TableBuilder(
        results, f"{arm.title}: requests per second, closed loop", key_column("switch interval"),
        *value_columns(titles, "now", arm.build.label), *value_columns(titles, "2021: 3.9"))
    for row in _rows(results, arm):
        then = THEN[row["interval"]]
        table.add(interval_label(row),
                  *(rate_entry(results, table, arm.find(results, count, **row)) for count in counts),
                  *("" if "slack" in row else f"{number_text(then[count])}/s" for count in counts))
    return table.build()


def _latency_table(results: Results, arm: BuildArm) -> Table:
    """Return the median latency, and with a GIL how many intervals that is."""
    counts, with_gil = [count for count in arm.worker_counts(results) if count], arm.model == "threads"
    titles = list(map(_threads_text, counts))
    table = TableBuilder(
        results, f"{arm.title}: median latency in an open loop, from the time a request was due",
        key_column("switch interval"), *value_columns(titles, "p50", arm.build.label),
        *value_columns(titles if with_gil else (), "p50 / interval", arm.build.label))
    for row in _rows(results, arm):
        cells = [arm.find(results, count, **row) for count in counts]
        table.add(interval_label(row),
                  *(table.entry(cell, lambda cell: percentile(results, cell, "p50"), latency_doubts(results, cell))
                    for cell in cells),
                  *(_intervals_waited(results, cell, row) for cell in cells if with_gil))
    return table.build()


def _intervals_waited(results: Results, cell: Cell | None, row: dict[str, str]) -> str:
    p50 = results.center(cell, "p50")
    return "" if p50 is None else f"{p50 / parse_seconds(row['interval']):.1f}"


def _panel(results: Results, arm: BuildArm) -> LinePanel:
    counts = arm.worker_counts(results)
    lines = (_line(results, arm, count, fine=fine) for fine in (False, True) for count in counts)
    series = [line for line in lines if line.x]
    if series and arm.model == "threads" and not arm.build.free_threaded:
        series += [_published_line(count) for count in counts]
    return LinePanel(arm.title, tuple(series), rules=(Rule(parse_seconds(DEFAULT_INTERVAL), "default 5 ms"),))


def _line(results: Results, arm: BuildArm, count: int, *, fine: bool) -> Series:
    """Return the rates beside one number of CPU threads by interval, those with a fine timer or those without."""
    return measured_series(f"{_threads_text(count)}{', fine timer' if fine else ''}", (
        (parse_seconds(row["interval"]), bounded(results.value(cell), lambda seconds: 1 / seconds))
        for row in reversed(_rows(results, arm))
        if (cell := arm.find(results, count, **row)) is not None and ("slack" in row) is fine))


def _published_line(count: int) -> Series:
    points = ((parse_seconds(interval), float(rates[count])) for interval, rates in THEN.items() if rates[count])
    return published_series(f"{_threads_text(count)}, 2021", sorted(points))
