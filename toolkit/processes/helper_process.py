"""Start helper processes: programs of gilscope that answer each line of JSON with a line of JSON.

The servers and clients of experiments, the loopback services, the processes that render pages and that calibrate the
machine run only our code.  The zygote of `scale` runs the user's, and keeps both streams out of its reach.  They end
when we do, since their standard input closes.
Runs in measured processes: imports little.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class HelperFailedError(Exception):
    """A helper that ended, took too long, or printed something else; the message continues its name."""


class SlowHelperError(HelperFailedError):
    """A helper that took too long."""


class HelperProcess:
    """A running helper; leaving the `with` block kills it."""

    def __init__(self, command: Sequence[str | Path], **options: Any) -> None:
        """Start `command`, with options of `subprocess.Popen`.

        Raises:
            OSError: It cannot be started.
        """
        self._process: subprocess.Popen[str] = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", **options)
        self.pid = self._process.pid
        self._unread = b""       # what it printed after the last line that was read
        self.ready: Any = None   # its first line, where the caller waited for one

    def __enter__(self) -> Self:
        """Return the helper."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the helper."""
        self.end()

    def wait_until_ready(self, limit: float) -> Self:
        """Wait for the line that a helper prints once it can be asked.

        Raises:
            HelperFailedError: No JSON line came within `limit` seconds.
        """
        self.ready = self.receive(limit)
        return self

    def ask(self, *, limit: float | None = None, **request: Any) -> Any:
        """Return the answer to a request.

        Raises:
            HelperFailedError: No JSON line came within `limit` seconds, or it reports an error.
        """
        self.send(request)
        return self.receive(limit)

    def send(self, request: Any) -> None:
        """Send a request.

        Raises:
            HelperFailedError: The helper has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise HelperFailedError("ended") from None

    def receive(self, limit: float | None = None) -> Any:
        """Return the next answer; `{"error": TEXT}` stands for a failure.

        Raises:
            HelperFailedError: No JSON line came within `limit` seconds, or it reports an error.
        """
        line = self.read_line(limit)
        try:
            answer = json.loads(line)
        except ValueError:
            raise HelperFailedError(f"said {line!r}") from None
        if isinstance(answer, dict) and "error" in answer:
            raise HelperFailedError(f"failed: {answer['error']}")
        return answer

    def read_line(self, limit: float | None = None) -> str:
        """Return the next line that it prints.

        Raises:
            HelperFailedError: None came within `limit` seconds, or it ended.
        """
        assert self._process.stdout is not None
        # Not by the file's own buffer, into which `select` does not see.
        until = None if limit is None else time.monotonic() + limit
        while b"\n" not in self._unread:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._process.stdout], [], [], left)[0]:
                raise SlowHelperError(f"did not answer within {limit:g} s")
            if not (part := os.read(self._process.stdout.fileno(), 1 << 16)):
                raise HelperFailedError("ended")
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode("utf-8", "replace").strip()

    def end(self, patience: float = 0.0) -> int:
        """Return the exit code of the helper, which is killed unless it ends by itself within `patience` seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self._process.kill()
        self._process.communicate()
        return self._process.returncode
