"""What `downloads` says of its source's claims: where threads stop gaining, and what asyncio is worth beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.libraries import SLOW_PARSER
from gilscope.toolkit.report.figures.plots.ticks import seconds_text
from gilscope.toolkit.report.wording import interval_text
from gilscope.toolkit.units import format_seconds, parse_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.stats.words import Comparison

NEAR_BEST = 1.1   # a pool that takes at most this times its best has nothing to gain from more workers
LATE_SHARE = 0.5  # of the latency: what the server may add by being late, at its 99th percentile
CLAIMED = 2.0     # times as fast as threads: asyncio in the source


def latencies_of(results: Results) -> list[str]:
    """Return the servers' latencies, as the cells have them."""
    return list(dict.fromkeys(dict(cell.parameters)["latency"] for cell in results.cells()))


def spoken(latency: str) -> str:
    """Return a latency as tables and sentences have it: "20 ms"."""
    return seconds_text(parse_seconds(latency))


def rows_of(results: Results, latency: str) -> list[tuple[str, int]]:
    """Return models and requests at a time, in the order of the tables."""
    return list(dict.fromkeys((cell.runner, cell.workers) for cell in results.cells(latency=latency)))


def find(results: Results, build: Build, model: str, workers: int, latency: str) -> Cell | None:
    """Return the cell, None when the plan has none."""
    return results.find(build=build.label, runner=model, workers=workers, latency=latency)


def warnings_of(results: Results, cell: Cell | None) -> list[str]:
    """Return what a reader must know of a measured cell's time."""
    late = results.metric(cell, "server_late")
    if cell is None or late is None:
        return []
    found = [SLOW_PARSER] if "Python" in results.texts(cell, "parser") else []
    if late.center > LATE_SHARE * parse_seconds(dict(cell.parameters)["latency"]):
        found.append(f"the server of the pages was up to {format_seconds(late.center)} late itself (99th percentile)")
    return found


def pool_of(build: Build) -> str:
    """Return the name under which a pool of threads runs as the build is made to."""
    return "free-threaded" if build.free_threaded else "threads"


def over_pool(results: Results, build: Build, model: str, latency: str) -> Comparison | None:
    """Return how many times faster a model is than the build's pool of threads, each with the workers it is best at."""
    pool = best_cell(results, build, pool_of(build), latency)
    return None if pool is None else results.compare(pool, best_cell(results, build, model, latency))


def best_cell(results: Results, build: Build, model: str, latency: str) -> Cell | None:
    """Return the model's fastest cell, None when the one with the most requests at a time has no number.

    Without that one, which is the fastest as a rule, another is not what the model can do.
    """
    cells = results.cells(build=build.label, runner=model, latency=latency)
    found = [(summary.center, cell) for cell in cells if (summary := results.value(cell)) is not None]
    if not found or results.value(widest_cell(cells)) is None:
        return None
    return min(found, key=lambda each: each[0])[1]


def widest_cell(cells: Sequence[Cell]) -> Cell | None:
    """Return the cell with the most requests at a time, None of none."""
    return max(cells, key=lambda cell: cell.workers, default=None)


def pool_times(results: Results, build: Build, latency: str) -> dict[int, float]:
    """Return the seconds of the build's pool of threads by its number of threads, as far as they are known."""
    cells = results.cells(build=build.label, runner=pool_of(build), latency=latency)
    return {cell.workers: found.center for cell in cells if (found := results.value(cell)) is not None}


def knee(times: dict[int, float]) -> int | None:
    """Return the least number of workers that is nearly as fast as any; None when there are too few to tell.

    Args:
        times: Seconds by number of workers.
    """
    best = min(times.values(), default=0.0)
    return min(count for count, each in times.items() if each <= NEAR_BEST * best) if len(times) > 2 else None  # noqa: PLR2004 - a line has three points


def knee_text(times: dict[int, float]) -> str:
    """Return where threads stop gaining as an entry of a table."""
    found = knee(times)
    if found is None:
        return "-"
    return str(found) if found < max(times) else f"still gaining at {found}"


def findings(results: Results, build: Build) -> Iterator[str]:
    """Give what is to be said of one build, as far as it was measured."""
    latencies = latencies_of(results)
    for latency in latencies:
        times = pool_times(results, build, latency)
        stop = knee(times)
        cell = None if stop is None else find(results, build, pool_of(build), stop, latency)
        cost = results.metric(cell, "cpu_per_page")
        if stop is not None and cost is not None:
            yield _pool_sentence(build, latency, times, stop, cost.center)
    # Where the latency is longer the same CPU time weighs less: the tables have that.
    over = over_pool(results, build, "asyncio", latencies[0])
    if over is not None:
        yield _asyncio_sentence(build, latencies[0], over)


def _pool_sentence(build: Build, latency: str, times: dict[int, float], stop: int, cost: float) -> str:
    where = f"stops gaining at {stop} threads" if stop < max(times) else f"still gains at {stop} threads"
    sentence = (
        f"{build.label}, pages of {spoken(latency)}: the pool {where} ({format_seconds(times[stop])}). A page costs it "
        f"{format_seconds(cost)} of CPU time"
    )
    if build.free_threaded:
        return f"{sentence}, which without the GIL may be used on every core at once."
    most = parse_seconds(latency) / cost
    return (f"{sentence} under one GIL, so {most:.0f} requests in flight keep it busy: where threads stop gaining is "
            "the latency over the CPU time of a page, and no constant.")


def _asyncio_sentence(build: Build, latency: str, over: Comparison) -> str:
    start = (f"{build.label}, pages of {spoken(latency)}: asyncio at its best is {interval_text(over)} as fast as "
             "threads at theirs")
    if over.verdict() != "faster":
        return f"{start}; that it is faster is not seen here."
    held = "less than the source's 2x" if over.hi < CLAIMED else "as the source says"
    if over.lo > CLAIMED:
        held = "more than the source's 2x"
    return f"{start}, {held}: it spends less CPU time on a page."
