"""The service of `aggregator` as blocking code writes it: one thread, a pool of threads, or greenlets.

Each is a context manager that yields its port while it serves in the background.  It implements just enough HTTP: one
request per connection, which it closes after the answer.  `loops` is apart, so that no asyncio is imported here: it
would count as this service's memory.
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.experiments.helpers.http_programs import REQUEST_SECONDS, in_thread, new_session
from gilscope.toolkit.experiments.load.backend_answers import MERGED_PATH, PART_PATH, merge, number_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    import requests

    from gilscope.toolkit.experiments.helpers.http_programs import Ready

    Gather = Callable[[int], list[dict[str, Any]]]   # of a product: the five parts, in the order of the back ends

BACKLOG = 1024
MOST_BYTES = 64 * 1024


@contextlib.contextmanager
def sync(backends: Mapping[str, str], workers: int) -> Iterator[int]:
    """Serve in one thread: one request at a time, one back end after the other."""
    assert workers == 1
    with _session() as session, _listening() as listener:
        def gather(number: int) -> list[dict[str, Any]]:
            return [fetch(session, address, number) for address in backends.values()]

        with _background(lambda: _accept(listener, lambda connection: handle(connection, gather)), listener):
            yield listener.getsockname()[1]


@contextlib.contextmanager
def threads(backends: Mapping[str, str], workers: int) -> Iterator[int]:
    """Serve `workers` requests at a time, each in a thread with five further threads that call the back ends.

    Every back end has a pool of `workers` threads, each with a session and so a connection of its own: no request waits
    for a thread.
    """
    with contextlib.ExitStack() as stack:
        pools = [stack.enter_context(_asking(address, workers)) for address in backends.values()]

        def gather(number: int) -> list[dict[str, Any]]:
            return [future.result() for future in [ask(number) for ask in pools]]

        waiting: queue.SimpleQueue[socket.socket | None] = queue.SimpleQueue()

        def work() -> None:
            while (connection := waiting.get()) is not None:
                handle(connection, gather)

        listener = stack.enter_context(_listening())
        # Daemons, so that a request that never ends does not keep the process alive.
        servers = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
        for each in servers:
            each.start()
        try:
            with _background(lambda: _accept(listener, waiting.put), listener):
                yield listener.getsockname()[1]
        finally:
            _drop(waiting)
            for _ in servers:
                waiting.put(None)
            for each in servers:
                each.join()


@contextlib.contextmanager
def _asking(address: str, workers: int) -> Iterator[Callable[[int], Any]]:
    """Yield a function that asks one back end in a thread of its pool and returns a future."""
    own = threading.local()
    sessions: list[requests.Session] = []

    def ask(number: int) -> dict[str, Any]:
        if not hasattr(own, "session"):
            own.session = new_session()
            sessions.append(own.session)
        return fetch(own.session, address, number)

    with ThreadPoolExecutor(workers) as pool:
        try:
            yield lambda number: pool.submit(ask, number)
        finally:
            pool.shutdown(cancel_futures=True)
            for session in sessions:
                session.close()


def greenlets(backends: Mapping[str, str], workers: int) -> AbstractContextManager[int]:
    """Serve with gevent: a greenlet for each request and for each call of a back end by `requests`.

    The hub runs in a thread of its own, so only sockets are patched, not threads and queues.
    """
    assert workers == 1
    from gevent import monkey

    # Before `requests` is imported, which keeps references to the functions that it finds.
    monkey.patch_all(thread=False, queue=False, subprocess=False, signal=False, os=False)
    return in_thread(lambda ready: _serve_greenlets(backends, ready))


def _serve_greenlets(backends: Mapping[str, str], ready: Ready) -> None:
    import gevent
    from gevent.event import Event
    from gevent.server import StreamServer

    with _session(connections=BACKLOG) as session:
        def gather(number: int) -> list[dict[str, Any]]:
            asked = [gevent.spawn(fetch, session, address, number) for address in backends.values()]
            gevent.joinall(asked, raise_error=True)
            return [each.value for each in asked]

        server = StreamServer(("127.0.0.1", 0), lambda connection, _: handle(connection, gather), backlog=BACKLOG)
        server.start()
        stopped = Event()
        wake = gevent.get_hub().loop.async_()   # the only part of a hub that another thread may use
        wake.start(stopped.set)
        ready(server.server_port, wake.send)
        stopped.wait()
        wake.close()
        server.stop(timeout=0)
    gevent.get_hub().destroy()


def fetch(session: requests.Session, address: str, number: int) -> dict[str, Any]:
    """Return a back end's part of product `number`."""
    with session.get(f"http://{address}{PART_PATH}{number}", timeout=REQUEST_SECONDS) as response:
        response.raise_for_status()
        found: dict[str, Any] = response.json()
    return found


def handle(connection: socket.socket, gather: Gather) -> None:
    """Read one request, answer it and close; ignore a client that is gone."""
    with connection, contextlib.suppress(OSError):
        head = _head(connection)
        target = head.split(b" ", 2)[1:2]
        number = number_in(target[0].decode("latin-1"), MERGED_PATH) if target else None
        if number is None:
            connection.sendall(response(404, b""))
            return
        try:
            status, body = 200, json.dumps(merge(number, gather(number))).encode()
        except Exception as error:  # noqa: BLE001 - becomes status 500, which the client counts
            status, body = 500, repr(error).encode("ascii", "backslashreplace")
        connection.sendall(response(status, body))


def _head(connection: socket.socket) -> bytes:
    connection.settimeout(REQUEST_SECONDS)
    head = b""
    while b"\r\n\r\n" not in head and len(head) < MOST_BYTES:
        if not (more := connection.recv(4096)):
            break
        head += more
    return head


def response(status: int, body: bytes) -> bytes:
    """Return an HTTP answer after which the connection is closed."""
    reasons = {200: "OK", 404: "Not Found", 500: "Internal Server Error"}
    head = (f"HTTP/1.1 {status} {reasons[status]}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n")
    return head.encode("ascii") + body


@contextlib.contextmanager
def _session(connections: int = 1) -> Iterator[requests.Session]:
    from requests.adapters import HTTPAdapter

    with new_session() as session:
        session.mount("http://", HTTPAdapter(pool_connections=8, pool_maxsize=connections))
        yield session


@contextlib.contextmanager
def _listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as listener:
        yield listener


def _accept(listener: socket.socket, take: Callable[[socket.socket], None]) -> None:
    """Pass every new connection to `take` until the listener is shut down."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        take(connection)


@contextlib.contextmanager
def _background(run: Callable[[], None], *listeners: socket.socket) -> Iterator[None]:
    """Run `run` in a thread; on leaving, shut the listeners down and wait for its end."""
    thread = threading.Thread(target=run, name="service", daemon=True)
    thread.start()
    try:
        yield
    finally:
        for listener in listeners:
            listener.shutdown(socket.SHUT_RDWR)
        thread.join(REQUEST_SECONDS)


def _drop(waiting: queue.SimpleQueue[socket.socket | None]) -> None:
    """Close the waiting connections, whose clients have given up."""
    with contextlib.suppress(queue.Empty):
        while (connection := waiting.get_nowait()) is not None:
            connection.close()
