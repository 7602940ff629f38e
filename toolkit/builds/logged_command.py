"""Run a long command with its output in a log file; if it is interrupted, end all its processes.

Runs under Python 3.9 (see the package's docstring).
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import last_text
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.processes.supervised import Supervised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import IO

TAIL_LINES = 12
TAIL_BYTES = 2**16
TICK_SECONDS = 10.0
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class CommandFailedError(BuildError):
    """A command that failed; the message has its name, its log file and the end of its output."""


def run_logged(
    command: Sequence[str | Path], *, log: Path, cwd: Path | None = None, env: Mapping[str, str] | None = None,
    on_line: Callable[[bytes], None] | None = None, on_tick: Callable[[], None] | None = None,
) -> None:
    """Run `command` to its end, append its output to `log` and call `on_line` with each line.

    `on_tick` is called every TICK_SECONDS until then, whether or not there is output.

    Raises:
        CommandFailedError: It could not be started, or ended with a status other than 0.
    """
    words = [str(word) for word in command]
    with log.open("ab") as sink, _delayed_signals() as release:
        sink.write(f"$ {shlex.join(words)}\n".encode())
        sink.flush()
        try:
            process = Supervised(words, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except OSError as error:
            raise CommandFailedError(f"cannot start {words[0]}: {error.strerror}") from error
        with process:
            try:
                release()
                assert process.stdout is not None
                for line in _lines(process.stdout, on_tick):
                    sink.write(line)
                    sink.flush()
                    if on_line:
                        on_line(line)
                process.wait()
            finally:
                process.end_politely()
    if process.returncode:
        raise CommandFailedError(
            f"`{shlex.join(words[:4])}` ended with status {process.returncode}; the whole output is in {log}, "
            f"its last lines are:\n{log_end(log)}")


def _lines(stream: IO[bytes], on_tick: Callable[[], None] | None) -> Iterator[bytes]:
    """Yield the lines of a pipe as they come, and call `on_tick` every TICK_SECONDS."""
    rest = b""
    due = time.monotonic() + TICK_SECONDS
    while True:
        ready, _, _ = select.select([stream], [], [], max(0.0, due - time.monotonic()))
        if time.monotonic() >= due:
            due = time.monotonic() + TICK_SECONDS
            if on_tick is not None:
                on_tick()
        if not ready:
            continue
        read = os.read(stream.fileno(), TAIL_BYTES)
        if not read:
            break
        *whole, rest = (rest + read).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def log_end(log: Path, count: int = TAIL_LINES) -> str:
    """Return the last `count` lines of a log file, each indented by two spaces; or why it cannot be read."""
    try:
        lines = last_text(log, TAIL_BYTES).rstrip().splitlines()
    except OSError as error:   # a cleaner of old files may have removed it
        lines = [f"(it cannot be read: {error.strerror})"]
    return "\n".join(f"  {line}" for line in lines[-count:])


@contextmanager
def _delayed_signals() -> Iterator[Callable[[], None]]:
    """Delay signals that would stop us until the yielded function is called, at the latest until the end.

    Otherwise a Ctrl-C while a process is being started could leave it running, unknown to us.
    """
    held: list[int] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():  # Python runs handlers nowhere else
        handlers = {number: signal.getsignal(number) for number in STOPS}
        handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda number, _frame: held.append(number))

    def release() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        while held:
            signal.raise_signal(held.pop())

    try:
        yield release
    finally:
        release()
