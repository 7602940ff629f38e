"""`aggregator`: a service that asks five back ends per request, under a load that does not wait for answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.aggregator.claims import (
    LOADS,
    POOL,
    Load,
    find,
    findings,
    loads_of,
    rows_of,
    warnings_of,
)
from gilscope.toolkit.experiments.base import Effort, Experiment, Level, Source
from gilscope.toolkit.experiments.libraries import AIOHTTP, CONTROL, GEVENT, REQUESTS, TORNADO, missing
from gilscope.toolkit.experiments.load.http.backend_answers import BACKENDS
from gilscope.toolkit.experiments.results import shown_duration
from gilscope.toolkit.report.document import Column, Entry, Lines, Quantity, Size, Table
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
from gilscope.toolkit.report.wording import list_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gilscope.toolkit.experiments.base import Package, Setting
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Value
    from gilscope.toolkit.report.figures.figure import Figure
    from gilscope.toolkit.stats.sample import Summary

BULLDOGJOB = Source(
    title="GIL - weź asyncio", author="Bulldogjob", year=0,
    headline="under 24 users x 8 requests/s the threaded service answers none of the requests, asyncio nearly all",
)
LIMIT = 1.0            # seconds within which an answer counts
NAN = float("nan")
# Requests that a pool of threads serves at a time, by effort.  At 192 requests/s of 0.1 s each 20 are under way.
POOLS = {Effort.SMOKE: (4,), Effort.QUICK: (32,), Effort.FULL: (8, 32, 128)}
BACK_ENDS = f"Back ends answer after {list_text(f'{each * 1000:g}' for each in BACKENDS.values())} ms"
HOW = (
    f"{BACK_ENDS}; how fast the source's were is not known.",
    "All services ask the five at once, the threads by five more threads; only sync asks one after the other.",
    "Requests come at their times whatever is answered, each on a connection of its own; latency counts from those.",
    "Load and back ends are helpers on gilscope's own Python beside the service.",
    CONTROL,
)
POOLED = ("threads", "free-threaded")
LIBRARIES: dict[str, Package] = {
    "sync": REQUESTS, "threads": REQUESTS, "free-threaded": REQUESTS, "gevent": GEVENT, "tornado": TORNADO,
    "asyncio": AIOHTTP,
}
# What the source says of 24 users x 8 requests/s.
THEN = {"threads": "none", "asyncio": "nearly all"}
PERCENTILES = ("p50", "p90", "p99", "max")


class Aggregator(Experiment):
    """Bulldogjob's second measurement."""

    name = "aggregator"
    title = "Aggregator: a service that waits for five others"
    summary = "a service that merges the answers of 5 back ends, under 5 users x 2 and 24 users x 8 requests/s"
    sources = (BULLDOGJOB,)
    claim = (
        "Under 24 users with 8 requests a second each, a threaded service answers none of them and one with asyncio "
        "nearly all."
    )
    program = "aggregator"
    packages = (REQUESTS, AIOHTTP, TORNADO, GEVENT)
    levels = {  # noqa: RUF012 - never changed
        # "latency": factor to the back ends' own latencies.
        Effort.SMOKE: Level(rounds=1, seconds=15, scales={"latency": 0.1, "seconds": 0.5, "limit": LIMIT}),
        Effort.QUICK: Level(rounds=3, seconds=70, scales={"latency": 1.0, "seconds": 1.2, "limit": LIMIT}),
        Effort.FULL: Level(rounds=5, seconds=2200, scales={"latency": 1.0, "seconds": 10.0, "limit": LIMIT}),
    }

    @override
    def candidates(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        loads = LOADS[:1] if setting.effort is Effort.SMOKE else LOADS
        for load in reversed(loads):   # the A/A arm is of the first: one under load
            for model, workers in _planned(setting, build, load):
                cell = self.cell(build, model, workers, users=load.users, rate=load.rate)
                yield cell, _reason(setting, build, model)

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        loads = loads_of(results)
        return (
            Lines("How", HOW),
            _success(results, loads),
            *(_latencies(results, build, load) for load in loads for build in results.builds),
            *(_costs(results, build, loads[-1]) for build in results.builds if loads),
        )

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        return tuple(sentence for build in results.builds for sentence in findings(results, build))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        loads = loads_of(results)
        ticks = tuple((float(place), name) for place, name in enumerate(PERCENTILES))
        return (
            CategoryFigure(
                name="aggregator", title=f"Requests answered right within {seconds_text(LIMIT)}",
                y=Axis("share of all requests (%)", lo=0.0, hi=105.0), x_title="how the service is written",
                panels=tuple(_bars(results, build, loads) for build in results.builds),
                note=f"{BACK_ENDS}.{_left_out(results, loads)}",
            ),
            LineFigure(
                name="aggregator-latency", title="Latency from the time a request was scheduled",
                x=Axis("percentile of all requests", ticks=ticks), y=seconds_axis("latency", log=True),
                panels=tuple(_curves(results, build, load) for load in loads for build in results.builds),
                note=f"{BACK_ENDS}. A request that failed counts as {seconds_text(LIMIT)}.",
            ),
        )


def _planned(setting: Setting, build: Build, load: Load) -> Iterator[tuple[str, int]]:
    """Give the models with the number of requests that each serves in threads.

    A quick look leaves out what is known beforehand: that all but one thread alone bear the light load, and that it
    does not matter to that one whether there is a GIL.
    """
    brief = setting.effort is Effort.QUICK
    loops = () if brief and load is LOADS[0] else ("gevent", "tornado")
    if loops:
        yield "asyncio", 1
    for model in setting.threads(build, control=setting.full()):
        yield from ((model, workers) for workers in POOLS[setting.effort])
    yield from ((model, 1) for model in loops)
    if not (brief and build.free_threaded):
        yield "sync", 1


def _reason(setting: Setting, build: Build, model: str) -> str | None:
    if model in POOLED and (reason := setting.runner_reason(build, model)):
        return reason
    needed = (LIBRARIES[model], REQUESTS) if model == "gevent" else (LIBRARIES[model],)
    return missing(setting, build, *needed)


def _name(model: str, workers: int) -> str:
    return f"{model}, {workers} at a time" if model in POOLED else model


def _success(results: Results, loads: Sequence[Load]) -> Table:
    """Return the share of requests that were answered right in time, beside what the source says."""
    notes = Footnotes()
    columns = [Column(title="service", key=True, align="left")]
    columns += [Column(title=load.short, group=build.label) for build in results.builds for load in loads]
    columns.append(Column(title=LOADS[-1].short, group="then"))

    def shown(cell: Cell) -> Value | None:
        found = results.metric(cell, "success")
        return None if found is None else Quantity(found.center * 100, " %")

    rows = []
    for model, workers in rows_of(results):
        cells = [find(results, build, model, workers, load) for build in results.builds for load in loads]
        entries = [_warned(results, cell, results.entry(cell, shown, notes), notes) for cell in cells]
        rows.append((Entry(_name(model, workers)), *entries, Entry(THEN.get(model, "-"))))
    title = f"Answered right within {seconds_text(LIMIT)}, by users x requests/s of each"
    return Table(title=title, columns=tuple(columns), rows=tuple(rows), footnotes=notes.texts())


def _warned(results: Results, cell: Cell | None, entry: Entry, notes: Footnotes) -> Entry:
    """Return the entry with what a reader must know of the cell: what failed, and whose limits these are."""
    found = warnings_of(results, cell)
    return Entry(entry.value, (*entry.marks, *notes.marks(found))) if found else entry


def _metric(results: Results, name: str, make: Callable[[Summary], Value | None]) -> Callable[[Cell], Value | None]:
    def show(cell: Cell) -> Value | None:
        found = results.metric(cell, name)
        return None if found is None else make(found)

    return show


def _latencies(results: Results, build: Build, load: Load) -> Table:
    shown = {name: _metric(results, name, shown_duration) for name in PERCENTILES}
    return _table(results, build, load, f"Latency on {build.label} under {load.text}; failed requests count as "
                  f"{seconds_text(LIMIT)}", shown)


def _costs(results: Results, build: Build, load: Load) -> Table:
    return _table(results, build, load, f"What it takes on {build.label} under {load.text}", {
        "CPU per answer": _metric(results, "cpu_per_answer", shown_duration),
        "cores used": _metric(results, "cores", lambda found: Quantity(found.center, "")),
        "threads": _metric(results, "threads", lambda found: Quantity(found.center, "")),
        "memory": _metric(results, "pss", lambda found: Size(found.center)),
        "cores of helpers": _metric(results, "helper_cores", lambda found: Quantity(found.center, "")),
    })


def _table(
    results: Results, build: Build, load: Load, title: str, shown: dict[str, Callable[[Cell], Value | None]]
) -> Table:
    notes = Footnotes()
    columns = [Column(title="service", key=True, align="left"), *(Column(title=name) for name in shown)]
    rows = []
    for model, workers in rows_of(results, build):
        if (cell := find(results, build, model, workers, load)) is not None:
            rows.append((Entry(_name(model, workers)), *(results.entry(cell, show, notes) for show in shown.values())))
    return Table(title=title, columns=tuple(columns), rows=tuple(rows), footnotes=notes.texts())


def _bars(results: Results, build: Build, loads: Sequence[Load]) -> CategoryPanel:
    rows = rows_of(results, build)
    series = []
    for load in loads:
        planned = [(place, cell) for place, row in enumerate(rows)
                   if (cell := find(results, build, *row, load)) is not None]
        found = [results.metric(cell, "success") for _, cell in planned]
        center, lo, hi = (
            tuple(NAN if each is None else getattr(each, name) * 100 for each in found)
            for name in ("center", "lo", "hi")
        )
        series.append(Series(load.text, tuple(float(place) for place, _ in planned), center, lo=lo, hi=hi))
    return CategoryPanel(build.label, tuple(_short(*row) for row in rows), tuple(series))


def _left_out(results: Results, loads: Sequence[Load]) -> str:
    """Return why a service may have fewer bars than others; "" where all have all."""
    everywhere = all(find(results, build, *row, load) for build in results.builds for row in rows_of(results, build)
                     for load in loads)
    return "" if everywhere else " --quick does not put both loads on every service."


def _short(model: str, workers: int) -> str:
    return f"{model.replace('-', '-\n')}\n{workers}" if model in POOLED else model


def _curves(results: Results, build: Build, load: Load) -> LinePanel:
    rows = rows_of(results, build)
    pools = {workers for model, workers in rows if model in POOLED}
    series = []
    for model, workers in rows:
        if model in POOLED and workers != POOL and POOL in pools:
            continue   # more lines than can be told apart; the tables have all
        cell = find(results, build, model, workers, load)
        found = [results.metric(cell, name) for name in PERCENTILES]
        known = [(float(place), each) for place, each in enumerate(found) if each is not None]
        if known:
            series.append(Series(
                _name(model, workers), tuple(place for place, _ in known), tuple(each.center for _, each in known),
                lo=tuple(each.lo for _, each in known), hi=tuple(each.hi for _, each in known), model=model))
    return LinePanel(f"{build.label}, {load.text}", tuple(series),
                     rules=(Rule(LIMIT, f"limit {seconds_text(LIMIT)}", "y"),))
