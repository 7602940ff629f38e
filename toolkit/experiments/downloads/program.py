"""Fetch small pages from a loopback HTTP server: threads with requests, one event loop with aiohttp, a loop per thread.

The clock starts before the first worker does and stops with the last page; libraries are imported and the server runs
before.  Memory is measured while all workers and their connections still exist.
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from gilscope.toolkit.experiments.helpers.http_programs import (
    BACKENDS_MODULE,
    REQUEST_SECONDS,
    aiohttp_parser,
    gil_on,
    new_session,
    refuse_gil_turned_on,
    thread_count,
    wanted_cores,
)
from gilscope.toolkit.measure.child.process_tree import memory
from gilscope.toolkit.measure.child.program import ProgramValue
from gilscope.workloads import server_pages

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    import requests

    from gilscope.toolkit.measure.child.program import BlockTime, ProgramTrial

WORDS = 150          # words of a page: about 1.5 KiB of HTML
SHORT = 1.3            # times the time of waiting alone, from which on the model is short of CPU time
MEETING_SECONDS = 60.0  # limit for the loops in threads to meet


@dataclass(slots=True)
class FetchResult:
    """The pages of one pass, with its time, threads and memory."""

    clock: BlockTime
    bodies: list[bytes]
    threads: int
    memory: tuple[int | None, int | None]   # peak resident and proportional bytes
    parallel: int                           # number of threads that can run at once
    metrics: dict[str, float | str] = field(default_factory=dict)


def measure(trial: ProgramTrial) -> ProgramValue:
    """Return the wall seconds of fetching `pages` pages of the latency "latency", `trial.workers` at a time."""
    was_on = gil_on()
    fetch = {"asyncio": _one_loop, "loops": _loops}.get(trial.model, _threads)
    paths = [server_pages.path(number, WORDS) for number in range(trial.count("pages"))]
    with trial.helper(BACKENDS_MODULE, "pages", str(trial.number("latency"))) as server:
        _import(trial.model)
        before, threads = memory([os.getpid()])[1], thread_count()
        server.ask(limit=REQUEST_SECONDS, do="reset")
        fetched = fetch(trial, f"http://{server.ready['addresses']['pages']}", paths)
        report = server.ask(limit=REQUEST_SECONDS, do="report")
    refuse_gil_turned_on(trial, was_on=was_on)
    if fetched.bodies != [server_pages.page(number, WORDS) for number in range(len(paths))]:
        trial.stop("pages are missing or not the right ones", "wrong-result")
    fetched.threads -= threads - 1   # threads from before, except for this one, are no workers
    ideal = len(paths) / trial.workers * trial.number("latency")
    return _taken(fetched, before, report, short=fetched.clock.wall > SHORT * ideal)


def _import(model: str) -> None:
    if model in {"threads", "free-threaded"}:
        import requests  # noqa: F401 - before the clock starts
    else:
        import aiohttp  # noqa: F401 - before the clock starts


def _taken(fetched: FetchResult, before: int | None, report: dict[str, Any], *, short: bool) -> ProgramValue:
    clock, (resident, proportional) = fetched.clock, fetched.memory
    metrics: dict[str, float | str] = {
        "pages": len(fetched.bodies), "threads": fetched.threads, "cpu_per_page": clock.cpu / len(fetched.bodies),
        "connections": report["connections"], "server_late": report["late"],
        "server_cores": report["cpu"] / clock.wall,
        **fetched.metrics,
    }
    if resident is not None and proportional is not None and before is not None:
        metrics |= {"rss": resident, "pss": proportional, "added": max(0, proportional - before)}
    wanted = wanted_cores(clock, fetched.parallel, report["cpu"] / clock.wall, short=short)
    return ProgramValue(seconds=clock.wall, cpu=clock.cpu, metrics=metrics, wanted_cores=wanted)


def _threads(trial: ProgramTrial, server: str, paths: Sequence[str]) -> FetchResult:
    """Fetch with a pool of threads, each with a session of its own, so that it keeps its connection."""
    own = threading.local()
    sessions: list[requests.Session] = []

    def fetch(path: str) -> bytes:
        if not hasattr(own, "session"):
            own.session = new_session()
            sessions.append(own.session)
        with own.session.get(server + path, timeout=REQUEST_SECONDS) as response:
            response.raise_for_status()
            body: bytes = response.content
        return body

    # The executor starts its threads with the first tasks, so their start is measured.
    with ThreadPoolExecutor(trial.workers) as pool:
        try:
            with trial.measuring() as clock:
                bodies = list(pool.map(fetch, paths))
            parallel = 1 if gil_on() else trial.workers
            return FetchResult(clock, bodies, thread_count(), memory([os.getpid()]), parallel)
        finally:
            for session in sessions:
                session.close()


class LoopClient:
    """An event loop with a client of aiohttp, for the thread that enters it."""

    def __init__(self, server: str, limit: int) -> None:
        """`limit` is the number of connections, and so of requests, at a time."""
        self._server = server
        self._limit = limit

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        self._session = self._runner.run(self._open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._session.close())
        self._runner.close()

    async def _open(self) -> Any:
        import aiohttp

        return aiohttp.ClientSession(
            self._server, connector=aiohttp.TCPConnector(limit=self._limit),
            timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS),
        )

    def fetch(self, paths: Sequence[str]) -> list[bytes]:
        """Return the pages' bodies."""
        return self._runner.run(self._fetch_all(paths))

    async def _fetch_all(self, paths: Sequence[str]) -> list[bytes]:
        return await asyncio.gather(*(self._fetch(path) for path in paths))

    async def _fetch(self, path: str) -> bytes:
        async with self._session.get(path) as response:
            response.raise_for_status()
            body: bytes = await response.read()
        return body


def _one_loop(trial: ProgramTrial, server: str, paths: Sequence[str]) -> FetchResult:
    """Fetch with one thread and one event loop, `trial.workers` requests at a time."""
    with LoopClient(server, trial.workers) as loop:
        with trial.measuring() as clock:
            bodies = loop.fetch(paths)
        return FetchResult(clock, bodies, thread_count(), memory([os.getpid()]), 1, {"parser": aiohttp_parser()})


def _loops(trial: ProgramTrial, server: str, paths: Sequence[str]) -> FetchResult:
    """Fetch with an event loop in each of one thread per core; together `trial.workers` requests at a time."""
    count = min(max(2, trial.cores), trial.workers)
    shares = [paths[index::count] for index in range(count)]
    limits = [len(range(index, trial.workers, count)) for index in range(count)]
    fetched, released = threading.Barrier(count + 1), threading.Event()

    def run(share: Sequence[str], limit: int) -> list[bytes]:
        try:
            with LoopClient(server, limit) as loop:
                bodies = loop.fetch(share)
                fetched.wait(MEETING_SECONDS)
                released.wait(MEETING_SECONDS)
        except BaseException:
            fetched.abort()  # so that the others do not wait for this one
            raise
        return bodies

    with ThreadPoolExecutor(count) as pool:
        with trial.measuring() as clock:
            runs = [pool.submit(run, share, limit) for share, limit in zip(shares, limits, strict=True)]
            try:
                fetched.wait(MEETING_SECONDS)
            except threading.BrokenBarrierError:
                released.set()   # each.result() below raises the loop's exception
        threads, size = thread_count(), memory([os.getpid()])
        released.set()
        parts = [each.result() for each in runs]
    bodies = [b""] * len(paths)
    for index, part in enumerate(parts):
        bodies[index::count] = part
    return FetchResult(clock, bodies, threads, size, 1 if gil_on() else count, {"parser": aiohttp_parser()})
