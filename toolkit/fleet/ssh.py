"""A cluster on machines that are reached by SSH, started by dask's own classes for it."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.fleet.dask_cluster import EXTRA, RESOURCE, FleetLostError, is_plain, log_nothing_here
from gilscope.toolkit.fleet.start_dask import QUIET

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@contextmanager
def ssh_fleet(hosts: Sequence[str]) -> Iterator[str]:
    """Start a scheduler on the first host and a worker on each, end them with the block, and yield the address.

    Users, ports and keys are those of ~/.ssh/config.

    Raises:
        ToolkitError: dask.distributed or asyncssh is not installed.
        FleetLostError: a machine cannot be reached, or has no dask.
    """
    try:
        import asyncssh  # noqa: F401 - required by dask's SSH classes
        import dask.config
        from distributed import SpecCluster
        from distributed.deploy import ssh
    except ImportError:
        raise ToolkitError(f"--ssh takes dask.distributed and asyncssh: pip install '{EXTRA}' asyncssh") from None
    log_nothing_here()
    # Not SSHCluster, which gives all workers the same options and therefore no names.
    scheduler = {"cls": ssh.Scheduler, "options": {
        "address": hosts[0], "connect_options": {}, "kwargs": {"dashboard": False}}}
    workers = {
        options.get("name", number): {
            "cls": ssh.Worker, "options": {"address": host, "connect_options": {}, "kwargs": options}}
        for number, (host, options) in enumerate(zip(hosts, _worker_options(hosts), strict=True))
    }
    try:
        with dask.config.set(QUIET):   # dask passes its configuration on to the remote processes
            cluster = SpecCluster(workers, scheduler, name="gilscope")
    except Exception as error:  # asyncssh and asyncio raise many types
        raise FleetLostError(f"no cluster on {', '.join(hosts)}: {error}") from error
    with cluster:
        yield str(cluster.scheduler_address)


def _worker_options(hosts: Sequence[str]) -> list[dict[str, Any]]:
    """Return the options of each worker, which is named after its machine so that --resume recognizes it."""
    counts = Counter(hosts)
    return [
        {"nthreads": 1, "resources": {RESOURCE: 1}, "memory_limit": 0}
        | ({"name": host} if counts[host] == 1 and is_plain(host) else {})
        for host in hosts
    ]
