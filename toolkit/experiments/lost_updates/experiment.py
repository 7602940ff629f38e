"""`lost-updates`: how many additions to one variable are lost, and the race checker's verdict on the code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.base import SKVORTSOV, EffortLevel, EffortSettings, Experiment
from gilscope.toolkit.experiments.helpers.timers import DEFAULT_INTERVAL
from gilscope.toolkit.experiments.results import arms_of
from gilscope.toolkit.experiments.round_texts import range_words
from gilscope.toolkit.experiments.tables_and_figures import (
    TableBuilder,
    arm_columns,
    bounded,
    key_column,
    label_column,
    measured_series,
    show_metric,
    value_columns,
    without_empty,
)
from gilscope.toolkit.report.figures.figure import (
    Axis,
    CategoryFigure,
    CategoryPanel,
    LineFigure,
    LinePanel,
    seconds_axis,
)
from gilscope.toolkit.report.wording import range_text
from gilscope.toolkit.units import format_seconds, list_text, parse_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gilscope.toolkit.experiments.base import PlanningContext
    from gilscope.toolkit.experiments.results import BuildArm, Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Entry, Section, Table
    from gilscope.toolkit.report.figures.figure import Figure, Series
    from gilscope.toolkit.stats.sample import Summary

SOURCE = replace(SKVORTSOV, headline="set the switch interval to 1e-6 and run 100 times sum += 1 in multiple threads")
THEN = "2021: Python 3.9"
SHORTEST = "1us"
CHECKED_THREADS = 2   # threads of the cells whose code the race checker runs
LOCKED = "locked"
# The variants of `updates` as the tables name them.
VARIANTS = {
    "bare": "total += 1", "attribute": "counter.total += 1", "item": "totals[0] += 1", "called": "total += one()",
    "built-in": 'total += int("1")', LOCKED: "with lock: total += one()",
}
QUICK_VARIANTS = ("bare", "called", LOCKED)
INTERVALS = {
    EffortLevel.SMOKE: (DEFAULT_INTERVAL,), EffortLevel.QUICK: (DEFAULT_INTERVAL, SHORTEST),
    EffortLevel.FULL: ("100ms", DEFAULT_INTERVAL, "1ms", "100us", SHORTEST),
}
THREADS = {EffortLevel.SMOKE: (2,), EffortLevel.QUICK: (2,), EffortLevel.FULL: (2, 4, 8)}


class LostUpdatesExperiment(Experiment):
    """The 2021 article's example of a data race, on builds where it has become one again."""

    name = "lost-updates"
    title = "Lost updates: additions to one variable from several threads"
    summary = "sum += 1 from N threads: updates lost by build and switch interval, and the race checker's verdict"
    sources = (SOURCE,)
    claim = (
        "In 2021 (Python 3.9) the article called += not atomic, since it takes several instructions; to see lost "
        "updates, it advised setting the switch interval to 1e-6 and adding 1 a hundred times in each of several "
        "threads."
    )
    program = "lost_updates"
    levels = {
        EffortLevel.SMOKE: EffortSettings(
            rounds=1, seconds=12, scales={"count": 40_000, "locked": 4_000, "starts": 20}),
        EffortLevel.QUICK: EffortSettings(
            rounds=3, seconds=45, scales={"count": 2_000_000, "locked": 200_000, "starts": 400}),
        EffortLevel.FULL: EffortSettings(
            rounds=6, seconds=2400, scales={"count": 10_000_000, "locked": 1_000_000, "starts": 4_000}),
    }
    timeout = 180.0   # the race checker may have to compile its core, once for each build

    @override
    def candidates(self, context: PlanningContext, build: Build) -> Iterator[tuple[Cell, str | None]]:
        for model in context.threads(build, control=context.full()):
            for threads, parameters in _grid(context.effort):
                yield self.cell(build, model, threads, **parameters), context.runner_reason(build, model)

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        tables = (
            _share_table(results, "long", "Updates lost in long loops"),
            _share_table(results, "short", "Updates lost by 100 additions per thread, as in the article"),
            _verdict_table(results),
            _time_table(results),
        )
        return tuple(table for table in tables if table.rows)

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        arms = arms_of(results)
        return (*_on_long_loops(results, arms), *_on_article(results, arms), *_on_checker(results, arms))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        return (_figure_of_variants(results), _figure_over_intervals(results))


def _grid(effort: EffortLevel) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield numbers of threads with the other parameters of a cell."""
    for variant in VARIANTS if effort is EffortLevel.FULL else QUICK_VARIANTS:
        for threads in THREADS[effort]:
            for interval in INTERVALS[effort] if variant != LOCKED else (DEFAULT_INTERVAL,):
                parameters = {"variant": variant, "interval": interval, "loop": "long"}
                checked = interval == DEFAULT_INTERVAL and threads == CHECKED_THREADS
                yield threads, {**parameters, "check": "1"} if checked else parameters
    for variant in ("bare", "called"):
        for interval in {EffortLevel.FULL: (DEFAULT_INTERVAL, SHORTEST)}.get(effort, (SHORTEST,)):
            yield max(THREADS[effort]), {"variant": variant, "interval": interval, "loop": "short"}


# Cells and shares


@dataclass(frozen=True, slots=True)
class UpdateCase:
    """The row of a table: who adds how."""

    variant: str    # a key of VARIANTS
    threads: int
    interval: str


def _cases(results: Results, loop: str) -> list[UpdateCase]:
    """Return the distinct cases of the cells with such loops, in plan order."""
    found = (dict(cell.parameters) | {"threads": str(cell.workers)} for cell in results.cells(loop=loop))
    return list(dict.fromkeys(UpdateCase(each["variant"], int(each["threads"]), each["interval"]) for each in found))


def _checked_cases(results: Results) -> list[UpdateCase]:
    """Return the cases whose code the race checker ran."""
    return [case for case in _cases(results, "long")
            if case.threads == CHECKED_THREADS and case.interval == DEFAULT_INTERVAL]


def _find(results: Results, arm: BuildArm, loop: str, case: UpdateCase) -> Cell | None:
    found = arm.cells(results, workers=case.threads, variant=case.variant, interval=case.interval, loop=loop)
    return next(iter(found), None)


def _share(results: Results, arm: BuildArm, loop: str, case: UpdateCase) -> Summary | None:
    """Return the share of updates that were lost, or None if it was not measured."""
    return results.metric(_find(results, arm, loop, case), "share")


def _verdict(results: Results, cell: Cell | None) -> str | None:
    """Return the race checker's distinct verdicts, those of starved rounds included: it needs no free cores."""
    observations = [o for each in results.run.measurements if each.cell == cell for o in each.observations]
    answers = [dict(each.metrics).get("verdict") for each in observations]
    return ", ".join(dict.fromkeys(str(answer) for answer in answers if answer)) or None


def share_text(share: Summary) -> str:
    """Return a share of lost updates with its range: "33 % [21, 40]", "none"; never 0 % when some were lost."""
    if not share.hi:
        return "none"
    center, lo, hi = (_percent(each) for each in (share.center, share.lo, share.hi))
    return f"{center} % [{lo}, {hi}]" if share.count > 1 else f"{center} %"


def _percent(share: float) -> str:
    percent = share * 100
    if not percent:
        return "0"
    if percent < 0.1:  # finer is noise
        return "<0.1"
    return f"{percent:.1f}" if percent < 10 else f"{percent:.0f}"  # two digits


# Tables


def _share_table(results: Results, loop: str, title: str) -> Table:
    arms = arms_of(results)
    rounds = max((len(results.values(cell)) for cell in results.cells()), default=0)
    table = TableBuilder(
        results, f"{title}: {f'median and range over {rounds} rounds' if rounds > 1 else 'one round'}",
        label_column("each thread does"), key_column("threads"), key_column("switch interval"),
        key_column("additions a round"), *arm_columns(arms),
        *value_columns([THEN] if loop == "short" else ()))
    lost = show_metric(results, "share", share_text)
    for case in _cases(results, loop):
        then = "some" if (case.variant, case.interval) == ("bare", SHORTEST) else "-"
        table.add(
            VARIANTS[case.variant], str(case.threads), format_seconds(parse_seconds(case.interval)),
            _additions(results, arms, loop, case),
            *(table.entry(_find(results, arm, loop, case), lost) for arm in arms), *([then] if loop == "short" else ()))
    return table.build()


def _additions(results: Results, arms: Sequence[BuildArm], loop: str, case: UpdateCase) -> str:
    """Return how many additions all threads of a round make together, "-" if no arm has the cell."""
    counts = (results.center(_find(results, arm, loop, case), "expected") for arm in arms)
    return next((f"{count:,.0f}" for count in counts if count is not None), "-")


def _verdict_table(results: Results) -> Table:
    arms = arms_of(results)
    table = TableBuilder(
        results, f"Updates lost in {CHECKED_THREADS} threads, and the verdict of gilscope race on the same file",
        label_column("each thread does"),
        *(column for arm in arms for column in value_columns(("lost", "race checker"), arm.title, arm.build.label)))
    lost = show_metric(results, "share", share_text)

    def entries(cell: Cell | None) -> Iterator[Entry | str]:
        share = table.entry(cell, lost)
        yield share
        yield _verdict(results, cell) or share

    for case in _checked_cases(results):
        table.add(VARIANTS[case.variant],
                  *(entry for arm in arms for entry in entries(_find(results, arm, "long", case))))
    return table.build()


def _time_table(results: Results) -> Table:
    arms = arms_of(results)
    table = TableBuilder(results, f"Wall time per addition, {CHECKED_THREADS} threads together",
                         label_column("each thread does"), *arm_columns(arms))
    for case in _checked_cases(results):
        table.add(VARIANTS[case.variant],
                  *(table.entry(_find(results, arm, "long", case), results.duration) for arm in arms))
    return table.build()


# Findings


def _on_long_loops(results: Results, arms: Sequence[BuildArm]) -> Iterator[str]:
    """State the losses of long loops, with and without a call between read and write."""
    known: list[tuple[BuildArm, Summary, Summary]] = []
    for arm in arms:
        cases = (UpdateCase(variant, CHECKED_THREADS, DEFAULT_INTERVAL) for variant in ("bare", "called"))
        bare, called = (_share(results, arm, "long", case) for case in cases)
        if bare is None or called is None:
            continue
        known.append((arm, bare, called))
        short = _called_at_shortest(results, arm)
        often = "in one round" if bare.count == 1 else f"in {bare.count} rounds"
        yield (f"{arm.title}: {often}, {CHECKED_THREADS} threads that do total += 1 lose {share_text(bare)} of "
               f"{_updates_made(results, arm)} updates at 5 ms; with total += one() they lose {share_text(called)}"
               f"{'' if short is None else f', at 1 µs {share_text(short)}'}.")
    yield from _why_without_gil([bare for arm, bare, _ in known if arm.free_threaded])
    yield from _why_with_gil([(bare, called) for arm, bare, called in known if not arm.free_threaded])
    yield from _why_at_any_interval(results, [(arm, called) for arm, _, called in known if not arm.free_threaded])


def _updates_made(results: Results, arm: BuildArm) -> str:
    case = UpdateCase("bare", CHECKED_THREADS, DEFAULT_INTERVAL)
    return f"{sum(results.metrics(_find(results, arm, 'long', case), 'expected').values()):,.0f}"


def _called_at_shortest(results: Results, arm: BuildArm) -> Summary | None:
    return _share(results, arm, "long", UpdateCase("called", CHECKED_THREADS, SHORTEST))


def _why_without_gil(bare: Sequence[Summary]) -> Iterator[str]:
    if bare and all(each.hi for each in bare):
        yield "Without the GIL the threads run at the same time, and any write may overwrite another one."


def _why_with_gil(known: Sequence[tuple[Summary, Summary]]) -> Iterator[str]:
    if not known:
        return
    if any(bare.hi for bare, _ in known):
        yield "With the GIL a bare += loses updates, as it did in 2021."
    elif all(called.hi for _, called in known):
        yield ("With the GIL a bare += in a loop no longer loses updates: since 3.10 a thread releases the GIL only at "
               "calls and at the end of a loop iteration, not between any two instructions, and there is neither "
               "between the read and the write of +=. This is an implementation detail of CPython, not a guarantee of "
               "the language.")


def _why_at_any_interval(results: Results, called: Sequence[tuple[BuildArm, Summary]]) -> Iterator[str]:
    """State that the interval makes no difference if the ranges of both intervals overlap on every build."""
    pairs = [(usual, _called_at_shortest(results, arm)) for arm, usual in called]
    known = [(usual, short) for usual, short in pairs if short is not None and min(usual.count, short.count) > 1]
    if not known or len(known) < len(called) or not all(usual.hi and short.hi for usual, short in known):
        return
    if all(usual.lo <= short.hi and short.lo <= usual.hi for usual, short in known):
        yield ("The intervals show no difference: a thread that is interrupted between its read and its write "
               "overwrites all updates of the others in between, however many. The interval of 1e-6 advised in 2021 "
               "matters only to loops that are shorter than the default interval.")


def _on_article(results: Results, arms: Sequence[BuildArm]) -> Iterator[str]:
    """State the losses of the article's program."""
    cases = [case for case in _cases(results, "short") if case.interval == SHORTEST and case.variant == "bare"]
    for case in cases[:1]:
        shares = {arm.title: _share(results, arm, "short", case) for arm in arms}
        known = {title: share for title, share in shares.items() if share is not None}
        if not known:
            return
        text = f"The article's program, 100 times sum += 1 in each of {case.threads} threads at 1 µs, lost"
        if not any(share.hi for share in known.values()):
            rounds = {share.count for share in known.values()}
            often = "this one round" if rounds == {1} else f"{range_text(rounds, str)} rounds"
            yield f"{text} nothing in {often} on {list_text(known)}."
        else:
            parts = (f"{share_text(share)} on {title}" for title, share in known.items())
            yield f"{text} {list_text(parts)}."


def _on_checker(results: Results, arms: Sequence[BuildArm]) -> Iterator[str]:
    """Report any wrong verdict of the race checker, or that it was right on every arm."""
    right: dict[str, list[Summary | None]] = {"race": [], "clean": []}
    wrong = []
    for arm in arms:
        for case in _checked_cases(results):
            cell, expected = _find(results, arm, "long", case), "clean" if case.variant == LOCKED else "race"
            verdict = _verdict(results, cell)
            if verdict == expected:
                right[expected].append(results.metric(cell, "share"))
            elif verdict is not None:
                wrong.append(f"{arm.title}: the race checker reported {verdict}, not {expected}, for "
                             f"{VARIANTS[case.variant]}.")
    yield from wrong
    if wrong or not all(right.values()):
        return
    harmless = sum(share is not None and not share.hi for share in right["race"])
    also = f", including the {harmless} where nothing was lost" if harmless else ""
    yield (f"The race checker reports the race in all {len(right['race'])} programs without a lock{also}, and none in "
           f"the {len(right['clean'])} with one: it checks whether accesses are ordered, not whether "
           "updates were lost.")


# Figures


def _figure_of_variants(results: Results) -> CategoryFigure:
    """Return the losses of each variant on each build at the default interval."""
    cases = _checked_cases(results)
    lines = (_series(results, arm, enumerate(cases)) for arm in arms_of(results))
    return CategoryFigure(
        name="lost-updates", title="How many additions to one variable are lost",
        panels=(CategoryPanel(f"{CHECKED_THREADS} threads, switch interval 5 ms",
                              tuple(VARIANTS[case.variant] for case in cases), without_empty(lines)),),
        y=Axis("updates lost (%)", lo=0.0, hi=100.0), x_title="what each thread does in a loop",
        whiskers=_whiskers(results),
        note="A bar that is only a line: none were lost, or too few to be seen; the table has the numbers.",
    )


def _figure_over_intervals(results: Results) -> LineFigure:
    """Return the losses by switch interval, for the variants that ran with several."""
    panels = []
    for variant in ("bare", "called"):
        points = sorted(
            ((parse_seconds(case.interval), case) for case in _cases(results, "long")
             if case.variant == variant and case.threads == CHECKED_THREADS), key=lambda point: point[0])
        series = without_empty(_series(results, arm, points) for arm in arms_of(results))
        if len(points) > 1 and series:
            panels.append(LinePanel(VARIANTS[variant], series))
    return LineFigure(
        name="lost-updates-interval", title=f"Lost updates by switch interval, {CHECKED_THREADS} threads",
        x=seconds_axis("switch interval", log=True), y=Axis("updates lost (%)", lo=0.0, hi=100.0),
        panels=tuple(panels), whiskers=_whiskers(results),
    )


def _whiskers(results: Results) -> str:
    return range_words(results.metric(cell, "share") for cell in results.cells())


def _series(results: Results, arm: BuildArm, points: Iterable[tuple[float, UpdateCase]]) -> Series:
    shares = ((x, _share(results, arm, "long", case)) for x, case in points)
    return measured_series(arm.title, ((x, bounded(share, lambda value: 100 * value)) for x, share in shares),
                           arm.model)
