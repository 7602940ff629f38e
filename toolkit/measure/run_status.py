"""The status of a run, in a small JSON file for the process that started it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.bounded_reading import SETTINGS, parse_json, read_text
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.records import from_plain, to_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """The progress of a run, and the error that ended it."""

    round: int = 0                       # the round in progress, from 1; 0: none has begun
    rounds: int = 0                      # planned
    may_stop: bool = False               # after fewer rounds, if all answers are clear: `seconds_left` is the most
    done: int = 0                        # cells that the round has measured
    cells: int = 0                       # cells that it measures
    seconds_left: float | None = None    # of the run; None: not known
    error: str = ""                      # why the run ended before its result


class StatusFile:
    """Writes the status of a run to a file."""

    def __init__(self, path: Path | None) -> None:
        """Prepare to write to `path`; None: write nothing."""
        self._path = path
        self.status = RunStatus()

    def update(self, **changes: Any) -> None:
        """Change fields of the status, and replace the file."""
        self.status = replace(self.status, **changes)
        if self._path is not None:
            part = self._path.with_name(f".{self._path.name}.part")
            part.write_text(json.dumps(to_plain(self.status)), encoding="utf-8")
            part.replace(self._path)

    @contextmanager
    def keeping_error(self) -> Iterator[None]:
        """Write the message of a ToolkitError that ends the block."""
        try:
            yield
        except ToolkitError as error:
            self.update(error=str(error))
            raise


def read_status(path: Path) -> RunStatus:
    """Return the status in a file; the one of a run that has not begun if there is no valid file."""
    try:
        return from_plain(RunStatus, parse_json(read_text(path, SETTINGS)))
    except (OSError, ValueError):
        return RunStatus()
