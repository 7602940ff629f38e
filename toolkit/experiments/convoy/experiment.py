"""`convoy`: an echo server beside CPU work, with a GIL between them and without.

`convoy_interval` varies the switch interval of the same measurement and shares this one's numbers and footnotes.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING, override

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.experiments.base import SKVORTSOV, EffortLevel, EffortSettings, Experiment, threads_model
from gilscope.toolkit.experiments.helpers.timers import DEFAULT_SECONDS
from gilscope.toolkit.experiments.latency import APART, BUCKETS, LogHistogram, Mode, edge, modes
from gilscope.toolkit.experiments.load.open_loop import has_p99, is_late
from gilscope.toolkit.experiments.results import BuildArm, as_quantity, middle
from gilscope.toolkit.experiments.round_texts import every_round, range_words, round_ratios, rounds_text, two_digits
from gilscope.toolkit.experiments.tables_and_figures import (
    PublishedColumn,
    TableBuilder,
    bounded,
    build_columns,
    key_column,
    label_column,
    measured_series,
    p99_doubts,
    published_columns,
    published_series,
    value_columns,
)
from gilscope.toolkit.records import shown
from gilscope.toolkit.report.document import Column, Entry
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
from gilscope.toolkit.report.wording import number_text
from gilscope.toolkit.units import MOST_NAMED, few, format_seconds, list_text, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gilscope.toolkit.experiments.base import PlanningContext
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Quantity, Section, Table
    from gilscope.toolkit.report.figures.figure import Figure

ARTICLE = replace(
    SKVORTSOV, headline="30,000 requests/s, 100 beside one CPU thread, 20,000 beside a CPU process (CPython 3.9, macOS)"
)
COUNTS = {                      # numbers of CPU workers: in threads, elsewhere
    EffortLevel.SMOKE: ((1,), (1,)),
    EffortLevel.QUICK: ((1, 4), (1,)),
    EffortLevel.FULL: ((1, 2, 4), (1, 2, 4)),
}
# Requests per second by the place of the CPU work and its number of workers, as the article gives them.
THEN = {
    ("threads", 0): 30_000, ("threads", 1): 100, ("threads", 2): 50, ("threads", 4): 30,
    ("processes", 1): 20_000, ("processes", 2): 20_000, ("processes", 4): 20_000,
}
THEN_HEADING = PublishedColumn("2021", "3.9")
COLLAPSE = 10  # times fewer requests: a server beside a CPU thread that answers so few is brought down, as in 2021
PLACES = {"threads": "threads, GIL", "free-threaded": "threads, no GIL", "processes": "processes",
          "subinterpreters": "subinterpreters"}
_LATE = "the load generator sent requests late, at {} by more than 10 % of p50; latencies include that"
LATE, AT_WORST = _LATE.format("its 99th percentile"), _LATE.format("worst")   # of enough requests for it; of too few
NUMBERS = {2: "two", 3: "three"}


def _by_rounds(rounds: int) -> str:
    """Return the rule by which sentences name a difference, and how often chance alone meets it."""
    chance = f": by chance alone, {rounds} rounds would all agree in {percent(2 * 0.5**rounds)} of cases"
    return ("What is said here to fall, or to be faster, slower or more, rests on every round agreeing, not on a "
            f"verdict{chance if rounds > 1 else ''}.")


class ConvoyExperiment(Experiment):
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
    levels = {
        EffortLevel.SMOKE: EffortSettings(rounds=1, seconds=6, scales={
            "closed": 0.1, "open": 0.1, "least": 20, "bound": 2, "rate": 1000}),
        EffortLevel.QUICK: EffortSettings(rounds=3, seconds=50, scales={
            "closed": 0.3, "open": 0.4, "least": 20, "bound": 3, "rate": 2000}),
        EffortLevel.FULL: EffortSettings(rounds=10, seconds=1500, scales={
            "closed": 2, "open": 3, "least": 100, "bound": 20, "rate": 2000}),
    }
    timeout = 120.0   # two loops that run to their bounds report no progress meanwhile

    @override
    def candidates(self, context: PlanningContext, build: Build) -> Iterator[tuple[Cell, str | None]]:
        beside, elsewhere = COUNTS[context.effort]
        for model in context.threads(build):
            # Without CPU work the GIL of a free-threaded build makes little difference.
            alone = (0,) if context.full() or model == threads_model(build) else ()
            counts = beside if context.full() or not (build.free_threaded and model == "threads") else beside[:1]
            for count in (*alone, *counts):
                yield self.cell(build, model, count), context.runner_reason(build, model)
        for count in elsewhere:
            yield self.cell(build, "processes", count), None
        for count in elsewhere:
            yield self.cell(build, "subinterpreters", count), context.runner_reason(build, "subinterpreters")

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        return (_rate_table(results), *(_latency_table(results, build) for build in results.builds))

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        found = super().findings(results)
        return (*found, _by_rounds(results.run.rounds_done)) if found else ()

    @override
    def build_findings(self, results: Results, build: Build) -> Iterator[str]:
        yield from _on_one_cpu_thread(results, build)

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        return (_rate_figure(results), _latency_figure(results))


# Numbers and doubts of an echo server's cells, shared with `convoy_interval`


def thread_arms(results: Results) -> list[BuildArm]:
    """Return the arms whose CPU work is in threads: each build's own model first, then its control."""
    return [
        BuildArm(build, model)
        for build in results.builds
        for model in dict.fromkeys((threads_model(build), "threads")) if results.cells(build=build.label, runner=model)
    ]


def rate_of(results: Results, cell: Cell | None) -> float | None:
    """Return the requests a second of the closed loop, or None if there are none."""
    value = middle(results.values(cell))
    return None if value is None else 1 / value


def is_faster(results: Results, cell: Cell | None, other: Cell | None) -> bool:
    """Return True if the slowest round of `cell` has more requests a second than the fastest of `other`."""
    seconds, others = results.values(cell).values(), results.values(other).values()
    return bool(seconds and others) and max(seconds) < min(others)


def rates_text(results: Results, cell: Cell | None) -> str:
    """Return the smallest and largest rate of a cell that has one: "6,400 to 20,900 requests/s in 3 rounds"."""
    return rounds_text([1 / each for each in results.values(cell).values()], unit=" requests/s")


def percentile(results: Results, cell: Cell, name: str) -> Quantity | None:
    """Return the percentile `name` of the open loop with its spread over the rounds; no 99th of few requests."""
    if name == "p99" and not has_p99(results.metrics(cell, "sent").values()):
        return None
    return as_quantity(results.metric(cell, name))


def percentile_entry(results: Results, table: TableBuilder, cell: Cell, name: str) -> Entry:
    """Return the percentile `name` of the open loop, and for a 99th of few requests why there is none."""
    shown = Entry(percentile(results, cell, name) or "-")
    return table.doubted(shown, p99_doubts(results.metrics(cell, "sent")) if name == "p99" else ())


def rate_entry(results: Results, table: TableBuilder, cell: Cell | None) -> Entry:
    """Return requests a second, with a footnote where their mean is misleading."""
    doubt = rate_doubt(results, cell)
    return table.entry(cell, results.rate, () if doubt is None else [doubt])


def rate_doubt(results: Results, cell: Cell | None) -> str | None:
    """Return why a cell's mean rate averages two different things, or None if it does not."""
    found = _rate_modes(results, cell)
    if len(found) > 1:
        number = NUMBERS.get(len(found), str(len(found)))
        return f"{number} modes, with their shares of the time: {modes_text(found)}; the mean hides them"
    mean, typical = middle(results.values(cell)), results.center(cell, "closed_typical")
    if mean is not None and typical is not None and typical > APART * mean:
        return f"half of the time a request took {format_seconds(typical)} or longer: fast bursts dominate the mean"
    return None


def doubtful_rates(results: Results, name: Callable[[Cell], str]) -> str:
    """Return a sentence for a figure's note that names the cells whose mean rate is misleading, "" without any."""
    names = [name(cell) for cell in results.cells() if rate_doubt(results, cell)]
    if not names:
        return ""
    return (" Some requests take much longer than others, so that the mean says little (see the table): "
            f"{few(names, MOST_NAMED, '; ')}.")


def latency_doubts(results: Results, cell: Cell | None) -> list[str]:
    """Return reasons to doubt a cell's latencies: missing answers, a late load generator."""
    found = []
    lost = sum(results.metrics(cell, "unanswered").values())
    if lost:
        found.append(f"{number_text(lost)} requests had no answer when the loop ended; they count with the time they "
                     "had waited")
    lags, medians = results.metrics(cell, "lag_p99"), results.metrics(cell, "p50")
    late_text = LATE if has_p99(results.metrics(cell, "sent").values()) else AT_WORST
    for each in results.observations(cell):
        if (text := dict(each.metrics).get("saturated")) and isinstance(text, str):
            late = is_late(lags.get(each.round, 0.0), medians.get(each.round, 0.0))
            found.append(late_text if late else text)   # its numbers differ from round to round
    return found


def merged_histogram(results: Results, cell: Cell | None, name: str = "histogram") -> LogHistogram:
    """Return the requests of all rounds in one histogram: the open loop's, or the closed one's by its name."""
    merged = LogHistogram()
    for text in results.texts(cell, name):
        try:
            merged.merge(LogHistogram.decode(text))
        except ValueError as error:
            raise BadFileError(f"{results.run.label}: {name} of a cell was edited: {shown(error.args[0])}") from error
    return merged


def _rate_modes(results: Results, cell: Cell | None) -> list[Mode]:
    """Return the modes of the closed loop's requests, with their shares of the time."""
    return modes(merged_histogram(results, cell, "closed_histogram"), by_time=True)


def modes_text(found: list[Mode]) -> str:
    """Return "13.2 us (40 %) and 5.31 ms (60 %)" for several modes, "one" for one, "-" for none."""
    if len(found) < 2:  # one mode, or no requests
        return "one" if found else "-"
    *first, last = [f"{format_seconds(mode.center)} ({mode.share * 100:.0f} %)" for mode in found]
    return f"{', '.join(first)} and {last}"


# Tables


def _find(results: Results, build: Build, model: str, count: int) -> Cell | None:
    return results.find(build=build.label, runner=model, workers=count)


def _rate_table(results: Results) -> Table:
    """Return requests a second by the place of the CPU work, beside those of 2021."""
    table = TableBuilder(
        results, "Requests per second, closed loop: each request after the last reply", label_column("CPU work in"),
        key_column("workers"), *build_columns(results.builds, "now"), *published_columns(THEN_HEADING))
    for model, count in sorted(results.rows(), key=lambda row: (list(PLACES).index(row[0]), row[1])):
        then = THEN.get((model, count))
        table.add(PLACES[model], str(count),
                  *(rate_entry(results, table, _find(results, build, model, count)) for build in results.builds),
                  "" if then is None else f"{number_text(then)}/s")
    return table.build()


def _latency_table(results: Results, build: Build) -> Table:
    """Return the latencies of one build, counted from the time a request was due."""
    names = ("p50", "p90", "p99")
    table = TableBuilder(
        results, f"{build.label}: latency in an open loop, from the time a request was due",
        label_column("CPU work in"), key_column("workers"),
        *value_columns(("load", *names, "client late", "max"), source=build.label), Column(title="modes", align="left"))

    def load(cell: Cell) -> str | None:
        rate = results.center(cell, "rate")
        return None if rate is None else f"{number_text(rate)}/s"

    for cell in results.cells(build=build.label):
        place, absent = PLACES[cell.runner], results.absence(cell) is not None
        table.add(
            place, str(cell.workers), table.entry(cell, load, () if absent else latency_doubts(results, cell)),
            *("" if absent else percentile_entry(results, table, cell, name) for name in names),
            *(results.longest(cell, name) or "" for name in ("lag_p99", "max")),
            # Requests of an open loop are spread evenly over the time, so their modes need no weights.
            "" if absent else modes_text(modes(merged_histogram(results, cell))))
    return table.build()


# Findings


def _on_one_cpu_thread(results: Results, build: Build) -> Iterator[str]:
    """State what one CPU thread costs; it has no verdicts, so every round has to agree."""
    alone, one = (_find(results, build, threads_model(build), count) for count in (0, 1))
    before, after, p50 = rate_of(results, alone), rate_of(results, one), results.center(one, "p50")
    fewer = round_ratios(results.values(one), results.values(alone))   # times fewer requests a second
    if before is None or after is None or p50 is None or not fewer:
        return
    change = f"{build.label}: {number_text(before)} requests/s alone, {number_text(after)} beside one CPU thread"
    found, collapsed = _rate_modes(results, one), min(fewer) > COLLAPSE
    if build.free_threaded and collapsed:
        yield f"{change}, p50 {format_seconds(p50)}: there is no GIL to wait for; the server did not get its core."
    elif build.free_threaded:
        yield (f"{change}, p50 {format_seconds(p50)}: without a GIL no thread waits for one, and the convoy of 2021 is "
               f"gone.{_beside_most(results, build)}{_slower_alone(results, alone, one)}")
    elif len(found) > 1:
        yield (f"{change}, in {len(found)} modes: {modes_text(found)} of the time. In the slow one a request waits for "
               "the GIL; in the fast one the CPU thread wakes too late to take it back.")
    elif collapsed:
        yield (f"{build.label}: beside one CPU thread, throughput falls {every_round(len(fewer))}, from "
               f"{number_text(before)} to {number_text(after)} requests/s in the median ({_shares_text(fewer)}). "
               f"Median latency is {format_seconds(p50)}, {p50 / DEFAULT_SECONDS:.1f} switch intervals of 5 ms. The "
               "convoy of 2021 (30,000 to 100) is still here: a thread that returns from a system call still waits an "
               "interval before it may request the GIL.")
    elif max(fewer) <= COLLAPSE:
        yield f"{change}: the collapse of 2021 (30,000 to 100) is not reproduced here."
    else:
        yield f"{change} ({_shares_text(fewer)}): the rounds do not agree whether the collapse of 2021 is still here."
    if not build.free_threaded:
        yield from _on_work_elsewhere(results, build, one)


def _shares_text(fewer: list[float]) -> str:
    """Return by how much the rates fell: "1/66 to 1/140 in 3 rounds"."""
    return rounds_text(fewer, lambda each: f"1/{two_digits(each)}")


def _beside_most(results: Results, build: Build) -> str:
    """Return the rates beside the most CPU threads, "" if there is no run with several."""
    most = max(cell.workers for cell in results.cells(build=build.label, runner=threads_model(build)))
    cell = _find(results, build, threads_model(build), most)
    if most < 2 or rate_of(results, cell) is None:
        return ""
    return f" Beside {most} CPU threads it answers {rates_text(results, cell)}."


def _slower_alone(results: Results, alone: Cell | None, one: Cell | None) -> str:
    if not is_faster(results, one, alone):
        return ""
    return (f" Alone the server is slower than beside one CPU thread, {every_round(len(results.values(alone)))}, "
            "probably since idle cores sleep between two requests.")


def _on_work_elsewhere(results: Results, build: Build, beside: Cell | None) -> Iterator[str]:
    """State the rates beside CPU work that does not share the server's GIL, against those with it in a thread."""
    cells = {model: _find(results, build, model, 1) for model in ("processes", "subinterpreters")}
    known = {model: rate for model, cell in cells.items() if (rate := rate_of(results, cell)) is not None}
    if not known:
        return
    listed = " and ".join(f"{number_text(rate)} with the CPU work in {model}" for model, rate in known.items())
    against = [round_ratios(results.values(beside), results.values(cells[model])) for model in known]
    far_more = all(each and min(each) > COLLAPSE for each in against)
    own = _find(results, build, threads_model(build), 0)
    # The finding for free-threaded builds has the same reason.
    faster = [model for model in known if is_faster(results, cells[model], own)]
    slept = (f" With {list_text(faster)} it is faster than alone, {every_round(len(results.values(own)))} of either: "
             "probably the core that it waits on does not fall asleep between two requests.") if faster else ""
    why = (f", more than {COLLAPSE} times as many as beside a CPU thread {every_round(min(map(len, against)))}: CPU "
           "work that does not share the server's GIL does not bring it down") if far_more else ""
    yield f"{build.label}: {listed}{why}.{slept}"


# Figures


def _rate_figure(results: Results) -> CategoryFigure:
    return CategoryFigure(
        name="convoy", title="Echo server beside CPU work: requests per second",
        y=Axis("requests per second (1/s)", log=True), x_title="CPU workers beside the server (number)",
        panels=tuple(_rate_panel(results, build) for build in results.builds),
        whiskers=range_words(results.value(cell) for cell in results.cells()),
        note="Closed loop, one client: the next request follows each answer."
        + doubtful_rates(results, lambda cell: f"{cell.build} ({PLACES[cell.runner]}, {cell.workers})"),
    )


def _rate_panel(results: Results, build: Build) -> CategoryPanel:
    counts = sorted({cell.workers for cell in results.cells(build=build.label)})
    series = [
        _rate_series(results, cells, counts)
        for model in PLACES if (cells := results.cells(build=build.label, runner=model))
    ]
    rules: tuple[Rule, ...] = ()
    if not build.free_threaded:
        series.append(published_series("threads, 2021", (
            (place, float(THEN["threads", count])) for place, count in enumerate(counts))))
        rules = (Rule(THEN["processes", 1], "2021, beside processes", "y"),)
    return CategoryPanel(build.label, tuple(map(str, counts)), tuple(series), rules)


def _rate_series(results: Results, cells: list[Cell], counts: list[int]) -> Series:
    found = {cell.workers: results.value(cell) for cell in cells}
    model = cells[0].runner
    return measured_series(PLACES[model], (
        (place, bounded(found[count], lambda seconds: 1 / seconds))
        for place, count in enumerate(counts) if count in found), model)


def _latency_figure(results: Results) -> LineFigure:
    found = [(arm, merged_histogram(results, arm.find(results, 1))) for arm in thread_arms(results)]
    used = [index for _, each in found for index, count in enumerate(each.counts) if count]
    buckets = range(max(0, min(used, default=0) - 2), min(BUCKETS, max(used, default=BUCKETS) + 3))
    middles = tuple(sqrt(edge(index) * edge(index + 1)) for index in buckets)
    panels = [
        LinePanel(arm.title, (Series(
            arm.model, middles, tuple(100 * each.counts[index] / each.count for index in buckets), model=arm.model),
        ) if each.count else (), (Rule(DEFAULT_SECONDS, "switch interval 5 ms"),))
        for arm, each in found
    ]
    return LineFigure(
        name="convoy-latency", title="Echo server beside one CPU thread: how long requests take",
        x=seconds_axis("latency", log=True), y=Axis("share of requests (%)"),
        panels=tuple(panels),
        note="Open loop, from the time a request was due. Two humps are two modes: with the GIL a request waits a "
        "switch interval, or finds it free.",
    )
