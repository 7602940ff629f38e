"""`hashing`: C code that lets go of the GIL, in threads; one object for all of them, and a copy each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, override

from toolkit.experiments.base import Effort, Experiment, Level, Source, sorted_out
from toolkit.report.document import Column, Entry, Ratio, Table
from toolkit.report.figure import Axis, LineFigure, LinePanel, Rule, Series
from toolkit.report.footnotes import Footnotes
from toolkit.report.wording import ratio_number
from toolkit.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolkit.experiments.base import Setting
    from toolkit.experiments.results import Results
    from toolkit.measure.plan import Plan
    from toolkit.model import Build, Cell
    from toolkit.report.document import Section, Value
    from toolkit.report.figure import Figure
    from toolkit.stats.paired import Comparison

THREADS = (1, 2, 4, 8)
SMALL, KEPT, THRESHOLD, LARGE, HUGE = 64, 2047, 2048, 64 << 10, 128 << 20
SIZES = (SMALL, KEPT, THRESHOLD, THRESHOLD + 1, LARGE, 4 << 20, HUGE)
QUICK_SIZES = (SMALL, KEPT, THRESHOLD, LARGE)
OBJECTS = {"shared": "one object", "copy": "a copy each"}
THEN = {1: 3.30, 2: 1.68, 4: 1.50, 8: 1.60}   # seconds, by threads: eight messages of 128 MiB, one bytes object
THEN_LABEL = "2021: Python 3.9"
SHORTEST_TASK = 0.025   # seconds of work per thread, below which a speed-up may not show

SKVORTSOV = Source(
    title="Python behind the scenes #13: the GIL and its effects on Python multithreading", author="Victor Skvortsov",
    year=2021, url="https://tenthousandmeters.com/blog/"
    "python-behind-the-scenes-13-the-gil-and-its-effects-on-python-multithreading/",
    headline="3.30, 1.68, 1.50, 1.60 s with 1, 2, 4, 8 threads for SHA-256 of eight messages of 128 MiB on two cores",
)


@dataclass(frozen=True, slots=True)
class Arm:
    """A build and how its threads run: a column of the tables, a panel of the figures."""

    build: Build
    model: str

    @property
    def label(self) -> str:
        """What it is called: "3.14", "3.14t", "3.14t, GIL on"."""
        return f"{self.build.label}, GIL on" if self.build.free_threaded and self.model == "threads" \
            else self.build.label


class Hashing(Experiment):
    """Skvortsov's second measurement, over message sizes and with the shared object taken out."""

    name = "hashing"
    title = "Hashing: C code that lets go of the GIL"
    summary = "SHA-256 of 8 messages of 64 B to 128 MiB in 1, 2, 4 and 8 threads, one object for all or a copy each"
    sources = (SKVORTSOV,)
    claim = (
        "In 2021 two threads hashed eight messages of 128 MiB nearly twice as fast as one, since hashlib lets go of "
        "the GIL while it works; more threads than cores gained nothing."
    )
    program = "hashing"
    levels = {  # noqa: RUF012 - never changed
        Effort.SMOKE: Level(rounds=1, seconds=10, scales={"work": 0.01, "most": 2}),
        Effort.QUICK: Level(rounds=3, seconds=45, scales={"work": 0.25, "most": 2}),
        Effort.FULL: Level(rounds=9, seconds=2400, scales={"work": 1.0, "most": 8}),
    }

    @override
    def plan(self, setting: Setting) -> Plan:
        sizes = {Effort.SMOKE: (SMALL, THRESHOLD), Effort.QUICK: QUICK_SIZES}.get(setting.effort, SIZES)

        def cells() -> Iterator[tuple[Cell, str | None]]:
            for build in setting.builds:
                for size in sizes:
                    yield self.cell(build, "serial", 1, bytes=str(size)), None
                for model in setting.threads(build, control=setting.full()):
                    reason = setting.runner_reason(build, model)
                    for size, how, count in _grid(sizes, setting):
                        yield self.cell(build, model, count, bytes=str(size), object=how), reason

        return sorted_out(cells())

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        return (_seconds(results), _speedups(results))

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        return tuple(_thresholds(results)) + tuple(
            sentence for arm in _arms(results) for sentence in (_large(results, arm), _small(results, arm)) if sentence)

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        counts = [count for count in THREADS if count > 1 and results.cells(workers=count)]
        return tuple(_over_sizes(results, count) for count in counts[:1]) + (
            (_over_threads(results),) if len(counts) > 1 else ())


def _grid(sizes: tuple[int, ...], setting: Setting) -> Iterator[tuple[int, str, int]]:
    """Yield sizes, objects and threads; one thread has no copy to make, and only the full grid needs it."""
    for size in sizes:
        for how in OBJECTS:
            for count in THREADS:
                wanted = count > 1 or (setting.full() and how == "shared")
                if wanted and count <= setting.scales["most"]:
                    yield size, how, count


def _arms(results: Results) -> list[Arm]:
    return [
        Arm(build, model)
        for build in results.builds
        for model in dict.fromkeys(cell.runner for cell in results.cells(build=build.label))
        if model != "serial"
    ]


def _sizes(results: Results) -> list[int]:
    return sorted({int(dict(cell.parameters)["bytes"]) for cell in results.cells()})


def _serial(results: Results, build: str, size: int) -> Cell | None:
    return results.find(build=build, runner="serial", workers=1, bytes=str(size))


def _find(results: Results, arm: Arm, size: int, how: str, count: int) -> Cell | None:
    return results.find(build=arm.build.label, runner=arm.model, workers=count, bytes=str(size), object=how)


def _compare(results: Results, arm: Arm, size: int, how: str, count: int) -> Comparison | None:
    return results.compare(_serial(results, arm.build.label, size), _find(results, arm, size, how, count))


def _seconds(results: Results) -> Table:
    notes = Footnotes()
    arms = _arms(results)
    rows = []
    for size in _sizes(results):
        serial = (results.entry(_serial(results, arm.build.label, size), results.duration, notes) for arm in arms)
        rows.append((*_key(size, "", "serial"), *serial, Entry()))
        for how, count in _threads_of(results, size):
            cells = (results.entry(_find(results, arm, size, how, count), results.duration, notes) for arm in arms)
            rows.append((*_key(size, how, str(count)), *cells, _history(size, how, count, format_seconds)))
    rows += [] if HUGE in _sizes(results) else [
        (*_key(HUGE, "shared", str(count)), *_left_out(arms, notes), Entry(format_seconds(seconds)))
        for count, seconds in THEN.items()
    ]
    return Table(title="Wall time of hashing the eight messages once", columns=_columns(arms), rows=tuple(rows),
                 footnotes=notes.texts())


def _speedups(results: Results) -> Table:
    notes = Footnotes()
    arms = _arms(results)
    rows = []
    for size in _sizes(results):
        for how, count in _threads_of(results, size):
            entries = (_speedup(results, arm, size, how, count, notes) for arm in arms)
            rows.append((*_key(size, how, str(count)), *entries, _history(size, how, count, _gain)))
    rows += [] if HUGE in _sizes(results) else [
        (*_key(HUGE, "shared", str(count)), *_left_out(arms, notes), Entry(_gain(seconds)))
        for count, seconds in THEN.items() if count > 1
    ]
    return Table(title="Speed-up: one after the other / threads", columns=_columns(arms), rows=tuple(rows),
                 footnotes=notes.texts())


def _columns(arms: list[Arm]) -> tuple[Column, ...]:
    year, _, version = THEN_LABEL.partition(": ")
    return (
        Column(title="message", key=True), Column(title="bytes object", key=True, align="left"),
        Column(title="threads", key=True), *(Column(title=arm.label, group="now") for arm in arms),
        Column(title=version, group=year),
    )


def _key(size: int, how: str, threads: str) -> tuple[Entry, ...]:
    return Entry(size_text(size)), Entry(OBJECTS.get(how, "")), Entry(threads)


def size_text(size: int) -> str:
    """Return a message's size without rounding the sizes next to the threshold: "2047 B", "64 KiB"."""
    return f"{size} B" if size < LARGE else format_bytes(size).replace(".0", "")


def _threads_of(results: Results, size: int) -> list[tuple[str, int]]:
    cells = [cell for cell in results.cells(bytes=str(size)) if cell.runner != "serial"]
    return sorted({(dict(cell.parameters)["object"], cell.workers) for cell in cells}, key=_object_then_threads)


def _object_then_threads(row: tuple[str, int]) -> tuple[int, int]:
    return list(OBJECTS).index(row[0]), row[1]


def _left_out(arms: list[Arm], notes: Footnotes) -> list[Entry]:
    marks = notes.marks(["the source's size; only the full experiment has it"])
    return [Entry("-", marks) for _ in arms]


def _history(size: int, how: str, count: int, shown: Callable[[float], str]) -> Entry:
    return Entry(shown(THEN[count])) if (size, how) == (HUGE, "shared") else Entry()


def _gain(seconds: float) -> str:
    return f"{ratio_number(THEN[1] / seconds)}x"


def _speedup(results: Results, arm: Arm, size: int, how: str, count: int, notes: Footnotes) -> Entry:
    def shown(cell: Cell) -> Value | None:
        found = results.compare(_serial(results, cell.build, size), cell)
        return None if found is None else Ratio(found)

    cell = _find(results, arm, size, how, count)
    entry = results.entry(cell, shown, notes)
    short = _task_seconds(results, arm, size, cell)
    if short is None or short >= SHORTEST_TASK:
        return entry
    text = f"less than {format_seconds(SHORTEST_TASK)} of work per thread: the speed-up of short bursts may not show"
    return Entry(entry.value, (*entry.marks, *notes.marks([text])))


def _task_seconds(results: Results, arm: Arm, size: int, cell: Cell | None) -> float | None:
    """Return how long each thread would work if it had a core for itself; None where it was not measured."""
    serial = results.value(_serial(results, arm.build.label, size))
    passes = results.metric(cell, "passes")
    return None if cell is None or serial is None or passes is None else serial.center * passes.center / cell.workers


def _thresholds(results: Results) -> Iterator[str]:
    """Say from which length of a message each build lets go of the GIL: what another thread's running showed."""
    found: dict[int, list[str]] = {}
    for build in results.builds:
        seen = [value for cell in results.cells(build=build.label, bytes=str(THRESHOLD))
                for value in results.metrics(cell, "gil_let_go_from").values() if value]
        if seen:
            found.setdefault(int(min(seen)), []).append(build.label)
    for size, labels in found.items():
        late = "" if size <= THRESHOLD else (
            f", one byte more than before: its check became `> {THRESHOLD}`, it was `>= {THRESHOLD}`")
        yield f"{', '.join(labels)}: hashlib lets other threads have the GIL from messages of {size} bytes on{late}."


def _large(results: Results, arm: Arm) -> str | None:
    """Say what two threads gain on long messages, beside the longest for which a GIL build keeps the GIL."""
    size = max((size for size in (HUGE, LARGE) if size in _sizes(results)), default=LARGE)
    long, kept = (_compare(results, arm, each, "shared", 2) for each in (size, KEPT))
    if long is None or long.verdict() == "unknown":
        return None
    holds = "the claim of 2021 holds" if long.verdict() == "faster" else "the gain of 2021 was not seen here"
    sentence = f"{arm.label}: two threads hash messages of {size_text(size)} {_shown(long)} as fast as one; {holds}"
    if kept is None or kept.verdict() == "unknown" or arm.model == "free-threaded":
        return f"{sentence}."
    return f"{sentence}. Messages of {KEPT} B, for which hashlib keeps the GIL: {_shown(kept)}."


def _small(results: Results, arm: Arm) -> str | None:
    """Say what a copy for each thread changes without the GIL."""
    if arm.model != "free-threaded":
        return None
    one, own = (_compare(results, arm, SMALL, how, 2) for how in OBJECTS)
    gain = results.compare(*(_find(results, arm, SMALL, how, 2) for how in OBJECTS))
    if one is None or own is None or gain is None or gain.verdict() == "unknown":
        return None
    sentence = (f"{arm.label}: two threads hash messages of {SMALL} B {_shown(one)} as fast as one when all are one "
                f"bytes object, {_shown(own)} when each thread has a copy")
    if gain.verdict() == "faster":
        return f"{sentence}: both count the references to the one object, and wait for each other there."
    return f"{sentence}; a copy was not shown to be faster."


def _shown(found: Comparison) -> str:
    return f"{ratio_number(found.ratio)}x [{ratio_number(found.lo)}, {ratio_number(found.hi)}]"


def _over_sizes(results: Results, count: int) -> LineFigure:
    sizes = _sizes(results)
    panels = []
    for arm in _arms(results):
        series = [_line(name, [float(size) for size in sizes], [
            _compare(results, arm, size, how, count) for size in sizes]) for how, name in OBJECTS.items()]
        if not arm.build.free_threaded:
            series.append(Series(THEN_LABEL, (float(HUGE),), (THEN[1] / THEN[count],), style="history"))
        panels.append(LinePanel(arm.label, tuple(series), rules=(
            Rule(1.0, "no gain", "y"), Rule(float(THRESHOLD), f"{THRESHOLD} B", "x"))))
    return LineFigure(
        name="hashing", title=f"SHA-256 of eight messages in {count} threads",
        x=Axis("length of a message (bytes)", log=True, ticks=_ticks()),
        y=Axis("speed-up: one after the other / threads (x)", lo=0.0), panels=tuple(panels),
        note="A cross: no number, see the table.",
    )


def _over_threads(results: Results) -> LineFigure:
    counts = [count for count in THREADS if results.cells(workers=count, object="shared")]
    panels = []
    for arm in _arms(results):
        series = [_line(size_text(size), [float(count) for count in counts], [
            _compare(results, arm, size, "shared", count) for count in counts]) for size in _sizes(results)]
        if not arm.build.free_threaded:
            series.append(Series(f"{THEN_LABEL}, 128 MiB", tuple(float(count) for count in THEN),
                                 tuple(THEN[1] / seconds for seconds in THEN.values()), style="history"))
        panels.append(LinePanel(arm.label, tuple(series), rules=(Rule(1.0, "no gain", "y"),)))
    return LineFigure(
        name="hashing-threads", title="SHA-256 of eight messages, one bytes object for all threads",
        x=Axis("threads", log=True, ticks=tuple((float(count), str(count)) for count in THREADS)),
        y=Axis("speed-up: one after the other / threads (x)", lo=0.0), panels=tuple(panels),
        note="A cross: no number, see the table.",
    )


def _line(name: str, places: list[float], found: list[Comparison | None]) -> Series:
    missing = float("nan")
    return Series(
        name, tuple(places), tuple(missing if each is None else each.ratio for each in found),
        lo=tuple(missing if each is None else each.lo for each in found),
        hi=tuple(missing if each is None else each.hi for each in found),
    )


def _ticks() -> tuple[tuple[float, str], ...]:
    return tuple((float(size), size_text(size)) for size in (SMALL, THRESHOLD, LARGE, 4 << 20, HUGE))
