"""A cluster on machines that are reached by SSH, started by dask's own SSHCluster."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.fleet.connection import EXTRA, RESOURCE, FleetLostError
from gilscope.toolkit.fleet.starting import QUIET

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@contextmanager
def ssh_fleet(hosts: Sequence[str]) -> Iterator[str]:
    """Start a scheduler on the first host and a worker on each, end them with the block, and yield the address.

    Raises:
        ToolkitError: dask.distributed or asyncssh is not installed.
        FleetLostError: a machine cannot be reached, or has no dask.
    """
    try:
        import asyncssh  # noqa: F401, PLC0415  what SSHCluster takes
        import dask.config  # noqa: PLC0415  optional, and slow to import
        from distributed import SSHCluster  # noqa: PLC0415  likewise
    except ImportError:
        raise ToolkitError(f"--ssh takes dask.distributed and asyncssh: pip install '{EXTRA}' asyncssh") from None
    options = {"nthreads": 1, "resources": {RESOURCE: 1}, "memory_limit": 0}
    try:
        with dask.config.set(QUIET):   # it hands its configuration on
            # The first machine has the scheduler, and measures, too.
            cluster = SSHCluster([hosts[0], *hosts], worker_options=options)
    except Exception as error:  # asyncssh's and asyncio's many ways to say it
        raise FleetLostError(f"no cluster on {', '.join(hosts)}: {error}") from error
    with cluster:
        yield str(cluster.scheduler_address)
