"""The service of `aggregator` on one event loop: tornado with its own client, aiohttp with its own.

Each is a context manager that yields its port while it serves in a thread of its own.  Apart from `blocking`, whose
memory must not include asyncio.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.experiments.helpers.http_programs import REQUEST_SECONDS, in_thread
from gilscope.toolkit.experiments.load.backend_answers import MERGED_PATH, PART_PATH, merge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from gilscope.toolkit.experiments.helpers.http_programs import Ready

BACKLOG = 1024
MOST_ASKED = 5000   # requests to back ends at a time, more than any load here makes


def tornado(backends: Mapping[str, str], workers: int) -> AbstractContextManager[int]:
    """Serve with tornado.web and ask with tornado's AsyncHTTPClient, which opens a connection for each request."""
    assert workers == 1
    return in_thread(lambda ready: asyncio.run(_until_stopped(_tornado(backends), ready)))


def aiohttp(backends: Mapping[str, str], workers: int) -> AbstractContextManager[int]:
    """Serve with aiohttp.web and ask with aiohttp's client."""
    assert workers == 1
    return in_thread(lambda ready: asyncio.run(_until_stopped(_aiohttp(backends), ready)))


async def _until_stopped(serving: AbstractAsyncContextManager[int], ready: Ready) -> None:
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    async with serving as port:
        ready(port, lambda: loop.call_soon_threadsafe(stopped.set))
        await stopped.wait()


@contextlib.asynccontextmanager
async def _tornado(backends: Mapping[str, str]) -> AsyncIterator[int]:
    from tornado.httpclient import AsyncHTTPClient
    from tornado.httpserver import HTTPServer
    from tornado.netutil import bind_sockets
    from tornado.web import Application, RequestHandler

    client = AsyncHTTPClient(force_instance=True, max_clients=MOST_ASKED)

    async def fetch(address: str, number: str) -> dict[str, Any]:
        response = await client.fetch(f"http://{address}{PART_PATH}{number}", request_timeout=REQUEST_SECONDS)
        found: dict[str, Any] = json.loads(response.body)
        return found

    class Merged(RequestHandler):  # type: ignore[misc]  # tornado is not installed where types are checked
        async def get(self, number: str) -> None:
            parts = await asyncio.gather(*(fetch(address, number) for address in backends.values()))
            self.set_header("Connection", "close")
            self.finish(merge(int(number), list(parts)))

    # It would log a line for every client that has given up.
    logging.getLogger("tornado.access").setLevel(logging.CRITICAL)
    server = HTTPServer(Application([(f"{MERGED_PATH}([0-9]+)", Merged)]))
    sockets = bind_sockets(0, "127.0.0.1", backlog=BACKLOG)
    server.add_sockets(sockets)
    try:
        yield sockets[0].getsockname()[1]
    finally:
        server.stop()
        await server.close_all_connections()
        client.close()


@contextlib.asynccontextmanager
async def _aiohttp(backends: Mapping[str, str]) -> AsyncIterator[int]:
    from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

    async def fetch(address: str, number: str) -> dict[str, Any]:
        async with session.get(f"http://{address}{PART_PATH}{number}") as response:
            response.raise_for_status()
            found: dict[str, Any] = await response.json()
        return found

    async def merged(request: web.Request) -> web.Response:
        number = request.match_info["number"]
        parts = await asyncio.gather(*(fetch(address, number) for address in backends.values()))
        return web.json_response(merge(int(number), list(parts)))

    session = ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=REQUEST_SECONDS))
    application = web.Application()
    application.router.add_get(MERGED_PATH + "{number:[0-9]+}", merged)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    try:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=BACKLOG)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
        await session.close()
