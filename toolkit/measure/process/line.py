"""How a scheduler and a measured process that takes turns talk: lines of JSON over one socket.

Runs in the build being measured: imports little.  Who waits for a line is blocked in a read and uses no CPU.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Line:
    """One end of the socket."""

    def __init__(self, fd: int) -> None:
        """Use the open descriptor `fd`, which no program started from here inherits."""
        os.set_inheritable(fd, False)  # noqa: FBT003 - its own form
        self.fd = fd
        self._rest = b""

    def say(self, **fields: Any) -> None:
        """Send `fields`.

        Raises:
            OSError: nobody is at the far end.
        """
        rest = memoryview(json.dumps(fields).encode() + b"\n")
        while rest:
            rest = rest[os.write(self.fd, rest):]

    def hear(self) -> dict[str, Any] | None:
        """Wait for what the far end says, and return it; None when it is gone."""
        while b"\n" not in self._rest:
            try:
                more = os.read(self.fd, 65536)
            except ConnectionResetError:
                return None
            if not more:
                return None
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        fields: dict[str, Any] = json.loads(line)
        return fields

    def close(self) -> None:
        """Let go of it."""
        os.close(self.fd)
