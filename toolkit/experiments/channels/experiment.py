"""`channels`: message passing between threads, interpreters and processes, PEP 554's model beside the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, override

from gilscope.toolkit.builds.inspection import version_key
from gilscope.toolkit.concurrency_models import family
from gilscope.toolkit.experiments.base import SKVORTSOV, EffortLevel, EffortSettings, Experiment, Publication
from gilscope.toolkit.experiments.load.open_loop import has_p99
from gilscope.toolkit.experiments.results import as_quantity, parameter
from gilscope.toolkit.experiments.round_texts import every_round, range_words, round_ratios, times_text
from gilscope.toolkit.experiments.tables_and_figures import (
    TableBuilder,
    bounded,
    build_columns,
    key_column,
    label_column,
    measured_series,
    p99_doubts,
    show_longest,
    show_metric,
    value_columns,
)
from gilscope.toolkit.report.document import Quantity
from gilscope.toolkit.report.figures.figure import (
    Axis,
    CategoryFigure,
    CategoryPanel,
    LineFigure,
    LinePanel,
    Rule,
    seconds_axis,
)
from gilscope.toolkit.report.wording import number_text
from gilscope.toolkit.stats.verdict import SpeedVerdict
from gilscope.toolkit.units import format_bytes, format_seconds, list_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gilscope.toolkit.experiments.base import PlanningContext
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.experiments.tables_and_figures import Show
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Table
    from gilscope.toolkit.report.figures.figure import Figure, Series

PEP_554 = Publication(
    title="PEP 554 - Multiple Interpreters in the Stdlib", author="Eric Snow", year=2017,
    url="https://peps.python.org/pep-0554/",
    headline="no numbers: interpreters that share nothing and pass messages, so that CSP can be built on them",
)
ARTICLE = replace(
    SKVORTSOV,
    headline="no numbers: many GILs, one per interpreter, are likelier than none",
)
# Threads of a build as it is, and the control: those of a free-threaded build with its GIL on.
THREADS, CONTROL = "threads", "threads, GIL on"
INTERPRETERS, PROCESSES = "subinterpreters", "processes-forkserver"
POLLED = "interpreters.Queue"
PATTERNS = ("ping-pong", "ring", "fan-in")
SIZES = (8, 1 << 10, 64 << 10, 1 << 20)
SMALLEST, LARGEST = SIZES[0], SIZES[-1]
MIB = 1 << 20
BULK = 64 << 10     # bytes of a message from which on bytes per second are worth showing
POLL_SHARE = 0.25   # of the queue's polling interval: a message that takes longer than this waited for a poll


@dataclass(frozen=True, slots=True)
class Route:
    """The route of a message: between which workers, through which channel, in which form."""

    between: str
    channel: str
    form: str = "bytes"

    @property
    def label(self) -> str:
        """The channel as tables and figures name it."""
        return self.channel if self.form == "bytes" else f"{self.channel}, {self.form}"


@dataclass(frozen=True, slots=True)
class Topology:
    """The pattern of senders and receivers."""

    pattern: str   # one of PATTERNS
    workers: int   # in a ring all members, of a fan-in the senders

    @property
    def label(self) -> str:
        """The name in the tables."""
        return {"ping-pong": "ping-pong of 2", "ring": f"ring of {self.workers}",
                "fan-in": f"{self.workers} to one"}[self.pattern]


PING_PONG, RING, FAN_IN = Topology("ping-pong", 2), Topology("ring", 4), Topology("fan-in", 4)
TOPOLOGIES = (PING_PONG, RING, Topology("ring", 8), Topology("fan-in", 2), FAN_IN)

SIMPLE, QUEUE = Route(THREADS, "SimpleQueue"), Route(THREADS, "queue.Queue")
CROSSING, VIEW = Route(INTERPRETERS, POLLED), Route(INTERPRETERS, POLLED, "memoryview")
PIPE = Route(INTERPRETERS, "os.pipe")
PROCESS_PIPE, PROCESS_QUEUE = Route(PROCESSES, "multiprocessing.Pipe"), Route(PROCESSES, "multiprocessing.Queue")
CONTROLS = (Route(CONTROL, "SimpleQueue"), Route(CONTROL, "queue.Queue"))
ROUTES = (SIMPLE, QUEUE, *CONTROLS, CROSSING, VIEW, PIPE, PROCESS_PIPE, PROCESS_QUEUE)   # in the order of the tables


class ChannelsExperiment(Experiment):
    """Message passing as PEP 554 announced it, which could not be measured then."""

    name = "channels"
    title = "Channels: message passing between threads, interpreters and processes"
    summary = "ping-pong, a ring and many-to-one between threads, own-GIL interpreters and processes, by message size"
    sources = (PEP_554, ARTICLE)
    claim = (
        "PEP 554 was to give Python interpreters that share nothing and communicate by messages alone, as Go's and "
        "Clojure's processes do. In 2021 all of them still shared one GIL, and the article expected many GILs rather "
        "than none."
    )
    program = "channels"
    levels = {
        EffortLevel.SMOKE: EffortSettings(rounds=1, seconds=12, scales={"seconds": 0.01}),
        EffortLevel.QUICK: EffortSettings(rounds=3, seconds=35, scales={"seconds": 0.08}),
        EffortLevel.FULL: EffortSettings(rounds=5, seconds=1800, scales={"seconds": 0.3}),
    }

    @override
    def candidates(self, context: PlanningContext, build: Build) -> Iterator[tuple[Cell, str | None]]:
        for topology, size, route in _grid(context.effort):
            if runner := runner_of(build, route):
                cell = self.cell(build, runner, topology.workers, **parameters_of(topology, size, route))
                yield cell, _reason(context, build, route)

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        rings = [topology for topology in _topologies(results) if topology.pattern != "fan-in"]
        many = [topology for topology in _topologies(results) if topology.pattern == "fan-in"]

        def bulk_rate(cell: Cell) -> Quantity | None:
            return results.rate(cell, " MiB/s", int(parameter(cell, "bytes")) / MIB)

        tables = (
            _table(results, "Time per message, from one to the next", rings, results.duration),
            _table(results, "Messages per second, from all senders together", many, results.rate),
            _table(results, "Bytes per second", [*rings, *many], bulk_rate, least=BULK),
            _round_trip_table(results),
        )
        return tuple(table for table in tables if table.rows)

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        return (*_on_polling(results), *_on_pipes(results), *_on_shared_memory(results), *_on_many_senders(results))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        many = [topology for topology in _topologies(results) if topology.pattern == "fan-in"]
        return (_figure_over_sizes(results), _figure_over_members(results),
                *(_fan_in_figure(results, topology) for topology in many[-1:]))


def _grid(effort: EffortLevel) -> Iterator[tuple[Topology, int, Route]]:
    """Yield the messages that each build sends: all of them, or the few that show the point."""
    if effort is EffortLevel.SMOKE:
        yield from ((PING_PONG, SMALLEST, route) for route in (SIMPLE, CROSSING, PIPE, PROCESS_PIPE))
        yield from ((Topology("ring", 3), SMALLEST, route) for route in (SIMPLE, VIEW, PROCESS_QUEUE))
        yield from ((Topology("fan-in", 2), SIZES[1], route) for route in (SIMPLE, CROSSING, PIPE, PROCESS_PIPE))
    elif effort is EffortLevel.QUICK:
        yield from ((PING_PONG, SMALLEST, route) for route in (SIMPLE, CROSSING, PIPE, PROCESS_PIPE))
        yield from ((PING_PONG, LARGEST, route) for route in (CROSSING, VIEW, PROCESS_PIPE))
        yield from ((RING, SMALLEST, route) for route in (SIMPLE, CROSSING))
        yield from ((FAN_IN, SIZES[1], route) for route in (SIMPLE, CROSSING))
    else:
        yield from ((topology, size, route) for topology in TOPOLOGIES for size in SIZES for route in ROUTES)


def _reason(context: PlanningContext, build: Build, route: Route) -> str | None:
    if found := context.runner_reason(build, runner_of(build, route) or THREADS):
        return found
    if route.form == "memoryview" and version_key(build.version) < (3, 14):
        return "before 3.14 the queue is that of backports-interpreters, which pickles: it takes no memoryview"
    return None


# Cells


def runner_of(build: Build, route: Route) -> str | None:
    """Return the name of the runner that stands for the route's workers, or None if the build has no such workers."""
    if route.between == CONTROL:
        return "threads" if build.free_threaded else None
    return "free-threaded" if build.free_threaded and route.between == THREADS else route.between


def parameters_of(topology: Topology, size: int, route: Route) -> dict[str, str]:
    """Return the parameters of a cell."""
    return {"pattern": topology.pattern, "bytes": str(size), "channel": route.channel, "form": route.form}


def find(results: Results, build: Build, topology: Topology, size: int, route: Route) -> Cell | None:
    """Return the cell, or None if the plan has none."""
    runner = runner_of(build, route)
    return None if runner is None else results.find(
        build=build.label, runner=runner, workers=topology.workers, **parameters_of(topology, size, route))


def _topologies(results: Results) -> list[Topology]:
    """Return the topologies of a run in the order of the tables."""
    known = {Topology(parameter(cell, "pattern"), cell.workers) for cell in results.cells()}
    return sorted(known, key=lambda topology: (PATTERNS.index(topology.pattern), topology.workers))


def _sizes(results: Results, topology: Topology) -> list[int]:
    """Return the sizes of a topology's messages, ascending."""
    found = results.cells(workers=topology.workers, pattern=topology.pattern)
    return sorted({int(parameter(cell, "bytes")) for cell in found})


def _routes(results: Results, topology: Topology, size: int) -> list[Route]:
    """Return the routes of messages of one size, on any of the builds."""
    return [route for route in ROUTES if any(find(results, build, topology, size, route) for build in results.builds)]


def _size_text(size: int) -> str:
    """Return "8 B", "64 KiB"."""
    return format_bytes(size).replace(".0 ", " ")


# Tables


def _table(results: Results, title: str, topologies: list[Topology], show: Show, least: int = 0) -> Table:
    """Return a table of the cells of some topologies, for messages of at least `least` bytes."""
    table = TableBuilder(results, title, label_column("pattern"), key_column("message"), label_column("between"),
                         label_column("through"), *build_columns(results.builds))
    for topology in topologies:
        for size in _sizes(results, topology):
            for route in _routes(results, topology, size) if size >= least else ():
                cells = (find(results, build, topology, size, route) for build in results.builds)
                table.add(topology.label, _size_text(size), route.between, route.label,
                          *(table.entry(cell, show) for cell in cells))
    return table.build()


def _round_trip_table(results: Results) -> Table:
    """Return the distribution of round trips beside the queue's polling interval."""
    table = TableBuilder(results, f"Round trips of {SMALLEST} bytes", label_column("build"), label_column("between"),
                         label_column("through"), *value_columns(("get() sleeps", "p50", "p99", "max")))
    # A constant of its source has no spread.
    poll = show_metric(results, "poll", lambda found: Quantity(found.center, "seconds"))
    half, longest = show_metric(results, "lap_p50", as_quantity), show_longest(results, "lap_max")

    def late(cell: Cell) -> Quantity | None:
        return as_quantity(results.metric(cell, "lap_p99")) if has_p99(_laps(results, cell).values()) else None

    for build in results.builds:
        for route in _routes(results, PING_PONG, SMALLEST):
            if (cell := find(results, build, PING_PONG, SMALLEST, route)) is not None:
                doubts = p99_doubts(_laps(results, cell), "round trips")
                table.add(build.label, route.between, route.label, table.entry(cell, poll), table.entry(cell, half),
                          table.entry(cell, late, doubts), table.entry(cell, longest))
    return table.build()


def _laps(results: Results, cell: Cell) -> dict[int, float]:
    """Return how many round trips each round's process timed: each is one message from every member."""
    return {key: messages / cell.workers for key, messages in results.metrics(cell, "messages").items()}


# Findings


def _on_polling(results: Results) -> Iterator[str]:
    """State the time of a message between interpreters, and its share of the queue's polling."""
    found: dict[tuple[float, bool], list[str]] = {}
    for build in results.builds:
        cell = find(results, build, PING_PONG, SMALLEST, CROSSING)
        value, interval = results.value(cell), results.center(cell, "poll")
        if value is not None and interval is not None:
            takes = f"{format_seconds(value.center)} ({build.label})"
            found.setdefault((interval, _waits_for_poll(results, cell)), []).append(takes)
    for (interval, waits), times in found.items():
        sentence = f"A message of {SMALLEST} bytes through the queue between two interpreters takes {', '.join(times)}"
        yield f"{sentence}: its get() does not block but polls every {interval * 1000:g} ms." if waits else \
            f"{sentence}, less than the {interval * 1000:g} ms that its get() sleeps between two polls."


def _waits_for_poll(results: Results, cell: Cell | None) -> bool:
    """Return True if a message through the interpreters' queue mostly waits for the next poll."""
    value, interval = results.value(cell), results.center(cell, "poll")
    return value is not None and interval is not None and value.center >= POLL_SHARE * interval


def _on_pipes(results: Results) -> Iterator[str]:
    """State the gain of the same interpreters through a channel without polling."""
    gains = []
    for build in results.builds:
        polled, pipe = (find(results, build, PING_PONG, SMALLEST, route) for route in (CROSSING, PIPE))
        gain = results.compare(polled, pipe)
        if gain is not None and gain.verdict() == SpeedVerdict.FASTER and _waits_for_poll(results, polled):
            faster = round_ratios(results.values(polled), results.values(pipe))
            gains.append(f"{times_text(faster)} as fast on {build.label}")
    if gains:
        yield (f"Through an os.pipe between the same interpreters it is {list_text(gains)}: the polling is slow, not "
               "the interpreters.")


def _on_shared_memory(results: Results) -> Iterator[str]:
    """State the gain of sharing memory between interpreters instead of copying it."""
    found: dict[str, list[str]] = {}
    for build in results.builds:
        copied, view = (find(results, build, PING_PONG, LARGEST, route) for route in (CROSSING, VIEW))
        gain = results.compare(copied, view)
        if gain is None or not gain.judgeable:
            continue
        faster = round_ratios(results.values(copied), results.values(view))
        text = f"arrives {times_text(faster)} as fast as bytes, which are copied"
        if not gain.differs:
            why = ": both wait for the next poll of the queue" if _waits_for_poll(results, copied) else ""
            text = f"is not shown to arrive sooner or later than bytes, which are copied{why}"
            if min(faster) > 1:
                text = (f"arrives sooner than bytes, which are copied, {every_round(len(faster))}, but not "
                        f"significantly{why}")
        found.setdefault(text, []).append(build.label)
    for text, labels in found.items():
        yield f"{', '.join(labels)}: 1 MiB between interpreters as a memoryview, whose memory is shared, {text}."


def _on_many_senders(results: Results) -> Iterator[str]:
    """State the rates where the receiver hardly ever has to wait for a message."""
    if (size := next(iter(_sizes(results, FAN_IN)), None)) is None:
        return
    parts, waits = [], False
    for name, route in (("threads", SIMPLE), ("interpreters", CROSSING), ("processes", PROCESS_QUEUE)):
        known = [(build.label, cell) for build in results.builds
                 if (cell := find(results, build, FAN_IN, size, route)) is not None]
        rates = [f"{number_text(rate.value)}/s ({label})" for label, cell in known
                 if (rate := results.rate(cell)) is not None]
        parts += [f"between {name} {', '.join(rates)}"] if rates else []
        waits = waits or any(_waits_for_poll(results, cell) for _, cell in known)
    if parts:
        end = "" if waits or len(parts) == 1 else "; each poll of the interpreters' queue then finds a message"
        yield (f"{FAN_IN.workers} senders to one receiver deliver, in messages of {size} bytes through queues: "
               f"{'; '.join(parts)}{end}.")


# Figures


def _figure_over_sizes(results: Results) -> LineFigure:
    sizes = _sizes(results, PING_PONG)
    places = [(size, PING_PONG, size) for size in sizes]
    return LineFigure(
        name="channels", title="Ping-pong: how long a message takes from one to the other", x=_size_axis(sizes),
        y=seconds_axis("time per message", log=True), note=_note(results), whiskers=_whiskers(results),
        panels=tuple(LinePanel(build.label, _lines(results, build, places, float), _rules(results, build))
                     for build in results.builds),
    )


def _figure_over_members(results: Results) -> LineFigure:
    rings = [topology for topology in _topologies(results) if topology.pattern != "fan-in"]
    places = [(topology.workers, topology, SMALLEST) for topology in rings]
    return LineFigure(
        name="channels-ring", title=f"A token of {SMALLEST} bytes in a ring: how long it takes from one to the next",
        x=Axis("members of the ring (number; 2: ping-pong)",
               ticks=tuple((float(place), f"{place:.0f}") for place, *_ in places)),
        y=seconds_axis("time per message", log=True), note=_note(results), whiskers=_whiskers(results),
        panels=tuple(LinePanel(build.label, _lines(results, build, places, float), _rules(results, build))
                     for build in results.builds) if len(rings) > 1 else (),
    )


def _fan_in_figure(results: Results, topology: Topology) -> LineFigure | CategoryFigure:
    """Return messages per second as lines over sizes, or as dots side by side if there is only one size."""
    sizes = _sizes(results, topology)
    title = f"{topology.workers} senders to one receiver: messages per second"
    y = Axis("messages per second (1/s)", log=True)
    if len(sizes) > 1:
        places = [(size, topology, size) for size in sizes]
        return LineFigure(
            name="channels-fan-in", title=title, x=_size_axis(sizes), y=y, note=_note(results),
            whiskers=_whiskers(results),
            panels=tuple(LinePanel(build.label, _lines(results, build, places, _rate)) for build in results.builds))
    routes = [route for route in _routes(results, topology, sizes[0]) if route not in CONTROLS]
    return CategoryFigure(
        name="channels-fan-in", title=f"{title}, {_size_text(sizes[0])} each", y=y, x_title="through what",
        panels=tuple(CategoryPanel(build.label, tuple(route.label for route in routes),
                                   _dots(results, build, topology, sizes[0], routes)) for build in results.builds),
        note=_note(results), whiskers=_whiskers(results))


def _dots(results: Results, build: Build, topology: Topology, size: int, routes: list[Route]) -> tuple[Series, ...]:
    """Return the rates of the routes, which stand side by side: one series for each model."""
    found: dict[str, list[tuple[float, Cell]]] = {}
    for place, route in enumerate(routes):
        if (cell := find(results, build, topology, size, route)) is not None:
            found.setdefault(cell.runner, []).append((place, cell))
    return tuple(_series(results, family(model), model, known, _rate) for model, known in found.items())


def _lines(
    results: Results, build: Build, places: Sequence[tuple[float, Topology, int]], convert: Callable[[float], float],
) -> tuple[Series, ...]:
    """Return one line for each route, over places on the axis with the topology and size to show there."""
    lines = []
    for route in ROUTES:
        if route in CONTROLS:
            continue  # in the tables alone: their lines would lie on others
        found = [(place, cell) for place, topology, size in places
                 if (cell := find(results, build, topology, size, route)) is not None]
        if found:
            model = runner_of(build, route) or route.between
            lines.append(_series(results, f"{family(model)}: {route.label}", model, found, convert))
    return tuple(lines)


def _series(
    results: Results, name: str, model: str, points: Iterable[tuple[float, Cell]], convert: Callable[[float], float],
) -> Series:
    return measured_series(name, ((x, bounded(results.value(cell), convert)) for x, cell in points), model)


def _rate(seconds: float) -> float:
    return 1 / seconds


def _size_axis(sizes: list[int]) -> Axis:
    return Axis("length of a message (bytes)", log=True, ticks=tuple((float(size), _size_text(size)) for size in sizes))


def _rules(results: Results, build: Build) -> tuple[Rule, ...]:
    for cell in results.cells(build=build.label, channel=POLLED):
        if (interval := results.center(cell, "poll")) is not None:
            return (Rule(interval, f"interpreters.Queue.get() polls every {format_seconds(interval)}", "y"),)
    return ()


def _whiskers(results: Results) -> str:
    return range_words(results.value(cell) for cell in results.cells())


def _note(results: Results) -> str:
    """Return why some places of a figure are empty."""
    left_out = results.run.options.get("effort") != EffortLevel.FULL
    return "Where there is no mark, only the full experiment measures." if left_out else ""
