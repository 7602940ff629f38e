"""`downloads`: many small pages over HTTP, by threads, by one event loop, by an event loop in each thread."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.base import (
    AIOHTTP,
    BULLDOGJOB,
    CONTROL,
    REQUESTS,
    SLOW_PARSER,
    EffortLevel,
    EffortSettings,
    Experiment,
    threads_model,
)
from gilscope.toolkit.experiments.results import as_quantity, parameter
from gilscope.toolkit.experiments.round_texts import range_words
from gilscope.toolkit.experiments.tables_and_figures import (
    TableBuilder,
    bounded,
    build_columns,
    key_column,
    label_column,
    measured_series,
    number_ticks,
    published_series,
    show_metric,
    value_columns,
)
from gilscope.toolkit.report.document import Column, Entry, Lines, Quantity, RatioValue
from gilscope.toolkit.report.figures.figure import Axis, LineFigure, LinePanel, seconds_axis
from gilscope.toolkit.report.figures.plots.ticks import seconds_text
from gilscope.toolkit.report.wording import interval_text
from gilscope.toolkit.stats.verdict import SpeedVerdict
from gilscope.toolkit.units import format_seconds, parse_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gilscope.toolkit.experiments.base import PlanningContext
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Table
    from gilscope.toolkit.report.figures.figure import Figure
    from gilscope.toolkit.stats.sample import Summary
    from gilscope.toolkit.stats.verdict import Comparison

SOURCE = replace(BULLDOGJOB, headline="400 pages: threads stop gaining near 20, asyncio is about twice as fast")
POOLS = ("threads", "free-threaded")
NAMES = {"loops": "a loop in each thread"}   # of models, where figures say more than the tables
WORKERS = (2, 5, 10, 20, 50, 100)
# Two, since the publication does not give its servers' latency, which decides where threads stop gaining.
LATENCIES = ("20ms", "100ms")
NEAR_BEST = 1.1   # a pool that takes at most this times its best has nothing to gain from more workers
HOW = (
    "Threads: a pool with requests, each thread with a connection of its own. asyncio: one loop with aiohttp.",
    "loops: one such loop per core, at least two, each in a thread; they share the requests at a time.",
    f"Threads stop gaining at the smallest number whose median time is at most {NEAR_BEST:g} times the shortest.",
    "The clock starts before the first worker does and stops with the last page.",
    "The server is a helper on gilscope's own Python on loopback and answers after a fixed latency.",
    CONTROL,
)
# Requests at a time by effort and model; with few of them all models do the same, so a quick run leaves those out.
GRID: dict[EffortLevel, dict[str, tuple[int, ...]]] = {
    EffortLevel.SMOKE: {"pool": (5,), "asyncio": (5,), "loops": (5,)},
    EffortLevel.QUICK: {"pool": (5, 20, 100), "asyncio": (20, 100), "loops": (100,)},
    EffortLevel.FULL: dict.fromkeys(("pool", "asyncio", "loops"), WORKERS),
}
LATE_SHARE = 0.5  # of the latency: a server that is later than this, at its 99th percentile, is a doubt
CLAIMED = 2.0     # times as fast as threads: the claim for asyncio
MIB = 1024.0**2


class DownloadsExperiment(Experiment):
    """Bulldogjob's first measurement."""

    name = "downloads"
    title = "Downloads: threads, asyncio, and a loop in each thread"
    summary = "400 small pages from a loopback server with fixed latency, 2 to 100 at a time"
    sources = (SOURCE,)
    claim = (
        "Downloading pages gets no faster beyond about 20 threads, since only one thread at a time runs Python; "
        "one thread with asyncio is about twice as fast."
    )
    program = "downloads"
    packages = (REQUESTS, AIOHTTP)
    levels = {
        EffortLevel.SMOKE: EffortSettings(rounds=1, seconds=10, scales={"pages": 20}),
        EffortLevel.QUICK: EffortSettings(rounds=3, seconds=45, scales={"pages": 200}),
        EffortLevel.FULL: EffortSettings(rounds=8, seconds=3000, scales={"pages": 400}),
    }

    @override
    def candidates(self, context: PlanningContext, build: Build) -> Iterator[tuple[Cell, str | None]]:
        for latency in LATENCIES if context.full() else LATENCIES[:1]:
            for model in (*context.threads(build, control=context.full()), "asyncio", "loops"):
                for workers in GRID[context.effort]["pool" if model in POOLS else model]:
                    yield self.cell(build, model, workers, latency=latency), _reason(context, build, model)

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        latencies = _latencies(results)
        return (
            Lines("How", HOW),
            *(_time_table(results, latency) for latency in latencies),
            *(_cost_table(results, latency) for latency in latencies),
            _claim_table(results),
        )

    @override
    def build_findings(self, results: Results, build: Build) -> Iterator[str]:
        latencies = _latencies(results)
        for latency in latencies:
            times = _pool_times(results, build, latency)
            stop = knee(times)
            if stop is None:
                continue
            cell = _find(results, build, threads_model(build), stop, latency)
            cost = results.metric(cell, "cpu_per_page")
            if cost is not None:
                yield _on_pool(results, build, latency, times, cost.center)
        # A longer latency gives the same CPU time less weight: the tables have that.
        gain = _against_pool(results, build, "asyncio", latencies[0])
        if gain is not None:
            yield _on_asyncio(results, build, latencies[0], gain)

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        panels = [(build, latency) for latency in _latencies(results) for build in results.builds]
        whiskers = range_words(results.value(cell) for cell in results.cells())
        at_a_time = Axis("requests at a time (number)", log=True, ticks=number_ticks(WORKERS))
        return (
            LineFigure(
                name="downloads", title="Time for all pages by the number of requests at a time",
                x=at_a_time, y=seconds_axis("time for all pages", log=True), whiskers=whiskers,
                panels=tuple(_time_panel(results, build, latency) for build, latency in panels),
                note="waiting alone: what the server's latency takes, pages x latency / requests at a time.",
            ),
            LineFigure(
                name="downloads-memory", title="Memory of the process with all workers alive",
                x=at_a_time, y=Axis("proportional set size (MiB)", lo=0.0), whiskers=whiskers,
                panels=tuple(_memory_panel(results, build, latency) for build, latency in panels),
            ),
        )


def _reason(context: PlanningContext, build: Build, model: str) -> str | None:
    if model in POOLS:
        return context.runner_reason(build, model) or context.package_reason(build, REQUESTS)
    return context.package_reason(build, AIOHTTP)


# Cells


def _latencies(results: Results) -> list[str]:
    """Return the servers' latencies, as the cells name them."""
    return list(dict.fromkeys(parameter(cell, "latency") for cell in results.cells()))


def _latency_text(latency: str) -> str:
    """Return a latency for tables and sentences: "20 ms"."""
    return seconds_text(parse_seconds(latency))


def _find(results: Results, build: Build, model: str, workers: int, latency: str) -> Cell | None:
    return results.find(build=build.label, runner=model, workers=workers, latency=latency)


def _doubts(results: Results, cell: Cell | None) -> list[str]:
    """Return reasons to doubt a measured cell's time."""
    late, most = results.metric(cell, "server_late"), results.longest(cell, "server_late")
    if cell is None or late is None or most is None:
        return []
    found = [SLOW_PARSER] if "Python" in results.texts(cell, "parser") else []
    if late.center > LATE_SHARE * parse_seconds(parameter(cell, "latency")):
        found.append(f"the server of the pages was up to {format_seconds(most.value)} late itself (99th percentile)")
    return found


def _against_pool(results: Results, build: Build, model: str, latency: str) -> Comparison | None:
    """Return the speed-up of a model over the build's pool of threads, each at its best number of workers."""
    pool = _best_cell(results, build, threads_model(build), latency)
    return None if pool is None else results.compare(pool, _best_cell(results, build, model, latency))


def _best_cell(results: Results, build: Build, model: str, latency: str) -> Cell | None:
    """Return the model's fastest cell, or None if the one with the most requests at a time has no number.

    That one is usually the fastest; without it, the fastest of the others does not show what the model can do.
    """
    cells = results.cells(build=build.label, runner=model, latency=latency)
    found = [(summary.center, cell) for cell in cells if (summary := results.value(cell)) is not None]
    if not found or results.value(_widest_cell(cells)) is None:
        return None
    return min(found, key=lambda each: each[0])[1]


def _widest_cell(cells: Sequence[Cell]) -> Cell | None:
    """Return the cell with the most requests at a time."""
    return max(cells, key=lambda cell: cell.workers, default=None)


def _pool_times(results: Results, build: Build, latency: str) -> dict[int, float]:
    """Return the measured seconds of the build's pool of threads by its number of threads."""
    cells = results.cells(build=build.label, runner=threads_model(build), latency=latency)
    return {cell.workers: found.center for cell in cells if (found := results.value(cell)) is not None}


def knee(times: dict[int, float]) -> int | None:
    """Return the smallest number of workers that is nearly as fast as the best, or None with fewer than three numbers.

    Args:
        times: Seconds by number of workers.
    """
    best = min(times.values(), default=0.0)
    # a line has three points
    return min(count for count, each in times.items() if each <= NEAR_BEST * best) if len(times) > 2 else None


def _pages(results: Results) -> float | None:
    return next((each for cell in results.cells() if (each := results.center(cell, "pages")) is not None), None)


def _waiting_seconds(pages: float, latency: str, workers: int) -> float:
    """Return the time that the server's latency alone takes for `pages` pages."""
    return -(-pages // workers) * parse_seconds(latency)


# Tables


def _time_table(results: Results, latency: str) -> Table:
    """Return the time for all pages, beside what waiting for the server alone would take."""
    table = TableBuilder(
        results, f"Time for all pages, each answered after {_latency_text(latency)}", label_column("model"),
        key_column("at a time"), *build_columns(results.builds), Column(title="waiting alone"))
    pages = _pages(results)
    for model, workers in results.rows(latency=latency):
        cells = [_find(results, build, model, workers, latency) for build in results.builds]
        table.add(model, str(workers),
                  *(table.entry(cell, results.duration, _doubts(results, cell)) for cell in cells),
                  "" if pages is None else Quantity(_waiting_seconds(pages, latency, workers), "seconds"))
    return table.build()


def _cost_table(results: Results, latency: str) -> Table:
    shown = {
        "CPU per page": show_metric(results, "cpu_per_page", as_quantity),
        "threads": show_metric(results, "threads", lambda found: Quantity(found.center, "")),
        "memory": show_metric(results, "pss", lambda found: Quantity(found.center, "bytes")),
        "added by workers": show_metric(results, "added", lambda found: Quantity(found.center, "bytes")),
    }
    table = TableBuilder(
        results, f"What it takes, pages of {_latency_text(latency)}", label_column("model"), key_column("at a time"),
        *(column for build in results.builds for column in value_columns(shown, build.label, build.label)))
    for model, workers in results.rows(latency=latency):
        cells = [_find(results, build, model, workers, latency) for build in results.builds]
        table.add(model, str(workers), *(table.entry(cell, show) for cell in cells for show in shown.values()))
    return table.build()


def _claim_table(results: Results) -> Table:
    table = TableBuilder(results, "Then and now", label_column("claim"), key_column("pages of"), Column(title="then"),
                         *build_columns(results.builds, "now"))
    for latency in _latencies(results):
        pages = _latency_text(latency)
        table.add("threads stop gaining at", pages, "near 20",
                  *(knee_text(_pool_times(results, build, latency)) for build in results.builds))
        for model, what, then in (("asyncio", "asyncio", "about 2x"), ("loops", "a loop per thread", "-")):
            table.add(f"{what} against threads, each at its best", pages, then,
                      *(_gain_entry(results, table, build, model, latency) for build in results.builds))
    return table.build()


def knee_text(times: dict[int, float]) -> str:
    """Return for a table at how many workers threads stop gaining."""
    found = knee(times)
    if found is None:
        return "-"
    return str(found) if found < max(times) else f"above {_count_before(times, found)}"


def _count_before(times: dict[int, float], count: int) -> int:
    """Return the largest measured number of workers below `count`, 0 if there is none."""
    return max((each for each in times if each < count), default=0)


def _gain_entry(results: Results, table: TableBuilder, build: Build, model: str, latency: str) -> Entry:
    for each in (model, threads_model(build)):
        if _best_cell(results, build, each, latency) is None:
            cells = results.cells(build=build.label, runner=each, latency=latency)
            return table.entry(_widest_cell(cells), lambda _: None)
    found = _against_pool(results, build, model, latency)
    return Entry("-") if found is None else Entry(RatioValue(found))


# Findings


def _on_pool(results: Results, build: Build, latency: str, times: dict[int, float], cost: float) -> str:
    """State up to which number of threads the pool gains, and whether the CPU time of a page explains it.

    The numbers of threads are coarse: the pool stops somewhere between two of them, or beyond the last.

    Args:
        results: Of the run.
        build: The build.
        latency: As the cells name it.
        times: Seconds by number of threads, at least three.
        cost: The CPU time of a page, in seconds, with the number of threads at which it stops.
    """
    stop = knee(times) or max(times)
    before, last = _count_before(times, stop), stop == max(times)
    slower, fastest = (_find(results, build, threads_model(build), count, latency) for count in (before, stop))
    gain = results.compare(slower, fastest)
    start = f"{build.label}, pages of {_latency_text(latency)}: the pool "
    if last:
        opened = _opened_text(results.center(fastest, "connections"), stop)
        start += (f"takes {format_seconds(times[stop])} with up to {stop} threads, the most measured{opened}"
                  + ("" if gain is None else f"; it is {_as_fast(gain)} as with {before}"))
    else:
        start += (f"stops gaining at {stop} threads ({format_seconds(times[stop])}): by the medians, it takes at most "
                  f"{NEAR_BEST:g} times as long as with any other number")
    start += f". A page costs it {format_seconds(cost)} of CPU time"
    if build.free_threaded:
        return f"{start}, which without the GIL may be used on every core at once."
    most = round(parse_seconds(latency) / cost)   # as it is shown: 20.4 is no contradiction of 20
    return f"{start}; {_busy_text(most, before, stop, gain, last=last)}."


def _opened_text(opened: float | None, threads: int) -> str:
    """Return how many threads opened a connection: a large pool may have served all pages before it used them all."""
    return "" if opened is None or opened >= threads else f", of which {opened:.0f} in the median opened a connection"


def _as_fast(gain: Comparison) -> str:
    decided = gain.differs
    return f"{interval_text(gain)}{'' if decided else ', undecided,'} as fast"


def _busy_text(most: int, before: int, stop: int, gain: Comparison | None, *, last: bool) -> str:
    """Return at how many requests in flight the GIL is busy, and whether that explains where the pool stops.

    Args:
        most: The latency divided by the CPU time of a page.
        before: The measured number of threads before `stop`.
        stop: The number of threads at which the pool stops gaining, or the largest one.
        gain: Of `stop` threads over `before`.
        last: `stop` is the largest number.
    """
    text = f"if all of it holds the GIL, about {most} requests in flight keep it busy"
    if last and most > stop:
        return f"{text}, so more threads may gain"
    if last and most >= before:
        return f"{text}. Between {before} and {stop} nothing was measured, so where the pool stops gaining is not known"
    if before <= most <= stop * NEAR_BEST:
        return f"{text}, which fits: it stops between {before} and {stop}"
    if last and (gain is None or gain.verdict() != SpeedVerdict.FASTER):
        return text
    return f"{text}. That does not explain where the pool stops here"


def _on_asyncio(results: Results, build: Build, latency: str, gain: Comparison) -> str:
    start = (f"{build.label}, pages of {_latency_text(latency)}: asyncio at the fastest of its measured counts is "
             f"{interval_text(gain)} as fast as threads at theirs (counts chosen from the same values)")
    if gain.verdict() == SpeedVerdict.SLOWER:
        return f"{start}; it is slower."
    if gain.verdict() != SpeedVerdict.FASTER:
        return f"{start}; it is not shown to be faster."
    lo, hi = gain.between
    held = "less than 2x" if hi < CLAIMED else "more than 2x" if lo > CLAIMED else "which does not exclude 2x"
    threads, loop = (results.center(_best_cell(results, build, model, latency), "cpu_per_page")
                     for model in (threads_model(build), "asyncio"))
    costs = "" if threads is None or loop is None else (
        f" A page costs it {format_seconds(loop)} of CPU time, the threads {format_seconds(threads)}.")
    return f"{start}, {held} (published: about 2x).{costs}"


# Figures


def _time_panel(results: Results, build: Build, latency: str) -> LinePanel:
    panel, pages = _panel(results, build, latency, results.value), _pages(results)
    if not panel.series or pages is None:
        return panel
    places = sorted({place for line in panel.series for place in line.x})
    waiting = published_series("waiting alone", (
        (place, _waiting_seconds(pages, latency, int(place))) for place in places))
    return replace(panel, series=(*panel.series, waiting))


def _memory_panel(results: Results, build: Build, latency: str) -> LinePanel:
    return _panel(results, build, latency, lambda cell: results.metric(cell, "pss"), lambda size: size / MIB)


def _panel(
    results: Results, build: Build, latency: str, value: Callable[[Cell], Summary | None],
    convert: Callable[[float], float] = float,
) -> LinePanel:
    """Return a line for each model over the number of requests at a time."""
    lines = (
        measured_series(NAMES.get(model, model), (
            (cell.workers, bounded(value(cell), convert))
            for cell in results.cells(build=build.label, runner=model, latency=latency)), model)
        for model in dict.fromkeys(model for model, _ in results.rows(latency=latency))
    )
    title = f"{build.label}, {_latency_text(latency)} a page" if len(_latencies(results)) > 1 else build.label
    return LinePanel(title, tuple(line for line in lines if line.x))
