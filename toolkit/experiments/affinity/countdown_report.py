"""The countdown of `affinity`: its cells, its tables and picture, and what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.results import relative_time
from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.document import Column, Entry, Ratio, Table
from gilscope.toolkit.report.figures.figure import Axis, CategoryFigure, CategoryPanel, Rule, Series
from gilscope.toolkit.report.figures.plots.look.palette import family
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.wording import ratio_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build
    from gilscope.toolkit.report.document import Value
    from gilscope.toolkit.stats.words import Comparison

PROCESSES = "processes-spawn"
# How the work is done: the words of the tables, and the seconds of 2012.
WAYS: dict[str, float | None] = {
    "one after the other": 10.41,
    "2 threads": 13.25,
    "2 threads on one core": 10.45,
    "2 gevent-patched threads": None,
    "2 processes": None,
}
SEQUENTIAL, FREE, PINNED, PATCHED, APART = WAYS
HOLDS = 1.25  # speed-up from which threads are said to run at once; its inverse, from which they are said to suffer


def threads_of(build: Build) -> str:
    """Return the name under which threads run in `build`."""
    return "free-threaded" if build.free_threaded else "threads"


def cell_of(build: Build, way: str) -> Cell:
    """Return the cell of the countdown done in `way`."""
    model, workers, cpus = {
        SEQUENTIAL: ("serial", 1, "all"), FREE: (threads_of(build), 2, "all"), PINNED: (threads_of(build), 2, "one"),
        PATCHED: ("gevent", 2, "all"), APART: (PROCESSES, 2, "all"),
    }[way]
    return Cell(workload="affinity", runner=model, workers=workers, build=build.label,
                parameters=(("work", "countdown"), ("cpus", cpus)))


def _find(results: Results, build: Build, way: str) -> Cell | None:
    wanted = cell_of(build, way)
    return wanted if wanted in results.cells(build=build.label) else None


def seconds_table(results: Results) -> Table:
    """Return the wall times, beside those of 2012."""
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


def ratios_table(results: Results) -> Table:
    """Return the speed-ups against one after the other, beside those of 2012."""
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


def figure(results: Results) -> CategoryFigure | None:
    """Return the picture of the countdown; None when there is nothing to show."""
    ways = [way for way in WAYS if way != SEQUENTIAL]
    panels = tuple(
        CategoryPanel(build.label, tuple(ways), series, rules=(Rule(1.0, "one after the other", "y"),))
        for build in results.builds if (series := _bars(results, build, ways)))
    if not panels:
        return None
    return CategoryFigure(
        name="affinity-countdown", title="Two countdowns: how long they take, against one after the other",
        y=Axis("time (1 = one after the other)", lo=0.0), panels=panels, x_title="how it is done",
    )


def _bars(results: Results, build: Build, ways: list[str]) -> tuple[Series, ...]:
    """Return a series for each model that the ways take, and those of 2012; () where nothing was measured."""
    models: dict[str, list[tuple[int, Comparison | None]]] = {}
    for place, way in enumerate(ways):
        found = results.compare(_serial(results, build.label), _find(results, build, way))
        models.setdefault(cell_of(build, way).runner, []).append((place, found))
    if not any(found for known in models.values() for _, found in known):
        return ()
    base = WAYS[SEQUENTIAL] or 1.0
    then = [(float(place), seconds / base) for place, way in enumerate(ways) if (seconds := WAYS[way]) is not None]
    return (*(_series(model, known) for model, known in models.items()),
            Series("threads, 2012", tuple(x for x, _ in then), tuple(y for _, y in then), style="history"))


def _series(model: str, known: list[tuple[int, Comparison | None]]) -> Series:
    shown = [relative_time(found) for _, found in known]
    return Series(
        family(model), tuple(float(place) for place, _ in known), tuple(each[0] for each in shown),
        lo=tuple(each[1] for each in shown), hi=tuple(each[2] for each in shown), model=model)


def findings(results: Results, build: Build) -> Iterator[str]:
    """Give what `build` shows, and whether the claim of 2012 holds; nothing when too little was measured."""
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
        yield f"{text}: a gain beyond the noise is not shown here."
    elif free.hi < 1 / HOLDS:
        yield f"{text}: the claim of 2012 holds."
    else:
        yield (
            f"{text}: since 3.2 there is no fight for the GIL any more that pinning could end, so the claim of 2012 no "
            "longer holds."
        )
    if apart is not None and apart.verdict() != "unknown":
        yield f"{build.label}: two processes do it {ratio_number(apart.ratio)}x as fast."
