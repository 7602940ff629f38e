"""`signals`: how long Ctrl-C takes until the main thread handles it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.base import BEAZLEY, EffortLevel, EffortSettings, Experiment
from gilscope.toolkit.experiments.helpers.timers import DEFAULT_SECONDS
from gilscope.toolkit.experiments.results import arms_of, parameter
from gilscope.toolkit.experiments.round_texts import rounds_text
from gilscope.toolkit.experiments.tables_and_figures import (
    UNKNOWN,
    TableBuilder,
    key_column,
    label_column,
    measured_series,
    number_ticks,
    value_columns,
    without_empty,
)
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
from gilscope.toolkit.units import format_seconds, list_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gilscope.toolkit.experiments.base import PlanningContext
    from gilscope.toolkit.experiments.results import BuildArm, Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Table, Value
    from gilscope.toolkit.report.figures.figure import Figure, Series

SOURCE = replace(
    BEAZLEY,
    headline="never, when the main thread waits for a lock or joins a thread",
)
THEN = "2009: Python 2.6"
AT_ONCE = "lock-at-once"
# The activities of the main thread, keys of `interrupted_process.MAIN`, as the tables name them.
WAITING = {
    "join": "joins a thread", "lock": "waits for a Lock", "event": "waits for an Event", "queue": "waits in queue.get",
    "sleep": "sleeps", "select": "waits in select", "computing": "computes in Python",
    AT_ONCE: "begins to wait for a Lock",
}
CALLING = {
    "calls": "is in sum(range(n)), which keeps the GIL",
    "releasing-calls": "is in pbkdf2_hmac, which gives the GIL away",
    "looking-call": "is in re.match, which looks for signals",
    "beside-calls": "waits; another thread is in sum(range(n))",
    "beside-releasing-calls": "waits; another thread is in pbkdf2_hmac",
    "same-list": "writes to a list that another thread sorts",
}
NEVER = frozenset({"join", "lock", "event", "queue", AT_ONCE})   # waits for a lock, which Python 2 did not interrupt
CHANCE = 0.05   # significance level
SHORT = 0.2   # a wait below this share of another one is not of its kind
NOTE = "Median over rounds of each process's median. One that was not handled in time counts as the limit."
WHISKERS = "from the fastest to the slowest"


class SignalsExperiment(Experiment):
    """Beazley's question why Ctrl-C does not work in a program with threads."""

    name = "signals"
    title = "Signals: how long Ctrl-C takes"
    summary = "from SIGINT to KeyboardInterrupt in the main thread: blocked, computing, in one long C call"
    sources = (SOURCE,)
    claim = (
        "Beazley showed in 2009 that Ctrl-C does nothing in a program with threads: the main thread, the only one that "
        "runs signal handlers, cannot be woken from a lock or a join, while all others try to hand the GIL to it after "
        "every tick."
    )
    program = "signals"
    levels = {
        EffortLevel.SMOKE: EffortSettings(rounds=1, seconds=8, scales={"attempts": 2, "limit": 30, "call": 0.05}),
        EffortLevel.QUICK: EffortSettings(rounds=3, seconds=30, scales={"attempts": 4, "limit": 2, "call": 0.1}),
        EffortLevel.FULL: EffortSettings(rounds=6, seconds=2400, scales={"attempts": 10, "limit": 10, "call": 0.5}),
    }

    @override
    def candidates(self, context: PlanningContext, build: Build) -> Iterator[tuple[Cell, str | None]]:
        for model in context.threads(build, control=context.full()):
            for activity, cpu_threads in _grid(context.effort):
                cell = self.cell(build, model, cpu_threads + 1, main=activity, cpu=str(cpu_threads))
                yield cell, context.runner_reason(build, model)

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        return (
            _table(results, WAITING, "The main thread is blocked or computes, beside threads that compute"),
            _table(results, CALLING, f"One C call of about {_call_text(results)}"),
        )

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        arms = arms_of(results)
        return (*_on_blocked(results, arms), *_on_missed(results, arms), *_on_calls(results, arms))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        pictures = (
            ("signals", "How long Ctrl-C takes to reach the main thread", WAITING,
             "what the main thread does (how many CPU threads run beside it)"),
            ("signals-c-calls", f"How long Ctrl-C takes while one C call lasts about {_call_text(results)}", CALLING,
             "what the main thread does"),
        )
        dots = (
            CategoryFigure(name=name, title=title, y=_axis(), panels=(_panel(results, activities),), note=NOTE,
                           whiskers=WHISKERS, x_title=x_title)
            for name, title, activities, x_title in pictures
        )
        return (*dots, *_figure_over_threads(results))


def _grid(effort: EffortLevel) -> list[tuple[str, int]]:
    """Return the main thread's activities with the numbers of CPU threads beside it."""
    if effort is EffortLevel.SMOKE:
        return [("join", 0), ("join", 1), ("computing", 1), ("calls", 0), ("beside-calls", 0)]
    if effort is EffortLevel.QUICK:
        return [("join", 0), ("join", 2), ("computing", 2), (AT_ONCE, 2),
                *((activity, 0) for activity in ("calls", "looking-call", "beside-calls", "same-list"))]
    return [*((activity, count) for activity in WAITING for count in (0, 1, 2, 4)),
            *((activity, 0) for activity in CALLING)]


# Cells and times


def _rows(results: Results, activities: Iterable[str]) -> list[tuple[str, int]]:
    """Return the planned activities among `activities`, with their numbers of CPU threads."""
    known = dict.fromkeys((parameter(cell, "main"), cell.workers - 1) for cell in results.cells())
    return [row for row in known if row[0] in activities]


def _call_text(results: Results) -> str:
    """Return the intended duration of a C call."""
    known = (results.metric(cell, "call") for cell in results.cells())
    return next((format_seconds(each.center) for each in known if each is not None), "the same length")


@dataclass(frozen=True, slots=True)
class SignalTimes:
    """The seconds that all signals of a cell took, over all rounds."""

    typical: float   # the median over rounds of the processes' medians
    best: float
    worst: float     # the limit if some were late
    signals: int
    late: int        # signals that were not handled within `limit`
    limit: float
    medians: tuple[float, ...]   # of the processes, by round

    @property
    def text(self) -> str:
        """The typical time with the range of the rounds: "4.65 ms in the median (3.17 ms to 9.10 ms in 3 rounds)"."""
        return f"{format_seconds(self.typical)} in the median ({rounds_text(self.medians, format_seconds)})"


def _find(results: Results, arm: BuildArm, activity: str, cpu_threads: int) -> Cell | None:
    return arm.find(results, cpu_threads + 1, main=activity, cpu=str(cpu_threads))


def _times(results: Results, arm: BuildArm, activity: str, cpu_threads: int) -> SignalTimes | None:
    return _times_of(results, _find(results, arm, activity, cpu_threads))


def _times_of(results: Results, cell: Cell | None) -> SignalTimes | None:
    """Return the cell's times, or None if it has none."""
    value = results.value(cell)
    known = {name: list(results.metrics(cell, name).values()) for name in ("best", "worst", "signals", "late", "limit")}
    if value is None or not all(known.values()):
        return None
    return SignalTimes(value.center, min(known["best"]), max(known["worst"]), round(sum(known["signals"])),
                       round(sum(known["late"])), max(known["limit"]), tuple(results.values(cell).values()))


# Tables


def _table(results: Results, activities: dict[str, str], title: str) -> Table:
    arms = arms_of(results)
    table = TableBuilder(
        results, f"Time from SIGINT to KeyboardInterrupt. {title}", label_column("the main thread"),
        key_column("CPU threads"),
        *(column for arm in arms for column in value_columns(("median", "slowest"), arm.title, arm.build.label)),
        *value_columns([THEN] if activities is WAITING else ()))

    def typical(cell: Cell) -> Value | None:
        times = _times_of(results, cell)
        if times is not None and times.typical >= times.limit:
            return f"> {format_seconds(times.limit)}"
        found = results.duration(cell)
        # Where the limit cut a round off, the spread is not known.
        cut = times is not None and max(times.medians) >= times.limit
        return replace(found, spread=None) if found is not None and cut else found

    def slowest(cell: Cell) -> Value | None:
        times = _times_of(results, cell)
        if times is not None and times.late:
            return f"{times.late} of {times.signals} not within {format_seconds(times.limit)}"
        return None if times is None else format_seconds(times.worst)

    for activity, cpu_threads in _rows(results, activities):
        cells = [_find(results, arm, activity, cpu_threads) for arm in arms]
        then = "never" if activity in NEVER and cpu_threads else "-"
        table.add(activities[activity], str(cpu_threads),
                  *(table.entry(cell, show) for cell in cells for show in (typical, slowest)),
                  *([then] if activities is WAITING else ()))
    return table.build()


# Findings


def _on_blocked(results: Results, arms: Sequence[BuildArm]) -> Iterator[str]:
    """State the times of a blocked main thread alone and beside the most CPU threads."""
    busiest = max((count for activity, count in _rows(results, WAITING) if activity == "join"), default=0)
    reached = []
    for arm in arms:
        alone, beside = (_times(results, arm, "join", count) for count in (0, busiest))
        if alone is None or beside is None or not busiest:
            continue
        if beside.late:
            yield (f"{arm.title}: beside {busiest} CPU threads, {beside.late} of {beside.signals} signals did not "
                   f"reach a main thread blocked in join within {format_seconds(beside.limit)}: the claim of 2009 "
                   "holds here.")
            continue
        reached.append(arm)
        yield (f"{arm.title}: Ctrl-C reaches a main thread blocked in join after {alone.text}; beside {busiest} "
               f"CPU threads after {beside.text}, slowest {format_seconds(beside.worst)}.")
    if reached:
        yield _why_reached(reached)


def _why_reached(arms: Sequence[BuildArm]) -> str:
    text = "A main thread that already waits is reached, unlike in 2009: since 3.2 a signal ends the wait for a lock."
    if not all(arm.free_threaded for arm in arms):
        text += (" With the GIL, the main thread then requests it and gets it within the switch interval of "
                 f"{format_seconds(DEFAULT_SECONDS)}, or later where others wait for it too.")
    if any(arm.free_threaded for arm in arms):
        text += " Without the GIL it just runs, as soon as the system gives it a core."
    return text


def _on_missed(results: Results, arms: Sequence[BuildArm]) -> Iterator[str]:
    """State the number of missed signals that arrive while the wait for a lock begins."""
    counts = [count for activity, count in _rows(results, WAITING) if activity == AT_ONCE]
    times_of = {arm: [times for count in counts if (times := _times(results, arm, AT_ONCE, count)) is not None]
                for arm in arms}
    numbers = {arm: (sum(each.late for each in found), sum(each.signals for each in found))
               for arm, found in times_of.items() if found}
    missing = [arm for arm, (late, _) in numbers.items() if late]
    for arm in missing:
        late, signals = numbers[arm]
        alike = [f"{few} of {of} on {other.title}" for other, (few, of) in numbers.items()
                 if few / of < late / signals and chance_of_shares(few, of, late, signals) >= CHANCE]
        yield (f"{arm.title}: {late} of {signals} signals that came while the main thread began to wait for a lock, "
               "beside CPU threads, were not handled within "
               f"{format_seconds(max(each.limit for each in times_of[arm]))}"
               + (f"; {list_text(alike)} do not differ significantly from that, as these are few signals." if alike
                  else "."))
    if missing:
        text = (f"On {list_text(arm.title for arm in missing)}, this may be what is left of the claim of 2009: by "
                "CPython's source, a signal ends the wait only if the thread sleeps already, and one that comes "
                "between the last check and the sleep waits for the next signal.")
        if any(arm.free_threaded for arm in missing):
            text += (" Without the GIL that window is long, since a lock yields its core up to 40 times before it "
                     "sleeps.")
        yield text


def chance_of_shares(late: int, of: int, other_late: int, other_of: int) -> float:
    """Return the p-value of two shares if they are equal (Fisher's exact test, two-sided)."""
    total, among = late + other_late, of + other_of
    weights = [comb(of, k) * comb(other_of, total - k) for k in range(total + 1)]
    return sum(each for each in weights if each <= weights[late]) / comb(among, total)


def _on_calls(results: Results, arms: Sequence[BuildArm]) -> Iterator[str]:
    """State the delay by a C call that does not check for signals, in the main thread and in another one."""
    known: list[tuple[BuildArm, SignalTimes, SignalTimes, SignalTimes | None]] = []
    for arm in arms:
        own, beside, same = (_times(results, arm, activity, 0) for activity in ("calls", "beside-calls", "same-list"))
        if own is None or beside is None or own.late or beside.late:
            continue
        known.append((arm, own, beside, same))
        sorting = "" if same is None else (
            f" If it writes to a list that another thread sorts, Ctrl-C waits {same.text}.")
        yield (f"{arm.title}: in a C call of about {_call_text(results)} that does not check for signals, Ctrl-C waits "
               f"{own.text}, slowest {format_seconds(own.worst)}. If another thread is in such a call, it waits "
               f"{beside.text}.{sorting}")
    if known:
        yield why_late(known)


def why_late(known: Sequence[tuple[BuildArm, SignalTimes, SignalTimes, SignalTimes | None]]) -> str:
    """Return the reasons that the numbers of all arms support.

    Args:
        known: By arm, the times in a call, beside a call in another thread, and beside a thread that sorts a list.
    """
    text = "Only the main thread handles signals, between two instructions: a C call delays them until it returns."
    with_gil = [beside.typical > SHORT * own.typical for arm, own, beside, _ in known if not arm.free_threaded]
    without = [beside.typical < SHORT * own.typical for arm, own, beside, _ in known if arm.free_threaded]
    locked = [same.typical > SHORT * own.typical for arm, own, _, same in known if arm.free_threaded and same]
    if with_gil and all(with_gil):
        text += " A call in another thread also delays them, since it holds the GIL."
    if without and all(without):
        text += " Without the GIL, a call in another thread does not matter"
        if locked and all(locked):
            text += ", unless it holds a lock that the main thread needs: a signal does not end that wait"
        text += "."
    return text


# Figures


def _axis() -> Axis:
    return seconds_axis("time until KeyboardInterrupt", log=True)


def _panel(results: Results, activities: dict[str, str]) -> CategoryPanel:
    planned = _rows(results, activities)
    most = {activity: max(count for other, count in planned if other == activity) for activity, _ in planned}
    # A figure has room for each activity with the most CPU threads, and for one without any.
    rows = [row for row in planned if row[1] == most[row[0]] or row == ("join", 0)]
    rule = Rule(DEFAULT_SECONDS, f"switch interval {seconds_text(DEFAULT_SECONDS)}", "y")
    return CategoryPanel(
        "", tuple(f"{activities[activity]} ({count})" if activities is WAITING else activities[activity]
                  for activity, count in rows),
        without_empty(_series(results, arm, enumerate(rows)) for arm in arms_of(results)),
        rules=(rule,) if activities is WAITING else ())


def _figure_over_threads(results: Results) -> tuple[Figure, ...]:
    """Return the times over the number of CPU threads, if the run has at least three numbers of them."""
    counts = sorted({count for activity, count in _rows(results, WAITING) if activity == "join"})
    if len(counts) < 3:  # two points are in the other picture
        return ()
    series = (_series(results, arm, ((count, ("join", count)) for count in counts)) for arm in arms_of(results))
    return (
        LineFigure(
            name="signals-threads", title="How long Ctrl-C takes to reach a main thread that joins another",
            x=Axis("CPU threads (number)", ticks=number_ticks(counts)), y=_axis(),
            panels=(LinePanel("", tuple(series)),), note=NOTE, whiskers=WHISKERS,
        ),
    )


def _series(results: Results, arm: BuildArm, points: Iterable[tuple[float, tuple[str, int]]]) -> Series:
    known = ((x, _times(results, arm, *row)) for x, row in points)
    return measured_series(arm.title, (
        (x, UNKNOWN if times is None else (times.typical, times.best, times.worst)) for x, times in known), arm.model)
