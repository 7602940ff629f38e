"""`switch-interval`: what it costs threads to hand the GIL over more often than every 5 ms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.base import Effort, Experiment, Level
from gilscope.toolkit.experiments.citations import SKVORTSOV
from gilscope.toolkit.experiments.short_switch_intervals import DEFAULT, FINE, USUAL_SLACK, no_slack
from gilscope.toolkit.experiments.switch_interval import report
from gilscope.toolkit.experiments.switch_interval.report import THEN
from gilscope.toolkit.report.wording import ratio_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.base import Setting
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section
    from gilscope.toolkit.report.figures.figure import Figure
    from gilscope.toolkit.stats.words import Comparison

SHORTEST = "1us"  # the finest that CPython keeps
HOLDS = 2  # a slow-down within this factor of the one of 2021 is called the same

INTERVALS = {
    Effort.SMOKE: (DEFAULT, SHORTEST),
    Effort.QUICK: ("100ms", DEFAULT, "100us", "10us", SHORTEST),
    Effort.FULL: ("100ms", "10ms", DEFAULT, "1ms", "100us", "10us", SHORTEST),
}
UNCHANGING = (DEFAULT, SHORTEST)  # enough where nobody waits for a GIL, unless everything is asked for
FINE_CELLS = {
    Effort.SMOKE: ((SHORTEST, 2),),
    Effort.QUICK: (("10us", 8), (SHORTEST, 8)),
    Effort.FULL: (("10us", 8), (SHORTEST, 2), (SHORTEST, 8)),
}
THREADS = {Effort.SMOKE: (2,), Effort.QUICK: (2, 8), Effort.FULL: (1, 2, 4, 8)}

SOURCE = replace(
    SKVORTSOV, headline="6.9 s with one thread, 86 s with 8 threads at a switch interval of 1 µs (on macOS)"
)


class SwitchInterval(Experiment):
    """The second table of the 2021 article."""

    name = "switch-interval"
    title = "Switch interval: the price of handing the GIL over more often"
    summary = "the countdown in 1, 2, 4 and 8 threads at switch intervals from 0.1 s down to 1 µs"
    sources = (SOURCE,)
    claim = (
        "In 2021 the interval made no difference down to 1 ms; below, every hand-over cost more than it gave: with 8 "
        "threads 100,000,000 decrements took 86 s at 1 µs, against 6.9 s with one."
    )
    program = "switch_interval"
    levels = {  # noqa: RUF012 - never changed
        Effort.SMOKE: Level(rounds=1, seconds=5, scales={"count": 200_000}),
        Effort.QUICK: Level(rounds=5, seconds=45, scales={"count": 5_000_000}),
        Effort.FULL: Level(rounds=5, seconds=2400, scales={"count": 100_000_000}),
    }
    timeout = 300.0  # 100,000,000 decrements at 1 µs with a fine timer

    @override
    def candidates(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        yield self.cell(build, "serial", 1), None
        for model in setting.threads(build, control=setting.full()):
            reason = setting.runner_reason(build, model)
            for interval in _intervals(setting, model):
                for count in THREADS[setting.effort]:
                    yield self.cell(build, model, count, interval=interval), reason
        if not build.free_threaded:
            for interval, count in FINE_CELLS[setting.effort]:
                yield self.cell(build, "threads", count, interval=interval, slack=FINE), no_slack()

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        arms = report.arms(results)
        return (
            *(report.seconds_table(results, build, model) for build, model in arms),
            *(report.ratios_table(results, build, model) for build, model in arms),
        )

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        return tuple(sentence for build in results.builds for sentence in _findings(results, build))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        found = report.figure(results)
        return () if found is None else (found,)


def _intervals(setting: Setting, model: str) -> tuple[str, ...]:
    every = INTERVALS[setting.effort]
    return every if model == "threads" or setting.full() else UNCHANGING


def _findings(results: Results, build: Build) -> Iterator[str]:
    model = "free-threaded" if build.free_threaded else "threads"
    counts = [count for count in report.counts_of(results, build, model) if count > 1]
    if not counts:
        return
    most = counts[-1]

    def against_none(**parameters: str) -> Comparison | None:
        cell = results.find(build=build.label, runner=model, workers=most, **parameters)
        return results.compare(report.serial_of(results, build), cell)

    usual, short = against_none(interval=DEFAULT), against_none(interval=SHORTEST)
    if usual is None or short is None or "unknown" in {usual.verdict(), short.verdict()}:
        return
    if build.free_threaded:
        yield _free_threaded(build, most, usual, short)
        return
    yield _with_gil(build, most, usual, short)
    fine = against_none(interval=SHORTEST, slack=FINE)
    if fine is not None and fine.verdict() != "unknown":
        yield _with_fine_timer(build, most, short, fine)


def _free_threaded(build: Build, most: int, usual: Comparison, short: Comparison) -> str:
    return (
        f"{build.label}: {most} threads take {_times(usual)} the time of none at 5 ms and {_times(short)} at 1 µs: "
        "nobody waits for a GIL here, so nobody asks for it after an interval either."
    )


def _with_gil(build: Build, most: int, usual: Comparison, short: Comparison) -> str:
    then = THEN[SHORTEST][most] / THEN[SHORTEST][1]
    verdict = "the claim holds" if 1 / short.ratio > then / HOLDS else "the claim does not hold here as it stands"
    return (
        f"{build.label}: {most} threads take {_times(usual)} the time of none at 5 ms and {_times(short)} at 1 µs, "
        f"where it was {ratio_number(then)} times in 2021: {verdict}."
    )


def _with_fine_timer(build: Build, most: int, short: Comparison, fine: Comparison) -> str:
    """Say why: below Linux's timer slack an interval is not shorter than it, whatever was asked for."""
    text = f"{build.label}: with timers that end on time, {most} threads take {_times(fine)} the time of none at 1 µs"
    if 1 / fine.hi <= 1 / short.lo:
        return f"{text}: the timer is not what separates this machine from the one of 2021."
    return (
        f"{text}. So the price of 2021 is still there; Linux does not charge it because a thread that waits for the "
        f"GIL sleeps about {USUAL_SLACK} (the timer slack), however short the interval."
    )


def _times(comparison: Comparison) -> str:
    return f"{ratio_number(1 / comparison.ratio)} times"
