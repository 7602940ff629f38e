"""Start commands (installers, compilers, test suites) so that they end when we do.

Each has its own session with a small supervisor that waits for it and has the lifeline: see `lifeline`.  Processes that
a command starts are in its process group, unless they leave it on purpose.

Runs under Python 3.9.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

SUPERVISOR = (sys.executable, "-I", "-S", str(Path(__file__).with_name("lifeline.py")))
TERMINATE_SECONDS = 2.0  # between SIGTERM and SIGKILL
FIRST_NOTICE = 10.0      # seconds of a command, after which people begin to ask whether it still runs

_RUNNING: set[Supervised] = set()  # those that any thread started


class Supervised(subprocess.Popen[bytes]):
    """A running command and its descendants; leaving the `with` block kills those that still run.

    `returncode` is the command's.  Its standard input is empty.
    """

    def __init__(
        self, command: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None,
        stdout: Any = subprocess.DEVNULL, stderr: Any = subprocess.DEVNULL, cleans_up: bool = False,
    ) -> None:
        """Start `command`; with `cleans_up`, `stop` sends SIGTERM and leaves it time to clean up.

        Raises:
            OSError: there is no such program.
        """
        words = [str(word) for word in command]
        _refuse_missing(words[0], cwd, env)
        self.stopped = False  # `stop` was called
        self._may_live = TERMINATE_SECONDS if cleans_up else 0.0
        self._stopped_at = 0.0
        reader, self._line = os.pipe()
        try:
            super().__init__([*SUPERVISOR, *words], cwd=cwd, env=env, stdin=reader,
                             stdout=stdout, stderr=stderr, start_new_session=True)
        except BaseException:
            os.close(self._line)
            raise
        finally:
            os.close(reader)
        _RUNNING.add(self)

    def signal_group(self, number: int) -> None:
        """Send a signal to the command and its descendants."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # none is left, or (macOS) only a zombie
            os.killpg(self.pid, number)

    def stop(self) -> None:
        """End the command while another thread waits for it and sees `stopped`; a second call kills it."""
        if not self.stopped:
            self.stopped = True
            self._stopped_at = time.monotonic()
            self.signal_group(signal.SIGTERM if self._may_live else signal.SIGKILL)
        elif time.monotonic() - self._stopped_at >= self._may_live:
            self.signal_group(signal.SIGKILL)

    def end(self) -> None:
        """Kill the command and its descendants, and wait for its end."""
        if self._line < 0:
            return
        _RUNNING.discard(self)
        self.signal_group(signal.SIGKILL)
        super().wait()
        os.close(self._line)
        self._line = -1

    def end_politely(self) -> None:
        """Send SIGTERM to the command; kill it after TERMINATE_SECONDS."""
        if self.poll() is None:
            self.signal_group(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.wait(TERMINATE_SECONDS)
        self.end()  # the leader may be gone while a compiler it started is not

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the command."""
        self.end()
        super().__exit__(kind, value, traceback)


def run(
    command: Sequence[str | Path], *, timeout: float | None = None, cwd: Path | None = None,
    env: Mapping[str, str] | None = None, started: Callable[[Supervised], object] | None = None,
    cleans_up: bool = False, on_wait: Callable[[float], object] = lambda _seconds: None,
) -> subprocess.CompletedProcess[str]:
    """Run `command` to its end and return its output; then kill its remaining descendants.

    `started` is called with the running process, so that another thread can stop it; `cleans_up`: as for `Supervised`;
    `on_wait` is called with the seconds that a long command has taken so far: FIRST_NOTICE, and twice as many each
    time.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it took longer than `timeout` seconds.
        KeyboardInterrupt: `end_all` or `stop` ended it.
    """
    # Not pipes: a descendant that outlives the command would keep them open.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaint:
        with Supervised(command, cwd=cwd, env=env, stdout=output, stderr=complaint, cleans_up=cleans_up) as process:
            if started is not None:
                started(process)
            _wait(process, timeout, on_wait)
        if process.stopped:
            raise KeyboardInterrupt
        texts = []
        for file in (output, complaint):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return subprocess.CompletedProcess(list(command), process.returncode, *texts)


def _wait(process: Supervised, timeout: float | None, on_wait: Callable[[float], object]) -> None:
    """Wait for a process, and call `on_wait` at each notice; raise TimeoutExpired after `timeout` seconds."""
    begin, notice = time.monotonic(), FIRST_NOTICE
    while True:
        gone = time.monotonic() - begin
        try:
            process.wait((notice if timeout is None else min(notice, timeout)) - gone)
        except subprocess.TimeoutExpired:
            if timeout is not None and notice >= timeout:
                raise
            on_wait(notice)
            notice *= 2
        else:
            return


def end_all() -> None:
    """End the commands of all threads: a Ctrl-C interrupts only the main thread."""
    for process in tuple(_RUNNING):
        process.stop()


def _refuse_missing(word: str, cwd: Path | None, env: Mapping[str, str] | None) -> None:
    """Refuse a command that cannot be started; the supervisor could report it only in the command's output."""
    place = str(Path(cwd or ".", word)) if os.sep in word else word
    if shutil.which(place, path=(os.environ if env is None else env).get("PATH")) is None:
        number = errno.EACCES if os.sep in word and Path(place).exists() else errno.ENOENT
        raise OSError(number, os.strerror(number), word)
