"""One measured process from start to end: started, watched, ended, its answer read.

Whatever happens in it (crash, hang, kill, exit, exception, a flood of output) is an answer.  It has a session of its
own, and nothing of that session is left when this module is done.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.bounded_reading import last_text, read_bytes
from gilscope.toolkit.measure.process.line import Line
from gilscope.toolkit.processes.sealed_answers import Seal

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from gilscope.toolkit.measure.process.spec import Spec

ENTRY = "from {module} import {function}; {function}()"
MAX_OUTPUT_BYTES = 64 * 2**20  # a workload that prints in a loop must not fill the disk
TEARDOWN_SECONDS = 10.0  # to end after the answer; subinterpreters may hold threads that do not
LAST_BYTES = 8192
LAST_LINES = 80  # a worker's traceback stands before the one of the process that waited for it
MAX_TEMPORARY = 70   # bytes; multiprocessing's sockets have 32 more in their names, which may have 103 on macOS
UNREADABLE = "its answer cannot be read: what it ran may have written over it, or replaced what writes it"
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
    child = Child(python, spec, env, function=function)
    try:
        return child.answer()
    finally:
        end_all([child])


class Child:
    """One measured process, alive from here until it ends or `end_all` ends it."""

    def __init__(
        self, python: str, spec: Spec, env: Mapping[str, str], *, function: str = "main", talks: bool = False
    ) -> None:
        """Start `python` with `spec`; with `talks` it is told what to do by `tell`."""
        self.spec = spec
        self._oom_kills = _oom_kills()
        self._handle: int | None = None
        self._line: Line | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._problem = ""
        self.buried = False
        command = [python, "-P", "-c", ENTRY.format(module=spec.entry, function=function), spec.to_json()]
        with contextlib.ExitStack() as theirs:
            far: list[int] = []
            if talks:
                near, end = socket.socketpair()
                theirs.callback(end.close)
                self._line = Line(near.detach(), spec.secret)
                far = [end.fileno()]
            try:
                # What clears old files from temporary folders may have taken ours.
                spec.output_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                for path in (spec.result_path, spec.answer_path, spec.progress_path, spec.output_path):
                    path.unlink(missing_ok=True)
                output = theirs.enter_context(spec.output_path.open("wb"))
                self._process = subprocess.Popen(
                    [*command, *map(str, far)], env={**env, **_temporary(spec.folder)}, cwd=Path.cwd(),
                    stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True, pass_fds=far,
                )  # stdin: see lifeline
            except OSError as error:
                self._problem = f"cannot start {python}: {error.strerror}" + (
                    f": {error.filename}" if error.filename not in {None, python} else "")
                return
        if hasattr(os, "pidfd_open"):  # not on macOS
            self._handle = os.pidfd_open(self._process.pid)

    def tell(self, **fields: Any) -> None:
        """Tell the process what to do; one that has ended hears nothing, which `hear` and `answer` will say."""
        assert self._line is not None, "it was not started to be talked to"
        with contextlib.suppress(OSError):
            self._line.say(**fields)

    def hear(self) -> dict[str, Any] | None:
        """Wait until it says something and return that; None when it has ended instead, or does not get on."""
        assert self._line is not None, "it was not started to be talked to"
        if self._problem or self._watch(self._line):
            return None
        if (said := self._line.hear()) is None:  # it has let go of the line: it ends
            self._watch(None)
        return said

    def answer(self) -> Answer:
        """Wait until it has ended, end what it left, and return what came of it."""
        if self._process is None:
            return Answer(kind="starting", reason=self._problem, fields={}, output="")
        if not self._problem:
            self._problem = self._watch(None)
        end_all([self])
        ended = "" if self._problem == "ended" else self._problem
        return _read_answer(self._process.returncode, ended, self.spec, oom_killed=_oom_kills() > self._oom_kills)

    def _watch(self, line: Line | None) -> str:
        """Wait for a word on `line`, then return "", or for the end.

        Returns:
            "ended", or why it has to be ended: "hang", "flood", "teardown".
        """
        spec = self.spec
        progress, progressed = -1, time.monotonic()
        delivered: float | None = None
        while not (happened := self._wait(line)):
            now = time.monotonic()
            if (size := _size(spec.progress_path)) != progress:
                progress, progressed = size, now
            if delivered is None and spec.answer_path.exists():
                delivered = now
            if delivered is not None and now - delivered > TEARDOWN_SECONDS:
                return self._found("teardown")
            # One second more than the process has itself, in which it writes down where it hangs.
            if delivered is None and now - progressed > spec.progress_timeout + 1.0:
                return self._found("hang")
            if _size(spec.output_path) > MAX_OUTPUT_BYTES:
                return self._found("flood")
        return "" if happened == "said" else self._found(happened)

    def _found(self, problem: str) -> str:
        self._problem = problem
        return problem

    def _wait(self, line: Line | None) -> str:
        """Return "said" or "ended" as soon as it is so, "" after a moment; no CPU is used meanwhile."""
        assert self._process is not None, "it was started"
        poll = select.poll()
        for fd in (self._handle, None if line is None else line.fd):
            if fd is not None:
                poll.register(fd, select.POLLIN)
        if self._handle is None and line is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_POLL_SECONDS)
            return "" if self._process.returncode is None else "ended"
        found = {fd for fd, _ in poll.poll(_POLL_SECONDS * 1000)}
        if line is not None and line.fd in found:  # first: it may have ended after it said something
            return "said"
        return "ended" if found or (self._handle is None and self._process.poll() is not None) else ""

    @property
    def pid(self) -> int | None:
        """Its process id, which is that of its session, too; None when it could not be started."""
        return None if self._process is None else self._process.pid

    def kill(self) -> None:
        """Kill the process and its group, unless that was done."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)  # before it is waited for: then the id is nobody else's

    def bury(self) -> None:
        """Wait for its end, which is near, and let go of all that is held of it."""
        self.buried = True
        if self._process is not None:
            self._process.wait()
            assert self._process.stdin is not None
            self._process.stdin.close()
        if self._handle is not None:
            os.close(self._handle)
        if self._line is not None:
            self._line.close()
        self._handle = self._line = None


def end_all(children: Sequence[Child]) -> None:
    """Kill what is left of `children` and of everything they started that stayed in their sessions."""
    living = [child for child in children if not child.buried]
    for child in living:
        child.kill()
    for child in living:
        child.bury()
    for pid in _session_members({child.pid for child in living}):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _temporary(folder: str) -> dict[str, str]:
    """Return the variable that has a process and its workers make their temporary files in `folder`.

    What is killed leaves them there: the folder of multiprocessing's sockets, for instance, which goes with ours.
    """
    return {"TMPDIR": folder} if len(folder) <= MAX_TEMPORARY else {}


def _session_members(sessions: Container[int | None]) -> list[int]:
    members = []
    with contextlib.suppress(OSError):
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                # After the name, which may hold anything: state, parent, group, session.
                if int((entry / "stat").read_text().rpartition(")")[2].split()[3]) in sessions:
                    members.append(int(entry.name))
    return members


def _read_answer(returncode: int, ended: str, spec: Spec, *, oom_killed: bool) -> Answer:
    output = last_lines(spec.output_path)
    told = _told(spec)
    fields = told or {}
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
    if told is None and returncode == 0 and not ended:
        kind, reason = "exit", UNREADABLE
    return Answer(kind=kind, reason=reason, fields=fields, output=output)


def _told(spec: Spec) -> dict[str, Any] | None:
    """Return what it wrote, empty when it wrote nothing; None when that cannot be read."""
    try:
        written = read_bytes(spec.answer_path)   # a pipe may lie there now
    except FileNotFoundError:
        return {}
    except OSError:
        return None  # a folder of that name, say
    return Seal(spec.secret).opened(written)


def _cause(returncode: int, ended: str, spec: Spec, *, oom_killed: bool) -> tuple[str, str]:
    """Return the failure's kind and one line, for a process that left no answer."""
    if ended == "hang":
        return "hang", (
            f"it hung, or takes more than {spec.progress_timeout:g} s for one pass over its payloads, so it was "
            f"killed; raise --timeout (to {3 * spec.progress_timeout:g}s, say) if the work takes that long"
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
        return "\n".join(last_text(path, LAST_BYTES).splitlines()[-LAST_LINES:])
    except OSError:
        return ""


def _culprit(output: Path) -> str | None:
    # The warning names the module; it comes once, at the import, so it may be anywhere in the output.
    try:
        found = _CULPRIT.search(read_bytes(output, 2 * MAX_OUTPUT_BYTES))
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
