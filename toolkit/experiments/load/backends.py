"""The loopback HTTP servers that an experiment's services and clients talk to, as a helper process.

`python -m gilscope.toolkit.experiments.load.backends pages 0.02` serves HTML pages that take 20 ms each;
`... backends backends 1` serves the five back ends of `aggregator`, each on its own port, with their latencies times 1.
All run in one event loop and answer after a fixed latency, so that the work is waiting.  The helper counts requests,
connections, CPU time and how late its loop runs: {"do": "report"} returns the counts, {"do": "reset"} resets them, too.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import lru_cache, partial
from typing import Any, override

from gilscope.toolkit.experiments.load.backend_answers import BACKENDS, PART_PATH, number_in, part
from gilscope.toolkit.experiments.load.json_lines import answer_lines
from gilscope.workloads import servers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


PROBE_SECONDS = 0.005  # between two probes of how late the event loop runs


class ServerCounts:
    """The requests and connections of this process's servers."""

    def __init__(self) -> None:
        self.open = 0
        self.reset()

    def reset(self) -> None:
        """Start counting anew; open connections stay counted."""
        self.requests = 0
        self.most_open = self.open
        self.cpu = time.process_time()


class PageServer(servers.Http):
    """Serves the pages of gilscope.workloads.servers and counts."""

    def __init__(self, latency: float, counts: ServerCounts) -> None:
        super().__init__(latency)
        self.counts = counts

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.counts.open += 1
        self.counts.most_open = max(self.counts.most_open, self.counts.open)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.counts.open -= 1

    @override
    def respond(self, head: bytes) -> tuple[bytes, bool]:
        self.counts.requests += 1
        return super().respond(head)


class BackendServer(PageServer):
    """Serves one back end of `aggregator`: `GET /part/<product>` as JSON."""

    def __init__(self, name: str, latency: float, counts: ServerCounts) -> None:
        super().__init__(latency, counts)
        self.name = name

    @override
    def respond(self, head: bytes) -> tuple[bytes, bool]:
        target = head.split(b" ", 2)[1:2]
        number = number_in(target[0].decode("latin-1"), PART_PATH) if target else None
        if number is None:
            return super().respond(head)   # the server of pages refuses it
        self.counts.requests += 1
        return _json_response(self.name, number), True


@lru_cache(maxsize=8192)
def _json_response(name: str, number: int) -> bytes:
    body = json.dumps(part(name, number)).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode("ascii") + body


def protocols(kind: str, amount: float, counts: ServerCounts) -> dict[str, Callable[[], asyncio.Protocol]]:
    """Return a factory of each server's protocol, by name of the server.

    Args:
        kind: "pages" or "backends".
        amount: The latency of pages in seconds, or the factor for the back ends' own latencies.
        counts: The counts of all servers.

    Raises:
        ValueError: `kind` is neither.
    """
    if kind == "pages":
        return {"pages": partial(PageServer, amount, counts)}
    if kind == "backends":
        return {name: partial(BackendServer, name, amount * latency, counts) for name, latency in BACKENDS.items()}
    raise ValueError(f"there are no {kind!r}")


class Lateness:
    """Measures how late an event loop runs its callbacks: an overloaded loop shows here first."""

    def __init__(self) -> None:
        """Start probing; call this within the running loop."""
        self._loop = asyncio.get_running_loop()
        self._late: list[float] = []
        self._due = 0.0
        self._handle: asyncio.TimerHandle | None = None
        self._next()

    def _next(self) -> None:
        self._due = self._loop.time() + PROBE_SECONDS
        self._handle = self._loop.call_at(self._due, self._probe)

    def _probe(self) -> None:
        self._late.append(self._loop.time() - self._due)
        self._next()

    def reset(self) -> None:
        """Forget the probes so far."""
        self._late.clear()

    def p99(self) -> float:
        """Return the 99th percentile of the probes, in seconds."""
        ordered = sorted(self._late)
        return ordered[(len(ordered) - 1) * 99 // 100] if ordered else 0.0

    def stop(self) -> None:
        """Stop probing."""
        if self._handle is not None:
            self._handle.cancel()


async def serve(kind: str, amount: float) -> None:
    """Serve on loopback until standard input ends; the first line is {"addresses": {"pages": "host:port"}}."""
    counts = ServerCounts()
    loop = asyncio.get_running_loop()
    opened = {name: await loop.create_server(make, "127.0.0.1", 0, backlog=1024)
              for name, make in protocols(kind, amount, counts).items()}
    addresses = {name: "{}:{}".format(*server.sockets[0].getsockname()[:2]) for name, server in opened.items()}
    lateness = Lateness()

    async def answer(command: dict[str, Any]) -> dict[str, Any]:
        report = {"requests": counts.requests, "connections": counts.most_open,
                  "cpu": time.process_time() - counts.cpu, "late": lateness.p99()}
        if command["do"] == "reset":
            counts.reset()
            lateness.reset()
        return report

    await answer_lines({"addresses": addresses}, answer)
    lateness.stop()
    for server in opened.values():
        server.close()


def main() -> None:
    """Serve the kind that the command line names, with its latency or factor."""
    kind, amount = sys.argv[1:]
    asyncio.run(serve(kind, float(amount)))


if __name__ == "__main__":
    main()
