"""`gilscope fleet`: the hosts of a cluster and what would not match between them; `start` makes a cluster."""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from gilscope.toolkit import temporary
from gilscope.toolkit.commands.options.common import positive
from gilscope.toolkit.commands.output.printing import printed, say
from gilscope.toolkit.commands.streams import inform, put
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.fleet.connection import Connection, FleetLostError, is_open, same_version
from gilscope.toolkit.fleet.fairness import BUSY, differences
from gilscope.toolkit.fleet.ssh import ssh_fleet
from gilscope.toolkit.fleet.starting import LOOPBACK, local_fleet, quiet_variables, scheduler_command, worker_command
from gilscope.toolkit.foreign import in_json, visible_all
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.fleet.fairness import Facts

START = "start"
PORT = 8786          # dask's own
DIFFERENT = 1        # exit code: something would not match
COLUMNS = ("host", "cores", "CPU", "builds", "other programs", "gilscope")
_LOOK = 0.5
_LOCAL = re.compile(r"local:([1-9]\d{0,2})")


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope fleet`."""
    parser = commands.add_parser(
        "fleet",
        help="show the hosts of a cluster, or start one",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Show what each host of a dask.distributed cluster would measure with, and what would not match\n"
        "between them: ask this before `gilscope run --fleet ADDRESS`. `gilscope fleet start` starts a cluster\n"
        "on this machine, and says how others join it.",
        epilog="exit codes: 0 all match; 1 something does not; 3 nobody answers at ADDRESS\n\n"
        "examples:\n"
        "  gilscope fleet start --hosts 2\n"
        "  gilscope fleet tcp://127.0.0.1:8786\n"
        "  gilscope fleet start --ssh node1 node2 node3",
    )
    parser.add_argument("where", metavar="ADDRESS|start",
                        help="The address of a dask scheduler, e.g. tcp://10.0.0.5:8786; or start.")
    parser.add_argument("--json", action="store_true", help="Print JSON, for scripts.")
    start = parser.add_argument_group("start")
    start.add_argument("--hosts", metavar="N", type=positive, default=None,
                       help="Start N hosts on this machine, which take turns (default: 1).")
    start.add_argument("--port", metavar="PORT", type=int, default=PORT,
                       help=f"Port of the scheduler on this machine (default: {PORT}); 0 takes any that is free.")
    start.add_argument("--ssh", metavar="HOST", nargs="+", default=[],
                       help="Start the scheduler on the first of these machines and a worker on each, by dask's "
                       "SSHCluster. Each has this version of gilscope under the same path.")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show a cluster, or start one."""
    if args.where == START:
        return _start(args)
    if args.hosts or args.ssh:
        raise ToolkitError(f"--hosts and --ssh go with start: gilscope fleet {START}")
    warn_if_open(args.where)
    with Connection(args.where) as connection:
        facts = facts_of(connection)
    unlike = differences(facts)
    if args.json:
        put(in_json(json.dumps({"hosts": facts, "differences": unlike}, indent=1)))
    else:
        _print(facts, unlike)
    return DIFFERENT if unlike else 0


def facts_of(connection: Connection) -> Facts:
    """Return what each host of a cluster tells of itself.

    Raises:
        FleetLostError: there is none.
        ToolkitError: some have another gilscope than ours.
    """
    if not (workers := connection.workers()):
        raise FleetLostError(
            f"the cluster at {connection.address} has no host: start a worker on each machine that is to measure: "
            f"{' '.join(worker_command(connection.address, 'NAME'))}")
    same_version(connection.versions(workers))
    return connection.facts(workers)


def warn_if_open(address: str) -> None:
    """Say so where others can read what goes to `address`.

    Raises:
        ToolkitError: it is no address.
    """
    if is_open(address):
        say(f"warning: {address} is not encrypted and not this machine: whoever reaches it can run code on every host. "
            "Use it in a network of your own alone, or give dask TLS certificates (tls://; see docs/fleet.md)")


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
    if (match := _LOCAL.fullmatch(fleet)) is None:
        raise ToolkitError(f"--fleet {fleet}: name the address of a scheduler, or local:2 for 2 hosts on this machine")
    hosts = int(match[1])
    say(f"starting {counted(hosts, 'host')} on this machine, which {what_they_do}")
    with (tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as folder,
          local_fleet(hosts, Path(folder)) as (address, _)):
        yield address


def _print(facts: Facts, unlike: list[str]) -> None:
    facts, unlike = visible_all((facts, unlike))
    table = Table(box=None, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column)
    for name, each in facts.items():
        others = each["others"]
        table.add_row(
            name, str(each["machine"]["cores"]), each["machine"]["cpu_model"],
            ", ".join(build["label"] for build in each["builds"]) or "none",
            "not known" if others is None else f"{others:.1f} cores{' (busy)' if others > BUSY else ''}",
            each["gilscope"])
    with printed() as console:
        console.print(table)
        for line in unlike:
            console.print(f"would not match: {line}", soft_wrap=True)
        if not unlike:
            console.print(f"{counted(len(facts), 'host')}, and nothing that would not match")


def _start(args: argparse.Namespace) -> int:
    if args.ssh:
        if args.hosts:
            raise ToolkitError("--hosts is for this machine: leave it out beside --ssh")
        with ssh_fleet(args.ssh) as address:
            _tell(address, [])
            _wait([])
        return 0
    with (tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as folder,
          local_fleet(args.hosts or 1, Path(folder), args.port) as (address, processes)):
        _tell(address, [scheduler_command("ADDRESS", PORT), worker_command("tcp://ADDRESS:8786", "NAME")])
        _wait(processes)
    return 0


def _tell(address: str, commands: list[list[str]]) -> None:
    inform(f"the scheduler is at {address}\n"
           f"measure on it:    gilscope run --fleet {address}\n"
           f"look at it:       gilscope fleet {address}")
    if commands:
        inform(f"It is reached from this machine alone ({LOOPBACK}). For several machines, start these yourself, in a "
               "network of your own or with dask's TLS; the variables keep dask from using the CPU meanwhile:\n"
               + "\n".join([f"  export {name}={value}" for name, value in quiet_variables().items()]
                           + [f"  {' '.join(each)}" for each in commands]))
    inform("Ctrl-C ends it")


def _wait(processes: Any) -> None:
    """Wait for Ctrl-C, or for the end of the scheduler."""
    while all(each.poll() is None for each in processes):
        time.sleep(_LOOK)
    raise FleetLostError("a part of the cluster has ended by itself; what is left of it was ended, too")
