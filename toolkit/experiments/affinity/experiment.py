"""`affinity`: the effect of keeping threads on one core, once recommended against the GIL's costs on several."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, override

from gilscope.toolkit.concurrency_models import family
from gilscope.toolkit.experiments.base import (
    GEVENT,
    SKVORTSOV,
    EffortLevel,
    EffortSettings,
    Experiment,
    Package,
    Publication,
    threads_model,
)
from gilscope.toolkit.experiments.load.open_loop import has_p99
from gilscope.toolkit.experiments.results import parameter
from gilscope.toolkit.experiments.round_texts import range_words, round_ratios, rounds_text, times_text
from gilscope.toolkit.experiments.tables_and_figures import (
    TableBuilder,
    bounded,
    build_columns,
    key_column,
    label_column,
    measured_series,
    p99_doubts,
    published_series,
    relative_time,
    value_columns,
)
from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.figures.figure import Axis, CategoryFigure, CategoryPanel, LineFigure, LinePanel, Rule
from gilscope.toolkit.report.wording import interval_text, number_text, ratio_number
from gilscope.toolkit.stats.verdict import MIN_ROUNDS, SpeedVerdict
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.base import PlanningContext
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build
    from gilscope.toolkit.report.document import Section, Table, Value
    from gilscope.toolkit.report.figures.figure import Figure, Series
    from gilscope.toolkit.stats.verdict import Comparison

HABR = Publication(
    title="GIL is hardly a hindrance", author="Habr", year=2012,
    headline="10.41 s sequential, 13.25 s with 2 threads, 10.45 s with 2 threads on one core",
)
SOURCE = replace(
    SKVORTSOV,
    headline="24,000, 12,000, 3,000, 30 and 10 requests/s with 0, 1, 2, 4 and 8 CPU threads, all on one core with the "
    "client",
)
ONE_CORE = "this process may use one core only"

# The countdown: the ways to do it, as the tables name them, and the seconds of 2012.
SEQUENTIAL_SECONDS, FREE_SECONDS = 10.41, 13.25
WAYS: dict[str, float | None] = {
    "one after the other": SEQUENTIAL_SECONDS,
    "2 threads": FREE_SECONDS,
    "2 threads on one core": 10.45,
    "2 gevent-patched threads": None,
    "2 processes": None,
}
SEQUENTIAL, FREE, PINNED, PATCHED, APART = WAYS
PROCESSES = "processes-spawn"

# The echo server: places of its client, numbers of CPU threads beside it, and the requests/s of 2021.
PLACES = {"same": "client on the same core", "other": "client on another core", "free": "nothing pinned"}
CPU_THREADS = (0, 1, 2, 4, 8)
THEN = {0: 24_000.0, 1: 12_000.0, 2: 3_000.0, 4: 30.0, 8: 10.0}  # client on the same core
HELPS = 3.0  # times the requests/s from which pinning counts as a help
# Numbers of CPU threads by effort, by whether there is a GIL, and by place; without a GIL fewer show as much.
GRID: dict[tuple[EffortLevel, bool], dict[str, tuple[int, ...]]] = {
    (EffortLevel.SMOKE, True): {"same": (1,), "other": (1,)},
    (EffortLevel.SMOKE, False): {"same": (1,), "other": (1,)},
    (EffortLevel.QUICK, True): {"same": (0, 1, 2, 8), "other": (0, 1), "free": (1,)},
    (EffortLevel.QUICK, False): {"same": (0, 1, 8), "other": (1,)},
    (EffortLevel.FULL, True): dict.fromkeys(PLACES, CPU_THREADS),
    (EffortLevel.FULL, False): dict.fromkeys(PLACES, CPU_THREADS),
}


class AffinityExperiment(Experiment):
    """The cure of 2012 for CPU work, and the one of 2021 for a server beside it."""

    name = "affinity"
    title = "Affinity: what it helps to keep threads on one core"
    summary = "the countdown and the echo server with all threads pinned to one core, and not"
    sources = (HABR, SOURCE)
    claim = (
        "In 2012 two threads took 27 % longer than none, and no longer than none once they were pinned to one core. In "
        "2021 pinning kept an echo server at 12,000 requests/s beside a CPU thread, with its client on the same core."
    )
    program = "affinity"
    packages = (Package(requirement="psutil>=7.0", module="psutil"), GEVENT)
    levels = {
        EffortLevel.SMOKE: EffortSettings(
            rounds=1, seconds=12, scales={"count": 200_000, "seconds": 0.05, "least": 3, "bound": 5.0}),
        EffortLevel.QUICK: EffortSettings(
            rounds=5, seconds=60, scales={"count": 8_000_000, "seconds": 0.3, "least": 6, "bound": 5.0}),
        EffortLevel.FULL: EffortSettings(
            rounds=12, seconds=1800, scales={"count": 100_000_000, "seconds": 2.0, "least": 30, "bound": 20.0}),
    }
    timeout = 120.0  # 100,000,000 decrements on 3.13t on a busy core take more than a minute

    @override
    def candidates(self, context: PlanningContext, build: Build) -> Iterator[tuple[Cell, str | None]]:
        reason, model = context.runner_reason(build, threads_model(build)), threads_model(build)
        too_few_cores = ONE_CORE if context.cores == 1 else None
        yield countdown_cell(build, SEQUENTIAL), None
        yield countdown_cell(build, FREE), reason
        yield countdown_cell(build, PINNED), reason or too_few_cores
        yield countdown_cell(build, PATCHED), context.package_reason(build, GEVENT)
        yield countdown_cell(build, APART), context.runner_reason(build, PROCESSES)
        for place, counts in GRID[context.effort, not build.free_threaded].items():
            lacking = too_few_cores if place == "other" else None
            for count in counts:
                yield self.cell(build, model, count, work="echo", client=place), reason or lacking

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        return (
            _seconds_table(results), _speedup_table(results),
            *(_echo_table(results, build) for build in results.builds if _places(results, build)),
        )

    @override
    def build_findings(self, results: Results, build: Build) -> Iterator[str]:
        yield from _on_countdown(results, build)
        yield from _on_echo(results, build)

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        return (_countdown_figure(results), _echo_figure(results))


# The countdown


def countdown_cell(build: Build, way: str) -> Cell:
    """Return the cell of the countdown done in `way`, a key of WAYS."""
    model, workers, cpus = {
        SEQUENTIAL: ("serial", 1, "all"), FREE: (threads_model(build), 2, "all"),
        PINNED: (threads_model(build), 2, "one"), PATCHED: ("gevent", 2, "all"), APART: (PROCESSES, 2, "all"),
    }[way]
    return Cell(workload="affinity", runner=model, workers=workers, build=build.label,
                parameters=(("work", "countdown"), ("cpus", cpus)))


def _find_countdown(results: Results, build: Build, way: str) -> Cell | None:
    cell = countdown_cell(build, way)
    return cell if cell in results.cells(build=build.label) else None


def _serial(results: Results, build: str) -> Cell | None:
    return next(iter(results.cells(build=build, runner="serial", work="countdown")), None)


def _seconds_table(results: Results) -> Table:
    """Return the wall times of the countdown beside those of 2012."""
    table = _countdown_table(results, "Countdown: wall time")
    for way, then in WAYS.items():
        table.add(way, *(table.entry(_find_countdown(results, build, way), results.duration)
                         for build in results.builds), "-" if then is None else f"{then:.2f} s")
    return table.build()


def _speedup_table(results: Results) -> Table:
    """Return the speed-ups against one after the other, beside those of 2012."""
    table = _countdown_table(results, "Countdown: speed-up against one after the other")

    def speedup(cell: Cell) -> Value | None:
        return results.speedup(_serial(results, cell.build), cell)

    for way, then in WAYS.items():
        if way != SEQUENTIAL:
            table.add(way, *(table.entry(_find_countdown(results, build, way), speedup) for build in results.builds),
                      "-" if then is None else f"{ratio_number(SEQUENTIAL_SECONDS / then)}x")
    return table.build()


def _countdown_table(results: Results, title: str) -> TableBuilder:
    return TableBuilder(results, title, label_column("countdown"), *build_columns(results.builds, "now"),
                        *value_columns(["Habr"], "2012"))


def _countdown_figure(results: Results) -> CategoryFigure:
    ways = [way for way in WAYS if way != SEQUENTIAL]
    panels = tuple(
        CategoryPanel(build.label, tuple(ways), series, rules=(Rule(1.0, "one after the other", "y"),))
        for build in results.builds if (series := _countdown_bars(results, build, ways)))
    return CategoryFigure(
        name="affinity-countdown", title="Two countdowns: how long they take, against one after the other",
        y=Axis("time (1 = one after the other)", lo=0.0), panels=panels, x_title="how it is done",
    )


def _countdown_bars(results: Results, build: Build, ways: list[str]) -> tuple[Series, ...]:
    """Return a series for each model that the ways take, and those of 2012; () where nothing was measured."""
    models: dict[str, list[tuple[int, Comparison | None]]] = {}
    for place, way in enumerate(ways):
        found = results.compare(_serial(results, build.label), _find_countdown(results, build, way))
        models.setdefault(countdown_cell(build, way).runner, []).append((place, found))
    if not any(found for known in models.values() for _, found in known):
        return ()
    then = [(place, seconds / SEQUENTIAL_SECONDS) for place, way in enumerate(ways)
            if (seconds := WAYS[way]) is not None]
    measured = (measured_series(family(model), ((place, relative_time(found)) for place, found in known), model)
                for model, known in models.items())
    return (*measured, published_series("threads, 2012", then))


def _on_countdown(results: Results, build: Build) -> Iterator[str]:
    """Compare the countdown with the claim of 2012, no more surely than the tables do."""
    serial = _serial(results, build.label)
    cells = [_find_countdown(results, build, way) for way in (FREE, PINNED, APART)]
    free, pinned, apart = (results.compare(serial, cell) for cell in cells)
    if free is None or pinned is None or not (free.judgeable and pinned.judgeable):
        return
    pinning = results.compare(cells[0], cells[1])
    effect = SpeedVerdict.CANNOT_TELL if pinning is None else pinning.verdict()
    shown = _without_gil(free, effect) if build.free_threaded else _with_gil(free, effect)
    yield (f"{build.label}: two threads do the countdown {interval_text(free)} as fast as one after the other, pinned "
           f"to one core {interval_text(pinned)}: {shown}")
    if apart is not None and apart.judgeable:
        yield (f"{build.label}: two processes do it {interval_text(apart)} as fast"
               f"{'; the wider interval of verdicts includes no difference' if not apart.differs else ''}.")


def _without_gil(free: Comparison, pinning: SpeedVerdict) -> str:
    """Return what two threads show that no GIL holds back; `pinning` is its effect on them."""
    if free.verdict() == SpeedVerdict.SLOWER:
        return "they are slower even without a GIL."
    if not free.differs:
        return "neither a gain nor a loss is shown beyond the noise."
    return "without a GIL they run at the same time" + (
        ", and pinning takes away the second core." if pinning == SpeedVerdict.SLOWER else
        "; that pinning takes away the second core is not shown.")


def _with_gil(free: Comparison, pinning: SpeedVerdict) -> str:
    """Return what two threads show of the claim of 2012: that they cost time, and that pinning ends the cost."""
    if free.verdict() == SpeedVerdict.FASTER:
        return "the threads are faster here, so the claim of 2012 does not hold."
    if free.verdict() == SpeedVerdict.SLOWER:
        return ("the claim of 2012 holds." if pinning == SpeedVerdict.FASTER else
                "they cost time as in 2012, but pinning is not shown to end that.")
    then = SEQUENTIAL_SECONDS / FREE_SECONDS
    if free.between[0] <= then:
        return ("the wider interval of verdicts leaves open whether they still cost as much as in 2012 "
                f"({ratio_number(then)}x).")
    return (f"a loss as large as in 2012 ({ratio_number(then)}x) is excluded: since 3.2 threads no longer fight for "
            "the GIL, so pinning has nothing to end.")


# The echo server


def _places(results: Results, build: Build) -> list[str]:
    """Return the places of the build's clients, in the order of the tables."""
    found = {parameter(cell, "client") for cell in results.cells(build=build.label, work="echo")}
    return [place for place in PLACES if place in found]


def _find_echo(results: Results, build: Build, place: str, count: int) -> Cell | None:
    return results.find(build=build.label, runner=threads_model(build), workers=count, work="echo", client=place)


def _echo_table(results: Results, build: Build) -> Table:
    """Return requests per second and their latency by the number of CPU threads."""
    places = _places(results, build)
    titles = [PLACES[place] for place in places]
    table = TableBuilder(
        results, f"{build.label}: echo server beside CPU threads, all on one core", key_column("CPU threads"),
        *value_columns(titles, "requests/s", build.label), *value_columns(["2021, same core"], "requests/s"),
        *value_columns(titles, "latency, p50 / p99", build.label))

    def latency(cell: Cell) -> Value | None:
        median, late = results.center(cell, "p50"), results.center(cell, "p99")
        if median is None or late is None:
            return None
        shown = format_seconds(late) if has_p99(results.metrics(cell, "requests").values()) else "-"
        return f"{format_seconds(median)} / {shown}"

    for count in sorted({cell.workers for cell in results.cells(build=build.label, work="echo")}):
        cells = [_find_echo(results, build, place, count) for place in places]
        table.add(str(count), *(table.entry(cell, results.rate) for cell in cells), f"{number_text(THEN[count])}/s",
                  *(table.entry(cell, latency, p99_doubts(results.metrics(cell, "requests"))) for cell in cells))
    return table.build()


def _echo_figure(results: Results) -> LineFigure:
    return LineFigure(
        name="affinity-echo",
        title="Echo server beside CPU threads on one core: requests per second",
        # Evenly spaced, since a logarithmic axis has no place for 0.
        x=Axis("CPU threads beside the server (number)",
               ticks=tuple((float(place), str(count)) for place, count in enumerate(CPU_THREADS))),
        y=Axis("requests per second (1/s)", log=True),
        whiskers=range_words(results.value(cell) for cell in results.cells(work="echo")),
        panels=tuple(_echo_panel(results, build) for build in results.builds if _places(results, build)),
    )


def _echo_panel(results: Results, build: Build) -> LinePanel:
    lines = (
        measured_series(PLACES[client], (
            (place, bounded(results.value(cell), lambda seconds: 1 / seconds))
            for place, count in enumerate(CPU_THREADS)
            if (cell := _find_echo(results, build, client, count)) is not None))
        for client in _places(results, build)
    )
    then = published_series("2021, client on the same core", enumerate(THEN[count] for count in CPU_THREADS))
    return LinePanel(build.label, (*lines, then))


def _on_echo(results: Results, build: Build) -> Iterator[str]:
    """Compare the echo server with the claim of 2021."""
    cells = [_find_echo(results, build, place, 1) for place in ("same", "other", "free")]
    same, other, free = (_echo_rate(results, cell) for cell in cells)
    times_as_many = round_ratios(results.values(cells[1]), results.values(cells[0]))
    if same is None or other is None or not times_as_many:
        return
    text = (
        f"{build.label}: beside one CPU thread a server pinned to one core answers {number_text(same)} requests/s of a "
        f"client on the same core and {number_text(other)} of one on another"
    )
    if free is not None:
        rates = [1 / each for each in results.values(cells[2]).values()]
        text += f"; with nothing pinned it is {number_text(free)} ({rounds_text(rates)})"
    if build.free_threaded:
        yield f"{text}. Without a GIL the server waits only for the core, not for a lock."
    elif min(times_as_many) > HELPS:
        yield (
            f"{text}. A gain is shown only with the client on the same core, {times_text(times_as_many)} as many "
            "requests as on another: the system then chooses between the client and the CPU thread, as the author "
            "himself described in October 2021. A client on another core leaves this one to the CPU thread, which "
            f"holds the GIL when a request arrives{_against_unpinned(results, cells[1], cells[2])}."
        )
    elif max(times_as_many) <= HELPS:
        yield f"{text}. No benefit of the client on the same core is shown."
    else:
        yield f"{text}. The rounds do not agree whether a client on the same core gains."


def _against_unpinned(results: Results, other: Cell | None, free: Cell | None) -> str:
    """Return how a client on another core compares with nothing pinned, if every round agrees."""
    times_as_many = round_ratios(results.values(free), results.values(other))
    if not times_as_many:
        return ""
    if min(times_as_many) <= 1 <= max(times_as_many):
        return "; no difference from nothing pinned is shown"
    return f"; that is {times_text(times_as_many)} as many requests as with nothing pinned"


def _echo_rate(results: Results, cell: Cell | None) -> float | None:
    found = results.value(cell)
    return None if found is None or found.count < MIN_ROUNDS else 1 / found.center
