"""What `aggregator` says of its source's claim, and what its numbers must be read with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.libraries import SLOW_PARSER
from gilscope.toolkit.experiments.load.http.backend_answers import BACKENDS
from gilscope.toolkit.report.wording import percent_text
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell

POOL = 32          # requests at a time of the pool of threads that every effort but the smallest measures
FALLING = 2.0      # times the latency of the first third of the requests in the last third: a service that falls behind
NEARLY_ALL = 0.95
HARDLY_ANY = 0.05
NEAR_ONE = 0.7     # cores: calls of the system run without the GIL, so the limit is no sharp one


@dataclass(frozen=True, slots=True)
class Load:
    """How much is asked of the service."""

    users: str
    rate: str   # requests a second of each user

    @property
    def text(self) -> str:
        """The words of tables and figures."""
        return f"{self.users} users x {self.rate}/s"

    @property
    def short(self) -> str:
        """The heading of a narrow column."""
        return f"{self.users} x {self.rate}/s"

    @property
    def wanted(self) -> float:
        """Requests a second, all users together."""
        return float(self.users) * float(self.rate)


LOADS = (Load("5", "2"), Load("24", "8"))


def loads_of(results: Results) -> list[Load]:
    """Return the loads that the cells have."""
    found = {(dict(cell.parameters)["users"], dict(cell.parameters)["rate"]) for cell in results.cells()}
    return [load for load in LOADS if (load.users, load.rate) in found]


def rows_of(results: Results, build: Build | None = None) -> list[tuple[str, int]]:
    """Return models and workers, in the order of the tables."""
    cells = results.cells() if build is None else results.cells(build=build.label)
    return list(dict.fromkeys((cell.runner, cell.workers) for cell in cells))


def find(results: Results, build: Build, model: str, workers: int, load: Load) -> Cell | None:
    """Return the cell, None when the plan has none."""
    return results.find(build=build.label, runner=model, workers=workers, users=load.users, rate=load.rate)


def warnings_of(results: Results, cell: Cell | None) -> list[str]:
    """Return what a reader must know of a measured cell: what failed, a generator at its limits, a growing queue."""
    success = results.metric(cell, "success")
    if cell is None or success is None:
        return []
    found = []
    failures = [text for text in results.texts(cell, "failures") if text]
    if failures:
        found.append(f"{cell.build}, {cell.runner}: failed, in the last round with failures: {failures[-1]}")
    saturated = [text for text in results.texts(cell, "saturated") if text]
    if saturated:
        found.append(f"{saturated[-1]}: these latencies are its own as well")
    if "Python" in results.texts(cell, "parser"):
        found.append(SLOW_PARSER)
    growth = results.metric(cell, "growth")
    if growth is not None and growth.center > FALLING and success.center > HARDLY_ANY:
        found.append(f"latency grew {growth.center:.1f}x from the first to the last third of the requests: the service "
                     "falls behind, and a longer load would see more of them fail")
    return found

_LATER = "Their latency grew meanwhile, though: under a longer load they would fall behind."


def findings(results: Results, build: Build) -> Iterator[str]:
    """Give what is to be said of one build, as far as it was measured."""
    load = LOADS[-1]
    model = "free-threaded" if build.free_threaded else "threads"
    pool, loop = (find(results, build, *row, load) for row in ((model, POOL), ("asyncio", 1)))
    threads, events = results.metric(pool, "success"), results.metric(loop, "success")
    cost, cheap = results.metric(pool, "cpu_per_answer"), results.metric(loop, "cpu_per_answer")
    if threads is None or events is None:
        return
    yield (
        f"{build.label}, {load.text}: {POOL} {'free ' if build.free_threaded else ''}threads answer "
        f"{_share(threads.center)} of the requests in time, asyncio {_share(events.center)}; "
        f"{_verdict(threads.center, events.center)}"
        + (f" {_LATER}" if _falls_behind(results, pool) and threads.center > HARDLY_ANY else "")
    )
    if cost is not None and cheap is not None:
        yield _cost_sentence(build, load, cost.center, cheap.center)
    yield from _sync_sentence(results, build, load)


def _falls_behind(results: Results, cell: Cell | None) -> bool:
    growth = results.metric(cell, "growth")
    return growth is not None and growth.center > FALLING


def _share(success: float) -> str:
    return "none" if success == 0 else percent_text(success)


def _verdict(threads: float, events: float) -> str:
    if threads >= NEARLY_ALL and events >= NEARLY_ALL:
        return "that threads answer none is not seen here; the source's pools and latencies are not known."
    if threads <= HARDLY_ANY and events >= NEARLY_ALL:
        return "as the source says."
    if events >= NEARLY_ALL:
        return "threads do worse, but not as badly as the source says."
    return "neither is up to it here."


def _cost_sentence(build: Build, load: Load, cost: float, cheap: float) -> str:
    """Say how many cores the load takes, of which a GIL gives Python code one."""
    threads, events = (load.wanted * each for each in (cost, cheap))
    start = (f"{build.label}: an answer takes the threads {format_seconds(cost)} of CPU time and asyncio "
             f"{format_seconds(cheap)}, so {load.wanted:.0f} a second take {threads:.2f} and {events:.2f} cores")
    if build.free_threaded:
        return f"{start}; without the GIL the threads may take theirs wherever there are some."
    near = "the threads are near that" if threads > NEAR_ONE else "both stay below that"
    return f"{start}. Under the GIL Python code has one: {near}, and a service that needs more falls behind."


def _sync_sentence(results: Results, build: Build, load: Load) -> Iterator[str]:
    alone = results.metric(find(results, build, "sync", 1, load), "success")
    if alone is not None and alone.center <= HARDLY_ANY:
        yield (f"{build.label}: one thread that asks one back end after the other answers {_share(alone.center)}: it "
               f"can serve {1 / sum(BACKENDS.values()):.1f} requests/s, whatever the lock.")
