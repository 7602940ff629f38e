"""`aggregator`: a service that asks five back ends per request, under a load that does not wait for answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import expm1, log, nan
from statistics import fmean, median
from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.base import (
    AIOHTTP,
    BULLDOGJOB,
    CONTROL,
    GEVENT,
    REQUESTS,
    SLOW_PARSER,
    TORNADO,
    EffortLevel,
    EffortSettings,
    Experiment,
    threads_model,
)
from gilscope.toolkit.experiments.load.backend_answers import BACKENDS
from gilscope.toolkit.experiments.load.open_loop import has_p99
from gilscope.toolkit.experiments.results import as_quantity, parameter
from gilscope.toolkit.experiments.round_texts import range_words, round_ratios, times_text, two_digits
from gilscope.toolkit.experiments.tables_and_figures import (
    UNKNOWN,
    TableBuilder,
    bounded,
    label_column,
    measured_series,
    p99_doubts,
    show_metric,
    value_columns,
)
from gilscope.toolkit.report.document import Lines, Quantity
from gilscope.toolkit.report.figures.figure import (
    Axis,
    CategoryFigure,
    CategoryPanel,
    LineFigure,
    LinePanel,
    Rule,
    seconds_axis,
)
from gilscope.toolkit.report.figures.plots.ticks import seconds_text
from gilscope.toolkit.report.wording import number_text, range_text
from gilscope.toolkit.units import counted, format_seconds, list_text, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.experiments.base import Package, PlanningContext
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.experiments.tables_and_figures import Bounded, Show
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Table
    from gilscope.toolkit.report.figures.figure import Figure
    from gilscope.toolkit.stats.sample import Summary


@dataclass(frozen=True, slots=True)
class UserLoad:
    """The requests that users send to the service."""

    users: str
    rate: str   # requests a second of each user

    @property
    def text(self) -> str:
        """Label in tables and figures."""
        return f"{self.users} users x {self.rate}/s"

    @property
    def short(self) -> str:
        """The heading of a narrow column."""
        return f"{self.users} x {self.rate}/s"

    @property
    def requests(self) -> float:
        """Requests a second, all users together."""
        return float(self.users) * float(self.rate)


SOURCE = replace(
    BULLDOGJOB,
    headline="under 24 users x 8 requests/s the threaded service answers none of the requests, asyncio nearly all",
)
LIGHT, HEAVY = UserLoad("5", "2"), UserLoad("24", "8")
LIMIT = 1.0            # seconds within which an answer counts
# Requests that a pool of threads serves at a time, by effort.  At 192 requests/s of 0.1 s each 20 are under way.
POOLS = {EffortLevel.SMOKE: (4,), EffortLevel.QUICK: (32,), EffortLevel.FULL: (8, 32, 128)}
POOL = 32              # the pool that every effort but the smallest measures
BACK_ENDS = f"Back ends answer after {list_text(f'{each * 1000:g}' for each in BACKENDS.values())} ms"
HOW = (
    f"{BACK_ENDS}; the source does not give its latencies.",
    "All services ask the five at once, the threads by five more threads; only sync asks one after the other.",
    "Requests are sent at scheduled times, each on a connection of its own; latency counts from those times.",
    "Load and back ends are helpers on gilscope's own Python beside the service.",
    CONTROL,
)
POOLED = ("threads", "free-threaded")
LIBRARIES: dict[str, tuple[Package, ...]] = {
    "sync": (REQUESTS,), "threads": (REQUESTS,), "free-threaded": (REQUESTS,), "gevent": (GEVENT, REQUESTS),
    "tornado": (TORNADO,), "asyncio": (AIOHTTP,),
}
THEN = {"threads": "none", "asyncio": "nearly all"}   # the published answers under the heavy load
PERCENTILES = ("p50", "p90", "p99", "max")
FALLING = 2.0      # latency of the last third of the requests over the first third's: such a service falls behind
NEARLY_ALL = 0.95
HARDLY_ANY = 0.05
NEAR_ONE = 0.7     # cores: system calls run without the GIL, so one core is no sharp limit


class AggregatorExperiment(Experiment):
    """Bulldogjob's second measurement."""

    name = "aggregator"
    title = "Aggregator: a service that waits for five others"
    summary = "a service that merges the answers of 5 back ends, under 5 users x 2 and 24 users x 8 requests/s"
    sources = (SOURCE,)
    claim = (
        "Under 24 users with 8 requests a second each, a threaded service answers none of them and one with asyncio "
        "nearly all."
    )
    program = "aggregator"
    packages = (REQUESTS, AIOHTTP, TORNADO, GEVENT)
    levels = {
        # "latency" multiplies the back ends' own latencies.
        EffortLevel.SMOKE: EffortSettings(
            rounds=1, seconds=15, scales={"latency": 0.1, "seconds": 0.5, "limit": LIMIT}),
        EffortLevel.QUICK: EffortSettings(
            rounds=3, seconds=70, scales={"latency": 1.0, "seconds": 1.2, "limit": LIMIT}),
        EffortLevel.FULL: EffortSettings(
            rounds=5, seconds=2200, scales={"latency": 1.0, "seconds": 10.0, "limit": LIMIT}),
    }

    @override
    def candidates(self, context: PlanningContext, build: Build) -> Iterator[tuple[Cell, str | None]]:
        # The heavy load comes first, since the A/A arm is of the first cell.
        for load in (LIGHT,) if context.effort is EffortLevel.SMOKE else (HEAVY, LIGHT):
            for model, workers in _services_planned(context, build, load):
                cell = self.cell(build, model, workers, users=load.users, rate=load.rate)
                yield cell, _reason(context, build, model)

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        loads = _loads(results)
        return (
            Lines("How", HOW),
            _success_table(results, loads),
            *(_latency_table(results, build, load) for load in loads for build in results.builds),
            *(_cost_table(results, build, loads[-1]) for build in results.builds if loads),
        )

    @override
    def build_findings(self, results: Results, build: Build) -> Iterator[str]:
        pool = _find(results, build, threads_model(build), POOL, HEAVY)
        loop = _find(results, build, "asyncio", 1, HEAVY)
        threads, events = ([*results.metrics(cell, "success").values()] for cell in (pool, loop))
        if not threads or not events:
            return
        falls_behind = (results.center(pool, "growth") or 0.0) > FALLING and median(threads) > HARDLY_ANY
        yield (
            f"{build.label}, {HEAVY.text}: {POOL} {'free ' if build.free_threaded else ''}threads answer "
            f"{_answered_text(results, pool)} in time, asyncio {_answered_text(results, loop)}; "
            f"{_judgement(threads, events)}"
            + (" Their latency grew meanwhile, though: under a longer load they would fall behind."
               if falls_behind else "")
        )
        yield from _on_cost(results, build, pool, loop)
        alone = _find(results, build, "sync", 1, HEAVY)
        answered = results.metrics(alone, "success").values()
        if answered and max(answered) <= HARDLY_ANY:
            yield (f"{build.label}: one thread that asks one back end after the other answers "
                   f"{_answered_text(results, alone)}: it can serve "
                   f"{1 / sum(BACKENDS.values()):.1f} requests/s, as the latencies of its back ends add up.")

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        loads = _loads(results)
        ticks = tuple((float(place), name) for place, name in enumerate(PERCENTILES))
        whiskers = range_words(results.value(cell) for cell in results.cells())
        return (
            CategoryFigure(
                name="aggregator", title=f"Requests answered right within {seconds_text(LIMIT)}",
                y=Axis("share of all requests (%)", lo=0.0, hi=105.0), x_title="how the service is written",
                panels=tuple(_success_panel(results, build, loads) for build in results.builds),
                whiskers=whiskers, note=f"{BACK_ENDS}.{_left_out(results, loads)}",
            ),
            LineFigure(
                name="aggregator-latency", title="Latency from the time a request was scheduled",
                x=Axis("percentile of all requests", ticks=ticks), y=seconds_axis("latency", log=True),
                panels=tuple(_latency_panel(results, build, load) for load in loads for build in results.builds),
                whiskers=whiskers, note=f"{BACK_ENDS}. A request that failed counts as {seconds_text(LIMIT)}.",
            ),
        )


def _services_planned(context: PlanningContext, build: Build, load: UserLoad) -> Iterator[tuple[str, int]]:
    """Yield the models with the number of requests that each serves in threads.

    A quick run leaves out what is known beforehand: every service but the single thread bears the light load, and the
    GIL makes no difference to that thread.
    """
    brief = context.effort is EffortLevel.QUICK
    loops = () if brief and load is LIGHT else ("gevent", "tornado")
    if loops:
        yield "asyncio", 1
    for model in context.threads(build, control=context.full()):
        yield from ((model, workers) for workers in POOLS[context.effort])
    yield from ((model, 1) for model in loops)
    if not (brief and build.free_threaded):
        yield "sync", 1


def _reason(context: PlanningContext, build: Build, model: str) -> str | None:
    if model in POOLED and (reason := context.runner_reason(build, model)):
        return reason
    return context.package_reason(build, *LIBRARIES[model])


# Cells


def _loads(results: Results) -> list[UserLoad]:
    """Return the loads of the run's cells, the light one first."""
    found = {UserLoad(parameter(cell, "users"), parameter(cell, "rate")) for cell in results.cells()}
    return [load for load in (LIGHT, HEAVY) if load in found]


def _find(results: Results, build: Build, model: str, workers: int, load: UserLoad) -> Cell | None:
    return results.find(build=build.label, runner=model, workers=workers, users=load.users, rate=load.rate)


def _doubts(results: Results, cell: Cell | None) -> list[str]:
    """Return reasons to doubt a measured cell's numbers: failures, a generator at its limits, a growing queue."""
    success = results.metric(cell, "success")
    if cell is None or success is None:
        return []
    found = []
    failures = [text for text in results.texts(cell, "failures") if text]
    if failures:
        found.append(f"{cell.build}, {cell.runner}: failed, in the last round with failures: {failures[-1]}")
    saturated = [text for text in results.texts(cell, "saturated") if text]
    if saturated:
        found.append(f"{saturated[-1]}: these latencies include its own delay")
    if "Python" in results.texts(cell, "parser"):
        found.append(SLOW_PARSER)
    growth = results.metric(cell, "growth")
    if growth is not None and growth.center > FALLING and success.center > HARDLY_ANY:
        found.append(f"latency grew {growth.center:.1f}x from the first to the last third of the requests: the service "
                     "falls behind, and a longer load would see more of them fail")
    return found


def _service_name(model: str, workers: int) -> str:
    return f"{model}, {workers} at a time" if model in POOLED else model


# Tables


def _success_table(results: Results, loads: Sequence[UserLoad]) -> Table:
    """Return the share of requests that were answered right in time, beside the published one."""
    titles = [load.short for load in loads]
    table = TableBuilder(
        results, f"Answered right within {seconds_text(LIMIT)}, by users x requests/s of each", label_column("service"),
        *(column for build in results.builds for column in value_columns(titles, build.label, build.label)),
        *value_columns([HEAVY.short], "then"))
    share = show_metric(results, "success", lambda found: Quantity(found.center * 100, " %"))
    for model, workers in results.rows():
        cells = [_find(results, build, model, workers, load) for build in results.builds for load in loads]
        table.add(_service_name(model, workers),
                  *(table.entry(cell, share, _doubts(results, cell)) for cell in cells), THEN.get(model, "-"))
    return table.build()


def _latency_table(results: Results, build: Build, load: UserLoad) -> Table:
    title = f"Latency on {build.label} under {load.text}; failed requests count as {seconds_text(LIMIT)}"
    shown: dict[str, Show] = {name: partial(_latency, results, name) for name in PERCENTILES}
    return _service_table(results, build, load, title, {"requests": _requests(results), **shown})


def _requests(results: Results) -> Show:
    return show_metric(results, "scheduled", lambda found: number_text(found.center))


def _latency(results: Results, name: str, cell: Cell) -> Quantity | None:
    """Return the percentile `name`, no 99th of few requests; without a spread where the limit cut off a round."""
    if name == "max":
        return results.longest(cell, name)
    if name == "p99" and not has_p99(results.metrics(cell, "scheduled").values()):
        return None
    found = as_quantity(results.metric(cell, name))
    cut = max(results.metrics(cell, name).values(), default=0.0) >= LIMIT
    return replace(found, spread=None) if found is not None and cut else found


def _cost_table(results: Results, build: Build, load: UserLoad) -> Table:
    def number(found: Summary) -> Quantity:
        return Quantity(found.center, "")

    return _service_table(results, build, load, f"What it takes on {build.label} under {load.text}", {
        "CPU per answer": show_metric(results, "cpu_per_answer", as_quantity),
        "cores used": show_metric(results, "cores", number),
        "threads": show_metric(results, "threads", number),
        "memory": show_metric(results, "pss", lambda found: Quantity(found.center, "bytes")),
        "cores of helpers": show_metric(results, "helper_cores", number),
    })


def _service_table(results: Results, build: Build, load: UserLoad, title: str, shown: dict[str, Show]) -> Table:
    """Return a table of one build's services under a load, with a column for each entry of `shown`."""
    table = TableBuilder(results, title, label_column("service"), *value_columns(shown))
    for model, workers in results.rows(build=build.label):
        if (cell := _find(results, build, model, workers, load)) is not None:
            doubts = p99_doubts(results.metrics(cell, "scheduled"))
            table.add(_service_name(model, workers), *(
                table.entry(cell, show, doubts if name == "p99" else ()) for name, show in shown.items()))
    return table.build()


# Findings


def _answered_text(results: Results, cell: Cell | None) -> str:
    """Return how many requests of all rounds were answered in time: "all 480 requests (2 rounds)"."""
    shares, scheduled = results.metrics(cell, "success"), results.metrics(cell, "scheduled")
    if shares.keys() != scheduled.keys():   # without their number, a share is all there is
        share = median(shares.values())
        return f"{percent(share, 1) if share else 'none'} of the requests"
    total = round(sum(scheduled.values()))
    answered = round(sum(share * scheduled[key] for key, share in shares.items()))
    rounds = counted(len(shares), "round")
    if answered == total:
        return f"all {total:,} requests ({rounds})"
    return f"{f'{answered:,}' if answered else 'none'} of {total:,} requests ({rounds})"


def _judgement(threads: Sequence[float], events: Sequence[float]) -> str:
    """Return the words on the claim: every round has to agree.

    Args:
        threads: The shares of the requests that threads answered, by round.
        events: Those that asyncio answered.
    """
    fails, all_events = max(threads) < NEARLY_ALL, min(events) >= NEARLY_ALL
    if min(threads) >= NEARLY_ALL and all_events:
        return "that threads answer none is not reproduced here; the source does not give its pools and latencies."
    if max(threads) <= HARDLY_ANY and all_events:
        return "as published."
    if fails and min(threads) > HARDLY_ANY and all_events:
        return "threads do worse, but not as badly as published."
    if fails and max(events) < NEARLY_ALL:
        return "neither keeps up here."
    return "the rounds do not agree on who keeps up."


def _on_cost(results: Results, build: Build, pool: Cell | None, loop: Cell | None) -> Iterator[str]:
    """State the cores that the heavy load took, of which a GIL gives Python code one."""
    costs = [results.metrics(cell, "cpu_per_answer") for cell in (pool, loop)]
    cores = [[*results.metrics(cell, "cores").values()] for cell in (pool, loop)]
    more = round_ratios(*costs)
    if not more or not all(cores):
        return
    took, used = [median(cost.values()) for cost in costs], [median(each) for each in cores]
    twin = results.metrics(replace(loop, twin=True), "cpu_per_answer") if loop is not None else {}
    times = _times_of_twins(more, round_ratios(costs[0], twin), round_ratios(twin, costs[1]))
    start = (f"{build.label}: an answer takes the threads {format_seconds(took[0])} of CPU time, asyncio "
             f"{format_seconds(took[1])}, so the threads {times} as much; under this load they used {used[0]:.2f} and "
             f"{used[1]:.2f} cores")
    if build.free_threaded:
        yield f"{start}; without the GIL the threads may use several cores."
        return
    near = ("the threads are near that" if min(cores[0]) > NEAR_ONE else
            "both stay below that" if max(*cores[0], *cores[1]) <= NEAR_ONE else
            "the rounds do not agree whether the threads are near that")
    yield f"{start}. Under the GIL Python code has one core: {near}, and a service that needs more falls behind."


def _times_of_twins(more: Sequence[float], again: Sequence[float], twins: Sequence[float]) -> str:
    """Return the ratios to a service; the range includes those to its A/A arm, if they share rounds.

    Args:
        more: The ratios by round.
        again: The same to the A/A arm.
        twins: The A/A arm's values over those of the service.
    """
    if not again or not twins:
        return times_text(more)
    off = expm1(abs(fmean(map(log, twins))))
    return (f"{range_text([*more, *again], two_digits)} times ({counted(len(more), 'round')}; asyncio, measured twice, "
            f"differed by {percent(off)})")


# Figures


def _success_panel(results: Results, build: Build, loads: Sequence[UserLoad]) -> CategoryPanel:
    rows = results.rows(build=build.label)
    series = (
        measured_series(load.text, (
            (place, bounded(results.metric(cell, "success"), lambda share: share * 100))
            for place, row in enumerate(rows) if (cell := _find(results, build, *row, load)) is not None))
        for load in loads
    )
    names = (f"{model.replace('-', '-\n')}\n{workers}" if model in POOLED else model for model, workers in rows)
    return CategoryPanel(build.label, tuple(names), tuple(series))


def _left_out(results: Results, loads: Sequence[UserLoad]) -> str:
    """Return why a service may have fewer bars than others, "" where all have all."""
    everywhere = all(_find(results, build, *row, load) for build in results.builds
                     for row in results.rows(build=build.label) for load in loads)
    return "" if everywhere else " --quick does not put both loads on every service."


def _largest_point(results: Results, cell: Cell | None) -> Bounded:
    """Return the longest latency of all rounds for the figure: a maximum, without an interval."""
    found = results.longest(cell, "max")
    return UNKNOWN if found is None else (found.value, nan, nan)


def _latency_panel(results: Results, build: Build, load: UserLoad) -> LinePanel:
    rows = results.rows(build=build.label)
    pools = {workers for model, workers in rows if model in POOLED}
    series = []
    for model, workers in rows:
        if model in POOLED and workers != POOL and POOL in pools:
            continue   # more lines than can be distinguished; the tables have all
        cell = _find(results, build, model, workers, load)
        known = [(place, _largest_point(results, cell) if name == "max" else bounded(found))
                 for place, name in enumerate(PERCENTILES) if (found := results.metric(cell, name)) is not None
                 and (name != "p99" or has_p99(results.metrics(cell, "scheduled").values()))]
        if known:
            series.append(measured_series(_service_name(model, workers), known, model))
    return LinePanel(f"{build.label}, {load.text}", tuple(series),
                     rules=(Rule(LIMIT, f"limit {seconds_text(LIMIT)}", "y"),))
