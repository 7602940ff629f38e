"""What a host does when it is asked: tells what it is, and measures with the ordinary `gilscope run` in a child.

The child measures round after round in a folder of its own and chooses them itself; who asks gets the complete rounds
that it does not have yet.  Nobody's child stays: it ends when nobody asks for it any more, and with this process.
A worker of dask's calls these functions; what they take and return is text, numbers and bytes.
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
from gilscope.toolkit.measure.machine.described import this_machine
from gilscope.toolkit.measure.machine.other_load import others_now
from gilscope.toolkit.processes.supervised import Supervised
from gilscope.toolkit.store import read_json
from gilscope.toolkit.store.header import HEADER
from gilscope.toolkit.store.transfer_rounds import Arriving, cut
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.model import Machine

LABEL = "fleet"          # of the run in the child's own folder
BEAT = 10.0              # seconds after which a host answers, if only that there is nothing new
# Seconds without a question after which its run is ended.  Of a client that is killed dask says so at once: it gives up
# what that asked.  This is for one that is killed between two questions, cut off or held up: dask waits 30 s for who is
# silent (distributed.comm.timeouts.tcp), and who is back by then, or keeps the rounds of 200 hosts, shall lose none.
LEASE = 60.0
LOOK = 0.2               # seconds between looks at the child's folder: next to no time, beside rounds of seconds
LAST_WORDS = 4096        # bytes of what a child printed that are looked at
SAID = 3                 # of its last lines are told
_PACKAGES = ("pyperf", "distributed")


class Answer(TypedDict):
    """What a host says of its run."""

    state: str           # "running"; "ended", with `code`; "unknown": it has no such run (any more)
    code: int | None     # of the child, as a shell says it
    said: list[str]      # the last lines that the child printed
    block: bytes         # complete rounds since those asked for, see `store.transfer_rounds`; empty: none was saved


def facts() -> dict[str, Any]:
    """Return what this host is, as plain values: versions, machine, load, builds."""
    found = find_builds()
    pair: list[str] = []
    with contextlib.suppress(ToolkitError):   # there is none
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
    """Return a sum over gilscope's own source: two checkouts of one version may differ."""
    summed = hashlib.sha256()
    for folder in ("toolkit", "workloads", "runners"):
        root = Path(gilscope.__file__).parent / folder
        for file in sorted(root.rglob("*.py")):
            summed.update(f"{folder}/{file.relative_to(root)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return summed.hexdigest()


class Session:
    """One run on this host: the child, its folder, and who asks for it."""

    def __init__(self, command: Sequence[str], block: bytes) -> None:
        """Start `gilscope run` with these words, going on after the rounds in `block`, if any.

        Raises:
            BadFileError: the block is none.
            ToolkitError: its rounds were measured on another machine.
        """
        self.folder = Path(tempfile.mkdtemp(prefix=temporary.prefix("fleet")))
        self.given_up = False   # nobody has asked for it for too long
        self._asked = time.monotonic()
        self._asking = 0
        self._done = self._changed = self._sent = 0
        try:
            if block:
                with Arriving(self.run_folder, LABEL) as arriving:
                    _refuse_another(arriving.keep(block).machine)
                self._sent = self._saved()
            words = ["--resume", LABEL, *command] if block else [*command, "--label", LABEL]
            with self._output("wb") as output:
                self._child = Supervised(
                    [sys.executable, "-m", "gilscope", "run", *words, "--take-turns"], cwd=self.folder,
                    env=environment(os.environ), stdout=output, stderr=output)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        threading.Thread(target=self._watch, name="gilscope-lease", daemon=True).start()

    @property
    def run_folder(self) -> Path:
        """Where its run is kept."""
        return self.folder / "results" / LABEL

    def _output(self, mode: str) -> BinaryIO:
        return (self.folder / "output").open(mode)   # type: ignore[return-value]  # both modes are binary

    def _watch(self) -> None:
        """End it when nobody asks any more."""
        while self._child.poll() is None:
            if not self._asking and time.monotonic() - self._asked > LEASE:
                self.given_up = True
                self.end()
                return
            time.sleep(1)

    def answer(self, since: int, wait: float, wanted: Callable[[], bool]) -> Answer:
        """Wait until there are complete rounds from `since` on, or the child ends, or the time or the wish is over."""
        self._asking += 1
        try:
            deadline = time.monotonic() + wait
            while ((code := self._child.poll()) is None and self._rounds() <= since and time.monotonic() < deadline
                   and wanted()):
                time.sleep(LOOK)
            new = code is not None or self._rounds() > since
            return {"state": "running" if code is None else "ended", "code": code, "said": self._said(),
                    "block": self._block(since) if new else b""}
        finally:
            self._asking -= 1
            self._asked = time.monotonic()

    def _rounds(self) -> int:
        """Return how many rounds are complete; the file is read only when it is another one."""
        with contextlib.suppress(OSError, BadFileError, KeyError, ValueError):
            if (changed := self._saved()) != self._changed:
                self._done, self._changed = int(read_json(self.run_folder / HEADER)["rounds_done"]), changed
        return self._done

    def _saved(self) -> int:
        """Return when its run was saved, in nanoseconds; 0: not yet."""
        with contextlib.suppress(FileNotFoundError):
            return (self.run_folder / HEADER).stat().st_mtime_ns
        return 0

    def _block(self, since: int) -> bytes:
        """Return the new rounds; nothing where the child has saved none: what was sent here is not its word."""
        return cut(self.run_folder, since) if self._saved() != self._sent else b""

    def _said(self) -> list[str]:
        with contextlib.suppress(OSError):
            lines = last_text(self.folder / "output", LAST_WORDS).splitlines()
            return [line for line in lines if line.strip()][-SAID:]
        return []

    def end(self) -> None:
        """End the child and what it started; remove its folder."""
        self._child.end_politely()
        shutil.rmtree(self.folder, ignore_errors=True)


def _refuse_another(before: Machine) -> None:
    """Refuse to go on with what another machine has measured: one name, but two machines' rounds in one run."""
    here = this_machine()
    was, now = (f"{each.cpu_model} with {counted(each.cores, 'core')}" for each in (before, here))
    if was != now:
        raise ToolkitError(f"its rounds were measured on {was}, and this is {now}: give this worker another --name")


SESSIONS: dict[str, Session] = {}


def environment(of: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a child: without what dask set for itself, which would reach measured processes."""
    # It limits the threads of C libraries to one, for its own tasks.
    limits = {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_"}
    return {name: value for name, value in of.items() if name not in limits and not name.startswith("DASK_")}


def advance(
    session: str, command: list[str] | None, since: int, block: bytes = b"", wait: float = BEAT,
    wanted: Callable[[], bool] = lambda: True,
) -> Answer:
    """Have the run `session` go on, and return its complete rounds from `since` on as soon as there are some.

    Args:
        session: What the run is known by; who asks for it has made that up.
        command: Words for `gilscope run` that begin it, or go on with it, if it is not here; None: say so.
        since: How many rounds are known.
        block: With `command`: these rounds.
        wait: Seconds after which to answer, if only that there is nothing new.
        wanted: Whether anybody waits for the answer; when nobody does any more, the run is ended.
    """
    known = SESSIONS.get(session)
    if known is None or known.given_up:
        if command is None:
            return {"state": "unknown", "code": None, "said": [], "block": b""}
        try:
            known = SESSIONS[session] = Session(command, block)
        except ToolkitError as error:
            return {"state": "ended", "code": error.exit_code, "said": [str(error)], "block": b""}
    answer = known.answer(since, wait, wanted)
    if answer["state"] == "ended" or not wanted():
        end(session)
    return answer


def end(session: str) -> None:
    """End the run `session`, if it is here."""
    known = SESSIONS.pop(session, None)
    if known is not None:
        known.end()
