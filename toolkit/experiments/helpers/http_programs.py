"""What the programs that talk HTTP have in common."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import requests

    from gilscope.toolkit.measure.program.interface import Clock, Trial

    Ready = Callable[[int, Callable[[], object]], None]   # port, what stops the service from any thread

OPEN_FILES = 4096        # 128 threads with five connections each, and as many requests waiting; 1024 are usual
REQUEST_SECONDS = 30.0   # until a client gives up: a server that is gone must not hang the cell
BACKENDS_MODULE = "gilscope.toolkit.experiments.load.http.backends"


def new_session() -> requests.Session:
    """Return a session of `requests` that asks loopback servers and nobody else."""
    import requests

    session = requests.Session()
    session.trust_env = False  # a proxy that the environment names does not know our loopback
    return session


def allow_open_files() -> None:
    """Let this process, and the helpers that it starts from now on, have as many connections as a load can make."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def gil_on() -> bool:
    """Return whether the GIL is on in this process."""
    ask = getattr(sys, "_is_gil_enabled", None)
    return True if ask is None else bool(ask())


def refuse_turned_on(trial: Trial, *, was_on: bool) -> None:
    """End the trial when what it imported turned the GIL on: its number would be none of this build's.

    Raises:
        StoppedError: the GIL was off and is on.
    """
    if gil_on() and not was_on:
        trial.stop(f"{trial.model} on a free-threaded build needs the GIL off; it was on at the end", "gil")


def wanted_cores(clock: Clock, most: int, helpers: float, *, short: bool) -> float:
    """Return how many cores this process and its helpers could have used at once.

    Work that waits most of its time wants what it used; one that was `short` of time, as it did not keep up, could
    have used `most`.  Servers and clients must run at the same time: without them there is nothing to measure.

    Args:
        clock: Of the measurement.
        most: Cores that the model can use at once.
        helpers: Cores' worth of CPU time that the helper processes used.
        short: Whether more CPU time would have made the measurement better.
    """
    used = clock.cpu / clock.wall if clock.wall else 0.0
    return (float(most) if short else min(float(most), used)) + helpers


def aiohttp_parser() -> str:
    """Return which parser aiohttp reads HTTP with, "C" or "Python": where there is no wheel with the former."""
    from aiohttp import http_parser

    return "Python" if http_parser.HttpResponseParser is http_parser.HttpResponseParserPy else "C"


def thread_count() -> int:
    """Return how many threads this process has, those that Python does not know included."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


@contextlib.contextmanager
def in_thread(serve: Callable[[Ready], None]) -> Iterator[int]:
    """Run `serve` in a thread and yield the port that it says it is ready on; on leaving stop it and wait for its end.

    What `serve` raises before it is ready is raised here.
    """
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def run() -> None:
        try:
            serve(lambda port, stop: told.put((port, stop)))
        except BaseException as error:
            told.put((0, error))   # nobody reads it any more when it was ready
            raise

    thread = threading.Thread(target=run, name="service", daemon=True)
    thread.start()
    port, stop = told.get()
    if not port:
        thread.join()
        raise stop
    try:
        yield port
    finally:
        stop()
        thread.join(REQUEST_SECONDS)
