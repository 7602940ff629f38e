"""The cluster that a command uses: start or reach it, and find the hosts with this version of gilscope."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.commands.streams import print_stderr
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
class FleetRoster:
    """The hosts of a cluster, as they answered."""

    facts: Facts              # of the hosts with our version of gilscope
    others: dict[str, str]    # hosts with another version -> that version, "" for none
    notes: list[str]          # sentences on workers that are no hosts, or have another name


def meet(connection: Connection) -> FleetRoster:
    """Return the facts that the hosts of a cluster report.

    Raises:
        FleetLostError: The cluster has no hosts, or is gone.
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
        notes = [*notes, f"no answer from {', '.join(silent)}"]
    return FleetRoster(facts=facts, others=others, notes=notes)


def meet_ours(connection: Connection, *, strict: bool = False) -> FleetRoster:
    """Return the facts that hosts with our version of gilscope report; print notes on the cluster.

    Args:
        connection: To the cluster.
        strict: Refuse a cluster if any host has another version of gilscope.

    Raises:
        FleetLostError: No host answers, or the cluster is gone.
        ToolkitError: All hosts, or any with `strict`, have another version of gilscope.
    """
    met = meet(connection)
    for note in met.notes:
        print_stderr(note)
    if met.others and (strict or not met.facts):
        raise ToolkitError(another_version(met.others))
    if not met.facts:
        raise FleetLostError(f"no host of the cluster at {connection.address} answers")
    return met


def warn_if_open(address: str) -> None:
    """Warn if traffic to `address` is not encrypted and leaves this machine.

    Raises:
        ToolkitError: `address` is no address.
    """
    if is_open(address):
        print_stderr(f"warning: {address} is not encrypted and can be reached from other machines, and whoever reaches "
                     "it can run code on every host. Use it only in a private network, or give dask TLS certificates "
                     "(tls://; see docs/fleet.md)")


def from_any_folder(build: str) -> str:
    """Return "LABEL=PATH" with an absolute path, because each host works in its own folder."""
    label, is_sign, path = build.partition("=")
    return f"{label}={Path(path).absolute()}" if is_sign else build


@contextmanager
def cluster(fleet: str, what_they_do: str) -> Iterator[str]:
    """Yield the address of the cluster that --fleet names; a cluster on this machine is started, and ended afterwards.

    Raises:
        ToolkitError: --fleet names no cluster.
    """
    if fleet != "local" and not fleet.startswith("local:"):
        warn_if_open(fleet)
        yield fleet
        return
    if (match := LOCAL.fullmatch(fleet)) is None:
        raise ToolkitError(f"--fleet {fleet}: name the address of a scheduler, or local:2 for 2 hosts on this machine")
    hosts = int(match[1])
    print_stderr(f"starting {counted(hosts, 'host')} on this machine, which {what_they_do}")
    with local_fleet(hosts) as (address, _):
        yield address
