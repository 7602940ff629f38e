"""The loopback services that I/O workloads talk to, as a process: `python -m gilscope.workloads.servers echo|http`.

Prints "host:port" when it accepts connections and serves until its standard input ends, so that it cannot
outlive whoever started it, or until it is told to stop (SIGTERM, SIGINT).  Answers come after a fixed
latency, so that waiting is the work; protocols rather than streams keep the server's own CPU time small.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import threading
from functools import lru_cache, partial
from typing import TYPE_CHECKING, override
from urllib.parse import parse_qs, urlsplit

from gilscope.workloads import server_pages

if TYPE_CHECKING:
    from collections.abc import Callable

LATENCY = {"echo": 0.0, "http": 0.005}  # seconds
MAX_REQUEST_BYTES = 64 * 1024           # longer requests are not ours
MAX_WORDS = 100_000


class Echo(asyncio.Protocol):
    """Echo all input, each piece after the latency."""

    def __init__(self, latency: float) -> None:
        self.latency = latency

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    @override
    def data_received(self, data: bytes) -> None:
        _answer(self.transport, data, self.latency)


class Http(asyncio.Protocol):
    """Serve `GET /page/<n>?words=<count>`, keeping the connection unless the client asks otherwise."""

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.pending = b""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    @override
    def data_received(self, data: bytes) -> None:
        self.pending += data
        while b"\r\n\r\n" in self.pending:
            head, _, self.pending = self.pending.partition(b"\r\n\r\n")
            response, keep = self.respond(head)
            _answer(self.transport, response, self.latency, close=not keep)
        if len(self.pending) > MAX_REQUEST_BYTES:
            self.transport.abort()

    def respond(self, head: bytes) -> tuple[bytes, bool]:
        """Return the response to a request's head, and whether the connection stays open after it."""
        return respond(head)


def respond(head: bytes) -> tuple[bytes, bool]:
    """Return the response to a request's head, and whether the connection stays open after it."""
    request, *fields = head.decode("latin-1").split("\r\n")
    keep = not any(field.lower().replace(" ", "") == "connection:close" for field in fields)
    method, _, rest = request.partition(" ")
    target, _, version = rest.partition(" ")
    if version not in {"HTTP/1.1", "HTTP/1.0"}:
        return _response("400 Bad Request", b"", keep=False), False
    keep = keep and version == "HTTP/1.1"
    if method != "GET":
        # An unread body would be parsed as the next request.
        return _response("405 Method Not Allowed", b"", keep=False), False
    body = _page(target)
    if body is None:
        return _response("404 Not Found", b"", keep=keep), keep
    return _response("200 OK", body, keep=keep), keep


@lru_cache(maxsize=4096)
def _page(target: str) -> bytes | None:
    url = urlsplit(target)
    number = url.path.removeprefix("/page/")
    words = parse_qs(url.query).get("words", ["150"])[-1]
    if url.path == number or not (_is_number(number) and _is_number(words)) or int(words) > MAX_WORDS:
        return None
    return server_pages.page(int(number), int(words))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19  # what fits in 64 bits


def _response(status: str, body: bytes, *, keep: bool) -> bytes:
    connection = "keep-alive" if keep else "close"
    head = (f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=us-ascii\r\n"
            f"Content-Length: {len(body)}\r\nConnection: {connection}\r\n\r\n")
    return head.encode("ascii") + body


def _answer(transport: asyncio.Transport, data: bytes, latency: float, *, close: bool = False) -> None:
    def send() -> None:
        # The client may have disconnected; writing then would log a warning for each answer.
        if not transport.is_closing():
            transport.write(data)
            if close:
                transport.close()
    if latency > 0:
        asyncio.get_running_loop().call_later(latency, send)
    else:
        send()


async def serve(make_protocol: Callable[[], asyncio.Protocol]) -> None:
    """Accept connections on a free port, print it, and return on a signal or when standard input ends."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = await loop.create_server(make_protocol, "127.0.0.1", 0, backlog=1024)
    host, port = server.sockets[0].getsockname()
    print(f"{host}:{port}", flush=True)  # noqa: T201 - the contract with the parent process
    _when_input_ends(partial(_call_soon, loop, stopped.set))
    await stopped.wait()
    server.close()


def _when_input_ends(call: Callable[[], None]) -> None:
    def wait() -> None:
        while os.read(0, 4096):
            pass
        call()
    # A thread: epoll takes neither files nor /dev/null.  Daemon, as it may wait for ever when a signal ends
    # us.
    threading.Thread(target=wait, name="wait for the end of input", daemon=True).start()


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)


def _latency(text: str) -> float:
    number, factor = (text[:-2], 1e-3) if text.endswith("ms") else (text.removesuffix("s"), 1.0)
    try:
        seconds = float(number) * factor
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 60:  # a minute: beyond it clients give up
        raise argparse.ArgumentTypeError(f"{text!r} is not a latency; write it like 5ms, or 0.1s, up to 60s")
    return seconds


def main() -> None:
    """Run the server that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m gilscope.workloads.servers", description="Serve on loopback.")
    parser.add_argument("service", choices=sorted(LATENCY))
    parser.add_argument("--latency", type=_latency, metavar="TIME",
                        help="Answer after TIME (default: 0ms for echo, 5ms for http).")
    options = parser.parse_args()
    latency: float = LATENCY[options.service] if options.latency is None else options.latency
    asyncio.run(serve(partial(Echo if options.service == "echo" else Http, latency)))


if __name__ == "__main__":
    main()
