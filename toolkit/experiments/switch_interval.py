"""`switch-interval`: the cost of handing the GIL over more often than every 5 ms; countdown's program measures it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.base import SKVORTSOV, EffortLevel, EffortSettings, Experiment, threads_model
from gilscope.toolkit.experiments.helpers.timers import (
    DEFAULT_INTERVAL,
    FINE_SLACK,
    USUAL_SLACK,
    interval_label,
    slack_reason,
)
from gilscope.toolkit.experiments.results import BuildArm, arms_of, parameter
from gilscope.toolkit.experiments.tables_and_figures import (
    TableBuilder,
    key_column,
    measured_series,
    published_series,
    relative_time,
    value_columns,
)
from gilscope.toolkit.report.figures.figure import Axis, LineFigure, LinePanel, Rule, seconds_axis
from gilscope.toolkit.report.wording import interval_text, ratio_number
from gilscope.toolkit.units import counted, parse_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.base import PlanningContext
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Table
    from gilscope.toolkit.report.figures.figure import Figure, Series
    from gilscope.toolkit.stats.verdict import Comparison

SHORTEST = "1us"  # CPython stores the interval in microseconds
HOLDS = 2         # the claim of 2021 holds if the slow-down is within this factor of the one published

INTERVALS = {
    EffortLevel.SMOKE: (DEFAULT_INTERVAL, SHORTEST),
    EffortLevel.QUICK: ("100ms", DEFAULT_INTERVAL, "100us", "10us", SHORTEST),
    EffortLevel.FULL: ("100ms", "10ms", DEFAULT_INTERVAL, "1ms", "100us", "10us", SHORTEST),
}
WITHOUT_GIL = (DEFAULT_INTERVAL, SHORTEST)  # intervals of free-threaded cells below the full effort
FINE_CELLS = {
    EffortLevel.SMOKE: ((SHORTEST, 2),),
    EffortLevel.QUICK: (("10us", 8), (SHORTEST, 8)),
    EffortLevel.FULL: (("10us", 8), (SHORTEST, 2), (SHORTEST, 8)),
}
THREADS = {EffortLevel.SMOKE: (2,), EffortLevel.QUICK: (2, 8), EffortLevel.FULL: (1, 2, 4, 8)}

SOURCE = replace(
    SKVORTSOV, headline="6.9 s with one thread, 86 s with 8 threads at a switch interval of 1 µs (on macOS)"
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


class SwitchIntervalExperiment(Experiment):
    """The second table of the 2021 article."""

    name = "switch-interval"
    title = "Switch interval: the price of handing the GIL over more often"
    summary = "the countdown in 1, 2, 4 and 8 threads at switch intervals from 0.1 s down to 1 µs"
    sources = (SOURCE,)
    claim = (
        "In 2021 the interval made no difference down to 1 ms; below that, every handover cost more than it gained: "
        "with 8 threads 100,000,000 decrements took 86 s at 1 µs, against 6.9 s with one."
    )
    program = "countdown"
    levels = {
        EffortLevel.SMOKE: EffortSettings(rounds=1, seconds=5, scales={"count": 200_000}),
        EffortLevel.QUICK: EffortSettings(rounds=5, seconds=45, scales={"count": 5_000_000}),
        EffortLevel.FULL: EffortSettings(rounds=5, seconds=2400, scales={"count": 100_000_000}),
    }
    timeout = 300.0  # 100,000,000 decrements at 1 µs with a fine timer take minutes

    @override
    def candidates(self, context: PlanningContext, build: Build) -> Iterator[tuple[Cell, str | None]]:
        yield self.cell(build, "serial", 1), None
        for model in context.threads(build, control=context.full()):
            intervals = INTERVALS[context.effort] if model == "threads" or context.full() else WITHOUT_GIL
            for interval in intervals:
                for count in THREADS[context.effort]:
                    yield self.cell(build, model, count, interval=interval), context.runner_reason(build, model)
        if not build.free_threaded:
            for interval, count in FINE_CELLS[context.effort]:
                yield self.cell(build, "threads", count, interval=interval, slack=FINE_SLACK), slack_reason()

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        arms = arms_of(results)
        return (*(_seconds_table(results, arm) for arm in arms), *(_speedup_table(results, arm) for arm in arms))

    @override
    def build_findings(self, results: Results, build: Build) -> Iterator[str]:
        arm = BuildArm(build, threads_model(build))
        most = max(arm.worker_counts(results), default=0)
        if most < 2:  # one thread hands the GIL to nobody
            return

        serial = results.serial(build.label)

        def against_serial(**parameters: str) -> Comparison | None:
            return results.compare(serial, arm.find(results, most, **parameters))

        usual, short = against_serial(interval=DEFAULT_INTERVAL), against_serial(interval=SHORTEST)
        if usual is None or short is None or not (usual.judgeable and short.judgeable):
            return
        times = (f"{build.label}: {most} threads take {_as_long(usual)} at 5 ms and {_as_long(short)} at 1 µs as the "
                 "same work without threads")
        if build.free_threaded:
            cells = (arm.find(results, most, interval=each) for each in (DEFAULT_INTERVAL, SHORTEST))
            between = results.compare(*cells)
            differs = between is not None and between.differs
            yield f"{times}: no thread waits for a GIL here, so none requests it after an interval" + (
                "; something else makes the two differ." if differs else ".")
            return
        then = THEN[SHORTEST][most] / THEN[SHORTEST][1]
        yield f"{times}, against {ratio_number(then)} times in 2021: {_holds(short, then / HOLDS)}."
        fine = against_serial(interval=SHORTEST, slack=FINE_SLACK)
        if fine is not None and fine.judgeable:
            yield (f"{build.label}: with timers that end on time, {most} threads take {_as_long(fine)} at 1 µs as the "
                   f"same work without threads{_cause(short, fine)}")

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        return (LineFigure(
            name="switch-interval", title="Countdown: how long the same work takes in threads, by switch interval",
            x=seconds_axis("switch interval", log=True),
            y=Axis("time (1 = without threads; lower is better)", log=True,
                   ticks=tuple((each, f"{each:g}") for each in (0.5, 1.0, 2.0, 5.0, 10.0))),
            panels=tuple(_panel(results, arm) for arm in arms_of(results)),
            note=f"fine timer: timed waits end within 1 ns, not within Linux's usual {USUAL_SLACK}; 2021 was measured "
            "on macOS.",
        ),)


def _as_long(speedup: Comparison) -> str:
    """Return the ratio of the tables, inverted: "1.45x [1.28, 1.65] as long"."""
    decided = speedup.differs
    return f"{interval_text(speedup.inverted())}{'' if decided else ', undecided,'} as long"


def _holds(short: Comparison, least: float) -> str:
    """Return the words on the claim, as far as the interval of the ratio decides it.

    Args:
        short: The speed-up of the threads at the shortest interval.
        least: The slow-down from which on the claim holds.
    """
    if short.hi < 1 / least:
        return "the claim holds"
    if short.lo > 1 / least:
        return "the claim does not hold here as published"
    return "this run is too noisy to say whether the claim holds"


def _cause(short: Comparison, fine: Comparison) -> str:
    """Return the end of a sentence that compares Linux's timer slack with the difference from 2021."""
    if 1 / fine.hi <= 1 / short.lo:
        return ": the timer slack does not explain the difference from 2021."
    return (". So the cost of 2021 still exists; Linux hides it, since a thread that waits for the GIL sleeps about "
            f"{USUAL_SLACK} (the timer slack), however short the interval.")


def _rows(results: Results, arm: BuildArm) -> list[dict[str, str]]:
    """Return the distinct parameters of the arm's cells, in plan order."""
    return [dict(row) for row in dict.fromkeys(cell.parameters for cell in arm.cells(results))]


def _seconds_table(results: Results, arm: BuildArm) -> Table:
    """Return the wall times beside those of 2021; the serial time depends on no interval, so it is shown once."""
    counts = arm.worker_counts(results)
    then = sorted({1, *counts})
    table = TableBuilder(
        results, f"{arm.build.label}, {arm.model}: wall time of the whole count", key_column("switch interval"),
        *value_columns(["no threads", *_thread_titles(counts)], "now", arm.build.label),
        *value_columns(_thread_titles(then), "2021"))
    for row in _rows(results, arm):
        serial = results.serial(arm.build.label) if row == {"interval": DEFAULT_INTERVAL} else None
        cells = [serial, *(arm.find(results, count, **row) for count in counts)]
        published = THEN[row["interval"]]
        table.add(interval_label(row), *(table.entry(cell, results.duration) for cell in cells),
                  *("" if "slack" in row else f"{published[count]:.2f} s" for count in then))
    return table.build()


def _speedup_table(results: Results, arm: BuildArm) -> Table:
    """Return the speed-ups of threads over none, beside those of 2021."""
    counts = arm.worker_counts(results)
    then = [count for count in counts if count > 1]
    table = TableBuilder(
        results, f"{arm.build.label}, {arm.model}: speed-up, sequential / threads", key_column("switch interval"),
        *value_columns(_thread_titles(counts), "now", arm.build.label), *value_columns(_thread_titles(then), "2021"))
    serial = results.serial(arm.build.label)
    for row in _rows(results, arm):
        now = (table.entry(arm.find(results, count, **row), lambda cell: results.speedup(serial, cell))
               for count in counts)
        published = THEN[row["interval"]]
        table.add(interval_label(row), *now,
                  *("" if "slack" in row else f"{ratio_number(published[1] / published[count])}x" for count in then))
    return table.build()


def _thread_titles(counts: list[int]) -> list[str]:
    return [counted(count, "thread") for count in counts]


def _panel(results: Results, arm: BuildArm) -> LinePanel:
    counts = arm.worker_counts(results)
    lines = [_line(results, arm, count, fine=fine) for fine in (False, True) for count in counts]
    series = [line for line in lines if line.x]
    if arm.model == "threads":
        series += [_published_line(count) for count in counts[-1:] if count > 1]
    return LinePanel(f"{arm.build.label}, {arm.model}", tuple(series), rules=(Rule(1.0, "without threads", "y"),))


def _line(results: Results, arm: BuildArm, count: int, *, fine: bool) -> Series:
    """Return the times of one number of threads by interval, those with a fine timer or those without."""
    serial = results.serial(arm.build.label)
    points = [
        (parse_seconds(parameter(cell, "interval")), relative_time(results.compare(serial, cell)))
        for cell in arm.cells(results, workers=count) if ("slack" in dict(cell.parameters)) is fine
    ]
    return measured_series(f"{counted(count, 'thread')}{', fine timer' if fine else ''}", sorted(points))


def _published_line(count: int) -> Series:
    points = [(parse_seconds(interval), times[count] / times[1]) for interval, times in THEN.items()]
    return published_series(f"{counted(count, 'thread')}, 2021", sorted(points))
