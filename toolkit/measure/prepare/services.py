"""The loopback servers that I/O workloads talk to: up before anything is measured, gone afterwards."""

from __future__ import annotations

import contextlib
import select
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_ENTRY = (
    "from gilscope.toolkit.processes.lifeline import settle; settle(); "
    "from gilscope.workloads.servers import main; main()"
)
READY_SECONDS = 120.0  # a loaded machine starts slowly; a server that never says its address must not hang the run


@dataclass(frozen=True, slots=True)
class Services:
    """Running servers: their process ids, and the variables that tell a workload where they listen."""

    pids: tuple[int, ...]
    environment: dict[str, str]


@contextlib.contextmanager
def services(names: Iterable[str], environment: Mapping[str, str]) -> Iterator[Services]:
    """Start the servers `names` on loopback, wait until each accepts connections, and end them on leaving.

    Raises:
        BuildError: a server did not start.
    """
    started: list[subprocess.Popen[str]] = []
    addresses = {}
    try:
        for name in names:
            # The server's end of stdin closes when we do, however we do, and it ends with that.
            server = subprocess.Popen(
                [sys.executable, "-P", "-c", _ENTRY, name],
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            started.append(server)
            addresses[f"GILSCOPE_{name.upper()}"] = _address(server, name)
        yield Services(tuple(server.pid for server in started), addresses)
    finally:
        for server in started:
            server.kill()
            server.communicate()


def _address(server: subprocess.Popen[str], name: str) -> str:
    assert server.stdout is not None
    ready, _, _ = select.select([server.stdout], [], [], READY_SECONDS)
    address = server.stdout.readline().strip() if ready else ""
    if ":" not in address:
        raise BuildError(
            f"the loopback {name} server did not start (exit code {server.poll()}): {address or 'no answer'}"
        )
    return address
