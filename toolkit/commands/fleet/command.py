"""`gilscope fleet`: the hosts of a cluster and what would not match between them; `start` makes a cluster."""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING, Any

from rich.table import Table

import gilscope
from gilscope.toolkit.commands.fleet.cluster import LOCAL, meet, warn_if_open
from gilscope.toolkit.commands.options.common import positive
from gilscope.toolkit.commands.output.printing import printed
from gilscope.toolkit.commands.streams import inform, put
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.escaping import in_json, visible_all
from gilscope.toolkit.fleet.dask_cluster import Connection, FleetLostError, another_version
from gilscope.toolkit.fleet.host_differences import BUSY, differences
from gilscope.toolkit.fleet.ssh import ssh_fleet
from gilscope.toolkit.fleet.start_dask import LOOPBACK, local_fleet, quiet_variables, scheduler_command, worker_command
from gilscope.toolkit.report.wording import list_text
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.commands.fleet.cluster import Met
    from gilscope.toolkit.fleet.host_differences import Facts

START = "start"
PORT = 8786          # dask's own
MOST_PORT = 65535
DIFFERENT = 1        # exit code: something would not match
COLUMNS = ("host", "cores", "CPU", "builds", "other programs", "gilscope")
_LOOK = 0.5


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope fleet`."""
    parser = commands.add_parser(
        "fleet",
        help="show the hosts of a cluster, or start one",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Show what each host of a dask.distributed cluster would measure with, and what would not match\n"
        "between them: ask this before `gilscope run --fleet ADDRESS`. `gilscope fleet start` starts a cluster\n"
        "on this machine, and says how others join it.",
        epilog="exit codes: 0 all match; 1 something does not; 2 a mistake in the command;\n"
        "            3 no cluster answers at ADDRESS\n\n"
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
    start.add_argument("--port", metavar="PORT", type=_port, default=None,
                       help=f"Port of the scheduler on this machine (default: {PORT}); 0 takes any that is free.")
    start.add_argument("--ssh", metavar="HOST", nargs="+", default=[],
                       help="Start the scheduler on the first of these machines and a worker on each, by dask's "
                       "SSHCluster. Each has this version of gilscope under the same path.")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show a cluster, or start one."""
    if args.where == START:
        return _start(args)
    if args.hosts or args.ssh or args.port is not None:
        raise ToolkitError(f"--hosts, --port and --ssh go with start: gilscope fleet {START}")
    if args.where == "local" or LOCAL.fullmatch(args.where):
        raise ToolkitError(f"{args.where} is started by what uses it: gilscope run --fleet {args.where}. To look at a "
                           f"cluster of this machine, gilscope fleet {START} makes one and tells its address")
    warn_if_open(args.where)
    with Connection(args.where) as connection:
        met = meet(connection)
    unlike = differences(met.facts)
    if met.others:
        unlike.append(another_version(met.others))
    if args.json:
        put(in_json(json.dumps({"hosts": met.facts, "others": met.others, "notes": met.notes, "differences": unlike},
                               indent=1)))
    else:
        _print(met, unlike)
    return DIFFERENT if unlike else 0


def _print(met: Met, unlike: list[str]) -> None:
    facts, versions, notes, unlike = visible_all((met.facts, met.others, met.notes, unlike))
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
    for name, version in versions.items():
        table.add_row(name, *["not asked"] * (len(COLUMNS) - 2), f"{version or 'none'} (not {gilscope.__version__})")
    with printed() as console:
        console.print(table)
        for line in [*notes, *_machines(facts)]:
            console.print(line, soft_wrap=True)
        for line in unlike:
            console.print(f"would not match: {line}", soft_wrap=True)
        if not unlike:
            console.print(f"{counted(len(facts), 'host')}, and nothing that would not match")


def _machines(facts: Facts) -> Iterator[str]:
    """Yield which hosts are one machine."""
    machines: dict[str, list[str]] = {}
    for name, each in facts.items():
        machines.setdefault(each["machine"]["hostname"], []).append(name)
    for names in machines.values():
        if len(names) > 1:
            yield f"{list_text(names)} are one machine, and take turns"


def _port(text: str) -> int:
    """Return the number of a port."""
    if not text.isdecimal() or int(text) > MOST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: write 0, which is any, to {MOST_PORT}")
    return int(text)


def _start(args: argparse.Namespace) -> int:
    if args.json:
        raise ToolkitError("--json goes with an address: gilscope fleet ADDRESS --json")
    if args.ssh:
        if args.hosts or args.port is not None:
            raise ToolkitError("--hosts and --port are for this machine: leave them out beside --ssh")
        with ssh_fleet(args.ssh) as address:
            _tell(address, [])
            _wait([])
        return 0
    with local_fleet(args.hosts or 1, PORT if args.port is None else args.port) as (address, processes):
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
