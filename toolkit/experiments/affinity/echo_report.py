"""The echo server of `affinity`: its tables and picture, and what they say."""

from __future__ import annotations

from math import isnan, nan
from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.affinity.countdown_report import threads_of
from gilscope.toolkit.report.document import Column, Entry, Table
from gilscope.toolkit.report.figures.figure import Axis, LineFigure, LinePanel, Series
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.wording import number_text
from gilscope.toolkit.stats.words import MIN_ROUNDS
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Value

PLACES = {"same": "client on the same core", "other": "client on another core", "free": "nothing pinned"}
BURNERS = (0, 1, 2, 4, 8)
THEN = {0: 24_000.0, 1: 12_000.0, 2: 3_000.0, 4: 30.0, 8: 10.0}  # requests/s of 2021, client on the same core
HELPS = 3.0  # times the requests/s: what pinning must give to be called a help


def places(results: Results, build: Build) -> list[str]:
    """Return where the clients of `build` were, in the order of the tables."""
    found = {dict(cell.parameters)["client"] for cell in results.cells(build=build.label, work="echo")}
    return [place for place in PLACES if place in found]


def _echo_cell(results: Results, build: Build, place: str, count: int) -> Cell | None:
    return results.find(build=build.label, runner=threads_of(build), workers=count, work="echo", client=place)


def table(results: Results, build: Build) -> Table:
    """Return requests per second and their latency by the number of CPU threads."""
    notes, found = Footnotes(), places(results, build)
    columns = [Column(title="CPU threads", key=True)]
    columns += [Column(title=PLACES[place], group="requests/s") for place in found]
    columns.append(Column(title="2021, same core", group="requests/s"))
    columns += [Column(title=PLACES[place], group="latency, p50 / p99") for place in found]

    def rate(cell: Cell) -> Value | None:
        return results.rate(cell)

    def latency(cell: Cell) -> Value | None:
        median, late = results.metric(cell, "p50"), results.metric(cell, "p99")
        if median is None or late is None:
            return None
        return f"{format_seconds(median.center)} / {format_seconds(late.center)}"

    counts = sorted({cell.workers for cell in results.cells(build=build.label, work="echo")})
    rows = []
    for count in counts:
        cells = [_echo_cell(results, build, place, count) for place in found]
        rows.append((
            Entry(str(count)),
            *(results.entry(cell, rate, notes) for cell in cells),
            Entry(f"{number_text(THEN[count])}/s"),
            *(results.entry(cell, latency, notes) for cell in cells),
        ))
    return Table(title=f"{build.label}: echo server beside CPU threads, all on one core", columns=tuple(columns),
                 rows=tuple(rows), footnotes=notes.texts())


def figure(results: Results) -> LineFigure | None:
    """Return the picture of the echo server; None when there is nothing to show."""
    panels = tuple(_panel(results, build) for build in results.builds if places(results, build))
    if all(isnan(y) for panel in panels for each in panel.series if each.style == "measured" for y in each.y):
        return None
    return LineFigure(
        name="affinity-echo",
        title="Echo server and CPU threads on one core: requests per second by where the client is",
        # 0 has no place on a logarithmic axis, and the steps are to be equal.
        x=Axis("CPU threads beside the server (number)",
               ticks=tuple((float(place), str(count)) for place, count in enumerate(BURNERS))),
        y=Axis("requests per second (1/s)", log=True), panels=panels,
    )


def _panel(results: Results, build: Build) -> LinePanel:
    then = Series("2021, client on the same core", tuple(float(place) for place in range(len(BURNERS))),
                  tuple(THEN[count] for count in BURNERS), style="history")
    return LinePanel(build.label, (*(_line(results, build, place) for place in places(results, build)), then))


def _line(results: Results, build: Build, place: str) -> Series:
    points = []
    for index, count in enumerate(BURNERS):
        if (cell := _echo_cell(results, build, place, count)) is not None:
            found = results.value(cell)
            rates = (nan, nan, nan) if found is None else (1 / found.center, 1 / found.hi, 1 / found.lo)
            points.append((float(index), *rates))
    x, y, lo, hi = zip(*points, strict=True)
    return Series(PLACES[place], x, y, lo=lo, hi=hi)


def findings(results: Results, build: Build) -> Iterator[str]:
    """Give what `build` shows, and how far the claim of 2021 holds; nothing when too little was measured."""
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
        yield f"{text}. Without a GIL the server waits for the core alone, and for no lock."
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
