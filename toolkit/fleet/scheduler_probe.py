"""Check that a dask scheduler answers at an address: dask's own client would wait for long and print warnings."""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import Any

from gilscope.toolkit.errors import ToolkitError

CONNECT_SECONDS = 5.0   # to connect, including dask's retries: a slow network may lose the first packets
ASK_SECONDS = 8.0       # to connect and get an answer
_LATE = 1.0             # additional time, because a name server that does not answer blocks the thread
_TLS = frozenset({"tls", "wss"})


def problem_of(address: str) -> str:
    """Return the reason why no scheduler can be reached at `address`, or ""; takes up to nine seconds.

    Raises:
        ToolkitError: dask does not know the protocol of the address, or has no certificates for it.
    """
    from distributed.comm.addressing import parse_address
    from distributed.comm.registry import get_backend
    from distributed.security import Security

    scheme, _ = parse_address(address)
    try:
        get_backend(scheme)
    except ValueError:
        raise ToolkitError(f"{address} is not the address of a dask scheduler: write tcp://HOST:PORT") from None
    try:
        options = Security().get_connection_args("client")
    except Exception as error:   # a missing file, or a file that contains no certificate
        raise ToolkitError(f"dask cannot use the TLS certificates that its configuration names: {error}") from error
    if scheme in _TLS and options.get("ssl_context") is None:
        raise ToolkitError(f"{address}: dask has no TLS certificates configured; "
                           "https://distributed.dask.org/en/stable/tls.html says how")
    return _probe(address, options, encrypted=scheme in _TLS)


def _probe(address: str, options: dict[str, Any], *, encrypted: bool) -> str:
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(asyncio.run(_kind_of(address, options)))
        except BaseException as error:  # noqa: BLE001  interpreted below, on the calling thread
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        kind = answers.get(timeout=ASK_SECONDS + _LATE)
    except queue.Empty:
        kind = TimeoutError()
    if kind == "Scheduler":
        return ""
    if isinstance(kind, str):
        return f"a dask {kind.lower()} answers at {address}, not its scheduler: give the scheduler's address"
    # dask.distributed raises OSError for every failed connection; only this text distinguishes a missing server.
    if isinstance(kind, OSError) and str(kind).startswith("Timed out trying to connect"):
        return (f"no dask scheduler answers at {address}; `gilscope fleet start` starts one here, and "
                "`gilscope run --fleet local:2` does all by itself")
    # dask raises many exceptions here: for instance, it reads another protocol's bytes as a length of petabytes.
    alternative = "it has other certificates" if encrypted else "it requires tls://"
    return f"the server at {address} is no dask scheduler, or {alternative}"


async def _kind_of(address: str, options: dict[str, Any]) -> str:
    """Return the type of the dask process at `address`: Scheduler, Worker or Nanny."""
    from distributed.core import rpc

    async with asyncio.timeout(ASK_SECONDS), rpc(address, timeout=CONNECT_SECONDS, connection_args=options) as remote:
        identity = await remote.identity()
    return str(identity["type"])
