"""The channel between the scheduler and a measured process that takes turns: sealed lines over a socket.

It runs in the build being measured and imports little.  Waiting for a line blocks in a read and uses no CPU.  The
measured code may write to any descriptor, including this one; lines without the secret are ignored.
"""

from __future__ import annotations

import os

from gilscope.toolkit.processes.sealed_answers import Seal, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_REST = 2**20  # bytes without a newline; our own lines are short
_read_some = os.read  # bound before any measured code runs


class SealedChannel:
    """One end of the socket."""

    def __init__(self, fd: int, secret: str) -> None:
        """Use the open descriptor `fd`, which child processes do not inherit, and the secret that both ends know."""
        os.set_inheritable(fd, False)  # noqa: FBT003 - its own form
        self.fd = fd
        self._seal = Seal(secret)
        self._rest = b""

    def send(self, **fields: Any) -> None:
        """Send `fields`.

        Raises:
            OSError: The other end is closed.
        """
        write_all(self.fd, self._seal.line(fields))

    def receive(self) -> dict[str, Any] | None:
        """Wait for a message of the other end and return it; None if that end is closed."""
        while True:
            while b"\n" in self._rest:
                line, _, self._rest = self._rest.partition(b"\n")
                if (fields := self._seal.opened(line)) is not None:
                    return fields
            try:
                more = _read_some(self.fd, 65536)
            except OSError:
                return None
            if not more:
                return None
            self._rest = (self._rest + more)[-MOST_REST:]

    def close(self) -> None:
        """Close this end."""
        os.close(self.fd)
