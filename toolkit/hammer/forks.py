"""Run a function in a fork of this process, read what it writes, and tell how it ended.

Runs in the build under test: imports little.
"""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import tempfile
import time
from dataclasses import dataclass

from gilscope.toolkit.hammer.stalls import StallPipe
from gilscope.toolkit.processes.sealed_answers import Seal, new_secret, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

# A crash of the code.  Others come from outside: a machine short of memory kills with SIGKILL.
CRASHES = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP,
                     signal.SIGSYS})
LAST_WORDS_SECONDS = 1.0   # for faulthandler to print the stacks of a hanging process
MOST_OUTPUT = 16384         # bytes at the end of what a fork prints
CHUNK = 2**16
RELEASE_SECONDS = 0.004    # for which a thread is stopped at most, if the machine is not busy


@dataclass(frozen=True, slots=True)
class ForkEnding:
    """How a fork ended."""

    kind: Literal["done", "crash", "hang", "exit"]   # done: it wrote that it came to its end
    reason: str = ""    # "SIGSEGV"
    output: str = ""    # the end of what it printed, with the stacks of a crash or a hang


def forked(function: Callable[[Callable[..., None], StallPipe], None], limit: float, *, each: bool = False,
           ) -> tuple[list[dict[str, Any]], ForkEnding]:
    """Run `function` in a fork and return the records that it wrote, and how it ended.

    Args:
        function: Takes a function that writes a record of keywords, and a pipe for stopping threads.
        limit: Seconds after which the fork is ended.
        each: The limit is for each record, not for all.
    """
    secret = new_secret()
    seal = Seal(secret)
    reader, writer = os.pipe()
    pipe = StallPipe()
    with tempfile.TemporaryFile() as output:
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            _run(function, writer, pipe, seal, output.fileno())
        os.close(writer)
        text, hung = _read(reader, pipe, limit, each=each)
        os.close(reader)
        status = _end(pid, hung=hung)
        pipe.close()
        output.seek(max(0, output.seek(0, os.SEEK_END) - MOST_OUTPUT))
        printed = output.read().decode(errors="replace")
    records = [fields for line in text.split(b"\n")[:-1] if (fields := seal.opened(line)) is not None]
    done = bool(records) and "done" in records[-1]
    code = os.waitstatus_to_exitcode(status)
    if hung:
        ending = ForkEnding("hang", f"did not end within {limit:g} s", printed)
    elif code < 0 and -code in CRASHES:
        ending = ForkEnding("crash", signal.Signals(-code).name, printed)
    elif done:
        ending = ForkEnding("done")
    else:
        ending = ForkEnding("exit", f"ended with {code}", printed)
    return records[:-1] if done else records, ending


def _run(function: Callable[[Callable[..., None], StallPipe], None], writer: int, pipe: StallPipe, seal: Seal,
         output: int) -> None:
    """Run the function in this fork, which then ends without cleaning up: others' code cannot prolong it."""
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        faulthandler.enable(2)
        function(lambda **fields: write_all(writer, seal.line(fields)), pipe)
        write_all(writer, seal.line({"done": True}))
    except BaseException as error:  # noqa: BLE001  it must not go on as the parent does
        os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
        os._exit(1)
    os._exit(0)


def _read(reader: int, pipe: StallPipe, limit: float, *, each: bool) -> tuple[bytes, bool]:
    """Return the bytes read until the end, and True if the time was up before it."""
    parts: list[bytes] = []
    until = time.monotonic() + limit
    while (left := until - time.monotonic()) > 0:
        if not select.select([reader], [], [], min(left, RELEASE_SECONDS))[0]:
            pipe.release()
            continue
        part = os.read(reader, CHUNK)
        if not part:
            return b"".join(parts), False
        parts.append(part)
        if each:
            until = time.monotonic() + limit
    return b"".join(parts), True


def _end(pid: int, *, hung: bool) -> int:
    """Return the exit status of a fork, which is killed if it hangs."""
    if hung:
        os.kill(pid, signal.SIGABRT)    # makes faulthandler print the stacks
        until = time.monotonic() + LAST_WORDS_SECONDS
        while time.monotonic() < until:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return status
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]
