"""Fetch small pages from a loopback HTTP server: threads with requests, one event loop with aiohttp, a loop per thread.

The clock starts before the first worker does and stops with the last page; libraries are imported and the server is up
before.  Memory is looked at while all workers and their connections are still there.
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
    refuse_turned_on,
    thread_count,
    wanted_cores,
)
from gilscope.toolkit.measure.machine.tree import memory
from gilscope.toolkit.measure.program.interface import Taken
from gilscope.workloads import server_pages

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    import requests

    from gilscope.toolkit.measure.program.interface import Clock, Trial

WORDS = 150          # of a page: about 1.5 KiB of HTML
SHORT = 1.3            # times what waiting alone takes: from there on CPU time is what is missing
MEETING_SECONDS = 60.0  # until loops in threads must have met


@dataclass(slots=True)
class Fetched:
    """What one pass brought."""

    clock: Clock
    bodies: list[bytes]
    threads: int
    memory: tuple[int | None, int | None]   # peak resident and proportional bytes
    parallel: int                           # how many threads work
    metrics: dict[str, float | str] = field(default_factory=dict)


def measure(trial: Trial) -> Taken:
    """Return the wall seconds of fetching `pages` pages of the latency "latency", `trial.workers` at a time."""
    was_on = gil_on()
    fetch = {"asyncio": _one_loop, "loops": _loops}.get(trial.model, _threads)
    paths = [server_pages.path(number, WORDS) for number in range(trial.count("pages"))]
    with trial.helper(BACKENDS_MODULE, "pages", str(trial.number("latency"))) as server:
        _import(trial.model)
        before, threads = memory([os.getpid()])[1], thread_count()
        server.ask(limit=REQUEST_SECONDS, do="forget")
        fetched = fetch(trial, f"http://{server.ready['addresses']['pages']}", paths)
        told = server.ask(limit=REQUEST_SECONDS, do="tell")
    refuse_turned_on(trial, was_on=was_on)
    if fetched.bodies != [server_pages.page(number, WORDS) for number in range(len(paths))]:
        trial.stop("pages are missing or not the right ones", "wrong-result")
    fetched.threads -= threads - 1   # besides this one, those there were before are the frame's
    ideal = len(paths) / trial.workers * trial.number("latency")
    return _taken(fetched, before, told, short=fetched.clock.wall > SHORT * ideal)


def _import(model: str) -> None:
    if model in {"threads", "free-threaded"}:
        import requests  # noqa: F401 - before the clock starts
    else:
        import aiohttp  # noqa: F401 - likewise


def _taken(fetched: Fetched, before: int | None, told: dict[str, Any], *, short: bool) -> Taken:
    clock, (resident, proportional) = fetched.clock, fetched.memory
    metrics: dict[str, float | str] = {
        "pages": len(fetched.bodies), "threads": fetched.threads, "cpu_per_page": clock.cpu / len(fetched.bodies),
        "connections": told["connections"], "server_late": told["late"], "server_cores": told["cpu"] / clock.wall,
        **fetched.metrics,
    }
    if resident is not None and proportional is not None and before is not None:
        metrics |= {"rss": resident, "pss": proportional, "added": max(0, proportional - before)}
    wanted = wanted_cores(clock, fetched.parallel, told["cpu"] / clock.wall, short=short)
    return Taken(seconds=clock.wall, cpu=clock.cpu, metrics=metrics, wanted_cores=wanted)


def _threads(trial: Trial, server: str, paths: Sequence[str]) -> Fetched:
    """A pool of threads, each with a session of its own, so that it keeps its connection."""
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

    # The executor starts a thread when it is given a task, so inside the clock.
    with ThreadPoolExecutor(trial.workers) as pool:
        try:
            with trial.measuring() as clock:
                bodies = list(pool.map(fetch, paths))
            parallel = 1 if gil_on() else trial.workers
            return Fetched(clock, bodies, thread_count(), memory([os.getpid()]), parallel)
        finally:
            for session in sessions:
                session.close()


class Loop:
    """An event loop with a client of aiohttp, for the thread that enters it."""

    def __init__(self, server: str, limit: int) -> None:
        """`limit`: connections, and so requests, at a time."""
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


def _one_loop(trial: Trial, server: str, paths: Sequence[str]) -> Fetched:
    """One thread, one event loop, `trial.workers` requests at a time."""
    with Loop(server, trial.workers) as loop:
        with trial.measuring() as clock:
            bodies = loop.fetch(paths)
        return Fetched(clock, bodies, thread_count(), memory([os.getpid()]), 1, {"parser": aiohttp_parser()})


def _loops(trial: Trial, server: str, paths: Sequence[str]) -> Fetched:
    """One event loop in each of as many threads as there are cores; together `trial.workers` requests at a time."""
    count = min(max(2, trial.cores), trial.workers)
    shares = [paths[index::count] for index in range(count)]
    limits = [len(range(index, trial.workers, count)) for index in range(count)]
    fetched, released = threading.Barrier(count + 1), threading.Event()

    def run(share: Sequence[str], limit: int) -> list[bytes]:
        try:
            with Loop(server, limit) as loop:
                bodies = loop.fetch(share)
                fetched.wait(MEETING_SECONDS)
                released.wait(MEETING_SECONDS)
        except BaseException:
            fetched.abort()  # the others must not wait for this one
            raise
        return bodies

    with ThreadPoolExecutor(count) as pool:
        with trial.measuring() as clock:
            runs = [pool.submit(run, share, limit) for share, limit in zip(shares, limits, strict=True)]
            try:
                fetched.wait(MEETING_SECONDS)
            except threading.BrokenBarrierError:
                released.set()   # what a loop raised is raised again below
        threads, size = thread_count(), memory([os.getpid()])
        released.set()
        parts = [each.result() for each in runs]
    bodies = [b""] * len(paths)
    for index, part in enumerate(parts):
        bodies[index::count] = part
    return Fetched(clock, bodies, threads, size, 1 if gil_on() else count, {"parser": aiohttp_parser()})
