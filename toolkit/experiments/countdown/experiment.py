"""`countdown`: CPU work in threads against the same work one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.base import Effort, Experiment, Level
from gilscope.toolkit.experiments.citations import BEAZLEY, SKVORTSOV
from gilscope.toolkit.experiments.results import relative_time
from gilscope.toolkit.report.document import Column, Entry, Ratio, Table
from gilscope.toolkit.report.figures.figure import Axis, LineFigure, LinePanel, Rule, Series
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.wording import interval_text, ratio_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.base import Setting
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Value
    from gilscope.toolkit.report.figures.figure import Figure

THREADS = (1, 2, 4, 8)
PENALTY = 0.7  # speed-up of two threads below which 2009's 0.54x is said to be back

# Ratios of wall times, sequential = 1, by number of threads, as the sources give the times.
THEN: dict[str, dict[int, float | None]] = {
    "2009: Python 2.6": {1: None, 2: 45.5 / 24.6, 4: None, 8: None},
    "2021: Python 3.9": {1: 1.0, 2: 6.57 / 6.52, 4: 6.59 / 6.52, 8: 6.58 / 6.52},
}


class Countdown(Experiment):
    """Beazley's first measurement."""

    name = "countdown"
    title = "Countdown: threads against one after the other"
    summary = "100,000,000 decrements in 1, 2, 4 and 8 threads against the same work without threads"
    sources = (BEAZLEY, SKVORTSOV)
    claim = (
        "Beazley showed in 2009 that two threads took nearly twice as long as doing the same work one after the other, "
        "and that switching a core off helped. In 2021 threads cost nothing any more, and gained nothing either."
    )
    program = "countdown"
    levels = {  # noqa: RUF012 - never changed
        Effort.SMOKE: Level(rounds=1, seconds=4, scales={"count": 200_000, "most": 2}),
        Effort.QUICK: Level(rounds=5, seconds=30, scales={"count": 8_000_000, "most": 8}),
        Effort.FULL: Level(rounds=12, seconds=1500, scales={"count": 100_000_000, "most": 8}),
    }

    @override
    def candidates(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        yield self.cell(build, "serial", 1), None
        for model in setting.threads(build, control=setting.full()):
            for count in THREADS:
                if count <= setting.scales["most"]:
                    yield self.cell(build, model, count), setting.runner_reason(build, model)

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        return (_seconds(results), _ratios(results))

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        return tuple(sentence for build in results.builds for sentence in _findings(results, build))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        panels = [_panel(results, build) for build in results.builds]
        return (
            LineFigure(
                name="countdown", title="Countdown: how long the same work takes in threads",
                x=Axis("threads (number)", log=True, ticks=tuple((float(n), str(n)) for n in THREADS)),
                y=Axis("time (1 = without threads; lower is better)", lo=0.0),
                panels=tuple(panel for panel in panels if panel.series),
            ),
        )


def _rows(results: Results, build: Build) -> list[tuple[str, int]]:
    return list(dict.fromkeys((cell.runner, cell.workers) for cell in results.cells(build=build.label)))


def _lines(results: Results) -> list[tuple[str, int]]:
    return list(dict.fromkeys(row for build in results.builds for row in _rows(results, build)))


def _seconds(results: Results) -> Table:
    notes = Footnotes()
    columns = [Column(title="model", key=True, align="left"), Column(title="threads", key=True)]
    columns += [Column(title=build.label) for build in results.builds]
    rows = [
        (
            Entry(model),
            Entry("-" if model == "serial" else str(count)),
            *(
                results.entry(_find(results, build, model, count), results.duration, notes)
                for build in results.builds
            ),
        )
        for model, count in _lines(results)
    ]
    return Table(title="Wall time of the whole count", columns=tuple(columns), rows=tuple(rows),
                 footnotes=notes.texts())


def _find(results: Results, build: Build, model: str, count: int) -> Cell | None:
    return results.find(build=build.label, runner=model, workers=count)


def _ratios(results: Results) -> Table:
    """Return how many times faster threads are than no threads, beside what the sources had."""
    notes = Footnotes()
    columns = [Column(title="model", key=True, align="left"), Column(title="threads", key=True)]
    columns += [Column(title=build.label, group="now") for build in results.builds]
    columns += [Column(title=when.partition(": ")[2], group=when.partition(": ")[0]) for when in THEN]
    rows = []
    for model, count in _lines(results):
        if model == "serial":
            continue

        def shown(cell: Cell) -> Value | None:
            serial = results.find(build=cell.build, runner="serial", workers=1)
            found = results.compare(serial, cell)
            return None if found is None else Ratio(found)

        now = (results.entry(_find(results, build, model, count), shown, notes) for build in results.builds)
        then = (_historical(each.get(count)) if model == "threads" else Entry() for each in THEN.values())
        rows.append((Entry(model), Entry(str(count)), *now, *then))
    return Table(title="Speed-up: sequential / threads", columns=tuple(columns), rows=tuple(rows),
                 footnotes=notes.texts())


def _historical(ratio: float | None) -> Entry:
    return Entry("-" if ratio is None else f"{ratio_number(1 / ratio)}x")


def _findings(results: Results, build: Build) -> Iterator[str]:
    serial = results.find(build=build.label, runner="serial", workers=1)
    model = "free-threaded" if build.free_threaded else "threads"
    two = results.compare(serial, _find(results, build, model, 2))
    if two is None or two.verdict() == "unknown":
        return
    number = interval_text(two)
    if build.free_threaded and two.verdict() == "faster":
        yield (
            f"{build.label}: two threads do the work {number} as fast as one after the other: without the GIL they "
            "run at the same time, and the claims of 2009 and 2021 no longer hold."
        )
    elif build.free_threaded:
        yield f"{build.label}: two threads are {number} as fast as none: a gain beyond the noise is not shown here."
    elif two.hi < PENALTY:
        yield f"{build.label}: two threads are {number} as fast as none: the penalty of 2009 is seen here."
    else:
        gained = "That they are faster is no gain of theirs" if two.verdict() == "faster" else "They still gain nothing"
        yield (
            f"{build.label}: two threads do the work {number} as fast as none; 2009's penalty (0.54x) is gone since "
            "3.2, where a waiting thread asks for the GIL after the switch interval, instead of every thread "
            f"signalling the others every 100 ticks. {gained}: one of them holds the GIL at any time."
        )


def _panel(results: Results, build: Build) -> LinePanel:
    serial = results.find(build=build.label, runner="serial", workers=1)
    series = []
    for model in dict.fromkeys(model for model, _count in _rows(results, build) if model != "serial"):
        found = [(count, results.compare(serial, _find(results, build, model, count))) for count in THREADS]
        known = {count: relative_time(each) for count, each in found if each is not None}
        if known:
            series.append(
                Series(
                    model,
                    tuple(map(float, known)),
                    tuple(time for time, _, _ in known.values()),
                    lo=tuple(lo for _, lo, _ in known.values()),
                    hi=tuple(hi for _, _, hi in known.values()),
                    model=model,
                )
            )
    if series:
        for when, ratios in THEN.items():
            known_then = [(float(count), ratio) for count, ratio in ratios.items() if ratio is not None]
            series.append(Series(when, tuple(x for x, _ in known_then), tuple(y for _, y in known_then),
                                 style="history"))
    return LinePanel(build.label, tuple(series), rules=(Rule(1.0, "without threads", "y"),))
