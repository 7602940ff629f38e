"""One measured process from start to end: started, watched, ended, its answer read.

Whatever happens in it (crash, hang, kill, exit, exception, a flood of output) is an answer.  It has a session of its
own, and nothing of that session is left when this module is done.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gilscope.toolkit.measure.process.spec import Spec

ENTRY = "from {module} import {function}; {function}()"
MAX_OUTPUT_BYTES = 64 * 2**20  # a workload that prints in a loop must not fill the disk
TEARDOWN_SECONDS = 10.0  # to end after the answer; subinterpreters may hold threads that do not
LAST_LINES = 80  # a worker's traceback stands before the one of the process that waited for it
_POLL_SECONDS = 0.25
_CULPRIT = re.compile(rb"\(GIL\) has been enabled to load module '([^']+)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came out of a measured process."""

    kind: str  # "measured", "described", "rate", or a Failure.kind, or "unavailable", "refused"
    reason: str  # one line; "" when it delivered
    fields: dict[str, Any]  # what it wrote
    output: str  # the last lines it printed
    note: str | None = None  # something odd after the answer was delivered


def run_child(python: str, spec: Spec, env: Mapping[str, str], *, function: str = "main") -> Answer:
    """Start `python` with `spec`, wait for it to end, and return its answer.

    Raises:
        KeyboardInterrupt: the user pressed Ctrl-C; the process and all it started are gone.
    """
    for path in (spec.result_path, spec.answer_path, spec.progress_path, spec.output_path):
        path.unlink(missing_ok=True)
    oom_kills = _oom_kills()
    with spec.output_path.open("wb") as output:
        try:
            process = subprocess.Popen(
                [python, "-P", "-c", ENTRY.format(module=spec.entry, function=function), spec.to_json()],
                env=dict(env),
                cwd=Path.cwd(),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )  # stdin: see lifeline
        except OSError as error:
            return Answer(kind="starting", reason=f"cannot start {python}: {error.strerror}", fields={}, output="")
    try:
        ended = _watch(process, spec)
    finally:
        _end_session(process)
        assert process.stdin is not None
        process.stdin.close()
    return _read_answer(process.returncode, ended, spec, oom_killed=_oom_kills() > oom_kills)


def _watch(process: subprocess.Popen[bytes], spec: Spec) -> str:
    """Wait for the end of `process`; return "" or why it has to be killed: "hang", "flood", "teardown"."""
    progress, progressed = -1, time.monotonic()
    delivered: float | None = None
    with _ended(process) as wait:
        while not wait(_POLL_SECONDS):
            now = time.monotonic()
            if (size := _size(spec.progress_path)) != progress:
                progress, progressed = size, now
            if delivered is None and spec.answer_path.exists():
                delivered = now
            if delivered is not None and now - delivered > TEARDOWN_SECONDS:
                return "teardown"
            # One second more than the process has itself, in which it writes down where it hangs.
            if delivered is None and now - progressed > spec.progress_timeout + 1.0:
                return "hang"
            if _size(spec.output_path) > MAX_OUTPUT_BYTES:
                return "flood"
    return ""


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[Any]:
    """Give a function that waits up to some seconds and says whether `process` has ended, without burning CPU."""
    if not hasattr(os, "pidfd_open"):  # macOS

        def wait_by_polling(seconds: float) -> bool:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            return process.returncode is not None

        yield wait_by_polling
        return
    handle = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        yield lambda seconds: bool(poll.poll(seconds * 1000))
    finally:
        os.close(handle)


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the process and everything it started that stayed in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # before it is waited for: until then the id is nobody else's
    process.wait()
    for pid in _session_members(process.pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _session_members(session: int) -> list[int]:
    members = []
    with contextlib.suppress(OSError):
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                # After the name, which may hold anything: state, parent, group, session.
                if int((entry / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                    members.append(int(entry.name))
    return members


def _read_answer(returncode: int, ended: str, spec: Spec, *, oom_killed: bool) -> Answer:
    output = last_lines(spec.output_path)
    fields: dict[str, Any] = {}
    with contextlib.suppress(FileNotFoundError):
        fields = json.loads(spec.answer_path.read_text())
    if culprit := _culprit(spec.output_path):
        fields["gil_culprit"] = culprit
    kind = fields.get("kind", "")
    if kind:
        reason = fields.get("reason", "")
        if culprit and kind == "gil":
            reason += f": importing {culprit} turned it on"
        if kind == "exception" and oom_killed:
            reason += " (the kernel's out-of-memory killer ended a process meanwhile)"
        return Answer(kind=kind, reason=reason, fields=fields, output=output, note=_afterwards(returncode, ended))
    kind, reason = _cause(returncode, ended, spec, oom_killed=oom_killed)
    return Answer(kind=kind, reason=reason, fields=fields, output=output)


def _cause(returncode: int, ended: str, spec: Spec, *, oom_killed: bool) -> tuple[str, str]:
    """Return the failure's kind and one line, for a process that left no answer."""
    if ended == "hang":
        return "hang", (
            f"no pass ended within {spec.progress_timeout:g} s, so it was killed; "
            "raise --timeout if the work takes that long"
        )
    if ended == "flood":
        return "killed", f"it printed more than {MAX_OUTPUT_BYTES >> 20} MiB, so it was killed"
    if returncode < 0:
        name = signal.Signals(-returncode).name
        if returncode == -signal.SIGKILL:
            return "killed", f"killed by {name}" + (
                ": out of memory" if oom_killed else ", not by gilscope; the machine may have run out of memory"
            )
        return "crash", f"crashed with {name}"
    return "exit", f"ended with exit code {returncode} before it delivered a value"


def _afterwards(returncode: int, ended: str) -> str | None:
    if ended == "teardown":
        return f"did not end within {TEARDOWN_SECONDS:g} s after its values were taken"
    if returncode < 0 and not ended:
        return f"crashed with {signal.Signals(-returncode).name} while ending, after its values were taken"
    if returncode > 0 and not ended:
        return f"failed while ending, with exit code {returncode}, after its values were taken"
    return None


def last_lines(path: Path) -> str:
    """Return the last lines of a file that may be large, be cut anywhere, or not be text."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 8192))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-LAST_LINES:])


def _culprit(output: Path) -> str | None:
    # The warning names the module; it comes once, at the import, so it may be anywhere in the output.
    try:
        with output.open("rb") as file:
            found = _CULPRIT.search(file.read(MAX_OUTPUT_BYTES))
    except OSError:
        return None
    return found.group(1).decode(errors="replace") if found else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _oom_kills() -> int:
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
