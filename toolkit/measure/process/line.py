"""How a scheduler and a measured process that takes turns talk: sealed lines over one socket.

Runs in the build being measured: imports little.  Who waits for a line is blocked in a read and uses no CPU.  The
measured code may print to every descriptor, this one as well: what has not the secret is passed over.
"""

from __future__ import annotations

import os

from gilscope.toolkit.processes.sealed_answers import Seal, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_REST = 2**20  # bytes without an end of line; ours are short
_read_some = os.read  # bound before any measured code runs


class Line:
    """One end of the socket."""

    def __init__(self, fd: int, secret: str) -> None:
        """Use the open descriptor `fd`, which no program started from here inherits, and what both ends know."""
        os.set_inheritable(fd, False)  # noqa: FBT003 - its own form
        self.fd = fd
        self._seal = Seal(secret)
        self._rest = b""

    def say(self, **fields: Any) -> None:
        """Send `fields`.

        Raises:
            OSError: nobody is at the far end.
        """
        write_all(self.fd, self._seal.line(fields))

    def hear(self) -> dict[str, Any] | None:
        """Wait for what the far end says, and return it; None when it is gone."""
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
        """Let go of it."""
        os.close(self.fd)
