"""Run a function in a fork of this process, read the records that it writes, and tell how it ended.

For functions of other people, which may crash, hang, print or close descriptors: records are sealed lines.  A fork that
takes too long can be watched, to tell one that waits for ever from one that is slow.

Runs in the builds under test: imports little, since what is imported here, their code finds imported.
"""

from __future__ import annotations

import os
import select
import signal
import time

from gilscope.toolkit.processes.sealed_answers import Seal, new_secret, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, NoReturn

    WriteRecord = Callable[..., None]     # of keywords; without any, a sign of life
    EndingKind = Literal["done", "crash", "exit", "slow", "spinning", "blocked"]

# A crash of the code.  Others come from outside: a machine short of memory kills with SIGKILL.
CRASHES = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP,
                     signal.SIGSYS})
LAST_WORDS_SECONDS = 1.0   # for faulthandler to print the stacks of a fork that is ended
MOST_OUTPUT = 16384        # bytes at the end of what a fork prints
CHUNK = 2**16
MEANWHILE_SECONDS = 0.004  # between two calls of `meanwhile`, if the machine is not busy
GLANCE_SECONDS = 0.1       # of watching; counted, not timed: a parent that had no core has not watched
IDLE_SHARE = 0.05          # of the watched time, as CPU time; a thread that wakes up to look again takes less
# States of a thread that does not wait for another: it runs or would like to, reads from a disk, or was stopped.
NOT_WAITING = frozenset(b"RDTt")


class ForkEnding:
    """How a fork ended.

    | Kind | Meaning |
    | --- | --- |
    | done | the function returned |
    | crash | a signal ended it that broken code gets |
    | exit | it ended otherwise: an exception, an exit, a signal from outside |
    | slow | it did not end in time; it was not watched, wrote records to the end, or got no core |
    | spinning | it did not end in time; while it was watched, it used CPU time and wrote nothing |
    | blocked | it did not end in time; while it was watched, all its threads waited |
    """

    __slots__ = ("kind", "output", "reason")   # no dataclass: the module would import half of the library

    def __init__(self, kind: EndingKind, reason: str = "", output: str = "") -> None:
        """Describe an ending; the reason is one line, and the output the end of what the fork printed."""
        self.kind = kind
        self.reason = reason
        self.output = output


class Fork:
    """A running fork of this process; `result` waits for it and must be called once."""

    def __init__(self, function: Callable[[WriteRecord], object], *, keep_output: bool = False) -> None:
        """Run `function` in a fork.

        Args:
            function: Takes a function that writes a record of keywords.
            keep_output: Keep what it prints, with the stacks of a crash; otherwise nobody sees it.
        """
        self._seal = Seal(new_secret())
        self._output = _output_file(keep=keep_output)
        self._keeps = keep_output
        self._reader, writer = os.pipe()
        self._read_parts: list[bytes] = []
        self._status: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._reader)
            self._run(function, writer)
        os.close(writer)

    def result(self, limit: float, *, silence: float = float("inf"), watch: float = 0.0,
               meanwhile: Callable[[], object] | None = None) -> tuple[list[dict[str, Any]], ForkEnding]:
        """Return the records of the fork, without signs of life, and how it ended; end it if it takes too long.

        Args:
            limit: Seconds that it may take.
            silence: Seconds that it may take for one record.
            watch: Seconds to watch a fork afterwards that has not ended, to tell why.
            meanwhile: Called every few milliseconds while the fork runs.
        """
        try:
            late = self._read(limit, silence, watch, meanwhile)
            if self._is_ended_by_us(late=late is not None):
                late = late or "slow"
            printed = self._printed()
        finally:
            self._close()
        lines = b"".join(self._read_parts).split(b"\n")[:-1]     # the last one may be cut
        found = [fields for line in lines if (fields := self._seal.opened(line)) is not None]
        done = bool(found) and "done" in found[-1]
        records = [fields for fields in (found[:-1] if done else found) if fields]
        assert self._status is not None
        code = os.waitstatus_to_exitcode(self._status)
        if late is not None:
            return records, ForkEnding(late, f"did not end within {min(limit, silence):g} s", printed)
        if code < 0 and -code in CRASHES:
            return records, ForkEnding("crash", signal.Signals(-code).name, printed)
        return records, ForkEnding("done") if done else ForkEnding("exit", f"ended with {code}", printed)

    def _run(self, function: Callable[[WriteRecord], object], writer: int) -> NoReturn:
        """Run the function in this fork, which then ends without cleaning up: others' code cannot prolong it."""
        try:
            os.dup2(self._output, 1)
            os.dup2(self._output, 2)
            if self._keeps:
                import faulthandler

                faulthandler.enable(2)
            function(lambda **fields: write_all(writer, self._seal.line(fields)))
            write_all(writer, self._seal.line({"done": True}))
        except BaseException as error:  # noqa: BLE001  it must not go on as the parent does
            os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
            os._exit(1)
        os._exit(0)

    def _read(self, limit: float, silence: float, watch: float, meanwhile: Callable[[], object] | None,
              ) -> EndingKind | None:
        """Read until the end of the fork, or return why it has not ended in time."""
        until, silent = time.monotonic() + limit, time.monotonic() + silence
        while (now := time.monotonic()) < min(until, silent):
            if (found := self._read_some(min(until, silent) - now, meanwhile)) is None:
                return None
            if found:
                silent = time.monotonic() + silence
        before, wrote = _cpu_seconds(self.pid), False
        for _ in range(max(1, round(watch / GLANCE_SECONDS))):     # one, if a busy machine has let this process wait
            if (found := self._read_some(GLANCE_SECONDS if watch else 0.0, meanwhile)) is None:
                return None
            wrote = wrote or found
        late: EndingKind = "slow" if wrote or not watch else self._why_late(before, watch)
        # It may have ended while its threads were looked at.
        return None if self._read_some(0.0, meanwhile) is None else late

    def _read_some(self, seconds: float, meanwhile: Callable[[], object] | None) -> bool | None:
        """Wait so long for bytes at most; return True for some, False for none, None at the end of all."""
        until = time.monotonic() + seconds
        while True:
            left = max(0.0, until - time.monotonic())
            if select.select([self._reader], [], [], min(left, MEANWHILE_SECONDS) if meanwhile else left)[0]:
                self._read_parts.append(os.read(self._reader, CHUNK))
                return True if self._read_parts[-1] else None
            if meanwhile:
                meanwhile()
            if not left:
                return False

    def _why_late(self, before: float | None, watched: float) -> EndingKind:
        """Tell why a fork has written nothing for so many seconds; `before` is its CPU time at their begin."""
        now = _cpu_seconds(self.pid)
        if before is None or now is None or now - before > IDLE_SHARE * watched:
            return "spinning"
        return "slow" if any(state in NOT_WAITING for state in _thread_states(self.pid)) else "blocked"

    def _is_ended_by_us(self, *, late: bool) -> bool:
        """Wait for the end of the fork; end it and return True if it is late, or has closed its pipe and goes on."""
        if not late and self._ended_within(LAST_WORDS_SECONDS):
            return False
        if self._keeps:
            os.kill(self.pid, signal.SIGABRT)    # makes faulthandler print the stacks
            if self._ended_within(LAST_WORDS_SECONDS):
                return True
        self._kill()
        return True

    def _ended_within(self, seconds: float) -> bool:
        until, pause = time.monotonic() + seconds, 0.0001
        while True:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self._status = status
                return True
            if time.monotonic() > until:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.01)

    def _kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self._status = os.waitpid(self.pid, 0)[1]

    def _printed(self) -> str:
        if not self._keeps:
            return ""
        size = os.fstat(self._output).st_size
        return os.pread(self._output, MOST_OUTPUT, max(0, size - MOST_OUTPUT)).decode(errors="replace")

    def _close(self) -> None:
        if self._status is None:     # Ctrl-C while it ran
            self._kill()
        os.close(self._reader)
        os.close(self._output)


def _output_file(*, keep: bool) -> int:
    """Return the descriptor of a file without a name, or of one that forgets all that is written to it."""
    if not keep:
        return os.open(os.devnull, os.O_WRONLY)
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _cpu_seconds(pid: int) -> float | None:
    """Return the CPU time that a process has used; None where no procfs says so."""
    try:
        fields = _fields(f"/proc/{pid}/stat")
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _thread_states(pid: int) -> list[int]:
    """Return the letters of the states of a process's threads, as proc(5) lists them."""
    states = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            states.append(_fields(f"/proc/{pid}/task/{thread}/stat")[0][0])
        except OSError:      # it has ended meanwhile
            continue
    return states


def _fields(path: str) -> list[bytes]:
    """Return the fields after the name, which may contain spaces and parentheses."""
    with open(path, "rb") as file:
        return file.read().rpartition(b")")[2].split()
