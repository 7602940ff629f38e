"""`signals`: how long Ctrl-C takes until the main thread handles it."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, override

from toolkit.experiments.base import Effort, Experiment, Level, Source, sorted_out
from toolkit.report.document import Column, Entry, Table
from toolkit.report.figure import Axis, BarFigure, BarPanel, LineFigure, LinePanel, Rule, Series, seconds_axis
from toolkit.report.footnotes import Footnotes
from toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.experiments.base import Setting
    from toolkit.experiments.results import Results
    from toolkit.measure.plan import Plan
    from toolkit.model import Build, Cell
    from toolkit.report.document import Section, Value
    from toolkit.report.figure import Figure

BEAZLEY = Source(
    title="Inside the Python GIL", author="David Beazley", year=2009, url="http://www.dabeaz.com/python/GIL.pdf",
    headline="never, when the main thread waits for a lock or joins a thread",
)
THEN = "2009: Python 2.6"
SWITCH_INTERVAL = 0.005   # seconds, the default, which the measured processes keep
AT_ONCE = "lock-at-once"
SHORT = 0.2   # below this share of another wait, one is not of its kind

NOTE = ("Bars and points: median over rounds of each process's median; lines: the fastest and the slowest of all, "
        "those not handled in time with the limit.")

# What the main thread does, as the tables say it.
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
NEVER = frozenset({"join", "lock", "event", "queue", AT_ONCE})   # all are waits for a lock in Python 2


class Signals(Experiment):
    """Beazley's question why Ctrl-C does not work in a program with threads."""

    name = "signals"
    title = "Signals: how long Ctrl-C takes"
    summary = "from SIGINT to KeyboardInterrupt in the main thread: blocked, computing, in one long C call"
    sources = (BEAZLEY,)
    claim = (
        "Beazley showed in 2009 that Ctrl-C does nothing in a program with threads: the main thread, the only one that "
        "runs signal handlers, cannot be woken from a lock or a join, while all others try to hand the GIL to it after "
        "every single tick."
    )
    program = "signals"
    levels = {  # noqa: RUF012 - never changed
        Effort.SMOKE: Level(rounds=1, seconds=8, scales={"attempts": 2, "limit": 5, "call": 0.05}),
        Effort.QUICK: Level(rounds=3, seconds=30, scales={"attempts": 4, "limit": 2, "call": 0.1}),
        Effort.FULL: Level(rounds=6, seconds=2400, scales={"attempts": 10, "limit": 10, "call": 0.5}),
    }

    @override
    def plan(self, setting: Setting) -> Plan:
        return sorted_out(
            (
                self.cell(build, model, cpu_threads + 1, main=doing, cpu=str(cpu_threads)),
                setting.runner_reason(build, model),
            )
            for build in setting.builds
            for model in setting.threads(build, control=setting.full())
            for doing, cpu_threads in _grid(setting.effort)
        )

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        return (
            _table(results, WAITING, "The main thread is blocked or computes, beside threads that compute"),
            _table(results, CALLING, f"One C call of about {_call_text(results)}"),
        )

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        return tuple(sentence for arm in _arms(results) for sentence in _findings(results, arm))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        panels = [
            _panel(results, WAITING, "the main thread ... (CPU threads beside it)"),
            _panel(results, CALLING, f"one C call of about {_call_text(results)}; the main thread ..."),
        ]
        bars = tuple(
            BarFigure(name=name, title="From Ctrl-C to KeyboardInterrupt", y=_axis(), panels=(panel,), note=NOTE)
            for name, panel in zip(("signals", "signals-c-calls"), panels, strict=True)
            if panel.series
        )
        return (*bars, *_by_threads(results))


def _grid(effort: Effort) -> list[tuple[str, int]]:
    """Return what the main thread does with how many CPU threads beside it."""
    if effort is Effort.SMOKE:
        return [("join", 0), ("join", 1), ("computing", 1), ("calls", 0), ("beside-calls", 0)]
    if effort is Effort.QUICK:
        return [("join", 0), ("join", 2), ("computing", 2), (AT_ONCE, 2),
                *((doing, 0) for doing in ("calls", "looking-call", "beside-calls", "same-list"))]
    return [*((doing, count) for doing in WAITING for count in (0, 1, 2, 4)), *((doing, 0) for doing in CALLING)]


@dataclass(frozen=True, slots=True)
class Arm:
    """A build with one of its models, a column of the tables."""

    build: Build
    model: str

    @property
    def title(self) -> str:
        """The build's label, and that its GIL is on where it need not be."""
        return f"{self.build.label}, GIL on" if self.build.free_threaded and self.model == "threads" else (
            self.build.label)


def _arms(results: Results) -> list[Arm]:
    """Return the arms of the run in the order of the tables."""
    return [
        Arm(build, model)
        for build in results.builds
        for model in dict.fromkeys(cell.runner for cell in results.cells(build=build.label))
    ]


def _rows(results: Results, doings: Iterable[str]) -> list[tuple[str, int]]:
    """Return the rows of the table that shows `doings`: what the main thread does, and the number of CPU threads."""
    known = dict.fromkeys((dict(cell.parameters)["main"], cell.workers - 1) for cell in results.cells())
    return [row for row in known if row[0] in doings]


def _find(results: Results, arm: Arm, doing: str, cpu_threads: int) -> Cell | None:
    return results.find(build=arm.build.label, runner=arm.model, workers=cpu_threads + 1,
                        main=doing, cpu=str(cpu_threads))


def _call_text(results: Results) -> str:
    known = (results.metric(cell, "call") for cell in results.cells())
    return next((format_seconds(each.center) for each in known if each is not None), "the same length")


@dataclass(frozen=True, slots=True)
class Times:
    """What all signals of a cell took, over all rounds; seconds."""

    typical: float   # the median over rounds of the processes' medians
    best: float
    worst: float     # the limit when some were late
    signals: int
    late: int        # not handled within `limit`
    limit: float


def _times(results: Results, cell: Cell | None) -> Times | None:
    """Return the cell's times; None when it has none."""
    value = results.value(cell)
    kept = {name: list(results.metrics(cell, name).values()) for name in ("best", "worst", "signals", "late", "limit")}
    if value is None or not all(kept.values()):
        return None
    return Times(value.center, min(kept["best"]), max(kept["worst"]), round(sum(kept["signals"])),
                 round(sum(kept["late"])), max(kept["limit"]))


def _table(results: Results, doings: dict[str, str], title: str) -> Table:
    notes, arms = Footnotes(), _arms(results)
    columns = [Column(title="the main thread", key=True, align="left"), Column(title="CPU threads", key=True)]
    for arm in arms:
        columns += [Column(title="median", group=arm.title), Column(title="slowest", group=arm.title)]
    if doings is WAITING:
        columns.append(Column(title=THEN))

    def typical(cell: Cell) -> Value | None:
        times = _times(results, cell)
        if times is not None and times.typical >= times.limit:
            return f"> {format_seconds(times.limit)}"
        return results.duration(cell)

    def slowest(cell: Cell) -> Value | None:
        return _slowest(_times(results, cell))

    rows = []
    for doing, cpu_threads in _rows(results, doings):
        cells = [_find(results, arm, doing, cpu_threads) for arm in arms]
        now = [results.entry(cell, show, notes) for cell in cells for show in (typical, slowest)]
        then = [Entry("never" if doing in NEVER and cpu_threads else "-")] if doings is WAITING else []
        rows.append((Entry(doings[doing]), Entry(str(cpu_threads)), *now, *then))
    return Table(title=f"Time from SIGINT to KeyboardInterrupt. {title}", columns=tuple(columns), rows=tuple(rows),
                 footnotes=notes.texts())


def _slowest(times: Times | None) -> str | None:
    if times is None:
        return None
    if times.late:
        return f"{times.late} of {times.signals} not within {format_seconds(times.limit)}"
    return format_seconds(times.worst)


def _findings(results: Results, arm: Arm) -> Iterator[str]:
    yield from _on_blocked(results, arm)
    yield from _on_late(results, arm)
    yield from _on_calls(results, arm)


def _on_blocked(results: Results, arm: Arm) -> Iterator[str]:
    """Say how long a blocked main thread takes beside the most CPU threads."""
    busiest = max((count for doing, count in _rows(results, WAITING) if doing == "join"), default=0)
    alone, beside = (_times(results, _find(results, arm, "join", count)) for count in (0, busiest))
    if alone is None or beside is None or not busiest:
        return
    if beside.late:
        yield (f"{arm.title}: beside {busiest} CPU threads, {beside.late} of {beside.signals} signals did not reach a "
               f"main thread blocked in join within {format_seconds(beside.limit)}: the claim of 2009 is seen here.")
        return
    text = (f"{arm.title}: Ctrl-C reaches a main thread blocked in join after {format_seconds(alone.typical)}, beside "
            f"{busiest} CPU threads after {format_seconds(beside.typical)} (slowest {format_seconds(beside.worst)}); "
            "in 2009 never. Since 3.2 a signal ends the wait for a lock;")
    if arm.model == "free-threaded":
        yield f"{text} without a GIL the main thread then just runs, as soon as the system gives it a core."
    else:
        yield (f"{text} the main thread then asks for the GIL, which it gets within the switch interval of "
               f"{format_seconds(SWITCH_INTERVAL)}, or later where others wait for it too.")


def _on_late(results: Results, arm: Arm) -> Iterator[str]:
    """Say what becomes of a signal that comes while the wait begins."""
    counts = [count for doing, count in _rows(results, WAITING) if doing == AT_ONCE]
    found = [times for count in counts if (times := _times(results, _find(results, arm, AT_ONCE, count))) is not None]
    late, signals = sum(each.late for each in found), sum(each.signals for each in found)
    if not late:
        return
    text = (f"{arm.title}: something of 2009 is left: {late} of {signals} signals that came while the main thread "
            f"began to wait for a lock were not handled within {format_seconds(max(each.limit for each in found))}. A "
            "signal ends the wait only when the thread sleeps already; one that comes between the last look and the "
            "sleep is seen when the next signal comes.")
    if arm.model == "free-threaded":
        text += (" Without the GIL a lock first yields its core 40 times before it sleeps, which beside busy cores "
                 "takes tens of milliseconds.")
    yield text


def _on_calls(results: Results, arm: Arm) -> Iterator[str]:
    """Say what a C call that looks for no signals delays."""
    own, beside, same = (_times(results, _find(results, arm, doing, 0))
                         for doing in ("calls", "beside-calls", "same-list"))
    if own is None or beside is None or own.late or beside.late:
        return
    call = _call_text(results)
    text = (f"{arm.title}: a C call of {call} that looks for no signals keeps Ctrl-C waiting to its end, from "
            f"moments all over it {format_seconds(own.typical)}, slowest {format_seconds(own.worst)}.")
    text += f" In another thread, the same call costs {format_seconds(beside.typical)}"
    if beside.typical > SHORT * own.typical:
        text += ", as it holds the GIL" if arm.model != "free-threaded" else ""
    elif arm.model == "free-threaded":
        text += ", as there is no GIL to wait for"
    if arm.model == "free-threaded" and same is not None and same.typical * SHORT > beside.typical:
        text += (f"; where it holds the lock of a list that the main thread wants to write to, it costs "
                 f"{format_seconds(same.typical)}, as that wait does not end for a signal")
    yield f"{text}."


def _axis() -> Axis:
    return seconds_axis("time", log=True, lo=1e-5)


def _pictured(rows: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the rows that a picture has room for: each with the most CPU threads, and one without."""
    most = {doing: max(count for other, count in rows if other == doing) for doing, _ in rows}
    return [row for row in rows if row[1] == most[row[0]] or row == ("join", 0)]


def _panel(results: Results, doings: dict[str, str], title: str) -> BarPanel:
    rows = _pictured(_rows(results, doings))
    series = [_series(arm, [(float(place), _times(results, _find(results, arm, *row)))
                            for place, row in enumerate(rows)]) for arm in _arms(results)]
    rule = Rule(SWITCH_INTERVAL, f"switch interval {format_seconds(SWITCH_INTERVAL)}", "y")
    return BarPanel(title, tuple(_category(doings, *row) for row in rows),
                    tuple(each for each in series if not all(map(isnan, each.y))),
                    rules=(rule,) if doings is WAITING else ())


def _by_threads(results: Results) -> tuple[Figure, ...]:
    """Return how it grows with the number of CPU threads, where there are enough numbers of them."""
    counts = sorted({count for doing, count in _rows(results, WAITING) if doing == "join"})
    if len(counts) < 3:  # noqa: PLR2004 - two points are in the other picture
        return ()
    series = [_series(arm, [(float(count), _times(results, _find(results, arm, "join", count))) for count in counts])
              for arm in _arms(results)]
    return (
        LineFigure(
            name="signals-threads", title="From Ctrl-C to KeyboardInterrupt in a main thread that joins another",
            x=Axis("CPU threads", ticks=tuple((float(count), str(count)) for count in counts)), y=_axis(),
            panels=(LinePanel("", tuple(series)),), note=NOTE,
        ),
    )


def _series(arm: Arm, points: list[tuple[float, Times | None]]) -> Series:
    found = [times for _, times in points]
    return Series(
        arm.title, tuple(x for x, _ in points), tuple(_or_nan(each, "typical") for each in found),
        lo=tuple(_or_nan(each, "best") for each in found), hi=tuple(_or_nan(each, "worst") for each in found),
    )


def _or_nan(times: Times | None, name: str) -> float:
    return float("nan") if times is None else float(getattr(times, name))


def _category(doings: dict[str, str], doing: str, cpu_threads: int) -> str:
    return f"{doings[doing]} ({cpu_threads})" if doings is WAITING else doings[doing]
