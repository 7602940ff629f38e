"""`affinity`: threads kept on one core, as was recommended against what the GIL does to threads on several."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from typing import TYPE_CHECKING, override

from toolkit.experiments.base import Effort, Experiment, Level, Package, Source, sorted_out
from toolkit.experiments.countdown import SKVORTSOV
from toolkit.report.document import Column, Duration, Entry, Ratio, Table
from toolkit.report.figure import Axis, BarFigure, BarPanel, LineFigure, LinePanel, Rule, Series
from toolkit.report.footnotes import Footnotes
from toolkit.report.wording import number_text, ratio_number
from toolkit.stats.paired import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.experiments.base import Setting
    from toolkit.experiments.results import Results
    from toolkit.measure.plan import Plan
    from toolkit.model import Build, Cell
    from toolkit.report.document import Section, Value
    from toolkit.report.figure import Figure
    from toolkit.stats.paired import Comparison

HABR = Source(
    title="GIL is hardly a hindrance", author="Habr", year=2012,
    headline="10.41 s sequential, 13.25 s with 2 threads, 10.45 s with 2 threads on one core",
)
SOURCE = replace(
    SKVORTSOV,
    headline="24,000, 12,000, 3,000, 30 and 10 requests/s with 0, 1, 2, 4 and 8 CPU threads, all on one core with the "
    "client",
)
PROCESSES = "processes-spawn"
NO_GEVENT = "gevent takes part on builds with a GIL: its threads are greenlets of one thread"
ONE_CORE = "this process may use one core only"

# How the work is done: the words of the tables, and the seconds of 2012.
WAYS: dict[str, float | None] = {
    "one after the other": 10.41,
    "2 threads": 13.25,
    "2 threads on one core": 10.45,
    "2 gevent-patched threads": None,
    "2 processes": None,
}
SEQUENTIAL, FREE, PINNED, GEVENT, APART = WAYS

PLACES = {"same": "client on the same core", "other": "client on another core", "free": "nothing pinned"}
BURNERS = (0, 1, 2, 4, 8)
# Number of CPU threads by effort and place of the client; where there is no GIL fewer tell as much.
GRID: dict[tuple[Effort, bool], dict[str, tuple[int, ...]]] = {
    (Effort.SMOKE, True): {"same": (1,), "other": (1,)},
    (Effort.SMOKE, False): {"same": (1,), "other": (1,)},
    (Effort.QUICK, True): {"same": (0, 1, 2, 8), "other": (0, 1), "free": (1,)},
    (Effort.QUICK, False): {"same": (0, 1, 8), "other": (1,)},
    (Effort.FULL, True): dict.fromkeys(PLACES, BURNERS),
    (Effort.FULL, False): dict.fromkeys(PLACES, BURNERS),
}
THEN = {0: 24_000.0, 1: 12_000.0, 2: 3_000.0, 4: 30.0, 8: 10.0}  # requests/s of 2021, client on the same core
HELPS = 3.0  # times the requests/s: what pinning must give to be called a help
HOLDS = 1.25  # speed-up of free threads from which they are said to run at once


class Affinity(Experiment):
    """The cure of 2012 for CPU work, and the one of 2021 for a server beside it."""

    name = "affinity"
    title = "Affinity: what it helps to keep threads on one core"
    summary = "the countdown and the echo server with all threads pinned to one core, and not"
    sources = (HABR, SOURCE)
    claim = (
        "In 2012 two threads took 27 % longer than none, and nothing longer once they were pinned to one core. In 2021 "
        "pinning kept an echo server at 12,000 requests/s beside a CPU thread, as its client was pinned there, too."
    )
    program = "affinity"
    packages = (
        Package(requirement="psutil>=7.0", module="psutil"), Package(requirement="gevent>=25.4", module="gevent"),
    )
    levels = {  # noqa: RUF012 - never changed
        Effort.SMOKE: Level(
            rounds=1, seconds=12, scales={"count": 200_000, "seconds": 0.05, "least": 3, "bound": 5.0}
        ),
        Effort.QUICK: Level(
            rounds=5, seconds=60, scales={"count": 8_000_000, "seconds": 0.3, "least": 6, "bound": 5.0}
        ),
        Effort.FULL: Level(
            rounds=12, seconds=1800, scales={"count": 100_000_000, "seconds": 2.0, "least": 30, "bound": 20.0}
        ),
    }

    @override
    def plan(self, setting: Setting) -> Plan:
        return sorted_out(
            candidate
            for build in setting.builds
            for candidate in (*self._countdown(setting, build), *self._echo(setting, build))
        )

    def _countdown(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        yield _cell(self, build, SEQUENTIAL), None
        yield _cell(self, build, FREE), setting.runner_reason(build, _threads(build))
        yield _cell(self, build, PINNED), setting.runner_reason(build, _threads(build)) or _alone(setting)
        gevent = NO_GEVENT if build.free_threaded else setting.module_reason(build, "gevent")
        yield _cell(self, build, GEVENT), gevent
        yield _cell(self, build, APART), setting.runner_reason(build, PROCESSES)

    def _echo(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        reason = setting.runner_reason(build, _threads(build))
        for place, counts in GRID[setting.effort, not build.free_threaded].items():
            lacking = _alone(setting) if place == "other" else None
            for count in counts:
                yield self.cell(build, _threads(build), count, work="echo", client=place), reason or lacking

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        return (
            _seconds(results), _ratios(results),
            *(_requests(results, build) for build in results.builds if _places(results, build)),
        )

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        return tuple(
            sentence
            for build in results.builds
            for sentence in (*_countdown_findings(results, build), *_echo_findings(results, build))
        )

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        return (_ways_figure(results), _requests_figure(results))


def _threads(build: Build) -> str:
    return "free-threaded" if build.free_threaded else "threads"


def _alone(setting: Setting) -> str | None:
    return ONE_CORE if setting.cores == 1 else None


def _cell(experiment: Affinity, build: Build, way: str) -> Cell:
    """Return the cell of the countdown done in `way`."""
    model, workers, cpus = {
        SEQUENTIAL: ("serial", 1, "all"), FREE: (_threads(build), 2, "all"), PINNED: (_threads(build), 2, "one"),
        GEVENT: ("gevent", 2, "all"), APART: (PROCESSES, 2, "all"),
    }[way]
    return experiment.cell(build, model, workers, work="countdown", cpus=cpus)


def _find(results: Results, build: Build, way: str) -> Cell | None:
    wanted = _cell(Affinity(), build, way)
    return next((cell for cell in results.cells(build=build.label) if cell.name == wanted.name), None)


def _seconds(results: Results) -> Table:
    notes = Footnotes()
    columns = [Column(title="countdown", key=True, align="left")]
    columns += [Column(title=build.label, group="now") for build in results.builds]
    columns.append(Column(title="Habr", group="2012"))
    rows = [
        (
            Entry(way),
            *(results.entry(_find(results, build, way), results.duration, notes) for build in results.builds),
            Entry("-" if then is None else f"{then:.2f} s"),
        )
        for way, then in WAYS.items()
    ]
    return Table(title="Countdown: wall time", columns=tuple(columns), rows=tuple(rows), footnotes=notes.texts())


def _ratios(results: Results) -> Table:
    notes = Footnotes()
    columns = [Column(title="countdown", key=True, align="left")]
    columns += [Column(title=build.label, group="now") for build in results.builds]
    columns.append(Column(title="Habr", group="2012"))

    def shown(cell: Cell) -> Value | None:
        found = results.compare(_serial(results, cell.build), cell)
        return None if found is None else Ratio(found)

    rows = [
        (
            Entry(way),
            *(results.entry(_find(results, build, way), shown, notes) for build in results.builds),
            Entry("-" if then is None else f"{ratio_number((WAYS[SEQUENTIAL] or 0.0) / then)}x"),
        )
        for way, then in WAYS.items()
        if way != SEQUENTIAL
    ]
    return Table(title="Countdown: speed-up against one after the other", columns=tuple(columns), rows=tuple(rows),
                 footnotes=notes.texts())


def _serial(results: Results, build: str) -> Cell | None:
    return next(iter(results.cells(build=build, runner="serial", work="countdown")), None)


def _places(results: Results, build: Build) -> list[str]:
    found = {dict(cell.parameters)["client"] for cell in results.cells(build=build.label, work="echo")}
    return [place for place in PLACES if place in found]


def _echo_cell(results: Results, build: Build, place: str, count: int) -> Cell | None:
    return results.find(build=build.label, runner=_threads(build), workers=count, work="echo", client=place)


def _requests(results: Results, build: Build) -> Table:
    """Return requests per second and their median latency by the number of CPU threads."""
    notes, places = Footnotes(), _places(results, build)
    columns = [Column(title="CPU threads", key=True)]
    columns += [Column(title=PLACES[place], group="requests/s") for place in places]
    columns.append(Column(title="2021, same core", group="requests/s"))
    columns += [Column(title=PLACES[place], group="median latency") for place in places]

    def rate(cell: Cell) -> Value | None:
        return results.rate(cell)

    def latency(cell: Cell) -> Value | None:
        found = results.metric(cell, "p50")
        return None if found is None else Duration(found.center)

    counts = sorted({cell.workers for cell in results.cells(build=build.label, work="echo")})
    rows = []
    for count in counts:
        cells = [_echo_cell(results, build, place, count) for place in places]
        rows.append((
            Entry(str(count)),
            *(results.entry(cell, rate, notes) for cell in cells),
            Entry(f"{number_text(THEN[count])}/s"),
            *(results.entry(cell, latency, notes) for cell in cells),
        ))
    return Table(title=f"{build.label}: echo server and CPU threads on one core", columns=tuple(columns),
                 rows=tuple(rows), footnotes=notes.texts())


def _ways_figure(results: Results) -> BarFigure:
    ways = [way for way in WAYS if way != SEQUENTIAL]
    series = []
    for build in results.builds:
        found = [results.compare(_serial(results, build.label), _find(results, build, way)) for way in ways]
        if any(found):
            series.append(_bars(build.label, [None if each is None else _inverted(each) for each in found]))
    base = WAYS[SEQUENTIAL] or 1.0
    known = [(place, then / base) for place, way in enumerate(ways) if (then := WAYS[way]) is not None]
    series.append(Series("2012", tuple(float(place) for place, _ in known), tuple(y for _, y in known),
                         style="history"))
    panel = BarPanel("", tuple(ways), tuple(series), rules=(Rule(1.0, "one after the other", "y"),))
    return BarFigure(
        name="affinity-countdown", title="Countdown: time relative to doing it one after the other",
        y=Axis("time / one after the other (lower is better)", lo=0.0), panels=(panel,), x_title="how it is done",
        note="Crosses: skipped, failed or starved; the table says which and why.",
    )


def _inverted(comparison: Comparison) -> tuple[float, float, float]:
    """Return the time relative to the baseline's, and the ends of its interval."""
    return 1 / comparison.ratio, 1 / comparison.hi, 1 / comparison.lo


def _bars(name: str, values: list[tuple[float, float, float] | None]) -> Series:
    shown = [(nan, nan, nan) if each is None else each for each in values]
    return Series(
        name, tuple(float(place) for place in range(len(shown))), tuple(each[0] for each in shown),
        lo=tuple(each[1] for each in shown), hi=tuple(each[2] for each in shown),
    )


def _requests_figure(results: Results) -> LineFigure:
    panels = [_requests_panel(results, build) for build in results.builds]
    return LineFigure(
        name="affinity-echo", title="Echo server, all its threads on one core, beside CPU threads",
        # 0 has no place on a logarithmic axis, and the steps are to be equal.
        x=Axis("CPU threads", ticks=tuple((float(place), str(count)) for place, count in enumerate(BURNERS))),
        y=Axis("requests per second (1/s)", log=True),
        panels=tuple(panel for panel in panels if any(each.style == "measured" for each in panel.series)),
    )


def _requests_panel(results: Results, build: Build) -> LinePanel:
    series = [
        each for place in _places(results, build) if (each := _requests_line(results, build, place)) is not None
    ]
    then = Series("2021, client on the same core", tuple(float(place) for place in range(len(BURNERS))),
                  tuple(THEN[count] for count in BURNERS), style="history")
    return LinePanel(build.label, (*series, then))


def _requests_line(results: Results, build: Build, place: str) -> Series | None:
    points = []
    for index, count in enumerate(BURNERS):
        if (found := results.value(_echo_cell(results, build, place, count))) is not None:
            points.append((float(index), 1 / found.center, 1 / found.hi, 1 / found.lo))
    if not points:
        return None
    x, y, lo, hi = zip(*points, strict=True)
    return Series(PLACES[place], x, y, lo=lo, hi=hi)


def _countdown_findings(results: Results, build: Build) -> Iterator[str]:
    serial = _serial(results, build.label)
    free, pinned, apart = (results.compare(serial, _find(results, build, way)) for way in (FREE, PINNED, APART))
    if free is None or pinned is None or "unknown" in {free.verdict(), pinned.verdict()}:
        return
    text = (
        f"{build.label}: two threads do the countdown {ratio_number(free.ratio)}x as fast as one after the other, "
        f"pinned to one core {ratio_number(pinned.ratio)}x"
    )
    if free.lo > HOLDS:
        yield f"{text}: without a GIL, pinning takes away the second core that the threads can use."
    elif build.free_threaded:
        yield f"{text}: they gain nothing here, though without a GIL."
    elif free.hi < 1 / HOLDS:
        yield f"{text}: the claim of 2012 holds."
    else:
        yield (
            f"{text}: since 3.2 there is no fight for the GIL any more that pinning could end, so the claim of 2012 no "
            "longer holds."
        )
    if apart is not None and apart.verdict() != "unknown":
        yield f"{build.label}: two processes do it {ratio_number(apart.ratio)}x as fast."


def _echo_findings(results: Results, build: Build) -> Iterator[str]:
    rates = {place: _rate(results, build, place) for place in PLACES}
    same, other = rates["same"], rates["other"]
    if same is None or other is None:
        return
    text = (
        f"{build.label}: beside one CPU thread a server pinned to one core answers {number_text(same)} requests/s of a "
        f"client on the same core and {number_text(other)} of one on another"
    )
    if (free := rates["free"]) is not None:
        text += f"; with nothing pinned it is {number_text(free)}"
    if build.free_threaded:
        yield f"{text}. Without a GIL the server waits for its turn on the core alone."
    elif same > HELPS * other:
        yield (
            f"{text}. Pinning helps as far as the author himself found when he looked again in October 2021: the "
            "system then chooses between the client and the CPU thread. A client elsewhere leaves the core to the CPU "
            "thread, which has the GIL when the request comes."
        )
    else:
        yield f"{text}. That pinning helps is not seen here."


def _rate(results: Results, build: Build, place: str) -> float | None:
    found = results.value(_echo_cell(results, build, place, 1))
    return None if found is None or found.count < MIN_ROUNDS else 1 / found.center
