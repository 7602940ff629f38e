"""`downloads`: many small pages over HTTP, by threads, by one event loop, by an event loop in each thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.base import Effort, Experiment, Level, Source
from gilscope.toolkit.experiments.downloads.claims import (
    best_cell,
    find,
    findings,
    knee_text,
    latencies_of,
    over_pool,
    pool_of,
    pool_times,
    rows_of,
    spoken,
    warnings_of,
    widest_cell,
)
from gilscope.toolkit.experiments.libraries import AIOHTTP, CONTROL, REQUESTS, missing
from gilscope.toolkit.experiments.results import shown_duration
from gilscope.toolkit.report.document import Column, Duration, Entry, Lines, Quantity, Ratio, Size, Table
from gilscope.toolkit.report.figures.figure import Axis, LineFigure, LinePanel, Series, seconds_axis
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.units import parse_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gilscope.toolkit.experiments.base import Setting
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Value
    from gilscope.toolkit.report.figures.figure import Figure
    from gilscope.toolkit.stats.sample import Summary

BULLDOGJOB = Source(
    title="GIL - weź asyncio", author="Bulldogjob", year=0,
    headline="400 pages: threads stop gaining near 20, asyncio is about twice as fast",
)
POOLS = ("threads", "free-threaded")
NAN = float("nan")
NAMES = {"loops": "a loop in each thread"}   # of models, where figures say more than the tables
WORKERS = (2, 5, 10, 20, 50, 100)
LATENCIES = ("20ms", "100ms")   # the source does not say its servers'; where threads stop gaining depends on it
HOW = (
    "Threads: a pool with requests, each thread with a connection of its own. asyncio: one loop with aiohttp.",
    "loops: one such loop per core, at least two, each in a thread; they share the requests at a time.",
    "The clock starts before the first worker does and stops with the last page.",
    "The server is a helper on gilscope's own Python on loopback and answers after a fixed latency.",
    CONTROL,
)
# Requests at a time by effort and model; what few of them do is the same for all models, so a quick look leaves it out.
GRID: dict[Effort, dict[str, tuple[int, ...]]] = {
    Effort.SMOKE: {"pool": (5,), "asyncio": (5,), "loops": (5,)},
    Effort.QUICK: {"pool": (5, 20, 100), "asyncio": (20, 100), "loops": (100,)},
    Effort.FULL: dict.fromkeys(("pool", "asyncio", "loops"), WORKERS),
}


class Downloads(Experiment):
    """Bulldogjob's first measurement."""

    name = "downloads"
    title = "Downloads: threads, asyncio, and a loop in each thread"
    summary = "400 small pages from a loopback server with fixed latency, 2 to 100 at a time"
    sources = (BULLDOGJOB,)
    claim = (
        "Threads that download pages gain nothing from about 20 of them on, since one thread at a time runs Python; "
        "one thread with asyncio is about twice as fast."
    )
    program = "downloads"
    packages = (REQUESTS, AIOHTTP)
    levels = {  # noqa: RUF012 - never changed
        Effort.SMOKE: Level(rounds=1, seconds=10, scales={"pages": 20}),
        Effort.QUICK: Level(rounds=3, seconds=45, scales={"pages": 200}),
        Effort.FULL: Level(rounds=8, seconds=3000, scales={"pages": 400}),
    }

    @override
    def candidates(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        for latency in LATENCIES if setting.full() else LATENCIES[:1]:
            for model in _models(setting, build):
                for workers in GRID[setting.effort]["pool" if model in POOLS else model]:
                    yield self.cell(build, model, workers, latency=latency), _reason(setting, build, model)

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        found = latencies_of(results)
        return (
            Lines("How", HOW),
            *(_times(results, latency) for latency in found),
            *(_costs(results, latency) for latency in found),
            _claims(results),
        )

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        return tuple(sentence for build in results.builds for sentence in findings(results, build))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        panels = [(build, latency) for latency in latencies_of(results) for build in results.builds]
        at_a_time = Axis("requests at a time (number)", log=True, ticks=tuple((float(n), str(n)) for n in WORKERS))
        return (
            LineFigure(
                name="downloads", title="Time for all pages by the number of requests at a time",
                x=at_a_time, y=seconds_axis("time for all pages", log=True),
                panels=tuple(_panel(results, build, latency, None, ideal=True)
                             for build, latency in panels),
                note="waiting alone: what the server's latency takes, pages x latency / requests at a time.",
            ),
            LineFigure(
                name="downloads-memory", title="Memory of the process with all workers alive",
                x=at_a_time, y=Axis("proportional set size (MiB)", lo=0.0),
                panels=tuple(_panel(results, build, latency, "pss", ideal=False) for build, latency in panels),
            ),
        )


def _models(setting: Setting, build: Build) -> list[str]:
    return [*setting.threads(build, control=setting.full()), "asyncio", "loops"]


def _reason(setting: Setting, build: Build, model: str) -> str | None:
    if model in POOLS:
        return setting.runner_reason(build, model) or missing(setting, build, REQUESTS)
    return missing(setting, build, AIOHTTP)


def _table(
    results: Results, latency: str, title: str, shown: dict[str, Callable[[Cell], Value | None]], *, doubts: bool
) -> Table:
    """Return a table of all models: under each build one column for each of `shown`, with doubts in the footnotes."""
    notes = Footnotes()
    columns = [Column(title="model", key=True, align="left"), Column(title="at a time", key=True)]
    columns += [Column(title=name, group=build.label) if name else Column(title=build.label)
                for build in results.builds for name in shown]
    rows = []
    for model, workers in rows_of(results, latency):
        found = [find(results, build, model, workers, latency) for build in results.builds]
        rows.append((Entry(model), Entry(str(workers)),
                     *(_entry(results, cell, show, notes, doubts=doubts) for cell in found for show in shown.values())))
    return Table(title=title, columns=tuple(columns), rows=tuple(rows), footnotes=notes.texts())


def _entry(
    results: Results, cell: Cell | None, show: Callable[[Cell], Value | None], notes: Footnotes, *, doubts: bool
) -> Entry:
    entry = results.entry(cell, show, notes)
    return Entry(entry.value, (*entry.marks, *notes.marks(warnings_of(results, cell)))) if doubts else entry


def _times(results: Results, latency: str) -> Table:
    title = f"Time for all pages, each answered after {spoken(latency)}"
    found = _table(results, latency, title, {"": results.duration}, doubts=True)
    alone = Column(title="waiting alone")
    rows = tuple((*row, _waiting(results, latency, workers))
                 for row, (_, workers) in zip(found.rows, rows_of(results, latency), strict=True))
    return Table(title=found.title, columns=(*found.columns, alone), rows=rows, footnotes=found.footnotes)


def _waiting(results: Results, latency: str, workers: int) -> Entry:
    pages = _pages(results)
    return Entry() if pages is None else Entry(Duration(_ideal(pages, latency, workers)))


def _ideal(pages: float, latency: str, workers: int) -> float:
    """Return how long `pages` pages take when nothing but the server's latency takes time."""
    return -(-pages // workers) * parse_seconds(latency)


def _pages(results: Results) -> float | None:
    found = (results.metric(cell, "pages") for cell in results.cells())
    return next((each.center for each in found if each is not None), None)


def _costs(results: Results, latency: str) -> Table:
    def shown(name: str, make: Callable[[Summary], Value | None]) -> Callable[[Cell], Value | None]:
        def show(cell: Cell) -> Value | None:
            found = results.metric(cell, name)
            return None if found is None else make(found)

        return show

    return _table(results, latency, f"What it takes, pages of {spoken(latency)}", {
        "CPU per page": shown("cpu_per_page", shown_duration),
        "threads": shown("threads", lambda found: Quantity(found.center, "")),
        "memory": shown("pss", lambda found: Size(found.center)),
        "added by workers": shown("added", lambda found: Size(found.center)),
    }, doubts=False)


def _claims(results: Results) -> Table:
    notes = Footnotes()
    columns = [Column(title="claim", key=True, align="left"), Column(title="pages of", key=True), Column(title="then")]
    columns += [Column(title=build.label, group="now") for build in results.builds]
    rows = []
    for latency in latencies_of(results):
        stop = [Entry(knee_text(pool_times(results, build, latency))) for build in results.builds]
        rows.append((Entry("threads stop gaining at"), Entry(spoken(latency)), Entry("near 20"), *stop))
        for model, then in (("asyncio", "about 2x"), ("loops", "-")):
            ratios = [_against_pool(results, build, model, latency, notes) for build in results.builds]
            what = f"{'asyncio' if model == 'asyncio' else 'a loop per thread'} against threads, each at its best"
            rows.append((Entry(what), Entry(spoken(latency)), Entry(then), *ratios))
    return Table(title="Then and now", columns=tuple(columns), rows=tuple(rows), footnotes=notes.texts())


def _against_pool(results: Results, build: Build, model: str, latency: str, notes: Footnotes) -> Entry:
    for each in (model, pool_of(build)):
        if best_cell(results, build, each, latency) is None:
            cells = results.cells(build=build.label, runner=each, latency=latency)
            return results.entry(widest_cell(cells), lambda _: None, notes)
    found = over_pool(results, build, model, latency)
    return Entry("-") if found is None else Entry(Ratio(found))


def _panel(results: Results, build: Build, latency: str, metric: str | None, *, ideal: bool) -> LinePanel:
    models = dict.fromkeys(model for model, _ in rows_of(results, latency))
    lines = [_line(results, build, model, latency, metric) for model in models]
    series = [line for line in lines if line.x]
    pages = _pages(results)
    if ideal and series and pages is not None:
        places = sorted({place for line in series for place in line.x})
        alone = tuple(_ideal(pages, latency, int(place)) for place in places)
        series.append(Series("waiting alone", tuple(places), alone, style="history"))
    several = len(latencies_of(results)) > 1
    return LinePanel(f"{build.label}, {spoken(latency)} a page" if several else build.label, tuple(series))


def _line(results: Results, build: Build, model: str, latency: str, metric: str | None) -> Series:
    found: dict[int, Summary | None] = {
        cell.workers: results.value(cell) if metric is None else results.metric(cell, metric)
        for cell in results.cells(build=build.label, runner=model, latency=latency)
    }
    unit = 1.0 if metric is None else 1024.0**2
    center, lo, hi = (tuple(NAN if each is None else getattr(each, name) / unit for each in found.values())
                      for name in ("center", "lo", "hi"))
    return Series(NAMES.get(model, model), tuple(map(float, found)), center, lo=lo, hi=hi, model=model)
