"""Start the loopback servers of I/O workloads before the first measurement, and end them afterwards."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.processes.helper_process import HelperFailedError, HelperProcess

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_ENTRY = (
    "from gilscope.toolkit.processes.lifeline import restore_defaults; restore_defaults(); "
    "from gilscope.workloads.servers import main; main()"
)
READY_SECONDS = 120.0  # long, for a loaded machine; a server that never reports its address must not hang the run


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
    addresses, pids = {}, []
    with contextlib.ExitStack() as started:
        for name in names:
            server = started.enter_context(HelperProcess(
                [sys.executable, "-P", "-c", _ENTRY, name], env=dict(environment), start_new_session=True))
            addresses[f"GILSCOPE_{name.upper()}"] = _address(server, name)
            pids.append(server.pid)
        yield Services(tuple(pids), addresses)


def _address(server: HelperProcess, name: str) -> str:
    try:
        address = server.read_line(READY_SECONDS)
    except HelperFailedError as error:
        raise BuildError(f"the loopback {name} server did not start: it {error}") from None
    if ":" not in address:
        raise BuildError(f"the loopback {name} server did not start: it said {address!r}")
    return address
