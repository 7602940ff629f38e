"""An open-loop HTTP load generator as a helper process: `python -m gilscope.toolkit.experiments.load.http_generator`.

Reads commands as JSON lines and answers each with one:

    {"do": "warm", "address": "127.0.0.1:40001", "requests": 3, "each": 10}   one after another, before any load
    {"do": "load", "address": ..., "users": 24, "rate": 8, "seconds": 5, "timeout": 1, "most": 1000}

Each user sends `rate` requests a second, at times that are set beforehand and do not depend on the answers; users are
spread evenly over the interval.  A request has a connection of its own.  It succeeds when the correct merged answer
(`backend_answers`) with status 200 is complete within `timeout` seconds of the time it was *scheduled*.  A failed
request counts with the latency `timeout`, however soon it failed, so that refusing improves no percentile.  At most
`most` requests are in flight; those that become due meanwhile are not sent and have failed.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Any, override

from gilscope.toolkit.experiments.load.backend_answers import MERGED_PATH, merged
from gilscope.toolkit.experiments.load.json_lines import answer_lines
from gilscope.toolkit.experiments.load.open_loop import OpenLoopTally
from gilscope.toolkit.units import format_seconds, percent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

HEAD_START = 0.02        # seconds from the command to the first request
MOST_BYTES = 1 << 20     # limit of an answer; a correct one has some 300
LEAST_TO_COMPARE = 20    # requests, since the medians of fewer differ by chance
BUSY_SHARE = 0.9         # of a core, beyond which the generator is too busy to be punctual


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """The requests to send to a service."""

    address: str         # "host:port"
    users: int
    rate: float          # requests a second of each user
    seconds: float       # length of the schedule
    timeout: float       # seconds from the scheduled time until a request has failed
    most: int = 1000     # requests in flight at a time

    def times(self) -> list[float]:
        """Return when each request is due, in seconds from the start, ascending."""
        each = round(self.rate * self.seconds)
        return sorted((number + user / self.users) / self.rate for number in range(each) for user in range(self.users))


class HttpExchange(asyncio.Protocol):
    """One request and its answer on one connection."""

    def __init__(self, request: bytes) -> None:
        """`answer` gets the complete answer, or the exception that prevented it."""
        self._request = request
        self._received = bytearray()
        self.answer: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    @override
    def data_received(self, data: bytes) -> None:
        self._received += data
        if self.answer.done():
            return
        if len(self._received) > MOST_BYTES:
            self.answer.set_exception(ConnectionError("the answer was too long"))
        elif (found := parse(bytes(self._received))) is not None:
            self.answer.set_result(found)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_exception(exc or ConnectionError("connection closed before the answer was complete"))


def parse(received: bytes) -> tuple[int, bytes] | None:
    """Return an answer's status and body, or None while it is incomplete; its head must give its length.

    A malformed head has status 0.
    """
    head, found, body = received.partition(b"\r\n\r\n")
    if not found:
        return None
    first, *fields = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    named = {name.strip().lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    length = named.get("content-length", "")
    if not (first.startswith("HTTP/1.") and len(words) > 1 and words[1].isdecimal() and length.isdecimal()):
        return 0, b""
    return (int(words[1]), body[: int(length)]) if len(body) >= int(length) else None


def answer_defect(number: int, status: int, body: bytes) -> str:
    """Return the defect of the answer for product `number`, "" if it is correct."""
    if status == 0:
        return "not an HTTP answer"
    if status != 200:  # HTTP's OK
        return f"status {status}"
    try:
        right = json.loads(body) == _right(number)
    except ValueError:
        right = False
    return "" if right else "wrong body"


@lru_cache(maxsize=8192)
def _right(number: int) -> dict[str, Any]:
    return merged(number)


async def ask(address: str, number: int) -> str:
    """Request product `number` from the service and return the defect of its answer, "" if it is correct.

    Raises:
        OSError: the connection failed.
    """
    host, _, port = address.rpartition(":")
    request = f"GET {MERGED_PATH}{number} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode("ascii")
    loop = asyncio.get_running_loop()
    transport, exchange = await loop.create_connection(lambda: HttpExchange(request), host, int(port))
    try:
        return answer_defect(number, *await exchange.answer)
    finally:
        transport.abort()
        if exchange.answer.done() and not exchange.answer.cancelled():
            exchange.answer.exception()   # retrieved, so that asyncio does not warn of it


class LoadGenerator:
    """Puts one load on a service."""

    def __init__(self, load: LoadRequest) -> None:
        """Nothing is sent yet."""
        self._load = load
        self._tally = OpenLoopTally(load.users * load.rate)
        self._failures: Counter[str] = Counter()
        self._latencies: list[tuple[float, float]] = []   # scheduled, seconds
        self._in_flight = 0
        self._most_in_flight = 0

    async def run(self) -> dict[str, Any]:
        """Send every request at its time, wait until each is answered or has failed, and return the report."""
        loop, times = asyncio.get_running_loop(), self._load.times()
        cpu, start = time.process_time(), loop.time() + HEAD_START
        async with asyncio.TaskGroup() as group:
            for number, offset in enumerate(times):
                # Sleep even if it is late already, so that answers are handled meanwhile.
                await asyncio.sleep(max(0.0, start + offset - loop.time()))
                if self._in_flight >= self._load.most:
                    self._tally.missed()
                    self._failures[f"not sent: {self._load.most} were in flight"] += 1
                else:
                    self._in_flight += 1
                    self._most_in_flight = max(self._most_in_flight, self._in_flight)
                    group.create_task(self._one(number, start + offset))
        return self._report(len(times), loop.time() - start, time.process_time() - cpu)

    async def _one(self, number: int, due: float) -> None:
        loop, limit = asyncio.get_running_loop(), due + self._load.timeout
        self._tally.sent(due, loop.time())
        try:
            async with asyncio.timeout_at(limit):
                problem = await ask(self._load.address, number)
        except TimeoutError:
            problem = f"no answer within {format_seconds(self._load.timeout)}"
        except OSError as error:
            problem = failure(error)
        finally:
            self._in_flight -= 1
        now = limit if problem else loop.time()
        self._latencies.append((due, now - due))
        if problem:
            self._failures[problem] += 1
            self._tally.gave_up(due, now)
        else:
            self._tally.finished(due, now)

    def _report(self, scheduled: int, wall: float, cpu: float) -> dict[str, Any]:
        report: dict[str, Any] = self._tally.report()
        busy = "" if cpu < BUSY_SHARE * wall else f"the load generator used {percent(cpu / wall)} of a core"
        return {
            **report,
            "saturated": report["saturated"] or busy,
            "scheduled": scheduled,
            "success": self._tally.answered / scheduled,
            "failures": "; ".join(f"{count} x {what}" for what, count in self._failures.most_common()),
            "in_flight": self._most_in_flight,
            "growth": growth(self._latencies),
            "seconds": wall,
            "cpu": cpu,
        }


def growth(latencies: Sequence[tuple[float, float]]) -> float:
    """Return the median latency of the last third of the requests over that of the first; 1 if there are too few.

    A service well over 1 falls behind: it would fail more requests the longer the load lasts.

    Args:
        latencies: (scheduled, seconds), in any order.
    """
    ordered = [seconds for _, seconds in sorted(latencies)]
    third = len(ordered) // 3
    return median(ordered[-third:]) / median(ordered[:third]) if third >= LEAST_TO_COMPARE else 1.0


def failure(error: OSError) -> str:
    """Return the reason why a connection failed, without its address, so that equal failures count together."""
    return os.strerror(error.errno).lower() if error.errno else str(error)


async def warm(address: str, requests: int, each: float) -> dict[str, Any]:
    """Send one request after another, so that a service's one-time work is done before any load.

    Raises:
        TimeoutError: one was not answered within `each` seconds.
        OSError: a connection failed.
        ValueError: an answer was wrong.
    """
    for number in range(requests):
        async with asyncio.timeout(each):
            if problem := await ask(address, number):
                raise ValueError(f"the service's answer to a first request: {problem}")
    return {"requests": requests}


async def answer(command: dict[str, Any]) -> dict[str, Any]:
    """Run a command and return its answer."""
    fields = dict(command)
    if fields.pop("do") == "warm":
        return await warm(**fields)
    return await LoadGenerator(LoadRequest(**fields)).run()


def main() -> None:
    """Answer commands until standard input ends."""
    asyncio.run(answer_lines({"ready": True}, answer))


if __name__ == "__main__":
    main()
