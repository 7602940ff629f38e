"""`countdown`: CPU work in threads against the same work one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.base import (
    BEAZLEY,
    SKVORTSOV,
    EffortLevel,
    EffortSettings,
    Experiment,
    threads_model,
)
from gilscope.toolkit.experiments.tables_and_figures import (
    PublishedColumn,
    TableBuilder,
    build_columns,
    key_column,
    label_column,
    measured_series,
    number_ticks,
    published_columns,
    published_series,
    relative_time,
)
from gilscope.toolkit.report.figures.figure import Axis, LineFigure, LinePanel, Rule
from gilscope.toolkit.report.wording import interval_text, ratio_number
from gilscope.toolkit.stats.verdict import SpeedVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.base import PlanningContext
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Table, Value
    from gilscope.toolkit.report.figures.figure import Figure

THREADS = (1, 2, 4, 8)
PENALTY = 0.7  # speed-up of two threads below which the penalty of 2009 counts as reproduced
PUBLISHED_2009 = 24.6 / 45.5   # that speed-up
PLAIN = "the same work without threads"

# Wall times over the sequential one by number of threads, as published.
THEN: dict[PublishedColumn, dict[int, float]] = {
    PublishedColumn("2009", "Python 2.6"): {2: 1 / PUBLISHED_2009},
    PublishedColumn("2021", "Python 3.9"): {1: 1.0, 2: 6.57 / 6.52, 4: 6.59 / 6.52, 8: 6.58 / 6.52},
}


class CountdownExperiment(Experiment):
    """Beazley's first measurement."""

    name = "countdown"
    title = "Countdown: threads against one after the other"
    summary = "100,000,000 decrements in 1, 2, 4 and 8 threads against the same work without threads"
    sources = (BEAZLEY, SKVORTSOV)
    claim = (
        "Beazley showed in 2009 that two threads took nearly twice as long as doing the same work one after the other, "
        "and that switching a core off helped. In 2021 threads no longer cost anything, but gained nothing either."
    )
    program = "countdown"
    levels = {
        EffortLevel.SMOKE: EffortSettings(rounds=1, seconds=4, scales={"count": 200_000, "most": 2}),
        EffortLevel.QUICK: EffortSettings(rounds=5, seconds=30, scales={"count": 8_000_000, "most": 8}),
        EffortLevel.FULL: EffortSettings(rounds=12, seconds=1500, scales={"count": 100_000_000, "most": 8}),
    }

    @override
    def candidates(self, context: PlanningContext, build: Build) -> Iterator[tuple[Cell, str | None]]:
        yield self.cell(build, "serial", 1), None
        for model in context.threads(build, control=context.full()):
            for count in THREADS:
                if count <= context.scales["most"]:
                    yield self.cell(build, model, count), context.runner_reason(build, model)

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        return (_seconds_table(results), _speedup_table(results))

    @override
    def build_findings(self, results: Results, build: Build) -> Iterator[str]:
        two = results.compare(results.serial(build.label), _find(results, build, threads_model(build), 2))
        if two is None or not two.judgeable:
            return
        number = interval_text(two)
        if build.free_threaded and two.verdict() == SpeedVerdict.FASTER:
            yield (
                f"{build.label}: two threads do the work {number} as fast as one after the other: without the GIL "
                "they run at the same time, and the claims of 2009 and 2021 no longer hold."
            )
        elif build.free_threaded:
            found = "they are slower." if two.verdict() == SpeedVerdict.SLOWER else (
                "no gain beyond the noise is shown.")
            yield f"{build.label}: two threads are {number} as fast as {PLAIN}: {found}"
        elif two.hi < PENALTY:
            yield f"{build.label}: two threads are {number} as fast as {PLAIN}: the penalty of 2009 is reproduced here."
        elif two.between[0] <= PUBLISHED_2009:
            yield (f"{build.label}: two threads are {number} as fast as {PLAIN}: the wider interval of verdicts leaves "
                   f"open whether the penalty of 2009 ({ratio_number(PUBLISHED_2009)}x) is gone.")
        else:
            gain = {SpeedVerdict.FASTER: "They are faster, but not by running in parallel",
                    SpeedVerdict.SLOWER: "They are slower all the same"}.get(
                        two.verdict(), "No gain beyond the noise is shown")
            yield (
                f"{build.label}: two threads are {number} as fast as {PLAIN}; a penalty as large as in "
                f"2009 ({ratio_number(PUBLISHED_2009)}x) is excluded: since 3.2 a waiting thread requests the GIL "
                "after the switch interval, whereas before every thread signalled the others every 100 ticks. "
                f"{gain}: only one of them holds the GIL at a time."
            )

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        panels = [_panel(results, build) for build in results.builds]
        return (
            LineFigure(
                name="countdown", title="Countdown: how long the same work takes in threads",
                x=Axis("threads (number)", log=True, ticks=number_ticks(THREADS)),
                y=Axis("time (1 = without threads; lower is better)", lo=0.0),
                panels=tuple(panel for panel in panels if panel.series),
            ),
        )


def _find(results: Results, build: Build, model: str, count: int) -> Cell | None:
    return results.find(build=build.label, runner=model, workers=count)


def _seconds_table(results: Results) -> Table:
    table = TableBuilder(results, "Wall time of the whole count",
                         label_column("model"), key_column("threads"), *build_columns(results.builds))
    for model, count in _rows(results):
        cells = [_find(results, build, model, count) for build in results.builds]
        table.add(model, "-" if model == "serial" else str(count),
                  *(table.entry(cell, results.duration) for cell in cells))
    return table.build()


def _rows(results: Results) -> list[tuple[str, int]]:
    """Return models and numbers of threads, in the order of the builds' plans."""
    return list(dict.fromkeys(row for build in results.builds for row in results.rows(build=build.label)))


def _speedup_table(results: Results) -> Table:
    """Return the speed-ups of threads over no threads, beside the published numbers."""
    table = TableBuilder(results, "Speed-up: sequential / threads",
                         label_column("model"), key_column("threads"), *build_columns(results.builds, "now"),
                         *published_columns(*THEN))

    def speedup(cell: Cell) -> Value | None:
        return results.speedup(results.serial(cell.build), cell)

    for model, count in _rows(results):
        if model != "serial":
            now = (table.entry(_find(results, build, model, count), speedup) for build in results.builds)
            then = (_published_speedup(each.get(count)) if model == "threads" else "" for each in THEN.values())
            table.add(model, str(count), *now, *then)
    return table.build()


def _published_speedup(relative: float | None) -> str:
    return "-" if relative is None else f"{ratio_number(1 / relative)}x"


def _panel(results: Results, build: Build) -> LinePanel:
    serial = results.serial(build.label)
    series = []
    for model in dict.fromkeys(model for model, _ in results.rows(build=build.label) if model != "serial"):
        found = [(count, results.compare(serial, _find(results, build, model, count))) for count in THREADS]
        if known := [(count, relative_time(comparison)) for count, comparison in found if comparison is not None]:
            series.append(measured_series(model, known, model))
    if series:
        series += [published_series(heading.text, ratios.items()) for heading, ratios in THEN.items()]
    return LinePanel(build.label, tuple(series), rules=(Rule(1.0, "without threads", "y"),))
