"""One run on all hosts of a cluster: each is asked for its next rounds, and what comes is kept at once.

A host that goes away is waited for, a host that comes, or comes back, goes on after the rounds that are kept of it.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.fleet.dask_cluster import MEET_SECONDS, Connection, FleetLostError, Worker, same_version
from gilscope.toolkit.report.wording import list_text
from gilscope.toolkit.store import Fleet, FleetStore, Host, HostState
from gilscope.toolkit.store.transfer_rounds import Arriving, Pace, cut
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gilscope.toolkit.fleet.on_host import Answer

TRIES = 3                # of a host that measures no round in between, until it is given up
PATIENCE = 60.0          # seconds that hosts which went away are waited for when no other measures any more
TELL_SECONDS = 15.0      # between lines about how far it is
STILL_SECONDS = 120.0    # and where it is as far as it was
MOST_TOLD = 4            # hosts that a line names
_GOES_ON = frozenset({"running", "interrupted", "killed"})   # endings of a run that are none
_FAILED = 3              # the code of a run with cells that failed
_KNOWN_CODES = frozenset({0, 1, 2, 3})   # of gilscope; another one is that of something that ended it


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What every host measures."""

    label: str
    command: tuple[str, ...]    # words for `gilscope run` that begin it
    again: tuple[str, ...]      # words beside --resume that go on with it; who begins late is told them, too
    enough: Callable[[Path], bool] = lambda _path: False   # whether the run in a folder has all that is asked for now


@dataclass(slots=True, kw_only=True)
class _Part:
    """The run on one host."""

    name: str
    state: HostState = HostState.RUNNING
    note: str = ""
    address: str = ""             # where it is now; "": it is not there
    session: str = field(default_factory=lambda: uuid.uuid4().hex)
    begun: bool = False           # the host has said that it has our run
    measured: bool = False        # what is known of its run is what the child says that measures there now
    arriving: Arriving | None = None
    said: str = ""                # the last line of its child, until there is a round of it
    tries: int = 0                # that ended without a round
    gone: float = 0.0             # when it went away
    told: bool = False            # it has been given up, and that has been said

    @property
    def rounds(self) -> int:
        return self.arriving.rounds if self.arriving else 0

    @property
    def whole(self) -> bool:
        """Whether its child says that its run has what it was asked for."""
        run = self.arriving.run if self.arriving and self.measured else None
        return run is not None and (run.stopped not in _GOES_ON or run.rounds_done >= run.rounds_planned)


class FleetRun:
    """A run on a fleet in progress."""

    def __init__(
        self, connection: Connection, store: FleetStore, before: Fleet, asked: Asked, say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to go on with a run.

        Args:
            connection: To the cluster.
            store: Where it is kept.
            before: What there is already; no hosts in a new one.
            asked: What every host measures.
            say: Told what happens.
            clock: Seconds.

        Raises:
            BadFileError: what is kept of a host is damaged.
            LabelTakenError: another process holds it.
        """
        self._connection = connection
        self._store = store
        self._asked = asked
        self._say = say
        self._clock = clock
        self._pace = Pace(clock)
        self._parts: dict[str, _Part] = {}
        self.failed = False                # cells did, on some host
        self._refused: set[str] = set()    # addresses of hosts with another gilscope
        self._finished: list[_Part] = []   # of which that is still to be told
        self._told = self._met = clock()
        self._last_line = ("", self._told)
        self._known = [host.name for host in before.hosts]
        for host in before.hosts:
            part = self._opened(host, goes_on=bool(asked.again))
            if part.rounds:   # who never had one, and is not there, is not missed
                self._parts[host.name] = part

    def _opened(self, host: Host, *, goes_on: bool) -> _Part:
        part = _Part(name=host.name, state=host.state, note=host.note)
        path = self._path(host.name)
        if path.exists():
            part.arriving = Arriving(path, self._label(host.name), self._pace)
        if part.rounds and self._asked.enough(path):
            part.state, part.note = HostState.FINISHED, ""
        elif part.state is not HostState.FINISHED or goes_on:
            # It is lost until it is met.
            part.state, part.note, part.gone = HostState.LOST, "it is not there", self._clock()
        return part

    def _path(self, name: str) -> Path:
        return self._store.path / name

    def _label(self, name: str) -> str:
        return f"{self._asked.label}/{name}"

    def go(self) -> Fleet:
        """Measure on all hosts until each has what was asked for; what came is kept whatever ends it.

        Raises:
            FleetLostError: the scheduler is gone.
            SaveError: the disk is full.
            KeyboardInterrupt: every host has been told to end.
        """
        try:
            self._save()
            self._meet()
            self._say_who_is_not_there()
            while self._goes_on():
                name, answer = self._connection.next_answer(MEET_SECONDS)
                if name is not None:
                    self._take(self._parts[name], answer)
                if self._clock() - self._met >= MEET_SECONDS:
                    self._meet()
                self._tell()
            self._say_that_they_finished()
            for part in self._parts.values():
                if part.state is HostState.LOST and not part.told:
                    self._say(f"{part.name} lost: {part.note}")
        except FleetLostError as error:
            self._stop("the scheduler went away")
            raise FleetLostError(f"{error}: {self.kept()}. Start it again, and: gilscope run --resume "
                                 f"{self._asked.label} --fleet {self._connection.address}") from error
        except BaseException:
            self._connection.end({each.address: each.session for each in self._parts.values()
                                  if each.address and each.state is HostState.RUNNING})
            self._stop("it was interrupted")
            raise
        self._close()
        return self._fleet()

    def kept(self) -> str:
        """Return what is kept: "results/LABEL has 5 rounds of 2 hosts"."""
        rounds = sum(each.rounds for each in self._parts.values())
        return f"{self._store.path} has {counted(rounds, 'round')} of {counted(len(self._parts), 'host')}"

    def _goes_on(self) -> bool:
        states = [part.state for part in self._parts.values()]
        return HostState.RUNNING in states or any(
            part.state is HostState.LOST and self._clock() - part.gone < PATIENCE and part.tries < TRIES
            for part in self._parts.values())

    def _meet(self) -> None:
        """Look who is there: ask who came, and wait for nothing from who went."""
        self._met = self._clock()
        here = {each.name: each for each in self._connection.workers()}
        went = [part for part in self._parts.values() if part.address and (
            part.name not in here or here[part.name].address != part.address)]
        self._say_that_they_went([part for part in went if self._part_from(part)])
        new = [each for each in here.values() if self._is_wanted(each)]
        if new:
            begun = [*map(self._begin, self._of_our_version(new))]
            self._say_that_they_go_on([part for part in begun if part.rounds and part.state is HostState.RUNNING])
            self._save()   # whose rounds are kept is known before the first of them comes

    def _say_that_they_went(self, parts: Sequence[_Part]) -> None:
        if parts:
            them, they_go_on = ("it", "it goes on when it comes") if len(parts) == 1 else (
                "them", "they go on when they come")
            self._say(f"{_names(parts)} went away; {_rounds_of(parts)} of {them} are kept, and {they_go_on} back")

    def _say_who_is_not_there(self) -> None:
        """Say in what the cluster differs from that of the run that goes on."""
        away = [part.name for part in self._parts.values() if part.state is HostState.LOST]
        dropped = [name for name in self._known if name not in self._parts]
        new = [name for name in self._parts if name not in self._known] if self._known else []
        told = [f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {what}" for names, what in (
            (away, "not there"), (dropped, "left out: not there, and no round"), (new, "new")) if names]
        if told:
            self._say("; ".join(told))

    def _say_that_they_go_on(self, parts: Sequence[_Part]) -> None:
        if parts:
            self._say(f"{_names(parts)} {'goes' if len(parts) == 1 else 'go'} on after {_rounds_of(parts)}")

    def _say_that_they_finished(self) -> None:
        if self._finished:
            have = "has" if len(self._finished) == 1 else "have"
            self._say(f"{_names(self._finished)} {have} finished: {_rounds_of(self._finished)}")
            self._finished.clear()

    def _is_wanted(self, worker: Worker) -> bool:
        part = self._parts.get(worker.name)
        return worker.address not in self._refused and (part is None or (
            not part.address and part.state is HostState.LOST and part.tries < TRIES))

    def _of_our_version(self, workers: Sequence[Worker]) -> list[Worker]:
        """Return those with our version of gilscope, and say which others there are, once."""
        versions = self._connection.versions(workers)
        fine = []
        for each in workers:
            try:
                same_version({each.name: versions[each.name]})
                fine.append(each)
            except Exception as error:  # noqa: BLE001  a ToolkitError: the message is for the user
                self._refused.add(each.address)
                self._say(str(error))
        return fine

    def _part_from(self, part: _Part) -> bool:
        """Wait for nothing from it; return whether it was to measure more."""
        self._connection.forget(part.name)
        part.address, part.begun = "", False
        if part.state is not HostState.RUNNING:
            return False
        part.tries += 1
        part.gone = self._clock()
        self._set(part, HostState.LOST, f"it went away after {counted(part.rounds, 'round')}")
        return True

    def _begin(self, worker: Worker) -> _Part:
        part = self._parts.setdefault(worker.name, _Part(name=worker.name))
        part.address = worker.address
        self._set(part, HostState.RUNNING, "")
        self._ask(part)
        return part

    def _ask(self, part: _Part) -> None:
        worker = Worker(name=part.name, address=part.address)
        if part.begun:
            self._connection.ask(worker, part.session, None, part.rounds, b"")
            return
        part.measured, part.said = False, ""
        if part.arriving and part.rounds:
            part.arriving.put()
            if self._asked.enough(self._path(part.name)):   # the host went away before it could say that it has ended
                self._finish(part)
                return
            block = cut(self._path(part.name))
            self._connection.ask(worker, part.session, self._asked.again, part.rounds, block)
        else:
            # What is wanted now comes last: it goes before what was asked for at first.
            more = [word for word in self._asked.again if word not in self._asked.command]
            self._connection.ask(worker, part.session, [*self._asked.command, *more], 0, b"")

    def _take(self, part: _Part, answer: Answer | Exception) -> None:
        """Keep what a host has answered, and ask it for more."""
        if part.state is not HostState.RUNNING:
            return
        if isinstance(answer, Exception):
            self._try_again(part, f"{type(answer).__name__}: {answer}".splitlines()[0])
            return
        try:
            self._keep(part, answer["block"])
        except BadFileError as error:
            self._try_again(part, str(error))
            return
        if answer["state"] == "running":
            part.begun = True
            part.said = _last(answer["said"])
            self._ask(part)
        elif answer["state"] == "unknown" or answer["code"] not in _KNOWN_CODES:
            self._try_again(part, f"its run was ended ({answer['code']})" if answer["code"] else "it forgot its run")
        elif part.whole:
            self.failed |= answer["code"] == _FAILED
            self._finish(part)
        else:
            self._set(part, HostState.STOPPED, _reason(answer["said"]))
            self._say(f"{part.name} stopped: {part.note}")

    def _finish(self, part: _Part) -> None:
        if part.arriving:
            part.arriving.put()
        self._set(part, HostState.FINISHED, "")
        self._finished.append(part)
        if len(self._parts) <= MOST_TOLD:   # of more hosts those of some seconds are told together
            self._say_that_they_finished()

    def _keep(self, part: _Part, block: bytes) -> None:
        if not block:
            return
        if part.arriving is None:
            part.arriving = Arriving(self._path(part.name), self._label(part.name), self._pace)
        before = part.rounds
        part.arriving.keep(block)
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
        part.told = True
        self._say(f"{part.name} is given up after {TRIES} tries without a round: {why}")

    def _set(self, part: _Part, state: HostState, note: str) -> None:
        if (part.state, part.note) != (state, note):
            part.state, part.note = state, note
            self._save()

    def _fleet(self) -> Fleet:
        hosts = tuple(Host(name=part.name, state=part.state, note=part.note) for part in self._parts.values())
        return Fleet(hosts=hosts, command=self._asked.command)

    def _save(self) -> None:
        if self._parts:
            self._store.save(self._fleet())

    def _stop(self, why: str) -> None:
        """Mark all that was going on as stopped, and let go of the files."""
        for part in self._parts.values():
            if part.state is HostState.RUNNING:
                part.state, part.note = HostState.STOPPED, why
        self._close()

    def _close(self) -> None:
        try:
            for part in self._parts.values():
                if part.arriving:
                    part.arriving.put()
            self._save()
        finally:
            for part in self._parts.values():
                if part.arriving:
                    part.arriving.close()
            self._store.close()

    def _tell(self) -> None:
        """Say how far it is, now and then."""
        if self._clock() - self._told < TELL_SECONDS:
            return
        self._told = self._clock()
        self._say_that_they_finished()
        line = self._how_far()
        before, then = self._last_line
        if line and (line != before or self._told - then >= STILL_SECONDS):
            self._last_line = line, self._told
            self._say(line)

    def _how_far(self) -> str:
        """Return how far the hosts that measure are, or whom it waits for; "" where that is nobody."""
        parts = [part for part in self._parts.values() if part.state is HostState.RUNNING]
        if len(parts) > MOST_TOLD:
            rounds = sum(part.rounds for part in self._parts.values())
            slowest = min(parts, key=lambda part: part.rounds)
            return (f"{counted(rounds, 'round')} on {counted(len(self._parts), 'host')}; {len(parts)} still measure, "
                    f"{slowest.name}: {_far(slowest)}")
        alike: dict[str, list[_Part]] = {}
        for part in parts:
            alike.setdefault(_far(part), []).append(part)
        if alike:
            return "; ".join(f"{_names(each)}: {far}" for far, each in alike.items())
        away = [part for part in self._parts.values() if part.state is HostState.LOST and part.tries < TRIES]
        return f"waiting for {_names(away)} to come back" if away else ""


def _names(parts: Sequence[_Part]) -> str:
    """Return "a", "a and b", "a, b, c, d and 196 more"."""
    return _listed([each.name for each in parts])


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_TOLD
    return list_text([*names[:MOST_TOLD], f"{more} more"] if more > 0 else names)


def _rounds_of(parts: Sequence[_Part]) -> str:
    return counted(sum(each.rounds for each in parts), "round")


def _far(part: _Part) -> str:
    """Return how far a host is: "2 of 15 rounds", or what it does before the first one of these."""
    run = part.arriving.run if part.arriving and part.measured else None
    if run:
        left = part.said.rpartition(", about ")[2] if part.said.endswith(" left") else ""
        return f"{part.rounds} of {counted(run.rounds_planned, 'round')}" + (f" (about {left})" if left else "")
    return part.said or ("it begins" if part.begun else "no answer yet: another run may keep it busy")


def _last(said: Sequence[str]) -> str:
    """Return what a child says that it does; when it begins to measure it names a folder that is not ours."""
    return said[-1].strip().partition(", seed ")[0] if said else ""


def _reason(said: Sequence[str]) -> str:
    """Return why a run ended, as its last words tell."""
    return said[-1].removeprefix("gilscope: ").strip() if said else "it ended without a word"
