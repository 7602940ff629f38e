"""Measure one run on all hosts of a cluster: request the next rounds from each, and store every block on arrival.

The run waits for a host that disconnects.  A host that connects, or reconnects, continues after its stored rounds.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.fleet.dask_cluster import (
    MEET_SECONDS,
    Connection,
    FleetLostError,
    FleetWorker,
    another_version,
    other_versions,
)
from gilscope.toolkit.measure.run_status import RunStatus
from gilscope.toolkit.records import DamagedError, from_plain
from gilscope.toolkit.report.progress import format_left
from gilscope.toolkit.store import Fleet, FleetStore, Host, HostState, with_machines
from gilscope.toolkit.store.transfer_rounds import RoundReceiver, SavePace, cut_block
from gilscope.toolkit.units import MOST_NAMED, counted, inflect, list_text

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from pathlib import Path

    from gilscope.toolkit.fleet.on_host import HostAnswer
    from gilscope.toolkit.model import RunEnd

TRIES = 3                # attempts without a new round after which a host is given up
PATIENCE = 60.0          # seconds to wait for disconnected hosts once no other host measures
REPORT_SECONDS = 15.0    # between two lines of progress
STILL_SECONDS = 120.0    # between two equal lines of progress
# Of a run that can be continued.
_UNFINISHED: frozenset[RunEnd] = frozenset({"running", "interrupted", "killed", "starved"})
_FAILED = 3              # exit code of a run with failed cells
_KNOWN_CODES = frozenset({0, 1, 2, 3})   # gilscope's own exit codes; with any other, the run was ended from outside


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRequest:
    """The request that every host gets."""

    label: str
    command: tuple[str, ...]    # words of `gilscope run` that start the run on a host
    again: tuple[str, ...]      # options beside --resume that continue it; also given to hosts that start later
    enough: Callable[[Path], bool] = lambda _path: False   # returns True if the run in a folder is complete


@dataclass(slots=True, kw_only=True)
class _Part:
    """The run on one host."""

    name: str
    state: HostState = HostState.RUNNING
    note: str = ""
    address: str = ""             # its current address; "": it is not connected
    session: str = field(default_factory=lambda: uuid.uuid4().hex)
    begun: bool = False           # the host has confirmed that it runs our session
    measured: bool = False        # the stored header comes from the child that measures there now
    receiver: RoundReceiver | None = None
    status: RunStatus = field(default_factory=RunStatus)   # of its child
    last_line: str = ""           # the last line that its child printed
    tries: int = 0                # attempts since the last new round
    gone: float = 0.0             # the time at which it disconnected
    reported: bool = False        # its loss has been reported
    marks: set[Hashable] = field(default_factory=set)   # what identifies its machine

    @property
    def rounds(self) -> int:
        return self.receiver.rounds if self.receiver else 0

    @property
    def complete(self) -> bool:
        """True if its child reports that the run is complete."""
        run = self.receiver.run if self.receiver and self.measured else None
        return run is not None and (run.stopped not in _UNFINISHED or run.rounds_done >= run.rounds_planned)


class FleetRun:
    """A run on a fleet in progress."""

    def __init__(
        self, connection: Connection, store: FleetStore, before: Fleet, request: FleetRequest,
        say: Callable[[str], None], clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to start or continue a run.

        Args:
            connection: The connection to the cluster.
            store: The store of the fleet's run.
            before: The hosts so far; none in a new run.
            request: The request that every host gets.
            say: Callback for messages.
            clock: Returns seconds.

        Raises:
            BadFileError: The stored run of a host is damaged.
            LabelTakenError: Another process is writing it.
        """
        self._connection = connection
        self._store = store
        self._request = request
        self._say = say
        self._clock = clock
        self._pace = SavePace(clock)
        self._parts: dict[str, _Part] = {}
        self.failed = False                # some cells failed on a host
        self._refused: set[str] = set()    # addresses of hosts with another version of gilscope
        self._finished: list[_Part] = []   # finished hosts that have not been reported yet
        self._reported_at = self._checked_at = clock()
        self._last_line = ("", self._reported_at)
        self._known = [host.name for host in before.hosts]
        for host in before.hosts:
            part = self._opened(host, goes_on=bool(request.again))
            if part.rounds:   # a host that never delivered a round need not come back
                self._parts[host.name] = part

    def _opened(self, host: Host, *, goes_on: bool) -> _Part:
        marks: set[Hashable] = set() if host.machine is None else {host.machine}   # by an earlier part of this run
        part = _Part(name=host.name, state=host.state, note=host.note, marks=marks)
        path = self._path(host.name)
        if path.exists():
            part.receiver = RoundReceiver(path, self._label(host.name), self._pace)
        if part.rounds and self._request.enough(path):
            part.state, part.note = HostState.FINISHED, ""
        elif part.state is not HostState.FINISHED or goes_on:
            # It counts as lost until it is connected.
            part.state, part.note, part.gone = HostState.LOST, "it is not connected", self._clock()
        return part

    def _path(self, name: str) -> Path:
        return self._store.path / name

    def _label(self, name: str) -> str:
        return f"{self._request.label}/{name}"

    def go(self) -> Fleet:
        """Measure on all hosts until each has every requested round; received rounds are stored whatever ends it.

        Raises:
            FleetLostError: The scheduler is gone.
            SaveError: The disk is full.
            KeyboardInterrupt: After every host was told to stop.
        """
        try:
            self._save()
            self._check_hosts()
            self._report_changed_hosts()
            while self._is_active():
                name, answer = self._connection.next_answer(MEET_SECONDS)
                if name is not None:
                    self._handle_answer(self._parts[name], answer)
                if self._clock() - self._checked_at >= MEET_SECONDS:
                    self._check_hosts()
                self._report_progress()
            self._report_finished()
            for part in self._parts.values():
                if part.state is HostState.LOST and not part.reported:
                    self._say(f"{part.name} lost: {part.note}")
        except FleetLostError as error:
            self._stop("the scheduler went away")
            raise FleetLostError(f"{error}: {self.stored_rounds()}. Start it again, and: gilscope run --resume "
                                 f"{self._request.label} --fleet {self._connection.address}") from error
        except BaseException:
            self._connection.end({each.address: each.session for each in self._parts.values()
                                  if each.address and each.state is HostState.RUNNING})
            self._stop("it was interrupted")
            raise
        self._close()
        return self._fleet()

    def stored_rounds(self) -> str:
        """Return a sentence about the stored rounds: "results/LABEL has 5 rounds of 2 hosts"."""
        rounds = sum(each.rounds for each in self._parts.values())
        return f"{self._store.path} has {counted(rounds, 'round')} of {counted(len(self._parts), 'host')}"

    def _is_active(self) -> bool:
        states = [part.state for part in self._parts.values()]
        return HostState.RUNNING in states or any(
            part.state is HostState.LOST and self._clock() - part.gone < PATIENCE and part.tries < TRIES
            for part in self._parts.values())

    def _check_hosts(self) -> None:
        """Start or continue on hosts that have connected, and stop waiting for those that have disconnected."""
        self._checked_at = self._clock()
        here = {each.name: each for each in self._connection.workers()}
        went = [part for part in self._parts.values() if part.address and (
            part.name not in here or here[part.name].address != part.address)]
        self._report_lost([part for part in went if self._disconnect(part)])
        new = [each for each in here.values() if self._can_begin(each)]
        if new:
            begun = [*map(self._begin, self._of_our_version(new))]
            self._report_continued([part for part in begun if part.rounds and part.state is HostState.RUNNING])
            self._save()   # before the first round of a new host arrives

    def _report_lost(self, parts: Sequence[_Part]) -> None:
        if parts:
            them, they_go_on = ("it", "it goes on when it comes") if len(parts) == 1 else (
                "them", "they go on when they come")
            self._say(f"{_names(parts)} went away; {_rounds_of(parts)} of {them} are stored, and {they_go_on} back")

    def _report_changed_hosts(self) -> None:
        """Report the hosts that differ from those of the run that is continued."""
        away = [part.name for part in self._parts.values() if part.state is HostState.LOST]
        dropped = [name for name in self._known if name not in self._parts]
        new = [name for name in self._parts if name not in self._known] if self._known else []
        changes = [f"{_listed(names)} {inflect(len(names), 'is', 'are')} {what}" for names, what in (
            (away, "not connected"), (dropped, "left out: not connected, and without a round"), (new, "new")) if names]
        if changes:
            self._say("; ".join(changes))

    def _report_continued(self, parts: Sequence[_Part]) -> None:
        if parts:
            self._say(f"{_names(parts)} {'goes' if len(parts) == 1 else 'go'} on after {_rounds_of(parts)}")

    def _report_finished(self) -> None:
        if self._finished:
            have = inflect(len(self._finished), "has", "have")
            self._say(f"{_names(self._finished)} {have} finished: {_rounds_of(self._finished)}")
            self._finished.clear()

    def _can_begin(self, worker: FleetWorker) -> bool:
        part = self._parts.get(worker.name)
        return worker.address not in self._refused and (part is None or (
            not part.address and part.state is HostState.LOST and part.tries < TRIES))

    def _of_our_version(self, workers: Sequence[FleetWorker]) -> list[FleetWorker]:
        """Return the workers with our version of gilscope; report each other one once."""
        others = other_versions(self._connection.versions(workers))
        for each in workers:
            if each.name in others:
                self._refused.add(each.address)
                self._say(another_version({each.name: others[each.name]}))
        return [each for each in workers if each.name not in others]

    def _disconnect(self, part: _Part) -> bool:
        """Stop waiting for a host that is gone; return True if it had not finished."""
        self._connection.forget(part.name)
        part.address, part.begun = "", False
        if part.state is not HostState.RUNNING:
            return False
        part.tries += 1
        part.gone = self._clock()
        self._set(part, HostState.LOST, f"it went away after {counted(part.rounds, 'round')}")
        return True

    def _begin(self, worker: FleetWorker) -> _Part:
        part = self._parts.setdefault(worker.name, _Part(name=worker.name))
        part.address = worker.address
        self._set(part, HostState.RUNNING, "")
        self._ask(part)
        return part

    def _ask(self, part: _Part) -> None:
        worker = FleetWorker(name=part.name, address=part.address)
        if part.begun:
            self._connection.ask(worker, part.session, None, part.rounds, b"")
            return
        part.measured, part.status, part.last_line = False, RunStatus(), ""
        if part.receiver and part.rounds:
            part.receiver.merge()
            if self._request.enough(self._path(part.name)):   # the host was lost after its last round
                self._finish(part)
                return
            block = cut_block(self._path(part.name))
            self._connection.ask(worker, part.session, self._request.again, part.rounds, block)
        else:
            # argparse uses the last value of an option, so the options of --resume override those of the start.
            more = [word for word in self._request.again if word not in self._request.command]
            self._connection.ask(worker, part.session, [*self._request.command, *more], 0, b"")

    def _handle_answer(self, part: _Part, answer: HostAnswer | Exception) -> None:
        """Store the rounds in a host's answer, and request more."""
        if part.state is not HostState.RUNNING:
            return
        if isinstance(answer, Exception):
            self._try_again(part, f"{type(answer).__name__}: {answer}".splitlines()[0])
            return
        try:
            if (mark := answer["machine"]) and mark not in part.marks:
                part.marks.add(mark)
                self._save()
            self._store_block(part, answer["block"])
            part.status, part.last_line = from_plain(RunStatus, answer["status"]), answer["last_line"]
        except (BadFileError, DamagedError) as error:
            self._try_again(part, str(error))
            return
        if answer["state"] == "running":
            part.begun = True
            self._ask(part)
        elif answer["state"] == "unknown" or answer["code"] not in _KNOWN_CODES:
            self._try_again(part, f"its run was ended ({answer['code']})" if answer["code"] else "it forgot its run")
        elif part.complete:
            self.failed |= answer["code"] == _FAILED
            self._finish(part)
        else:
            self._set(part, HostState.STOPPED, _reason(part))
            self._say(f"{part.name} stopped: {part.note}")

    def _finish(self, part: _Part) -> None:
        if part.receiver:
            part.receiver.merge()
        self._set(part, HostState.FINISHED, "")
        self._finished.append(part)
        if len(self._parts) <= MOST_NAMED:   # larger fleets get one line for all hosts that finished meanwhile
            self._report_finished()

    def _store_block(self, part: _Part, block: bytes) -> None:
        if not block:
            return
        if part.receiver is None:
            part.receiver = RoundReceiver(self._path(part.name), self._label(part.name), self._pace)
        before = part.rounds
        part.receiver.receive(block)
        part.measured = True
        if part.rounds > before:
            part.tries = 0

    def _try_again(self, part: _Part, why: str) -> None:
        part.begun = False
        part.tries += 1
        if part.tries < TRIES:
            self._ask(part)
            return
        self._set(part, HostState.LOST, why)
        part.reported = True
        self._say(f"{part.name} is given up after {TRIES} tries without a round: {why}")

    def _set(self, part: _Part, state: HostState, note: str) -> None:
        if (part.state, part.note) != (state, note):
            part.state, part.note = state, note
            self._save()

    def _fleet(self) -> Fleet:
        hosts = [Host(name=part.name, state=part.state, note=part.note) for part in self._parts.values()]
        marks = {part.name: part.marks for part in self._parts.values()}
        return Fleet(hosts=with_machines(hosts, marks), command=self._request.command)

    def _save(self) -> None:
        if self._parts:
            self._store.save(self._fleet())

    def _stop(self, why: str) -> None:
        """Mark all running hosts as stopped, and close the files."""
        for part in self._parts.values():
            if part.state is HostState.RUNNING:
                part.state, part.note = HostState.STOPPED, why
        self._close()

    def _close(self) -> None:
        try:
            for part in self._parts.values():
                if part.receiver:
                    part.receiver.merge()
            self._save()
        finally:
            for part in self._parts.values():
                if part.receiver:
                    part.receiver.close()
            self._store.close()

    def _report_progress(self) -> None:
        """Report the progress, at most every `REPORT_SECONDS`."""
        if self._clock() - self._reported_at < REPORT_SECONDS:
            return
        self._reported_at = self._clock()
        self._report_finished()
        line = self._progress()
        before, then = self._last_line
        if line and (line != before or self._reported_at - then >= STILL_SECONDS):
            self._last_line = line, self._reported_at
            self._say(line)

    def _progress(self) -> str:
        """Return the progress of the measuring hosts, or the hosts that are waited for; "" if there are none."""
        parts = [part for part in self._parts.values() if part.state is HostState.RUNNING]
        if len(parts) > MOST_NAMED:
            rounds = sum(part.rounds for part in self._parts.values())
            slowest = min(parts, key=lambda part: part.rounds)
            return (f"{counted(rounds, 'round')} on {counted(len(self._parts), 'host')}; {len(parts)} still measure, "
                    f"{slowest.name}: {_progress_of(slowest)}")
        alike: dict[str, list[_Part]] = {}
        for part in parts:
            alike.setdefault(_progress_of(part), []).append(part)
        if alike:
            return "; ".join(f"{_names(each)}: {far}" for far, each in alike.items())
        away = [part for part in self._parts.values() if part.state is HostState.LOST and part.tries < TRIES]
        return f"waiting for {_names(away)} to come back" if away else ""


def _names(parts: Sequence[_Part]) -> str:
    """Return "a", "a and b", "a, b, c, d and 196 more"."""
    return _listed([each.name for each in parts])


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return list_text([*names[:MOST_NAMED], f"{more} more"] if more > 0 else names)


def _rounds_of(parts: Sequence[_Part]) -> str:
    return counted(sum(each.rounds for each in parts), "round")


def _progress_of(part: _Part) -> str:
    """Return a host's progress: "2 of 15 rounds", or its activity before the first round."""
    run, status = part.receiver.run if part.receiver and part.measured else None, part.status
    left = "" if status.seconds_left is None else format_left(status.seconds_left, most=status.may_stop)
    if run:
        up_to = ", up to" if status.may_stop else " of"
        return f"{part.rounds}{up_to} {counted(run.rounds_planned, 'round')}" + (f" ({left})" if left else "")
    if status.round:
        of = f", up to {status.rounds}" if status.may_stop else f" of {status.rounds}"
        done = f"round {status.round}{of}, {status.done} of {counted(status.cells, 'cell')}"
        return done + (f" ({left})" if left else "")
    return part.last_line or ("it begins" if part.begun else "no answer yet: another run may keep it busy")


def _reason(part: _Part) -> str:
    """Return why a run ended, on one line: the error in its status, or else the last line that it printed."""
    return " ".join(part.status.error.split()) or part.last_line or "it ended without a word"
