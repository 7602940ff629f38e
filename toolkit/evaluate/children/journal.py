"""What a process of a build writes down, so that it is known whatever ends the process.  Imports little."""

from __future__ import annotations

import os

from gilscope.toolkit.processes.sealed_answers import Seal, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_open, _close = os.open, os.close   # bound before other people's code runs


class Journal:
    """Sealed lines that are in the file when the next thing kills the process."""

    def __init__(self, job: dict[str, Any], turn: int) -> None:
        """Append to the file of answers of `job`; `turn` is the number of the interpreter that writes."""
        self._path: str = job["answers"]
        self._seal = Seal(job["secret"])
        self._turn = turn

    def write(self, event: str, **fields: Any) -> None:
        """Append one event.

        The file is open only now: some packages write to every descriptor that is open, or close them all.
        """
        handle = _open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        write_all(handle, self._seal.line({"event": event, "turn": self._turn, **fields}))
        _close(handle)
