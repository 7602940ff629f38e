"""dask.distributed with its defaults: a scheduler in this process, and workers that it sends the tasks to.

One pool, two runners: `dask` has worker processes with one thread each, `dask-threads` one worker with all threads in
this process, which pays where there is no GIL.  They alone need packages, and only a process that uses them imports
these (0.6 s): a measured one imports the catalog, whatever it measures.
"""

from __future__ import annotations

import threading
import warnings
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from gilscope.runners import _worker
from gilscope.runners._shared_objects import IN_PROCESS, make_shared
from gilscope.runners._teardown import closing, start_closing
from gilscope.runners.base import Appearance, Runner
from gilscope.runners.errors import TeardownError
from gilscope.runners.processes import kill_children, name_semaphores, without_main
from gilscope.runners.threads import is_gil_enabled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.process import BaseProcess

    from gilscope.runners.base import Payload, Result, Shared, Task

KILLED_SECONDS = 5.0   # for the cluster to notice that its workers were killed

# If a task kills its worker, that is its result: it is not retried elsewhere.
_CONFIG = {"distributed.scheduler.allowed-failures": 0}
# No dashboard.  The scheduler serves HTTP in any case; on its default port, clusters side by side would collide.
_OPTIONS: dict[str, Any] = {
    "dashboard_address": None, "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"}, "memory_limit": 0}


class ExitError(Exception):
    """Wraps an exception of a task that would end its worker, or the event loop that all tasks share."""


class DaskPool:
    """A client whose workers are all up."""

    def __init__(self, client: Any, *, processes: bool, shares: bool) -> None:
        self._client = client
        self._processes = processes
        self._shares = shares

    def map(self, task: Task, payloads: Sequence[Payload]) -> list[Result]:
        """Run every payload, return the results in order, raise the first task's exception.

        Raises:
            distributed.KilledWorker: a worker died.
        """
        if task is _worker.gil_state and self._processes:
            # The scheduler may send two of them to one worker.
            return list(self._client.run(_worker.gil_state).values())
        run = partial(run_task, partial(_worker.call_shared, task) if self._shares else task)
        # Not pure: equal payloads would be one task.
        futures = self._client.map(run, payloads, pure=False)
        failure = None
        try:
            results: list[Result] = self._client.gather(futures)
        except Exception as error:  # noqa: BLE001 - any exception of a task or a failure of its worker
            failure = _first_failure(futures) or error
        if failure is not None:
            raise failure   # outside the handler, so that its own cause and context stay
        return results


class DaskRunner(Runner):
    """Run tasks on a local cluster."""

    parallel = True
    pickles = True
    package = "distributed>=2025.9"

    def __init__(self, *, name: str, processes: bool, summary: str, appearance: Appearance) -> None:
        self.name = name
        self.summary = summary
        self.processes = processes
        self.gil = None if processes else False
        self.shares = frozenset() if processes else IN_PROCESS
        self.appearance = appearance

    def unavailable(self) -> str | None:
        """Return the reason why this build, as this process runs it, cannot use it, or None."""
        if self.gil is False and is_gil_enabled():
            return "the GIL is enabled in this process"
        if find_spec("distributed") is None:
            return f"needs the package distributed, which --models {self.name} installs"
        try:
            import distributed  # noqa: F401 - see above
        except Exception as error:  # noqa: BLE001 - a package may raise anything on a Python that it does not know
            return f"distributed cannot be imported: {type(error).__name__}: {error}"
        if self.gil is False and is_gil_enabled():
            return "importing distributed turns the GIL on"
        return None

    @contextmanager
    def pool(self, workers: int, shared: Shared | None = None) -> Iterator[DaskPool]:
        """Open a pool; every worker is up when it is entered.

        Raises:
            ValueError: something is to be shared that cannot be.
            TeardownError: a task still ran in this process when the deadline for closing was over.
        """
        if shared is not None and shared not in self.shares:
            raise ValueError(f"{self.name} cannot share a {shared} between workers")
        import multiprocessing

        opened: list[Any] = []   # the cluster, then its client
        with ExitStack() as undo:
            undo.enter_context(_settings())
            name_semaphores()
            not_ours = set(multiprocessing.active_children())
            undo.enter_context(closing(lambda seconds: _close(opened, not_ours, seconds)))
            client = _open(opened, workers, processes=self.processes)
            if not self.processes:
                _worker.join_pool(threading.Barrier(workers), make_shared(shared))
                undo.callback(_worker.join_pool, None, None)
                client.gather(client.map(_worker.meet_at_barrier, range(workers), pure=False))
            yield DaskPool(client, processes=self.processes, shares=shared is not None)


def run_task(task: Task, payload: Payload) -> Result:
    """Run a task in a worker; an exception that would end the worker becomes an ordinary error."""
    try:
        return task(payload)
    except (SystemExit, KeyboardInterrupt) as left:
        raise ExitError(left) from left


def _first_failure(futures: Sequence[Any]) -> BaseException | None:
    """Return the exception of the first failed future; wait for those before it."""
    for future in futures:
        error: BaseException | None = future.exception()
        if error is not None:
            return (error.args[0] if isinstance(error, ExitError) else error).with_traceback(future.traceback())
    return None


@contextmanager
def _settings() -> Iterator[None]:
    """Use a temporary folder for the workers' files, and silence advice against what is measured on purpose."""
    from tempfile import TemporaryDirectory

    import dask

    with (
        TemporaryDirectory(prefix="dask-", ignore_cleanup_errors=True) as folder,
        dask.config.set(_CONFIG | {"temporary-directory": folder}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        yield


def _open(opened: list[Any], workers: int, *, processes: bool) -> Any:
    from distributed import Client, LocalCluster

    how_many = {"n_workers": workers, "threads_per_worker": 1} if processes else {
        "n_workers": 1, "threads_per_worker": workers}
    with without_main():
        opened.append(LocalCluster(processes=processes, **how_many, **_OPTIONS))
    opened.append(Client(opened[0], set_as_default=False))
    client = opened[1]
    client.wait_for_workers(how_many["n_workers"])
    return client


def _close(opened: list[Any], not_ours: set[BaseProcess], seconds: float) -> None:
    """Close client and cluster; kill the processes that do not end in time."""
    import multiprocessing

    def close() -> None:
        for each in reversed(opened):
            each.close()

    closer = start_closing(close)
    closer.join(seconds)
    if closer.is_alive() and set(multiprocessing.active_children()) - not_ours:
        kill_children(not_ours)
        closer.join(KILLED_SECONDS)
    if closer.is_alive():
        raise TeardownError(
            f"a dask cluster did not end within {seconds:g} s: a task still runs, or left a thread behind")


DASK = DaskRunner(
    name="dask", processes=True, summary="dask.distributed, a local cluster of processes with one thread each",
    appearance=Appearance("#CC79A7", "X", "dashes", "--"))
DASK_THREADS = DaskRunner(
    name="dask-threads", processes=False, summary="dask.distributed, one worker with all threads, GIL off",
    appearance=Appearance("#D55E00", "d", "short dashes", "||"))
