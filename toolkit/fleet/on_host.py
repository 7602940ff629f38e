"""The part that runs on a host: it describes the host, and measures with the ordinary `gilscope run` in a child.

The child measures round after round in a folder of its own; the client polls for complete rounds that it lacks.  The
child ends when the client stops polling, and with this process.  Dask workers call these functions, which take and
return text, numbers and bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypedDict

import gilscope
from gilscope.toolkit import temporary
from gilscope.toolkit.bounded_reading import last_text
from gilscope.toolkit.builds.find import default_pair, find_builds
from gilscope.toolkit.errors import BadFileError, ToolkitError
from gilscope.toolkit.measure.child.other_load import others_now
from gilscope.toolkit.measure.machine import machine_mark, this_machine
from gilscope.toolkit.measure.run_status import RunStatus, read_status
from gilscope.toolkit.processes.supervised import Supervised
from gilscope.toolkit.records import to_plain
from gilscope.toolkit.store import read_json
from gilscope.toolkit.store.header import HEADER
from gilscope.toolkit.store.transfer_rounds import RoundReceiver, cut_block
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.model import Machine

LABEL = "fleet"          # label of the run in the child's own folder
BEAT = 10.0              # seconds after which a host answers even if there is no new round
# Seconds without a request after which a run is ended.  If a client is killed during a request, dask cancels the task
# at once.  The lease covers clients that are killed between two requests, or disconnected.  It is longer than the 30 s
# that dask waits for a silent peer (distributed.comm.timeouts.tcp), so a client can store the rounds of 200 hosts.
LEASE = 60.0
LOOK = 0.2               # seconds between two checks of the child's folder; rounds take seconds
LAST_WORDS = 4096        # bytes at the end of the child's output that are read
_PACKAGES = ("pyperf", "distributed")


class HostAnswer(TypedDict):
    """A host's report on its run."""

    state: str           # "running"; "ended", with `code`; "unknown": the host does not have this run, or not any more
    code: int | None     # exit code of the child, as a shell reports it
    status: dict[str, Any]   # fields of a `RunStatus`; without any: the child has written none
    last_line: str       # the last line that the child printed, for readers
    machine: str         # its `machine_mark`
    block: bytes         # the requested rounds, see `store.transfer_rounds`; empty: there are none


def facts() -> dict[str, Any]:
    """Return this host's versions, machine, load and builds, as plain values."""
    found = find_builds()
    pair: list[str] = []
    with contextlib.suppress(ToolkitError):   # raised if there is no pair
        pair = [build.label for build in default_pair(found)]
    machine = dataclasses.asdict(this_machine())
    return {
        "gilscope": gilscope.__version__, "code": code_sum(), "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "machine": machine, "others": others_now(), "load": os.getloadavg()[0],
        "builds": [dataclasses.asdict(build) for build in found.builds], "pair": pair,
    }


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def code_sum() -> str:
    """Return a hash of gilscope's own source: two checkouts of one version may differ."""
    summed = hashlib.sha256()
    for folder in ("toolkit", "workloads", "runners"):
        root = Path(gilscope.__file__).parent / folder
        for file in sorted(root.rglob("*.py")):
            summed.update(f"{folder}/{file.relative_to(root)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return summed.hexdigest()


class HostSession:
    """One run on this host: the child, its folder, and its lease."""

    def __init__(self, command: Sequence[str], block: bytes) -> None:
        """Start `gilscope run` with these words, continuing after the rounds in `block`, if any.

        Raises:
            BadFileError: `block` is invalid.
            ToolkitError: Its rounds were measured on another machine.
        """
        self.folder = Path(tempfile.mkdtemp(prefix=temporary.prefix("fleet")))
        self.given_up = False   # the lease has expired
        self._asked = time.monotonic()
        self._asking = 0
        self._done = self._changed = self._sent = 0
        try:
            if block:
                with RoundReceiver(self.run_folder, LABEL) as arriving:
                    _refuse_another(arriving.receive(block).machine)
                self._sent = self._saved()
            words = ["--resume", LABEL, *command] if block else [*command, "--label", LABEL]
            with self._output("wb") as output:
                self._child = Supervised(
                    [sys.executable, "-m", "gilscope", "run", *words, "--take-turns",
                     "--status-file", str(self._status_path)], cwd=self.folder,
                    env=environment(os.environ), stdout=output, stderr=output)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        threading.Thread(target=self._watch, name="gilscope-lease", daemon=True).start()

    @property
    def run_folder(self) -> Path:
        """The folder of its run."""
        return self.folder / "results" / LABEL

    @property
    def _status_path(self) -> Path:
        return self.folder / "status.json"

    def _output(self, mode: str) -> BinaryIO:
        return (self.folder / "output").open(mode)   # type: ignore[return-value]  # both modes are binary

    def _watch(self) -> None:
        """End the run when its lease expires."""
        while self._child.poll() is None:
            if not self._asking and time.monotonic() - self._asked > LEASE:
                self.given_up = True
                self.end()
                return
            time.sleep(1)

    def answer(self, since: int, wait: float, wanted: Callable[[], bool]) -> HostAnswer:
        """Return an answer when there are rounds from `since` on, the child ends, or `wait` or `wanted` is over."""
        self._asking += 1
        try:
            deadline = time.monotonic() + wait
            while ((code := self._child.poll()) is None and self._rounds() <= since and time.monotonic() < deadline
                   and wanted()):
                time.sleep(LOOK)
            new = code is not None or self._rounds() > since
            return {"state": "running" if code is None else "ended", "code": code,
                    "status": to_plain(read_status(self._status_path)), "last_line": self._last_line(),
                    "machine": machine_mark(), "block": self._block(since) if new else b""}
        finally:
            self._asking -= 1
            self._asked = time.monotonic()

    def _rounds(self) -> int:
        """Return the number of complete rounds; the file is read only if it has changed."""
        with contextlib.suppress(OSError, BadFileError, KeyError, ValueError):
            if (changed := self._saved()) != self._changed:
                self._done, self._changed = int(read_json(self.run_folder / HEADER)["rounds_done"]), changed
        return self._done

    def _saved(self) -> int:
        """Return the time at which its run was saved, in nanoseconds since the epoch; 0: not yet."""
        with contextlib.suppress(FileNotFoundError):
            return (self.run_folder / HEADER).stat().st_mtime_ns
        return 0

    def _block(self, since: int) -> bytes:
        """Return the new rounds; empty until the child has saved a run of its own over the received block."""
        return cut_block(self.run_folder, since) if self._saved() != self._sent else b""

    def _last_line(self) -> str:
        with contextlib.suppress(OSError):
            lines = last_text(self.folder / "output", LAST_WORDS).splitlines()
            return next((line.strip() for line in reversed(lines) if line.strip()), "")
        return ""

    def end(self) -> None:
        """End the child with all processes that it started, and delete its folder."""
        self._child.end_politely()
        shutil.rmtree(self.folder, ignore_errors=True)


def _refuse_another(before: Machine) -> None:
    """Refuse to continue a run of another machine: two workers with one name would mix their rounds."""
    here = this_machine()
    was, now = (f"{each.cpu_model} with {counted(each.cores, 'core')}" for each in (before, here))
    if was != now:
        raise ToolkitError(f"its rounds were measured on {was}, and this is {now}: give this worker another --name")


SESSIONS: dict[str, HostSession] = {}


def environment(of: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a child, without dask's own settings, which measured processes would inherit."""
    # Dask limits the threads of C libraries to one for its own tasks.
    limits = {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_"}
    return {name: value for name, value in of.items() if name not in limits and not name.startswith("DASK_")}


def advance(
    session: str, command: list[str] | None, since: int, block: bytes = b"", wait: float = BEAT,
    wanted: Callable[[], bool] = lambda: True,
) -> HostAnswer:
    """Continue the run `session`, and return its complete rounds from `since` on as soon as there are any.

    Args:
        session: The id of the run, chosen by the client.
        command: Words of `gilscope run` that start or continue it if it is not on this host; None: answer "unknown".
        since: The number of rounds that the client has.
        block: These rounds, if `command` continues a run.
        wait: Seconds after which to answer even if there is no new round.
        wanted: Returns False when the client no longer waits for the answer; the run is then ended.
    """
    known = SESSIONS.get(session)
    if known is None or known.given_up:
        if command is None:
            return {"state": "unknown", "code": None, "status": {}, "last_line": "", "machine": machine_mark(),
                    "block": b""}
        try:
            known = SESSIONS[session] = HostSession(command, block)
        except ToolkitError as error:
            return {"state": "ended", "code": error.exit_code, "status": to_plain(RunStatus(error=str(error))),
                    "last_line": "", "machine": machine_mark(), "block": b""}
    answer = known.answer(since, wait, wanted)
    if answer["state"] == "ended" or not wanted():
        end(session)
    return answer


def end(session: str) -> None:
    """End the run `session`, if it is here."""
    known = SESSIONS.pop(session, None)
    if known is not None:
        known.end()
