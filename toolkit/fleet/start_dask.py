"""Start a dask scheduler and workers on this machine by dask's own commands; they end with the command that uses them.

Each worker stands for a separate host, so it has its own cache, working folder and temporary folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.bounded_reading import last_text
from gilscope.toolkit.fleet.dask_cluster import RESOURCE, Connection, FleetLostError, dask_distributed
from gilscope.toolkit.processes.supervised import Supervised
from gilscope.toolkit.user_dirs import cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LOOPBACK = "127.0.0.1"
START_SECONDS = 60.0     # long, for a busy machine
# Dask's background work would disturb measured processes: a profiler runs 100 times a second, a clock 50 times.  With
# these settings a worker, its nanny and the scheduler use 0.5, 0.0 and 0.4 % of a core; without, 3.2, 1.5 and 1.9 %.
QUIET: dict[str, str | bool] = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.limit": "30s",
    "distributed.admin.system-monitor.interval": "10s",
}
_LOOK = 0.05
_LAST_WORDS = 50_000     # bytes at the end of the output of a process that did not start: a chain of tracebacks
_ERROR = re.compile(r"[\w.]*(Error|Exception): ")


def quiet_variables() -> dict[str, str]:
    """Return the environment variables that give a dask process the settings `QUIET`."""
    return {f"DASK_{name.upper().replace('.', '__').replace('-', '_')}": str(value) for name, value in QUIET.items()}


def scheduler_command(host: str, port: int) -> list[str]:
    """Return the command that starts a scheduler at `host`; port 0: any free one."""
    return ["dask", "scheduler", "--host", host, "--port", str(port), "--no-dashboard"]


def worker_command(address: str, name: str) -> list[str]:
    """Return the command that makes a machine a host of the scheduler at `address`."""
    # No memory limit: dask would count measured processes, and could kill the worker.
    return ["dask", "worker", address, "--name", name, "--nthreads", "1", "--resources", f"{RESOURCE}=1",
            "--memory-limit", "0", "--no-dashboard"]


@contextmanager
def local_fleet(hosts: int, port: int = 0) -> Iterator[tuple[str, Sequence[Supervised]]]:
    """Start a scheduler and workers that only this machine can reach; end them and delete their files on leaving.

    Args:
        hosts: The number of workers, which are called host-1, host-2 ...
        port: The port of the scheduler; 0: any free one.

    Yields:
        The address of the scheduler, and all started processes.

    Raises:
        ToolkitError: dask.distributed is not installed.
        FleetLostError: The scheduler or a worker did not start.
    """
    dask_distributed()
    with (tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as made,
          contextlib.ExitStack() as running):
        folder = Path(made)
        address_file = folder / "scheduler.json"
        scheduler = _started(
            running, [*scheduler_command(LOOPBACK, port), "--scheduler-file", str(address_file)], folder / "scheduler",
            {"TMPDIR": str(folder)})
        address = _address(address_file, scheduler, folder / "scheduler")
        processes = [scheduler]
        for number in range(1, hosts + 1):
            place = folder / f"host-{number}"
            scratch = place / "tmp"
            scratch.mkdir(parents=True)
            command = [*worker_command(address, place.name), "--host", LOOPBACK, "--local-directory", str(scratch)]
            own = {"TMPDIR": str(scratch), "GILSCOPE_CACHE": str(cache_dir() / "fleet" / place.name)}
            processes.append(_started(running, command, place, own))
        _wait_for_hosts(address, processes[1:], folder)
        yield address, processes


def _wait_for_hosts(address: str, workers: Sequence[Supervised], folder: Path) -> None:
    """Wait until every worker has reported to the scheduler."""
    deadline = time.monotonic() + START_SECONDS
    with Connection(address) as connection:
        while len(connection.workers()) < len(workers):
            for number, process in enumerate(workers, start=1):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise _did_not_start(f"host-{number}", folder / f"host-{number}")
            time.sleep(_LOOK)


def _started(
    running: contextlib.ExitStack, command: Sequence[str], place: Path, variables: dict[str, str],
) -> Supervised:
    """Start a dask command in a folder of its own, and register it with `running`, which ends it."""
    place.mkdir(exist_ok=True)
    with (place / "output").open("wb") as output:
        return running.enter_context(Supervised(
            [sys.executable, "-m", *command], cwd=place, env=os.environ | quiet_variables() | variables,
            stdout=output, stderr=output))


def _address(file: Path, process: Supervised, place: Path) -> str:
    """Wait for the scheduler's address and return it."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError, ValueError, KeyError):
            return str(json.loads(file.read_text())["address"])
        time.sleep(_LOOK)
    raise _did_not_start("the scheduler", place)


def _did_not_start(what: str, place: Path) -> FleetLostError:
    lines = [line for line in last_text(place / "output", _LAST_WORDS).splitlines() if line.strip()]
    # The first error of a chain is the reason of the others, such as "RuntimeError: Scheduler failed to start."
    why = next(filter(_ERROR.match, lines), lines[-1] if lines else "dask said nothing")
    return FleetLostError(f"{what} did not start: {why}")
