"""`results/LABEL/fleet.json`: which hosts the run of a fleet has, and how each stands.

Each host has a folder beside it, `results/LABEL/HOST/`, an ordinary run that every command reads by itself: write it
with `Store.create(HOST, results / LABEL)`, and give its `Run` the label "LABEL/HOST".  A host that was lost before its
first round may have none.  A host's name is ours ("host-1"); nothing here says where a host is, or who uses it.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, TYPE_CHECKING, Any, Self

from gilscope.toolkit.errors import BadFileError, SaveError
from gilscope.toolkit.store.checking import REMEDY, DamagedError, shown, typed
from gilscope.toolkit.store.header import is_held, locked, read_json, replace_file
from gilscope.toolkit.store.labels import FLEET, RESULTS, can_be_label, new_folder

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = "gilscope fleet"
VERSION = 1
MOST_HOSTS = 10_000


class HostState(StrEnum):
    """How a host's part of a run stands."""

    RUNNING = "running"     # it is being measured; read of a fleet that no process holds it is STOPPED
    FINISHED = "finished"   # it has what was asked: its run.json says whether by rounds, budget or a clear answer
    STOPPED = "stopped"     # we ended it, or were ended ourselves, before it had all
    LOST = "lost"           # the host went away and did not come back


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One machine of a fleet."""

    name: str          # of its folder; a label
    state: HostState
    note: str = ""     # why it was lost or stopped, one line; may hold others' text


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The hosts of one run, in the order of its tables."""

    hosts: tuple[Host, ...]
    command: tuple[str, ...] = ()   # what was asked, for the record; without the fleet's address


class FleetStore:
    """The run of a fleet being written.  One process at a time holds it; `close` lets go."""

    def __init__(self, path: Path, lock: IO[str]) -> None:
        """Use `create` or `reopen` instead."""
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls, label: str, results: Path = RESULTS) -> Self:
        """Make the folder of a new run of a fleet.

        Raises:
            LabelTakenError: there is a run of that name.
            ToolkitError: the folder cannot be written.
        """
        return cls(*new_folder(label, results))

    @classmethod
    def reopen(cls, path: Path) -> tuple[Self, Fleet]:
        """Open the run of a fleet to go on with it, and return how its hosts stand.

        Raises:
            LabelTakenError: another process is writing it.
            BadFileError: fleet.json is missing or damaged.
        """
        store = cls(path, locked(path))
        try:
            return store, _read(path / FLEET)
        except BaseException:
            store.close()
            raise

    def save(self, fleet: Fleet) -> None:
        """Write fleet.json in one step; the hosts' values have stores of their own.

        Raises:
            SaveError: the disk is full or the folder gone, and what was saved before is untouched.
        """
        try:
            replace_file(self.path / FLEET, fleet_text(fleet))
        except OSError as error:
            raise SaveError(f"cannot save {self.path.resolve()}: {error.strerror}; what was saved before is whole: "
                            f"make room, then go on with --resume {self.path.name}") from error

    def close(self) -> None:
        """Let another process write."""
        self._lock.close()


def fleet_text(fleet: Fleet) -> str:
    """Return what fleet.json holds of `fleet`."""
    return json.dumps({"format": FORMAT, "version": VERSION} | dataclasses.asdict(fleet), indent=1)


def is_fleet(path: Path) -> bool:
    """Return whether the folder `path` has the run of a fleet."""
    return (path / FLEET).is_file()


def read_fleet(path: Path) -> Fleet:
    """Return how the hosts of the fleet's run in the folder `path` stand.

    A host that says "running" while no process holds the run was left behind when its client was killed: it is stopped.

    Raises:
        BadFileError: fleet.json is missing, damaged or of a later version; names it and what is wrong.
    """
    fleet = _read(path / FLEET)
    return fleet if is_held(path) else dataclasses.replace(fleet, hosts=tuple(map(_left, fleet.hosts)))


def _left(host: Host) -> Host:
    running = host.state is HostState.RUNNING
    return dataclasses.replace(host, state=HostState.STOPPED) if running else host


def _read(file: Path) -> Fleet:
    fields = read_json(file)
    if fields.get("format") != FORMAT:
        raise BadFileError(f"{file} is not a gilscope fleet: its format is {shown(fields.get('format'))}")
    if fields.get("version") != VERSION:
        raise BadFileError(f"{file} has version {shown(fields.get('version'))}, this gilscope reads {VERSION}; "
                           "read it with the gilscope that wrote it")
    try:
        return _parse({name: value for name, value in fields.items() if name not in {"format", "version"}})
    except DamagedError as error:
        raise BadFileError(f"{file} is damaged or was edited: {error}{REMEDY}") from error


def _parse(fields: dict[str, Any]) -> Fleet:
    fields = typed(Fleet, fields, "the fleet")
    hosts = tuple(map(_host, fields["hosts"]))
    if not 0 < len(hosts) <= MOST_HOSTS:
        raise DamagedError(f"hosts has {len(hosts)} entries")
    name, count = Counter(host.name for host in hosts).most_common(1)[0]
    if count > 1:
        raise DamagedError(f"hosts has {shown(name)} {count} times")
    return Fleet(hosts=hosts, command=tuple(fields.get("command", ())))


def _host(fields: Any) -> Host:
    fields = typed(Host, fields, "an entry of hosts")
    if not can_be_label(fields["name"]):
        raise DamagedError(f"hosts has the name {shown(fields['name'])}, which cannot be a folder's")
    return Host(**fields | {"state": HostState(fields["state"])})
