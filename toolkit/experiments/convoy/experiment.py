"""`convoy`: what CPU work beside a server does to it, with a GIL between them and without."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.base import Effort, Experiment, Level
from gilscope.toolkit.experiments.convoy.rates_and_latencies import (
    ARTICLE,
    doubted,
    histogram,
    latency,
    latency_marks,
    latency_modes,
    lateness,
    longest,
    modes_text,
    offered,
    own_first,
    rate_entry,
    rate_modes,
    rate_of,
    thread_arms,
)
from gilscope.toolkit.experiments.results import middle
from gilscope.toolkit.experiments.short_switch_intervals import SECONDS as INTERVAL
from gilscope.toolkit.report.document import Column, Entry, Table
from gilscope.toolkit.report.figures.figure import (
    Axis,
    CategoryFigure,
    CategoryPanel,
    HistogramFigure,
    HistogramPanel,
    Rule,
    Series,
    seconds_axis,
)
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.wording import number_text
from gilscope.toolkit.stats.latency import BUCKETS, edge
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.base import Setting
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section
    from gilscope.toolkit.report.figures.figure import Figure

COUNTS = {                      # CPU workers: in threads, elsewhere
    Effort.SMOKE: ((1,), (1,)),
    Effort.QUICK: ((1, 4), (1,)),
    Effort.FULL: ((1, 2, 4), (1, 2, 4)),
}
# Requests per second by where the CPU work is and how much of it, as the article gives them.
THEN = {
    ("threads", 0): 30_000, ("threads", 1): 100, ("threads", 2): 50, ("threads", 4): 30,
    ("processes", 1): 20_000, ("processes", 2): 20_000, ("processes", 4): 20_000,
}
WHEN = "2021: 3.9"
PLACES = {"threads": "threads, GIL", "free-threaded": "threads, no GIL", "processes": "processes",
          "subinterpreters": "subinterpreters"}


class Convoy(Experiment):
    """An echo server beside CPU work."""

    name = "convoy"
    title = "Convoy: an echo server beside CPU work"
    summary = "requests/s and latency of a threaded echo server beside 0 to 4 CPU threads, processes, subinterpreters"
    sources = (ARTICLE,)
    claim = (
        "In 2021 one CPU thread beside a threaded echo server took it from 30,000 requests/s to 100, since the server "
        "has to ask for the GIL after each system call and waits a switch interval for it; beside CPU work in other "
        "processes it kept 20,000."
    )
    program = "convoy"
    levels = {  # noqa: RUF012 - never changed
        Effort.SMOKE: Level(rounds=1, seconds=6, scales={
            "closed": 0.1, "open": 0.1, "least": 20, "bound": 2, "rate": 1000}),
        Effort.QUICK: Level(rounds=3, seconds=50, scales={
            "closed": 0.3, "open": 0.4, "least": 20, "bound": 3, "rate": 2000}),
        Effort.FULL: Level(rounds=10, seconds=1500, scales={
            "closed": 2, "open": 3, "least": 100, "bound": 20, "rate": 2000}),
    }
    timeout = 120.0   # two loops to their bounds, with all their patience, say nothing meanwhile

    @override
    def candidates(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        beside, elsewhere = COUNTS[setting.effort]
        for model in setting.threads(build):
            # Without CPU work the GIL of a free-threaded build makes little difference.
            alone = (0,) if setting.full() or model == setting.threads(build)[0] else ()
            counts = beside if setting.full() or not (build.free_threaded and model == "threads") else beside[:1]
            for count in (*alone, *counts):
                yield self.cell(build, model, count), setting.runner_reason(build, model)
        for count in elsewhere:
            yield self.cell(build, "processes", count), None
        for count in elsewhere:
            yield self.cell(build, "subinterpreters", count), setting.runner_reason(build, "subinterpreters")

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        return (_rates(results), *(_latencies(results, build) for build in results.builds))

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        return tuple(sentence for build in results.builds for sentence in _findings(results, build))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        if not any(results.value(cell) for cell in results.cells()):
            return ()
        return (_bars(results), _histograms(results))


def _find(results: Results, build: Build, model: str, count: int) -> Cell | None:
    return results.find(build=build.label, runner=model, workers=count)


def _rows(results: Results) -> list[tuple[str, int]]:
    """Return where the CPU work is and how much of it, in the order of the plan."""
    found = {(cell.runner, cell.workers) for build in results.builds for cell in results.cells(build=build.label)}
    return sorted(found, key=lambda row: (list(PLACES).index(row[0]), row[1]))


def _rates(results: Results) -> Table:
    """Return requests a second by where the CPU work runs, beside those of 2021."""
    notes = Footnotes()
    columns = [Column(title="CPU work in", key=True, align="left"), Column(title="workers", key=True)]
    columns += [Column(title=build.label, group="now") for build in results.builds]
    when, _, build_then = WHEN.partition(": ")
    columns.append(Column(title=build_then, group=when))
    rows = []
    for model, count in _rows(results):
        then = THEN.get((model, count))
        rows.append((
            Entry(PLACES[model]), Entry(str(count)),
            *(rate_entry(results, _find(results, build, model, count), notes) for build in results.builds),
            Entry() if then is None else Entry(f"{number_text(then)}/s"),
        ))
    return Table(title="Requests per second, closed loop: each request after the last reply", columns=tuple(columns),
                 rows=tuple(rows), footnotes=notes.texts())


def _latencies(results: Results, build: Build) -> Table:
    """Return the latencies of one build, counted from the time a request was due."""
    notes = Footnotes()
    names = ("p50", "p90", "p99")
    columns = [Column(title="CPU work in", key=True, align="left"), Column(title="workers", key=True),
               Column(title="load"), Column(title="p50"), Column(title="p90"), Column(title="p99"),
               Column(title="client late"), Column(title="max"), Column(title="modes", align="left")]
    rows = []
    for cell in results.cells(build=build.label):
        marks = () if results.absence(cell) else latency_marks(results, cell, notes)
        load = results.entry(cell, partial(offered, results), notes)
        rows.append((
            Entry(PLACES[cell.runner]), Entry(str(cell.workers)), Entry(load.value, load.marks + marks),
            *(Entry("" if results.absence(cell) else latency(results, cell, name) or "-") for name in names),
            Entry(lateness(results, cell) or ""), Entry(longest(results, cell) or ""),
            Entry("" if results.absence(cell) else modes_text(latency_modes(results, cell))),
        ))
    return Table(title=f"{build.label}: latency in an open loop, from the time a request was due",
                 columns=tuple(columns), rows=tuple(rows), footnotes=notes.texts())


def _findings(results: Results, build: Build) -> Iterator[str]:
    own = own_first(build)[0]
    alone, one = _find(results, build, own, 0), _find(results, build, own, 1)
    before, after, p50 = rate_of(results, alone), rate_of(results, one), middle(results.metrics(one, "p50"))
    if before is None or after is None or p50 is None:
        return
    change = f"{build.label}: {number_text(before)} requests/s alone, {number_text(after)} beside one CPU thread"
    found = rate_modes(results, one)
    if build.free_threaded and after < before / 10:
        yield f"{change}, p50 {format_seconds(p50)}: there is no GIL to wait for; the server did not get its core."
    elif build.free_threaded:
        slower = " Alone the server is slower, as idle cores sleep between two requests." if after > before else ""
        yield (f"{change}, p50 {format_seconds(p50)}: without a GIL there is nothing to wait for, and the convoy of "
               f"2021 is gone.{slower}")
    elif len(found) > 1:
        yield (f"{change}, in {len(found)} modes: {modes_text(found)} of the time. In the slow one a request waits for "
               "the GIL; in the fast one the CPU thread wakes too late to take it back.")
    elif after < before / 10:
        yield (f"{change}, {number_text(before / after)}x fewer, p50 {format_seconds(p50)}, which is "
               f"{p50 / INTERVAL:.1f} switch intervals of 5 ms: the convoy of 2021 (30,000 to 100) is still here, as "
               "a thread that comes back from a system call still waits an interval before it may ask for the GIL.")
    else:
        yield f"{change}: the collapse of 2021 (30,000 to 100) is not seen here."
    yield from _elsewhere(results, build, after)


def _elsewhere(results: Results, build: Build, beside: float) -> Iterator[str]:
    rates = {model: rate_of(results, _find(results, build, model, 1)) for model in ("processes", "subinterpreters")}
    known = [f"{number_text(rate)} with it in {model}" for model, rate in rates.items() if rate is not None]
    if known and not build.free_threaded:
        kept = all(rate is None or rate > 10 * beside for rate in rates.values())
        yield (f"{build.label}: {' and '.join(known)}"
               + (": what does not share the server's GIL does not hold it up, as in 2021." if kept else "."))


def _bars(results: Results) -> CategoryFigure:
    return CategoryFigure(
        name="convoy", title="Echo server beside CPU work: requests per second",
        y=Axis("requests per second (1/s)", log=True), x_title="CPU workers beside the server (number)",
        panels=tuple(_bar_panel(results, build) for build in results.builds),
        note="Closed loop, one client: the next request follows each answer."
        + doubted(((cell, _cell_name(cell)) for cell in results.cells()), results),
    )


def _cell_name(cell: Cell) -> str:
    return f"{cell.build} ({PLACES[cell.runner]}, {cell.workers})"


def _bar_panel(results: Results, build: Build) -> CategoryPanel:
    counts = sorted({cell.workers for cell in results.cells(build=build.label)})
    series = [
        _bars_of(results, cells, counts)
        for model in PLACES if (cells := results.cells(build=build.label, runner=model))
    ]
    rules: tuple[Rule, ...] = ()
    if not build.free_threaded:
        then = [(float(place), float(THEN["threads", count])) for place, count in enumerate(counts)]
        series.append(Series("threads, 2021", tuple(x for x, _ in then), tuple(y for _, y in then), style="history"))
        rules = (Rule(THEN["processes", 1], "2021, beside processes", "y"),)
    return CategoryPanel(build.label, tuple(map(str, counts)), tuple(series), rules)


def _bars_of(results: Results, cells: list[Cell], counts: list[int]) -> Series:
    values, nan = {cell.workers: results.value(cell) for cell in cells}, float("nan")
    places = [(place, values[count]) for place, count in enumerate(counts) if count in values]
    return Series(
        PLACES[cells[0].runner], tuple(float(place) for place, _ in places),
        tuple(nan if each is None else 1 / each.center for _, each in places),
        lo=tuple(nan if each is None else 1 / each.hi for _, each in places),
        hi=tuple(nan if each is None else 1 / each.lo for _, each in places), model=cells[0].runner)


def _histograms(results: Results) -> HistogramFigure:
    found = [(arm, histogram(results, _find(results, arm.build, arm.model, 1))) for arm in thread_arms(results)]
    used = [index for _, each in found for index, count in enumerate(each.counts) if count]
    low, high = max(0, min(used, default=0) - 2), min(BUCKETS, max(used, default=BUCKETS) + 3)
    edges = tuple(edge(index) for index in range(low, high + 1))
    panels = [
        HistogramPanel(
            arm.title, edges,
            tuple(100 * count / (each.count or 1) for count in each.counts[low:high]),
            rules=(Rule(INTERVAL, "switch interval 5 ms"),), model=arm.model)
        for arm, each in found
    ]
    return HistogramFigure(
        name="convoy-latency", title="Echo server beside one CPU thread: how long requests take",
        x=seconds_axis("latency", log=True), y=Axis("share of requests (%)"),
        panels=tuple(panels),
        note="Open loop, from the time a request was due. Two humps are two modes: with the GIL a request waits a "
        "switch interval, or finds it free.",
    )
