"""`lost-updates`: how many of the additions to one variable are lost, and what the race checker says of the code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, override

from toolkit.experiments.base import Effort, Experiment, Level, sorted_out
from toolkit.experiments.countdown import SKVORTSOV
from toolkit.report.document import Column, Entry, Table
from toolkit.report.figure import Axis, BarFigure, BarPanel, LineFigure, LinePanel, Series, seconds_axis
from toolkit.report.footnotes import Footnotes
from toolkit.units import format_seconds, parse_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit.experiments.base import Setting
    from toolkit.experiments.results import Results
    from toolkit.measure.plan import Plan
    from toolkit.model import Build, Cell
    from toolkit.report.document import Section, Value
    from toolkit.report.figure import Figure
    from toolkit.stats.sample import Summary

SOURCE = replace(SKVORTSOV, headline="set the switch interval to 1e-6 and run 100 times sum += 1 in multiple threads")
THEN = "2021: Python 3.9"
DEFAULT, SHORTEST = "5ms", "1us"
INTERVALS = {
    Effort.SMOKE: (DEFAULT,), Effort.QUICK: (DEFAULT, SHORTEST),
    Effort.FULL: ("100ms", DEFAULT, "1ms", "100us", SHORTEST),
}
THREADS = {Effort.SMOKE: (2,), Effort.QUICK: (2,), Effort.FULL: (2, 4, 8)}
CHECKED = 2   # threads of the cells whose code the race checker is given, too
LOCKED = "locked"
# The variants, as programs.updates has them, as the tables say them.
WORDS = {
    "bare": "total += 1", "attribute": "counter.total += 1", "item": "totals[0] += 1", "called": "total += one()",
    "built-in": 'total += int("1")', LOCKED: "with lock: total += one()",
}
QUICK_VARIANTS = ("bare", "called", LOCKED)


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
        Effort.QUICK: Level(rounds=3, seconds=25, scales={"count": 2_000_000, "locked": 200_000, "starts": 400}),
        Effort.FULL: Level(rounds=6, seconds=2400, scales={"count": 10_000_000, "locked": 1_000_000, "starts": 4_000}),
    }
    timeout = 180.0   # the race checker may have to compile its core, once for a build

    @override
    def plan(self, setting: Setting) -> Plan:
        return sorted_out(
            (self.cell(build, model, threads, **parameters), setting.runner_reason(build, model))
            for build in setting.builds
            for model in setting.threads(build, control=setting.full())
            for threads, parameters in _grid(setting.effort)
        )

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        tables = (
            _shares(results, "long", "Updates lost in long loops"),
            _shares(results, "short", "Updates lost when each thread adds 100 times and ends, as in the article"),
            _verdicts(results),
            _times(results),
        )
        return tuple(table for table in tables if table.rows)

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        arms = _arms(results)
        return (*(sentence for arm in arms for sentence in _findings(results, arm)), *_on_checker(results, arms))

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


@dataclass(frozen=True, slots=True)
class Arm:
    """A build with one of its models, a column of the tables."""

    build: Build
    model: str

    @property
    def title(self) -> str:
        """The build's label, and that its GIL is on where it need not be."""
        control = self.build.free_threaded and self.model == "threads"
        return f"{self.build.label}, GIL on" if control else self.build.label


@dataclass(frozen=True, slots=True)
class Row:
    """What a line of the tables is about."""

    variant: str
    threads: int
    interval: str


def _arms(results: Results) -> list[Arm]:
    """Return the arms of the run in the order of the tables."""
    return [
        Arm(build, model)
        for build in results.builds
        for model in dict.fromkeys(cell.runner for cell in results.cells(build=build.label))
    ]


def _rows(results: Results, loop: str) -> list[Row]:
    """Return the rows that cells of such loops have, each once, in the order of the plan."""
    found = (dict(cell.parameters) | {"threads": str(cell.workers)} for cell in results.cells(loop=loop))
    return list(dict.fromkeys(Row(each["variant"], int(each["threads"]), each["interval"]) for each in found))


def _find(results: Results, arm: Arm, loop: str, row: Row) -> Cell | None:
    found = results.cells(build=arm.build.label, runner=arm.model, workers=row.threads, variant=row.variant,
                          interval=row.interval, loop=loop)
    return next(iter(found), None)


def _share(results: Results, arm: Arm, loop: str, row: Row) -> Summary | None:
    return results.metric(_find(results, arm, loop, row), "share")


def _shares(results: Results, loop: str, title: str) -> Table:
    notes, arms = Footnotes(), _arms(results)
    columns = [Column(title="each thread does", key=True, align="left"), Column(title="threads", key=True),
               Column(title="switch interval", key=True)]
    columns += [Column(title=arm.title) for arm in arms]
    columns.append(Column(title=THEN))

    def shown(cell: Cell) -> Value | None:
        share = results.metric(cell, "share")
        return None if share is None else share_text(share)

    rows = []
    for row in _rows(results, loop):
        now = (results.entry(_find(results, arm, loop, row), shown, notes) for arm in arms)
        then = "some" if loop == "short" and (row.variant, row.interval) == ("bare", SHORTEST) else "-"
        rows.append((Entry(WORDS[row.variant]), Entry(str(row.threads)),
                     Entry(format_seconds(parse_seconds(row.interval))), *now, Entry(then)))
    return Table(title=f"{title}: median and range over rounds", columns=tuple(columns), rows=tuple(rows),
                 footnotes=notes.texts())


def share_text(share: Summary) -> str:
    """Return a share of lost updates with its interval: "33 % [21, 40]", "none"; never 0 % of some."""
    if not share.hi:
        return "none"
    center, lo, hi = (_percent(each) for each in (share.center, share.lo, share.hi))
    return f"{center} % [{lo}, {hi}]" if share.count > 1 else f"{center} %"


def _percent(share: float) -> str:
    percent = share * 100
    if not percent:
        return "0"
    if percent < 0.1:  # noqa: PLR2004 - finer is noise
        return "<0.1"
    return f"{percent:.1f}" if percent < 10 else f"{percent:.0f}"  # noqa: PLR2004 - two digits


def _checked(results: Results) -> list[Row]:
    return [row for row in _rows(results, "long") if row.threads == CHECKED and row.interval == DEFAULT]


def _verdict(results: Results, cell: Cell | None) -> str | None:
    """Return what the race checker said in every round; each answer once where they differ."""
    return ", ".join(dict.fromkeys(results.texts(cell, "verdict"))) or None


def _verdicts(results: Results) -> Table:
    notes, arms = Footnotes(), _arms(results)
    columns = [Column(title="each thread does", key=True, align="left")]
    for arm in arms:
        columns += [Column(title="lost", group=arm.title), Column(title="race checker", group=arm.title)]

    def lost(cell: Cell) -> Value | None:
        share = results.metric(cell, "share")
        return None if share is None else share_text(share)

    def verdict(cell: Cell) -> Value | None:
        return _verdict(results, cell)

    rows = []
    for row in _checked(results):
        cells = [_find(results, arm, "long", row) for arm in arms]
        rows.append((Entry(WORDS[row.variant]),
                     *(results.entry(cell, show, notes) for cell in cells for show in (lost, verdict))))
    return Table(title=f"What is lost in {CHECKED} threads, and what gilscope race says of the same file",
                 columns=tuple(columns), rows=tuple(rows), footnotes=notes.texts())


def _times(results: Results) -> Table:
    notes, arms = Footnotes(), _arms(results)
    columns = (Column(title="each thread does", key=True, align="left"), *(Column(title=arm.title) for arm in arms))
    rows = [
        (Entry(WORDS[row.variant]),
         *(results.entry(_find(results, arm, "long", row), results.duration, notes) for arm in arms))
        for row in _checked(results)
    ]
    return Table(title=f"Wall time for one addition of {CHECKED} threads' together", columns=columns, rows=tuple(rows),
                 footnotes=notes.texts())


def _findings(results: Results, arm: Arm) -> Iterator[str]:
    bare, called = (_share(results, arm, "long", Row(variant, CHECKED, DEFAULT)) for variant in ("bare", "called"))
    if bare is None or called is None:
        return
    if arm.model == "free-threaded":
        yield _without_gil(arm, bare)
    else:
        yield _with_gil(results, arm, bare, called)
    yield from _on_interval(results, arm, called)
    yield from _on_article(results, arm)


def _without_gil(arm: Arm, bare: Summary) -> str:
    text = f"{arm.title}: {CHECKED} threads that only do total += 1 lose {_lost_text(bare)} of the updates"
    if not bare.hi:
        return f"{text} here, although nothing keeps them from running at the same time."
    return f"{text}: without a GIL they run at the same time, and any write may cover another one."


def _with_gil(results: Results, arm: Arm, bare: Summary, called: Summary) -> str:
    if bare.hi:
        return f"{arm.title}: a bare total += 1 loses {_lost_text(bare)} of the updates, as it did in 2021."
    made = results.metrics(_find(results, arm, "long", Row("bare", CHECKED, DEFAULT)), "expected")
    text = f"{arm.title}: a bare total += 1 lost none of {sum(made.values()):,.0f} updates"
    if not called.hi:
        return f"{text}; here, one with a call in it lost none either."
    return (
        f"{text}, but total += one() lost {_lost_text(called)}. Since 3.10 a thread gives the GIL away only at calls "
        "and at the end of a loop's turn, no longer between any two instructions; the first has neither between its "
        "read and its write. That is how CPython happens to be made, not a promise: the claim of 2021 holds for the "
        "language."
    )


def _on_interval(results: Results, arm: Arm, usual: Summary) -> Iterator[str]:
    """Compare the default interval with the shortest, for additions that call something."""
    short = _share(results, arm, "long", Row("called", CHECKED, SHORTEST))
    if short is None or not (usual.hi and short.hi):
        return
    text = (f"{arm.title}: total += one() loses {_lost_text(usual)} at 5 ms and {_lost_text(short)} at 1 us")
    if max(usual.lo, short.lo) > min(usual.hi, short.hi):
        yield f"{text}."
    elif arm.model == "free-threaded":
        yield f"{text}; no difference is seen, as there is no GIL to switch."
    else:
        yield (f"{text}; no difference is seen: a thread that is stopped between its read and its write covers all "
               "that the others did meanwhile, whether that was little or much. The interval matters only to loops "
               "that are shorter than it.")


def _on_article(results: Results, arm: Arm) -> Iterator[str]:
    """Say what the article's program loses."""
    rows = [row for row in _rows(results, "short") if row.interval == SHORTEST and row.variant == "bare"]
    for row in rows[:1]:
        share = _share(results, arm, "short", row)
        if share is not None:
            end = "" if share.hi else ": a thread has added its hundred before the next one has started"
            yield (f"{arm.title}: the article's program, 100 times sum += 1 in each of {row.threads} threads at 1 us, "
                   f"loses {_lost_text(share)} of its updates{end}.")


def _lost_text(share: Summary) -> str:
    return share_text(share) if share.hi else "none"


def _on_checker(results: Results, arms: Sequence[Arm]) -> Iterator[str]:
    """Say whether the race checker told the racy variants from the locked one, on every build."""
    found: dict[str, list[str]] = {"race": [], "clean": []}
    silent = []
    for arm in arms:
        for row in _checked(results):
            cell = _find(results, arm, "long", row)
            verdict = _verdict(results, cell)
            wanted = "clean" if row.variant == LOCKED else "race"
            if verdict == wanted:
                share = results.metric(cell, "share")
                found[wanted].append("" if share is None or share.hi else arm.title)
            elif verdict is not None:
                yield f"{arm.title}: of {WORDS[row.variant]} the race checker said {verdict}, not {wanted}."
                silent.append(row)
    if silent or not all(found.values()):
        return
    harmless = sum(map(bool, found["race"]))
    also = f", also in the {harmless} of them where nothing was lost" if harmless else ""
    yield (f"The race checker reports the race in all {len(found['race'])} runs without a lock{also}, and none in the "
           f"{len(found['clean'])} with one, which lost nothing: it judges the order of accesses, not luck.")


def _bars(results: Results) -> tuple[Figure, ...]:
    """Return what each variant loses on each build at the default interval."""
    rows = _checked(results)
    series = [_series(results, arm, [(float(place), row) for place, row in enumerate(rows)]) for arm in _arms(results)]
    kept = tuple(each for each in series if not all(map(isnan, each.y)))
    if not kept:
        return ()
    panel = BarPanel(f"{CHECKED} threads, switch interval 5 ms", tuple(WORDS[row.variant] for row in rows), kept)
    return (BarFigure(name="lost-updates", title="Additions to one variable that are lost", panels=(panel,),
                      y=Axis("updates lost (%)", lo=0.0, hi=100.0), x_title="what each thread does in a loop",
                      note="Lines: range over rounds. A bar of no height: none were lost."),)


def _lines(results: Results) -> tuple[Figure, ...]:
    """Return what is lost by switch interval, where there are several."""
    panels = []
    for variant in ("bare", "called"):
        rows = [row for row in _rows(results, "long") if row.variant == variant and row.threads == CHECKED]
        rows.sort(key=lambda row: parse_seconds(row.interval))
        series = [_series(results, arm, [(parse_seconds(row.interval), row) for row in rows])
                  for arm in _arms(results)] if len(rows) > 1 else []
        kept = tuple(each for each in series if not all(map(isnan, each.y)))
        if kept:
            panels.append(LinePanel(WORDS[variant], kept))
    if not panels:
        return ()
    return (LineFigure(name="lost-updates-interval", title=f"Lost updates by switch interval, {CHECKED} threads",
                       x=seconds_axis("switch interval", log=True), y=Axis("updates lost (%)", lo=0.0, hi=100.0),
                       panels=tuple(panels), note="Lines: range over rounds."),)


def _series(results: Results, arm: Arm, points: list[tuple[float, Row]]) -> Series:
    shares = [_share(results, arm, "long", row) for _, row in points]
    nan = float("nan")
    return Series(
        arm.title, tuple(x for x, _ in points), tuple(nan if each is None else 100 * each.center for each in shares),
        lo=tuple(nan if each is None else 100 * each.lo for each in shares),
        hi=tuple(nan if each is None else 100 * each.hi for each in shares),
    )
