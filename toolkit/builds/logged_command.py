"""Run a long command with its output in a log file, and leave nothing of it behind when it is cut short.

Runs under Python 3.9 (see the package's docstring).
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import last_text
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.processes.supervised import Supervised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

TAIL_LINES = 12
TAIL_BYTES = 2**16
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class CommandFailedError(BuildError):
    """A command that ended with an error; the message names it, its log file and its last lines."""


def run_logged(
    command: Sequence[str | Path], *, log: Path, cwd: Path | None = None, env: Mapping[str, str] | None = None,
    on_line: Callable[[bytes], None] | None = None,
) -> None:
    """Run `command` to its end, append its output to `log` and hand every line of it to `on_line`.

    Raises:
        CommandFailedError: It could not be started or ended with another status than 0.
    """
    words = [str(word) for word in command]
    with log.open("ab") as sink, _signals_held() as let_through:
        sink.write(f"$ {shlex.join(words)}\n".encode())
        sink.flush()
        try:
            process = Supervised(words, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except OSError as error:
            raise CommandFailedError(f"cannot start {words[0]}: {error.strerror}") from error
        with process:
            try:
                let_through()
                assert process.stdout is not None
                for line in process.stdout:
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


def log_end(log: Path, count: int = TAIL_LINES) -> str:
    """Return the last `count` lines of a log file, each indented by two spaces; why there are none."""
    try:
        lines = last_text(log, TAIL_BYTES).rstrip().splitlines()
    except OSError as error:   # what clears old files away came between
        lines = [f"(it cannot be read: {error.strerror})"]
    return "\n".join(f"  {line}" for line in lines[-count:])


@contextmanager
def _signals_held() -> Iterator[Callable[[], None]]:
    """Hold what stops us back until the function handed out is called, at the latest until the end.

    A Ctrl-C while a process is being started would otherwise leave it running with nobody knowing about it.
    """
    held: list[int] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():  # Python runs handlers nowhere else
        handlers = {number: signal.getsignal(number) for number in STOPS}
        handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda number, _frame: held.append(number))

    def let_through() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        while held:
            signal.raise_signal(held.pop())

    try:
        yield let_through
    finally:
        let_through()
