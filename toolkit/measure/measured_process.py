"""One measured process: started, watched, ended, its answer read.

Whatever happens in it (crash, hang, kill, exit, exception, a flood of output) is an answer.  It has a session of its
own, and no process of that session survives.
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
from typing import TYPE_CHECKING, Any, Literal, get_args

from gilscope.toolkit.bounded_reading import last_lines, read_bytes
from gilscope.toolkit.measure.child.channel import SealedChannel
from gilscope.toolkit.measure.out_of_memory import OomCounts, OomEvidence
from gilscope.toolkit.model import FailureKind
from gilscope.toolkit.processes.sealed_answers import Seal

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from gilscope.toolkit.measure.child.spec import ProcessSpec

ENTRY = "from {module} import {function}; {function}()"
MAX_OUTPUT_BYTES = 64 * 2**20  # a workload that prints in a loop must not fill the disk
TEARDOWN_SECONDS = 10.0  # to end after the answer; threads of subinterpreters may hang
MAX_TEMPORARY = 70   # bytes; multiprocessing's socket names are 32 longer, and macOS allows 103
UNREADABLE = "its answer cannot be read: the measured code may have overwritten it, or replaced the code that writes it"
_POLL_SECONDS = 0.25
_STOPPED_SECONDS = 5.0  # between two looks: this process was stopped, and maybe the measured one, as by `docker pause`
_KILLED = {OomEvidence.OWN_GROUP, OomEvidence.MACHINE}
# After "killed by SIGKILL".
_WHY_KILLED = {
    OomEvidence.OWN_GROUP: ": out of memory",
    OomEvidence.NOT_OURS: ", not by gilscope, nor by the kernel for lack of memory",
    OomEvidence.MACHINE: ", probably out of memory: the kernel killed a process of the machine for it meanwhile",
    OomEvidence.NONE: ", not by gilscope; the machine may have run out of memory",
}
_CULPRIT = re.compile(rb"\(GIL\) has been enabled to load module '([^']+)'")


# What a process answers that does not fail; each entry function has one of them.
AnswerKind = FailureKind | Literal["measured", "described", "rate", "tried"]
_FAILURES: Mapping[str, FailureKind] = {each: each for each in get_args(FailureKind)}
_ANSWERS: Mapping[str, AnswerKind] = {**_FAILURES, "measured": "measured", "described": "described", "rate": "rate",
                                      "tried": "tried"}
WatchEnd = Literal["ended", "hang", "flood", "teardown"]   # why the watch over a process is over


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessAnswer:
    """The outcome of a measured process."""

    kind: AnswerKind
    reason: str  # one line; "" if it delivered a value
    fields: dict[str, Any]  # of the answer that it wrote
    output: str  # the last lines it printed
    note: str | None = None  # a failure after the answer was delivered
    ended_late: bool = False  # that failure: it did not end by itself
    hung_seconds: float | None = None  # without progress, after which it was killed; None: it did not hang
    code: str = ""  # of a failure: the exception's class, the signal, the exit code; "" if the kind says all

    @property
    def failure(self) -> FailureKind | None:
        """How it failed; None if it delivered its answer."""
        return _FAILURES.get(self.kind)


def run_child(python: str, spec: ProcessSpec, env: Mapping[str, str], *, function: str = "main") -> ProcessAnswer:
    """Start `python` with `spec`, wait for it to end, and return its answer.

    Raises:
        KeyboardInterrupt: The user pressed Ctrl-C; the process and its descendants have been killed.
    """
    child = MeasuredProcess(python, spec, env, function=function)
    try:
        return child.answer()
    finally:
        end_all([child])


class MeasuredProcess:
    """One measured process, alive from here until it ends or `end_all` ends it."""

    def __init__(
        self, python: str, spec: ProcessSpec, env: Mapping[str, str], *, function: str = "main", talks: bool = False
    ) -> None:
        """Start `python` with `spec`; with `talks` it has a channel for `send` and `receive`."""
        self.spec = spec
        self._oom_counts = OomCounts.now()
        self._handle: int | None = None
        self._line: SealedChannel | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._not_started = ""   # why there is no process
        self._end: WatchEnd | None = None
        self.buried = False
        command = [python, "-P", "-c", ENTRY.format(module=spec.entry, function=function), spec.to_json()]
        with contextlib.ExitStack() as theirs:
            far: list[int] = []
            if talks:
                near, end = socket.socketpair()
                theirs.callback(end.close)
                self._line = SealedChannel(near.detach(), spec.secret)
                far = [end.fileno()]
            try:
                # A cleaner of temporary folders may have deleted ours.
                spec.output_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                for path in (spec.result_path, spec.answer_path, spec.progress_path, spec.output_path):
                    path.unlink(missing_ok=True)
                output = theirs.enter_context(spec.output_path.open("wb"))
                self._process = subprocess.Popen(
                    [*command, *map(str, far)], env={**env, **_temporary(spec.folder)}, cwd=Path.cwd(),
                    stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True, pass_fds=far,
                )  # stdin: see lifeline
            except OSError as error:
                self._not_started = f"cannot start {python}: {error.strerror}" + (
                    f": {error.filename}" if error.filename not in {None, python} else "")
                return
        if hasattr(os, "pidfd_open"):  # not on macOS
            with contextlib.suppress(OSError):   # an older kernel or a container's filter: its end is polled for
                self._handle = os.pidfd_open(self._process.pid)

    def send(self, **fields: Any) -> None:
        """Send the process a message; if it has ended, `receive` and `answer` will report that."""
        assert self._line is not None, "it was started without a channel"
        with contextlib.suppress(OSError):
            self._line.send(**fields)

    def receive(self) -> dict[str, Any] | None:
        """Wait for a message of the process and return it; None if it has ended or hangs."""
        assert self._line is not None, "it was started without a channel"
        if self._process is None or self._end or self._watch(self._line):
            return None
        if (message := self._line.receive()) is None:  # it has closed the channel, so it is about to end
            self._watch(None)
        return message

    def answer(self) -> ProcessAnswer:
        """Wait until it has ended, kill what it left running, and return its outcome."""
        if self._process is None:
            return ProcessAnswer(kind="starting", reason=self._not_started, fields={}, output="")
        if self._end is None:
            self._watch(None)
        assert self._end is not None, "without a channel, it waits for the end"
        end_all([self])
        return _read_answer(self._process.returncode, self._end, self.spec, OomCounts.now().since(self._oom_counts))

    def _watch(self, line: SealedChannel | None) -> WatchEnd | None:
        """Wait for a message on `line`, or until the process ended or has to be ended.

        Returns:
            None for a message; "ended"; or the reason to end it.
        """
        spec = self.spec
        progress, looked, pause = -1, time.monotonic(), 0.0
        progressed = looked
        delivered: float | None = None
        while not (happened := self._wait(line, pause)):
            now, pause = time.monotonic(), _POLL_SECONDS
            if now - looked > _STOPPED_SECONDS:   # not the measured process's fault
                progressed += now - looked
            looked = now
            if (size := _size(spec.progress_path)) != progress:
                progress, progressed = size, now
            if delivered is None and (age := _age(spec.answer_path)) is not None:
                delivered = now - age   # nobody may have watched it since: processes that end together share the time
            if delivered is not None and now - delivered > TEARDOWN_SECONDS:
                return self._found("teardown")
            # One second more than the process's own limit: in it, the process dumps its stacks.
            if delivered is None and now - progressed > spec.progress_timeout + 1.0:
                return self._found("hang")
            if _size(spec.output_path) > MAX_OUTPUT_BYTES:
                return self._found("flood")
        return None if happened == "message" else self._found(happened)

    def _found(self, end: WatchEnd) -> WatchEnd:
        self._end = end
        return end

    def _wait(self, line: SealedChannel | None, pause: float) -> Literal["message", "ended"] | None:
        """Return "message" or "ended" as soon as that happens, None after `pause` seconds; it uses no CPU."""
        assert self._process is not None, "it was started"
        poll = select.poll()
        for fd in (self._handle, None if line is None else line.fd):
            if fd is not None:
                poll.register(fd, select.POLLIN)
        if self._handle is None and line is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(pause)
            return None if self._process.returncode is None else "ended"
        ready = {fd for fd, _ in poll.poll(pause * 1000)}
        if line is not None and line.fd in ready:  # first: it may have ended after its message
            return "message"
        return "ended" if ready or (self._handle is None and self._process.poll() is not None) else None

    @property
    def pid(self) -> int | None:
        """The id of the process and of its session; None if it could not be started."""
        return None if self._process is None else self._process.pid

    def kill(self) -> None:
        """Kill the process and its group, unless it has been waited for."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)  # before wait(): until then the id cannot be reused

    def bury(self) -> None:
        """Wait for the end of a killed process and release its resources."""
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


def end_all(children: Sequence[MeasuredProcess]) -> None:
    """Kill the remaining processes of `children` and all processes in their sessions."""
    living = [child for child in children if not child.buried]
    for child in living:
        child.kill()
    for child in living:
        child.bury()
    for pid in _session_members({child.pid for child in living}):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _temporary(folder: str) -> dict[str, str]:
    """Return the variable that makes a process and its workers put their temporary files into `folder`.

    Killed processes leave such files behind, multiprocessing's sockets for instance; they are deleted with our folder.
    """
    return {"TMPDIR": folder} if len(folder) <= MAX_TEMPORARY else {}


def _session_members(sessions: Container[int | None]) -> list[int]:
    members = []
    with contextlib.suppress(OSError):
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                # The fields after the name, which may contain anything: state, parent, group, session.
                if int((entry / "stat").read_text().rpartition(")")[2].split()[3]) in sessions:
                    members.append(int(entry.name))
    return members


def _read_answer(returncode: int, end: WatchEnd, spec: ProcessSpec, oom: OomEvidence) -> ProcessAnswer:
    output = last_lines(spec.output_path)
    written = read_fields(spec)
    fields = written or {}
    if culprit := _culprit(spec.output_path):
        fields["gil_culprit"] = culprit
    if kind := _ANSWERS.get(fields.get("kind", "")):
        reason = fields.get("reason", "")
        if culprit and kind == "gil":
            reason += f": importing {culprit} turned it on"
        if kind == "exception" and oom in _KILLED:
            whose = "its control group" if oom is OomEvidence.OWN_GROUP else "the machine"
            reason += f" (the kernel's out-of-memory killer ended a process of {whose} meanwhile)"
        note = _afterwards(returncode, end)
        return ProcessAnswer(kind=kind, reason=reason, fields=fields, output=output, note=note,
                             ended_late=end == "teardown", code=fields.get("code", ""))
    cause, reason = _cause(returncode, end, spec, oom)
    if (written is None or fields.get("kind")) and returncode == 0 and end == "ended":
        cause, reason = "exit", UNREADABLE
    return ProcessAnswer(kind=cause, reason=reason, fields=fields, output=output,
                         code=end if end != "ended" else f"exit code {returncode}",
                         hung_seconds=spec.progress_timeout if cause == "hang" else None)


def hang_reason(seconds: float) -> str:
    """Return the reason of a process that made no progress for `seconds`, without a remedy."""
    return f"it hung, or takes more than {seconds:g} s for one pass over its payloads, so it was killed"


def read_fields(spec: ProcessSpec) -> dict[str, Any] | None:
    """Return the fields of its answer, {} if it wrote none; None if the file cannot be read."""
    try:
        written = read_bytes(spec.answer_path)   # the measured code may have put a pipe there
    except FileNotFoundError:
        return {}
    except OSError:
        return None  # for instance a folder of that name
    return Seal(spec.secret).opened(written)


def _cause(returncode: int, end: WatchEnd, spec: ProcessSpec, oom: OomEvidence) -> tuple[FailureKind, str]:
    """Return kind and reason of the failure of a process without an answer."""
    if end == "hang":
        return "hang", (
            f"{hang_reason(spec.progress_timeout)}; raise --timeout (to {3 * spec.progress_timeout:g}s, say) if the "
            "work takes that long"
        )
    if end == "flood":
        return "killed", f"it printed more than {MAX_OUTPUT_BYTES >> 20} MiB, so it was killed"
    if returncode < 0:
        name = signal.Signals(-returncode).name
        if returncode == -signal.SIGKILL:
            return "killed", f"killed by {name}{_WHY_KILLED[oom]}"
        return "crash", f"crashed with {name}"
    return "exit", f"ended with exit code {returncode} before it delivered a value"


def _afterwards(returncode: int, end: WatchEnd) -> str | None:
    if end == "teardown":
        return f"did not end within {TEARDOWN_SECONDS:g} s after its values were taken"
    if returncode < 0 and end == "ended":
        return f"crashed with {signal.Signals(-returncode).name} while ending, after its values were taken"
    if returncode > 0 and end == "ended":
        return f"failed while ending, with exit code {returncode}, after its values were taken"
    return None


def _culprit(output: Path) -> str | None:
    # The warning names the module; it is printed once, at the import, anywhere in the output.
    try:
        match = _CULPRIT.search(read_bytes(output, 2 * MAX_OUTPUT_BYTES))
    except OSError:
        return None
    return match.group(1).decode(errors="replace") if match else None


def _age(path: Path) -> float | None:
    """Return the seconds since the file was written, by the clock of the file system; None if there is none."""
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except OSError:
        return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
