"""The cluster that a command measures or asks on: started or reached, and who in it can go on with us."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.commands.output.printing import say
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.fleet.dask_cluster import FleetLostError, another_version, is_open, other_versions
from gilscope.toolkit.fleet.start_dask import local_fleet, worker_command
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.fleet.dask_cluster import Connection
    from gilscope.toolkit.fleet.host_differences import Facts

LOCAL = re.compile(r"local:([1-9]\d{0,2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """Who is in a cluster."""

    facts: Facts              # of the hosts with our gilscope
    others: dict[str, str]    # hosts with another one: which, "" is none
    notes: list[str]          # workers that are no hosts, or are called otherwise, each as a sentence


def meet(connection: Connection) -> Met:
    """Return what the hosts of a cluster tell of themselves.

    Raises:
        FleetLostError: there is none, or the cluster is gone.
    """
    workers, notes = connection.workers(), connection.notes()
    if not workers:
        raise FleetLostError(
            f"the cluster at {connection.address} has no host{''.join(f'; {note}' for note in notes)}: start a worker "
            "on each machine that is to measure: "
            f"{' '.join(worker_command(connection.address, 'NAME'))}")
    others = other_versions(connection.versions(workers))
    ours = [each for each in workers if each.name not in others]
    facts = connection.facts(ours)
    silent = [each.name for each in ours if each.name not in facts]
    if silent:
        notes = [*notes, f"{', '.join(silent)} did not tell what {'it is' if len(silent) == 1 else 'they are'}"]
    return Met(facts=facts, others=others, notes=notes)


def meet_ours(connection: Connection, *, strict: bool = False) -> Met:
    """Return what the hosts of a cluster tell of themselves, of which some can go on with us; say what is odd.

    Args:
        connection: To the cluster.
        strict: Refuse also a cluster that has hosts with another gilscope than ours beside those.

    Raises:
        FleetLostError: there is none, or the cluster is gone.
        ToolkitError: hosts have another gilscope than ours.
    """
    met = meet(connection)
    for note in met.notes:
        say(note)
    if met.others and (strict or not met.facts):
        raise ToolkitError(another_version(met.others))
    if not met.facts:
        raise FleetLostError(f"no host of the cluster at {connection.address} answers")
    return met


def warn_if_open(address: str) -> None:
    """Say so where others can read what goes to `address`.

    Raises:
        ToolkitError: it is no address.
    """
    if is_open(address):
        say(f"warning: {address} is not encrypted, and not for this machine alone: whoever reaches it can run code "
            "on every host. Use it in a network of your own alone, or give dask TLS certificates (tls://; see "
            "docs/fleet.md)")


def from_any_folder(build: str) -> str:
    """Return "LABEL=PATH" with the whole path: hosts work in folders of their own."""
    label, is_sign, path = build.partition("=")
    return f"{label}={Path(path).absolute()}" if is_sign else build


@contextmanager
def cluster(fleet: str, what_they_do: str) -> Iterator[str]:
    """Yield the address of the cluster that --fleet names; one of this machine is started, and ended.

    Raises:
        ToolkitError: it names none.
    """
    if fleet != "local" and not fleet.startswith("local:"):
        warn_if_open(fleet)
        yield fleet
        return
    if (match := LOCAL.fullmatch(fleet)) is None:
        raise ToolkitError(f"--fleet {fleet}: name the address of a scheduler, or local:2 for 2 hosts on this machine")
    hosts = int(match[1])
    say(f"starting {counted(hosts, 'host')} on this machine, which {what_they_do}")
    with local_fleet(hosts) as (address, _):
        yield address
