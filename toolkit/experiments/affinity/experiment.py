"""`affinity`: threads kept on one core, as was recommended against what the GIL does to threads on several."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.affinity import countdown_report as counted
from gilscope.toolkit.experiments.affinity import echo_report as served
from gilscope.toolkit.experiments.affinity.echo_report import BURNERS, PLACES
from gilscope.toolkit.experiments.base import Effort, Experiment, Level, Package, Source
from gilscope.toolkit.experiments.citations import SKVORTSOV
from gilscope.toolkit.experiments.libraries import GEVENT, missing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.base import Setting
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section
    from gilscope.toolkit.report.figures.figure import Figure

HABR = Source(
    title="GIL is hardly a hindrance", author="Habr", year=2012,
    headline="10.41 s sequential, 13.25 s with 2 threads, 10.45 s with 2 threads on one core",
)
SOURCE = replace(
    SKVORTSOV,
    headline="24,000, 12,000, 3,000, 30 and 10 requests/s with 0, 1, 2, 4 and 8 CPU threads, all on one core with the "
    "client",
)
ONE_CORE = "this process may use one core only"

# Number of CPU threads by effort and place of the client; where there is no GIL fewer tell as much.
GRID: dict[tuple[Effort, bool], dict[str, tuple[int, ...]]] = {
    (Effort.SMOKE, True): {"same": (1,), "other": (1,)},
    (Effort.SMOKE, False): {"same": (1,), "other": (1,)},
    (Effort.QUICK, True): {"same": (0, 1, 2, 8), "other": (0, 1), "free": (1,)},
    (Effort.QUICK, False): {"same": (0, 1, 8), "other": (1,)},
    (Effort.FULL, True): dict.fromkeys(PLACES, BURNERS),
    (Effort.FULL, False): dict.fromkeys(PLACES, BURNERS),
}


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
    packages = (Package(requirement="psutil>=7.0", module="psutil"), GEVENT)
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
    timeout = 120.0  # 100,000,000 decrements of 3.13t on a busy core

    @override
    def candidates(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        yield from self._countdown(setting, build)
        yield from self._echo(setting, build)

    def _countdown(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        reason = setting.runner_reason(build, counted.threads_of(build))
        yield counted.cell_of(build, counted.SEQUENTIAL), None
        yield counted.cell_of(build, counted.FREE), reason
        yield counted.cell_of(build, counted.PINNED), reason or _alone(setting)
        yield counted.cell_of(build, counted.PATCHED), missing(setting, build, GEVENT)
        yield counted.cell_of(build, counted.APART), setting.runner_reason(build, counted.PROCESSES)

    def _echo(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        reason = setting.runner_reason(build, counted.threads_of(build))
        for place, counts in GRID[setting.effort, not build.free_threaded].items():
            lacking = _alone(setting) if place == "other" else None
            for count in counts:
                yield self.cell(build, counted.threads_of(build), count, work="echo", client=place), reason or lacking

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        return (
            counted.seconds_table(results), counted.ratios_table(results),
            *(served.table(results, build) for build in results.builds if served.places(results, build)),
        )

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        return tuple(
            sentence
            for build in results.builds
            for sentence in (*counted.findings(results, build), *served.findings(results, build))
        )

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        return tuple(each for each in (counted.figure(results), served.figure(results)) if each is not None)


def _alone(setting: Setting) -> str | None:
    return ONE_CORE if setting.cores == 1 else None
