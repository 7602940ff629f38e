"""`LABEL/fleet.json`: the hosts of a fleet's run, and the state of each.

Each host has a folder beside it, `LABEL/HOST/`, with an ordinary run that every command can read on its own.
Its `Run` has the label "LABEL/HOST"; a host that was lost before its first round may have no folder.  Hosts are named
after dask's workers or numbered ("host-1"); the file contains neither addresses nor users.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, TYPE_CHECKING, Self

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.records import DamagedError, from_plain, shown, to_plain
from gilscope.toolkit.store.checking import REMEDY
from gilscope.toolkit.store.header import (
    HEADER,
    cannot_save,
    is_held,
    lock_folder,
    read_json,
    read_versioned,
    replace_file,
)
from gilscope.toolkit.store.labels import FLEET, can_be_label, new_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
    from pathlib import Path

FORMAT = "gilscope fleet"
VERSION = 1
MOST_HOSTS = 10_000


class HostState(StrEnum):
    """The state of a host's part of a run."""

    RUNNING = "running"     # it is measuring; `read_fleet` returns STOPPED instead if no process has locked the fleet
    FINISHED = "finished"   # it has all requested rounds, used its budget, or has only clear answers: see its run.json
    STOPPED = "stopped"     # it was ended, or its client was, before it had everything
    LOST = "lost"           # the host disconnected and did not come back


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One machine of a fleet."""

    name: str          # a valid label; the name of its folder
    state: HostState
    note: str = ""     # the reason why it was lost or stopped, one line; may contain text of other programs
    machine: int | None = None   # hosts with the same number are on one machine; None: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The hosts of one run, in the order of its tables."""

    hosts: tuple[Host, ...]
    command: tuple[str, ...] = ()   # the requested words of `gilscope run`, without the fleet's address


def on_one_machine(marks: Mapping[str, Collection[Hashable]]) -> tuple[tuple[str, ...], ...]:
    """Return the hosts of each machine, in the order of the hosts.

    Args:
        marks: By host what identifies its machine; hosts with a mark in common are on one machine.
    """
    groups: list[tuple[list[str], set[Hashable]]] = []
    for name, own in marks.items():
        names, known = [name], set(own)
        for group in [each for each in groups if known & each[1]]:
            names, known = [*group[0], *names], known | group[1]
            groups.remove(group)
        groups.append((names, known))
    order = list(marks)
    found = [sorted(names, key=order.index) for names, _ in groups]
    return tuple(sorted(map(tuple, found), key=lambda names: order.index(names[0])))


def machines_of(names: Iterable[str], hosts: Sequence[Host]) -> tuple[tuple[str, ...], ...]:
    """Return the hosts `names` of each machine, by the machines that the hosts of their fleet have stored."""
    stored = {host.name: host.machine for host in hosts if host.machine is not None}
    return on_one_machine({name: [stored[name]] if name in stored else () for name in names})


def with_machines(hosts: Iterable[Host], marks: Mapping[str, Collection[Hashable]]) -> tuple[Host, ...]:
    """Return hosts with the number of their machine; None for a host without a mark."""
    number = {name: i for i, names in enumerate(on_one_machine(marks)) for name in names if marks[name]}
    return tuple(dataclasses.replace(host, machine=number.get(host.name)) for host in hosts)


def host_name(path: Path) -> str:
    """Return the host name of the run in the folder `path`; "" if it is published, or cannot be read."""
    with contextlib.suppress(BadFileError, AttributeError):   # readers of the run report what is damaged
        return str(read_json(path / HEADER).get("machine", {}).get("hostname", ""))
    return ""


class FleetStore:
    """Writes fleet.json; the folder is locked until `close`."""

    def __init__(self, path: Path, lock: IO[str]) -> None:
        """Use `create` or `reopen` instead."""
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls, label: str, results: Path | None = None) -> Self:
        """Create the folder of a new run of a fleet.

        Raises:
            LabelTakenError: There is a run of that name.
            ToolkitError: The folder cannot be written.
        """
        return cls(*new_folder(label, results))

    @classmethod
    def reopen(cls, path: Path) -> tuple[Self, Fleet]:
        """Open the run of a fleet to continue it, and return its hosts with their states.

        Raises:
            LabelTakenError: Another process is writing it.
            BadFileError: fleet.json is missing or damaged.
        """
        store = cls(path, lock_folder(path))
        try:
            return store, _read(path / FLEET)
        except BaseException:
            store.close()
            raise

    def save(self, fleet: Fleet) -> None:
        """Replace fleet.json atomically.

        Raises:
            SaveError: The disk is full or the folder is gone; the earlier file stays unchanged.
        """
        try:
            replace_file(self.path / FLEET, fleet_text(fleet))
        except OSError as error:
            raise cannot_save(self.path, error, self.path.name) from error

    def close(self) -> None:
        """Unlock the folder."""
        self._lock.close()


def fleet_text(fleet: Fleet) -> str:
    """Return the content of fleet.json."""
    return json.dumps({"format": FORMAT, "version": VERSION} | to_plain(fleet), indent=1)


def is_fleet(path: Path) -> bool:
    """Return True if the folder `path` contains the run of a fleet."""
    return (path / FLEET).is_file()


def read_fleet(path: Path) -> Fleet:
    """Return the hosts, with their states, of the fleet's run in the folder `path`.

    A host is still stored as running, though no process has locked the run, if its client was killed: it is stopped.

    Raises:
        BadFileError: fleet.json is missing, damaged or of a later version; the message names the file and the field.
    """
    fleet = _read(path / FLEET)
    return fleet if is_held(path) else dataclasses.replace(fleet, hosts=tuple(map(_stopped, fleet.hosts)))


def _stopped(host: Host) -> Host:
    running = host.state is HostState.RUNNING
    return dataclasses.replace(host, state=HostState.STOPPED) if running else host


def _read(file: Path) -> Fleet:
    fields = read_versioned(file, FORMAT, VERSION)
    try:
        fleet = from_plain(Fleet, fields)
        _check(fleet)
    except DamagedError as error:
        raise BadFileError(f"{file} is damaged or was edited: {error}{REMEDY}") from error
    return fleet


def _check(fleet: Fleet) -> None:
    if not 0 < len(fleet.hosts) <= MOST_HOSTS:
        raise DamagedError(f"hosts has {len(fleet.hosts)} entries")
    names = [host.name for host in fleet.hosts]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise DamagedError(f"hosts has {shown(name)} {count} times")
    if bad := [name for name in names if not can_be_label(name)]:
        raise DamagedError(f"hosts has the name {shown(bad[0])}, which cannot be a folder's")
