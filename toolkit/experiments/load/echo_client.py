"""The client of the echo servers, a process on gilscope's own Python, so that it costs the same for every build.

Reads one command per line from its standard input and answers each with one line, both JSON:

    {"do": "connect", "port": 40001, "connections": 2}   open connections and warm them, before any load
    {"do": "closed", "seconds": 1, "least": 30, "bound": 10}   send each request after the last reply: requests a second
    {"do": "open", "rate": 500, "seconds": 1, "least": 30, "bound": 10}   send requests at scheduled times: latencies

Each loop uses up one connection.  It lasts `seconds`, or longer while it has fewer than `least` requests; it sends none
after `bound` seconds, and waits `PATIENCE_SECONDS` longer for replies.
"""

from __future__ import annotations

import ctypes
import gc
import json
import select
import socket
import sys
import threading
from array import array
from collections import deque
from contextlib import contextmanager, suppress
from time import perf_counter

from gilscope.toolkit.experiments.latency import LogHistogram, percentiles
from gilscope.toolkit.experiments.load.open_loop import OpenLoopTally, schedule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

REQUEST = b"0"
CHUNK = 4096
WARM_REQUESTS = 50
CONNECT_SECONDS = 30.0
PATIENCE_SECONDS = 5.0        # for the last replies
MOST_REQUESTS = 2_000_000     # of one loop, which stores 8 bytes for each
MOST_IN_FLIGHT = 10_000       # of an open loop; each is a byte in the sockets' buffers
SPIN_SECONDS = 150e-6         # an open loop spins this long before a request is due, since a sleep ends too late
PR_SET_TIMERSLACK = 29        # linux/prctl.h


class EchoClient:
    """Holds the connections that are ready for use."""

    def __init__(self) -> None:
        self._connections: list[socket.socket] = []

    def connect(self, port: int, connections: int) -> dict[str, float | str]:
        """Open connections and send some requests over each, one after another."""
        for _ in range(connections):
            connection = socket.create_connection(("127.0.0.1", port), CONNECT_SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(WARM_REQUESTS):
                connection.sendall(REQUEST)
                if not connection.recv(CHUNK):
                    raise ConnectionError("the server closed a connection while it was warmed")
            connection.settimeout(None)
            self._connections.append(connection)
        return {"connections": len(self._connections)}

    def closed(self, seconds: float, least: int, bound: float) -> dict[str, float | str]:
        """Run a closed loop over the next connection and return its numbers."""
        with self._connections.pop() as connection:
            return closed_loop(connection, seconds=seconds, least=least, bound=bound)

    def open(self, rate: float, seconds: float, least: int, bound: float) -> dict[str, float | str]:
        """Run an open loop over the next connection and return its numbers."""
        with self._connections.pop() as connection:
            return open_loop(connection, rate=rate, seconds=seconds, least=least, bound=bound)

    def answer(self, command: Mapping[str, Any]) -> dict[str, float | str]:
        """Run a command and return its answer; an exception becomes the answer {"error": ...}."""
        fields = dict(command)
        actions: dict[str, Callable[..., dict[str, float | str]]] = {
            "connect": self.connect, "closed": self.closed, "open": self.open,
        }
        try:
            return actions[fields.pop("do")](**fields)
        except Exception as error:  # noqa: BLE001 - returned to the measured process, which fails the cell with it
            return {"error": f"{type(error).__name__}: {error}"}


def closed_loop(connection: socket.socket, *, seconds: float, least: int, bound: float) -> dict[str, float | str]:
    """Send each request when the last is answered; return their number and durations."""
    times = array("d")
    send, receive, keep, now = connection.sendall, connection.recv, times.append, perf_counter
    with _shut_after(connection, bound + PATIENCE_SECONDS), suppress(ConnectionError):
        start = last = now()
        while True:
            send(REQUEST)
            if not receive(CHUNK):
                break   # `_shut_after` has ended the connection
            moment = now()
            keep(moment - last)
            last = moment
            if moment - start >= seconds and (len(times) >= least or moment - start >= bound):
                break
            if len(times) >= MOST_REQUESTS:
                break
    unanswered = last - start < seconds or (len(times) < least and last - start < bound)
    return _closed_report(times, (now() if unanswered else last) - start, unanswered=unanswered)


def _closed_report(times: array[float], seconds: float, *, unanswered: bool) -> dict[str, float | str]:
    # The rate includes the time of an unanswered request: without it, a server that hangs would look fast.
    counts: dict[str, float | str] = {
        "requests": len(times), "seconds": seconds, "rate": len(times) / seconds, "unanswered": int(unanswered),
    }
    if not times:
        return counts
    found = percentiles(times)
    return {**counts, "p50": found.p50, "p90": found.p90, "p99": found.p99, "max": found.max,
            "typical": typical(times), "histogram": LogHistogram(times).encode()}


def typical(times: Iterable[float]) -> float:
    """Return the duration of the request in progress at a random moment: half of the time is spent in longer ones.

    If a server is fast at times and slow at others, mean and median describe the fast times, which have most of the
    requests.
    """
    ordered = sorted(times)
    half, passed = sum(ordered) / 2, 0.0
    for each in ordered:
        passed += each
        if passed >= half:
            break
    return each


@contextmanager
def _shut_after(connection: socket.socket, seconds: float) -> Iterator[None]:
    """Shut the connection down if the block takes longer: its blocked recv() returns, at no cost per request."""
    def shut() -> None:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, shut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def open_loop(
    connection: socket.socket, *, rate: float, seconds: float, least: int, bound: float,
) -> dict[str, float | str]:
    """Send requests at scheduled times, `rate` a second; return their latencies, counted from those times."""
    connection.settimeout(0)
    tally = OpenLoopTally(rate)
    in_flight: deque[float] = deque()
    start = perf_counter()
    last = start + min(bound, max(seconds, least / rate))
    end = start + bound + PATIENCE_SECONDS
    times = schedule(rate, start)
    due = next(times)
    while True:
        now = perf_counter()
        while due <= now and due < last:
            _send(connection, tally, in_flight, due)
            due = next(times)
        if (due >= last and not in_flight) or now >= end:
            break
        _receive(connection, tally, in_flight, (due - SPIN_SECONDS if due < last else end) - perf_counter())
    now = perf_counter()
    for scheduled in in_flight:
        tally.gave_up(scheduled, now)
    return tally.report()


def _send(connection: socket.socket, tally: OpenLoopTally, in_flight: deque[float], due: float) -> None:
    if len(in_flight) >= MOST_IN_FLIGHT:
        tally.missed()
        return
    now = perf_counter()
    try:
        connection.send(REQUEST)
    except BlockingIOError:   # the sockets' buffers are full
        tally.missed()
        return
    tally.sent(due, now)
    in_flight.append(due)


def _receive(connection: socket.socket, tally: OpenLoopTally, in_flight: deque[float], wait: float) -> None:
    """Count the replies that arrive within `wait` seconds; they come in the order of the requests."""
    if not select.select([connection], [], [], max(0.0, wait))[0]:
        return
    replies = len(connection.recv(CHUNK))
    if not replies:
        raise ConnectionError("the server closed the connection")
    now = perf_counter()
    for _ in range(replies):
        tally.finished(in_flight.popleft(), now)


def wake_in_time() -> None:
    """Set this process's timer slack to 1 ns on Linux, whose default wakes sleepers up to 50 us late."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)


def main() -> None:
    """Answer commands until the standard input ends."""
    wake_in_time()
    gc.disable()   # this process lives for seconds and makes no cycles
    client = EchoClient()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(client.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
