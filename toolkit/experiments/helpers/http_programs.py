"""Functions shared by the programs that use HTTP."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.measure.child.base import gil_enabled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import requests

    from gilscope.toolkit.measure.child.program import BlockTime, ProgramTrial

    Ready = Callable[[int, Callable[[], object]], None]   # port, and a function that stops the service from any thread

OPEN_FILES = 4096        # 128 threads with five connections each, and as many requests waiting; 1024 are usual
REQUEST_SECONDS = 30.0   # timeout of a client: a server that is gone must not hang the cell
BACKENDS_MODULE = "gilscope.toolkit.experiments.load.backends"


def new_session() -> requests.Session:
    """Return a session of `requests` for loopback servers."""
    import requests

    session = requests.Session()
    session.trust_env = False  # a proxy from the environment cannot reach this machine's loopback
    return session


def allow_open_files() -> None:
    """Raise the limit of open files of this process, and of helpers started later, to what a load can need."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def gil_on() -> bool:
    """Return True if the GIL is on in this process."""
    return gil_enabled() is not False


def refuse_gil_turned_on(trial: ProgramTrial, *, was_on: bool) -> None:
    """End the trial if an import turned the GIL on: its number would not be that of this build.

    Raises:
        NoValueError: the GIL was off before and is on now.
    """
    if gil_on() and not was_on:
        trial.stop(f"{trial.model} on a free-threaded build needs the GIL off; it was on at the end", "gil")


def wanted_cores(clock: BlockTime, most: int, helpers: float, *, short: bool) -> float:
    """Return the number of cores that this process and its helpers could have used at once.

    Work that mostly waits could have used the cores that it did use; work that did not keep up could have used `most`.
    The helpers' share comes on top, since servers and clients run at the same time.

    Args:
        clock: The clock of the measurement.
        most: Number of cores that the model can use at once.
        helpers: Cores' worth of CPU time that the helper processes used.
        short: True if the measurement was short of CPU time.
    """
    used = clock.cpu / clock.wall if clock.wall else 0.0
    return (float(most) if short else min(float(most), used)) + helpers


def aiohttp_parser() -> str:
    """Return the language of aiohttp's HTTP parser: "C", or "Python" where no wheel has the one in C."""
    from aiohttp import http_parser

    return "Python" if http_parser.HttpResponseParser is http_parser.HttpResponseParserPy else "C"


def thread_count() -> int:
    """Return the number of this process's threads, those unknown to Python included."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


@contextlib.contextmanager
def in_thread(serve: Callable[[Ready], None]) -> Iterator[int]:
    """Run `serve` in a thread and yield its port once it is ready; on leaving, stop it and wait for its end.

    An exception of `serve` before it is ready is raised here.
    """
    started: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def run() -> None:
        try:
            serve(lambda port, stop: started.put((port, stop)))
        except BaseException as error:
            started.put((0, error))   # read only if `serve` was not ready yet
            raise

    thread = threading.Thread(target=run, name="service", daemon=True)
    thread.start()
    port, stop = started.get()
    if not port:
        thread.join()
        raise stop
    try:
        yield port
    finally:
        stop()
        thread.join(REQUEST_SECONDS)
