"""Start commands that know nothing of us (installers, compilers, test suites) so that they end when we do.

Each has a session of its own and is waited for by a small supervisor in it, which holds the lifeline: see `lifeline`.
What a command starts belongs to its group, unless it leaves it on purpose.

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
TERMINATE_SECONDS = 2.0  # for a process group to end by itself before it is killed

_RUNNING: set[Supervised] = set()  # by any thread


class Supervised(subprocess.Popen[bytes]):
    """A running command with all that it starts; leaving the `with` block ends what is left of them.

    `returncode` is the command's.  Its standard input is empty.
    """

    def __init__(
        self, command: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None,
        stdout: Any = subprocess.DEVNULL, stderr: Any = subprocess.DEVNULL, cleans_up: bool = False,
    ) -> None:
        """Start `command`; one that `cleans_up` after a SIGTERM gets the time to when it is stopped.

        Raises:
            OSError: it is not there, or no program.
        """
        words = [str(word) for word in command]
        _refuse_missing(words[0], cwd, env)
        self.stopped = False  # by `stop`
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
        """Send a signal to the command and to all that it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left, or (macOS) only a zombie is
            os.killpg(self.pid, number)

    def stop(self) -> None:
        """End it while another thread waits for it, which sees `stopped`; a second call kills it."""
        if not self.stopped:
            self.stopped = True
            self._stopped_at = time.monotonic()
            self.signal_group(signal.SIGTERM if self._may_live else signal.SIGKILL)
        elif time.monotonic() - self._stopped_at >= self._may_live:
            self.signal_group(signal.SIGKILL)

    def end(self) -> None:
        """Kill what is left of it and wait for its end."""
        if self._line < 0:
            return
        _RUNNING.discard(self)
        self.signal_group(signal.SIGKILL)
        super().wait()
        os.close(self._line)
        self._line = -1

    def end_politely(self) -> None:
        """Ask it to end; kill it after TERMINATE_SECONDS."""
        if self.poll() is None:
            self.signal_group(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.wait(TERMINATE_SECONDS)
        self.end()  # the leader may be gone while a compiler it started is not

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End what is left of it."""
        self.end()
        super().__exit__(kind, value, traceback)


def run(
    command: Sequence[str | Path], *, timeout: float | None = None, cwd: Path | None = None,
    env: Mapping[str, str] | None = None, started: Callable[[Supervised], object] | None = None,
    cleans_up: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run `command` to its end and return what it printed; nothing of it is left.

    `started` is called with the process once it runs, so that another thread can stop it; one that `cleans_up` after a
    SIGTERM gets the time to.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it took longer than `timeout` seconds.
        KeyboardInterrupt: `end_all` or `stop` ended it.
    """
    # Not pipes: somebody that the command leaves behind would hold them open.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaint:
        with Supervised(command, cwd=cwd, env=env, stdout=output, stderr=complaint, cleans_up=cleans_up) as process:
            if started is not None:
                started(process)
            process.wait(timeout)
        if process.stopped:
            raise KeyboardInterrupt
        said = []
        for file in (output, complaint):
            file.seek(0)
            said.append(file.read().decode(errors="replace"))
    return subprocess.CompletedProcess(list(command), process.returncode, *said)


def end_all() -> None:
    """End every command that a thread waits for: a Ctrl-C reaches the main thread alone."""
    for process in tuple(_RUNNING):
        process.stop()


def _refuse_missing(word: str, cwd: Path | None, env: Mapping[str, str] | None) -> None:
    """Refuse a command that cannot be started; the supervisor could report it only in the command's output."""
    place = str(Path(cwd or ".", word)) if os.sep in word else word
    if shutil.which(place, path=(os.environ if env is None else env).get("PATH")) is None:
        number = errno.EACCES if os.sep in word and Path(place).exists() else errno.ENOENT
        raise OSError(number, os.strerror(number), word)
