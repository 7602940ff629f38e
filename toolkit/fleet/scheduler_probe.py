"""Whether what answers at an address is a dask scheduler: asked before dask's client is, which waits and complains."""

from __future__ import annotations

import asyncio
import queue
import socket
import threading
from typing import Any

from gilscope.toolkit.errors import ToolkitError

CONNECT_SECONDS = 5.0   # dask tries again meanwhile: the first packets of a slow network may be lost
ASK_SECONDS = 8.0       # for all, the answer with it
_LATE = 1.0             # a name server that does not answer holds up who asks it
_TLS = frozenset({"tls", "wss"})


def problem_of(address: str) -> str:
    """Return why dask's client would not find a scheduler at `address`, "" where it would; takes some seconds at most.

    Raises:
        ToolkitError: dask cannot speak as the address begins, or has no certificates for it.
    """
    from distributed.comm.addressing import parse_address  # noqa: PLC0415  optional, and slow to import
    from distributed.comm.registry import get_backend  # noqa: PLC0415  likewise
    from distributed.security import Security  # noqa: PLC0415  likewise

    scheme, _ = parse_address(address)
    try:
        get_backend(scheme)
    except ValueError:
        raise ToolkitError(f"{address} is not the address of a dask scheduler: write tcp://HOST:PORT") from None
    try:
        options = Security().get_connection_args("client")
    except Exception as error:   # a file that is not there, or no certificate
        raise ToolkitError(f"dask cannot use the TLS certificates that its configuration names: {error}") from error
    if scheme in _TLS and options.get("ssl_context") is None:
        raise ToolkitError(f"{address}: dask has no TLS certificates configured; "
                           "https://distributed.dask.org/en/stable/tls.html says how")
    return _asked(address, options, encrypted=scheme in _TLS)


def _asked(address: str, options: dict[str, Any], *, encrypted: bool) -> str:
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        try:
            told.put((asyncio.run(_kind_of(address, options)), ""))
        except BaseException as error:  # noqa: BLE001  judged where it is waited for
            told.put((error, _cause(address)))

    threading.Thread(target=ask, daemon=True).start()
    try:
        kind, cause = told.get(timeout=ASK_SECONDS + _LATE)
    except queue.Empty:
        kind, cause = TimeoutError(), ""
    if kind == "Scheduler":
        return ""
    if isinstance(kind, str):
        return f"a dask {kind.lower()} answers at {address}, not its scheduler: give the scheduler's address"
    if isinstance(kind, OSError) and str(kind).startswith("Timed out trying to connect"):   # dask's words
        return (f"no dask scheduler answers at {address}{cause}; `gilscope fleet start` starts one here, and "
                "`gilscope run --fleet local:2` does all by itself")
    # What others send is taken for lengths of hundreds of petabytes, among other things.
    otherwise = "it has other certificates" if encrypted else "it is one that wants tls://"
    return f"what answers at {address} is no dask scheduler, or {otherwise}"


def _cause(address: str) -> str:
    """Return what the system says of a connection there; dask forgets it where its last try was cut short."""
    from distributed.comm.addressing import get_address_host_port  # noqa: PLC0415  optional, and slow to import

    try:
        socket.create_connection(get_address_host_port(address), timeout=_LATE / 2).close()
    except TimeoutError:
        return ""   # said already
    except (OSError, ValueError) as error:   # and an address without a port
        return f" ({error})"
    return ""


async def _kind_of(address: str, options: dict[str, Any]) -> str:
    """Return what dask's process at `address` says it is: Scheduler, Worker, Nanny."""
    from distributed.core import rpc  # noqa: PLC0415  optional, and slow to import

    async with asyncio.timeout(ASK_SECONDS), rpc(address, timeout=CONNECT_SECONDS, connection_args=options) as remote:
        told = await remote.identity()
    return str(told["type"])
