"""`lost-updates`: how many of the additions to one variable are lost, and what the race checker says of the code."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.arms import arms_of
from gilscope.toolkit.experiments.base import Effort, Experiment, Level
from gilscope.toolkit.experiments.citations import SKVORTSOV
from gilscope.toolkit.experiments.lost_updates.findings import on_article, on_checker, on_shares
from gilscope.toolkit.experiments.lost_updates.shares import (
    CHECKED,
    DEFAULT,
    LOCKED,
    SHORTEST,
    WORDS,
    checked_rows,
    find_cell,
    rows_of,
    share_of,
    share_text,
    verdict_of,
)
from gilscope.toolkit.report.document import Column, Entry, Table
from gilscope.toolkit.report.figures.figure import (
    Axis,
    CategoryFigure,
    CategoryPanel,
    LineFigure,
    LinePanel,
    Series,
    seconds_axis,
)
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.units import format_seconds, parse_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.arms import Arm
    from gilscope.toolkit.experiments.base import Setting
    from gilscope.toolkit.experiments.lost_updates.shares import Row
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Value
    from gilscope.toolkit.report.figures.figure import Figure

SOURCE = replace(SKVORTSOV, headline="set the switch interval to 1e-6 and run 100 times sum += 1 in multiple threads")
THEN = "2021: Python 3.9"
INTERVALS = {
    Effort.SMOKE: (DEFAULT,), Effort.QUICK: (DEFAULT, SHORTEST),
    Effort.FULL: ("100ms", DEFAULT, "1ms", "100us", SHORTEST),
}
THREADS = {Effort.SMOKE: (2,), Effort.QUICK: (2,), Effort.FULL: (2, 4, 8)}
QUICK_VARIANTS = ("bare", "called", LOCKED)
WHISKERS = "from the least to the most of a round"


class LostUpdates(Experiment):
    """The 2021 article's example of a data race, on builds where it has become one again."""

    name = "lost-updates"
    title = "Lost updates: additions to one variable from several threads"
    summary = "sum += 1 from N threads: updates lost by build and switch interval, and the race checker's verdict"
    sources = (SOURCE,)
    claim = (
        "In 2021 (Python 3.9) += was called not atomic, as it takes several instructions; to see updates get lost, one "
        "was to set the switch interval to 1e-6 and add 1 a hundred times in each of several threads."
    )
    program = "lost_updates"
    levels = {  # noqa: RUF012 - never changed
        Effort.SMOKE: Level(rounds=1, seconds=12, scales={"count": 40_000, "locked": 4_000, "starts": 20}),
        Effort.QUICK: Level(rounds=3, seconds=45, scales={"count": 2_000_000, "locked": 200_000, "starts": 400}),
        Effort.FULL: Level(rounds=6, seconds=2400, scales={"count": 10_000_000, "locked": 1_000_000, "starts": 4_000}),
    }
    timeout = 180.0   # the race checker may have to compile its core, once for a build

    @override
    def candidates(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        for model in setting.threads(build, control=setting.full()):
            for threads, parameters in _grid(setting.effort):
                yield self.cell(build, model, threads, **parameters), setting.runner_reason(build, model)

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        tables = (
            _shares(results, "long", "Updates lost in long loops"),
            _shares(results, "short", "Updates lost by 100 additions per thread, as in the article"),
            _verdicts(results),
            _times(results),
        )
        return tuple(table for table in tables if table.rows)

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        arms = arms_of(results)
        return (*on_shares(results, arms), *on_article(results, arms), *on_checker(results, arms))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        return (*_bars(results), *_lines(results))


def _grid(effort: Effort) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield numbers of threads with the other parameters of a cell."""
    for variant in WORDS if effort is Effort.FULL else QUICK_VARIANTS:
        for threads in THREADS[effort]:
            for interval in INTERVALS[effort] if variant != LOCKED else (DEFAULT,):
                parameters = {"variant": variant, "interval": interval, "loop": "long"}
                checked = interval == DEFAULT and threads == CHECKED
                yield threads, {**parameters, "check": "1"} if checked else parameters
    for variant in ("bare", "called"):
        for interval in {Effort.FULL: (DEFAULT, SHORTEST)}.get(effort, (SHORTEST,)):
            yield max(THREADS[effort]), {"variant": variant, "interval": interval, "loop": "short"}


def _shares(results: Results, loop: str, title: str) -> Table:
    notes, arms = Footnotes(), arms_of(results)
    columns = [Column(title="each thread does", key=True, align="left"), Column(title="threads", key=True),
               Column(title="switch interval", key=True)]
    columns += [Column(title=arm.title) for arm in arms]
    if loop == "short":
        columns.append(Column(title=THEN))

    def shown(cell: Cell) -> Value | None:
        share = results.metric(cell, "share")
        return None if share is None else share_text(share)

    rows = []
    for row in rows_of(results, loop):
        now = (results.entry(find_cell(results, arm, loop, row), shown, notes) for arm in arms)
        then = [Entry("some" if (row.variant, row.interval) == ("bare", SHORTEST) else "-")] if loop == "short" else []
        rows.append((Entry(WORDS[row.variant]), Entry(str(row.threads)),
                     Entry(format_seconds(parse_seconds(row.interval))), *now, *then))
    return Table(title=f"{title}: median and range over rounds", columns=tuple(columns), rows=tuple(rows),
                 footnotes=notes.texts())


def _verdicts(results: Results) -> Table:
    notes, arms = Footnotes(), arms_of(results)
    columns = [Column(title="each thread does", key=True, align="left")]
    for arm in arms:
        columns += [Column(title="lost", group=arm.title), Column(title="race checker", group=arm.title)]

    def lost(cell: Cell) -> Value | None:
        share = results.metric(cell, "share")
        return None if share is None else share_text(share)

    def places(cell: Cell | None) -> tuple[Entry, Entry]:
        share, verdict = results.entry(cell, lost, notes), verdict_of(results, cell)
        # A verdict does not depend on the cores that the run got.
        return share, Entry(verdict) if verdict else share

    rows = [
        (Entry(WORDS[row.variant]),
         *(place for arm in arms for place in places(find_cell(results, arm, "long", row))))
        for row in checked_rows(results)
    ]
    return Table(title=f"What is lost in {CHECKED} threads, and what gilscope race says of the same file",
                 columns=tuple(columns), rows=tuple(rows), footnotes=notes.texts())


def _times(results: Results) -> Table:
    notes, arms = Footnotes(), arms_of(results)
    columns = (Column(title="each thread does", key=True, align="left"), *(Column(title=arm.title) for arm in arms))
    rows = [
        (Entry(WORDS[row.variant]),
         *(results.entry(find_cell(results, arm, "long", row), results.duration, notes) for arm in arms))
        for row in checked_rows(results)
    ]
    return Table(title=f"Wall time for one addition of {CHECKED} threads' together", columns=columns, rows=tuple(rows),
                 footnotes=notes.texts())


def _bars(results: Results) -> tuple[Figure, ...]:
    """Return what each variant loses on each build at the default interval."""
    rows = checked_rows(results)
    points = [(float(place), row) for place, row in enumerate(rows)]
    series = [_series(results, arm, points) for arm in arms_of(results)]
    kept = tuple(each for each in series if not all(map(isnan, each.y)))
    if not kept:
        return ()
    panel = CategoryPanel(f"{CHECKED} threads, switch interval 5 ms", tuple(WORDS[row.variant] for row in rows), kept)
    return (CategoryFigure(name="lost-updates", title="How many additions to one variable are lost", panels=(panel,),
                      y=Axis("updates lost (%)", lo=0.0, hi=100.0), x_title="what each thread does in a loop",
                      whiskers=WHISKERS, note="A bar of no height: none were lost."),)


def _lines(results: Results) -> tuple[Figure, ...]:
    """Return what is lost by switch interval, where there are several."""
    panels = []
    for variant in ("bare", "called"):
        rows = [row for row in rows_of(results, "long") if row.variant == variant and row.threads == CHECKED]
        rows.sort(key=lambda row: parse_seconds(row.interval))
        series = [_series(results, arm, [(parse_seconds(row.interval), row) for row in rows])
                  for arm in arms_of(results)] if len(rows) > 1 else []
        kept = tuple(each for each in series if not all(map(isnan, each.y)))
        if kept:
            panels.append(LinePanel(WORDS[variant], kept))
    if not panels:
        return ()
    return (LineFigure(name="lost-updates-interval", title=f"Lost updates by switch interval, {CHECKED} threads",
                       x=seconds_axis("switch interval", log=True), y=Axis("updates lost (%)", lo=0.0, hi=100.0),
                       panels=tuple(panels), whiskers=WHISKERS),)


def _series(results: Results, arm: Arm, points: list[tuple[float, Row]]) -> Series:
    shares = [share_of(results, arm, "long", row) for _, row in points]
    nan = float("nan")
    return Series(
        arm.title, tuple(x for x, _ in points), tuple(nan if each is None else 100 * each.center for each in shares),
        lo=tuple(nan if each is None else 100 * each.lo for each in shares),
        hi=tuple(nan if each is None else 100 * each.hi for each in shares), model=arm.model,
    )
