"""The loopback HTTP servers that an experiment's services and clients talk to, as a helper process.

`python -m gilscope.toolkit.experiments.load.http.backends pages 0.02` serves HTML pages that take 20 ms each;
`... backends 1` serves the five back ends of `aggregator`, each on its own port, with their latencies times 1.
All run in one event loop.  Answers come after a fixed latency, so that waiting is the work; what the loop adds by being
late is counted and told: {"do": "forget"} starts counting anew, {"do": "tell"} returns it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import lru_cache, partial
from typing import Any, override

from gilscope.toolkit.experiments.load.http.backend_answers import BACKENDS, PART_PATH, number_in, part
from gilscope.toolkit.experiments.load.http.json_lines import Lateness, converse
from gilscope.workloads import servers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Counts:
    """What the servers of this process saw."""

    def __init__(self) -> None:
        self.open = 0
        self.forget()

    def forget(self) -> None:
        """Start anew; connections that are open stay counted."""
        self.requests = 0
        self.most_open = self.open
        self.cpu = time.process_time()


class Page(servers.Http):
    """The pages of gilscope.workloads.servers, counted."""

    def __init__(self, latency: float, counts: Counts) -> None:
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


class Backend(Page):
    """One back end of `aggregator`: `GET /part/<product>` as JSON."""

    def __init__(self, name: str, latency: float, counts: Counts) -> None:
        super().__init__(latency, counts)
        self.name = name

    @override
    def respond(self, head: bytes) -> tuple[bytes, bool]:
        target = head.split(b" ", 2)[1:2]
        number = number_in(target[0].decode("latin-1"), PART_PATH) if target else None
        if number is None:
            return super().respond(head)   # whatever else it is, the server of pages refuses it
        self.counts.requests += 1
        return _json_response(self.name, number), True


@lru_cache(maxsize=8192)
def _json_response(name: str, number: int) -> bytes:
    body = json.dumps(part(name, number)).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode("ascii") + body


def protocols(kind: str, amount: float, counts: Counts) -> dict[str, Callable[[], asyncio.Protocol]]:
    """Return how connections are served, by name of the server.

    Args:
        kind: "pages" or "backends".
        amount: The latency of pages in seconds, or the factor to the back ends' own ones.
        counts: What they count into.

    Raises:
        ValueError: `kind` is neither.
    """
    if kind == "pages":
        return {"pages": partial(Page, amount, counts)}
    if kind == "backends":
        return {name: partial(Backend, name, amount * latency, counts) for name, latency in BACKENDS.items()}
    raise ValueError(f"there are no {kind!r}")


async def serve(kind: str, amount: float) -> None:
    """Serve on loopback until standard input ends; the first line says where: {"addresses": {"pages": "host:port"}}."""
    counts = Counts()
    loop = asyncio.get_running_loop()
    opened = {name: await loop.create_server(make, "127.0.0.1", 0, backlog=1024)
              for name, make in protocols(kind, amount, counts).items()}
    addresses = {name: "{}:{}".format(*server.sockets[0].getsockname()[:2]) for name, server in opened.items()}
    lateness = Lateness()

    async def answer(question: dict[str, Any]) -> dict[str, Any]:
        told = {"requests": counts.requests, "connections": counts.most_open,
                "cpu": time.process_time() - counts.cpu, "late": lateness.p99()}
        if question["do"] == "forget":
            counts.forget()
            lateness.forget()
        return told

    await converse({"addresses": addresses}, answer)
    lateness.stop()
    for server in opened.values():
        server.close()


def main() -> None:
    """Serve as the command line says: the kind, and its latency or factor."""
    kind, amount = sys.argv[1:]
    asyncio.run(serve(kind, float(amount)))


if __name__ == "__main__":
    main()
