"""A threaded TCP echo server in the measured process: one thread accepts, one thread serves each connection.

It is the server of "Python behind the scenes #13" (2021), with two differences: it reads one request at a time, so
that requests piled up by an open loop are answered one by one, and it can be stopped.
"""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
REQUEST_BYTES = 1
BACKLOG = 128
STOP_SECONDS = 20.0   # a thread needs some of it when it waits beside CPU threads at a switch interval of 0.1 s


class EchoServer:
    """A server that listens from its creation on; `close` ends it and its threads.

    Its threads inherit the CPU affinity of the thread that creates it, so pin first.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server((HOST, 0), backlog=BACKLOG)
        self.port: int = self._listener.getsockname()[1]
        self._closing = False
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, name="echo-accept", daemon=True)
        self._acceptor.start()

    def close(self) -> None:
        """Stop accepting, end every connection, wait for the threads.

        Raises:
            TimeoutError: a thread did not end within `STOP_SECONDS`.
        """
        if not self._closing:
            self._closing = True
            self._wake_acceptor()
        self._acceptor.join(STOP_SECONDS)
        for connection in list(self._connections):
            with suppress(OSError):  # closed by its thread already, or its client is gone
                connection.shutdown(socket.SHUT_RDWR)
        for thread in (self._acceptor, *self._threads):
            thread.join(STOP_SECONDS)
            if thread.is_alive():
                raise TimeoutError(f"the echo server's thread {thread.name} did not end within {STOP_SECONDS:g} s")

    def _wake_acceptor(self) -> None:
        # Closing or shutting down a listening socket wakes accept() on Linux only: a connection does everywhere.
        with suppress(OSError):
            socket.create_connection((HOST, self.port), STOP_SECONDS).close()

    def _accept(self) -> None:
        with self._listener:
            while True:
                connection, _ = self._listener.accept()
                if self._closing:
                    connection.close()
                    return
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                thread = threading.Thread(target=_serve, args=(connection,), name="echo-serve", daemon=True)
                self._connections.append(connection)
                self._threads.append(thread)
                thread.start()


def _serve(connection: socket.socket) -> None:
    with connection, suppress(ConnectionError):  # a killed client resets the connection
        while request := connection.recv(REQUEST_BYTES):
            connection.sendall(request)


@contextmanager
def serving() -> Iterator[int]:
    """Run an echo server for the `with` block and yield its port on the loopback interface."""
    server = EchoServer()
    try:
        yield server.port
    finally:
        server.close()
