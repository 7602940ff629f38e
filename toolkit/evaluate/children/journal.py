"""What a process of a build writes down, so that it is known whatever ends the process.  Imports little."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Journal:
    """Lines of JSON that are in the file when the next thing kills the process."""

    def __init__(self, path: str, turn: int) -> None:
        """Append to the file `path`; `turn` is the number of the interpreter that writes."""
        self._handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._turn = turn

    def write(self, event: str, **fields: Any) -> None:
        """Append one event."""
        os.write(self._handle, json.dumps({"event": event, "turn": self._turn, **fields}).encode() + b"\n")

    def close(self) -> None:
        """Close the file: an interpreter that ends must not leave handles."""
        os.close(self._handle)
