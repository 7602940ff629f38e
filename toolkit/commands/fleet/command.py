"""`gilscope fleet`: show the hosts of a cluster and their differences; `start` starts a cluster."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from rich.table import Table

import gilscope
from gilscope.toolkit.commands.fleet.cluster import LOCAL, meet, warn_if_open
from gilscope.toolkit.commands.options.common import positive
from gilscope.toolkit.commands.options.files import add_json
from gilscope.toolkit.commands.output.printing import printed
from gilscope.toolkit.commands.output.reports import write_json
from gilscope.toolkit.commands.streams import print_stdout
from gilscope.toolkit.commands.summaries import SUMMARIES
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.escaping import visible_all
from gilscope.toolkit.fleet.dask_cluster import Connection, FleetLostError, another_version
from gilscope.toolkit.fleet.host_differences import BUSY, differences
from gilscope.toolkit.fleet.ssh import ssh_fleet
from gilscope.toolkit.fleet.start_dask import LOOPBACK, local_fleet, quiet_variables, scheduler_command, worker_command
from gilscope.toolkit.units import counted, list_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.commands.fleet.cluster import FleetRoster
    from gilscope.toolkit.fleet.host_differences import Facts

START = "start"
PORT = 8786          # dask's own
MOST_PORT = 65535
DIFFERENT = 1        # exit code: the hosts differ
COLUMNS = ("host", "cores", "CPU", "builds", "other programs", "gilscope")
_LOOK = 0.5


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope fleet`."""
    parser = commands.add_parser(
        "fleet",
        help=SUMMARIES["fleet"],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Show the machine and the builds of each host in a dask.distributed cluster, and the differences "
                    "that\n"
        "would affect a measurement. Use it before `gilscope run --fleet ADDRESS`. `gilscope fleet start` starts\n"
        "a cluster on this machine, and shows how other machines join it.\n\n"
        "Experimental: options and files may change.",
        epilog="exit codes: 0 all hosts match; 1 something differs; 2 the request was wrong;\n"
        "            3 no cluster answers at ADDRESS\n\n"
        "examples:\n"
        "  gilscope fleet start --hosts 2\n"
        "  gilscope fleet tcp://127.0.0.1:8786\n"
        "  gilscope fleet start --ssh node1 node2 node3",
    )
    parser.add_argument("where", metavar="ADDRESS|start",
                        help="The address of a dask scheduler, e.g. tcp://10.0.0.5:8786; or start.")
    add_json(parser, "table")
    start = parser.add_argument_group("start")
    start.add_argument("--hosts", metavar="N", type=positive, default=None,
                       help="Start N hosts on this machine (default: 1). They measure in turn.")
    start.add_argument("--port", metavar="PORT", type=_port, default=None,
                       help=f"Listen on PORT of this machine (default: {PORT}). Use 0 for any free port.")
    start.add_argument("--ssh", metavar="HOST", nargs="+", default=[],
                       help="Start the scheduler on the first HOST and a worker on each, by dask's SSHCluster "
                       "(default: this machine). Each needs this version of gilscope under the same path.")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show a cluster, or start one."""
    if args.where == START:
        return _start(args)
    if args.hosts or args.ssh or args.port is not None:
        raise ToolkitError(f"--hosts, --port and --ssh go with start: gilscope fleet {START}")
    if args.where == "local" or LOCAL.fullmatch(args.where):
        raise ToolkitError(f"{args.where} is started by the command that uses it: gilscope run --fleet {args.where}. "
                           f"To look at a cluster of this machine, start one with gilscope fleet {START}, which prints "
                           "its address")
    warn_if_open(args.where)
    with Connection(args.where) as connection:
        met = meet(connection)
    unlike = differences(met.facts)
    if met.others:
        unlike.append(another_version(met.others))
    if not write_json(args.json, {
            "hosts": met.facts, "others": met.others, "notes": met.notes, "differences": unlike}):
        _print(met, unlike)
    return DIFFERENT if unlike else 0


def _print(met: FleetRoster, unlike: list[str]) -> None:
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
            console.print(f"differs: {line}", soft_wrap=True)
        if not unlike:
            console.print(f"{counted(len(facts), 'host')}; all match")


def _machines(facts: Facts) -> Iterator[str]:
    """Yield a line for hosts that are on one machine."""
    machines: dict[str, list[str]] = {}
    for name, each in facts.items():
        machines.setdefault(each["machine"]["hostname"], []).append(name)
    for names in machines.values():
        if len(names) > 1:
            yield f"{list_text(names)} are on one machine, and measure in turn"


def _port(text: str) -> int:
    """Return the number of a port."""
    if not text.isdecimal() or int(text) > MOST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: write a number from 0, for any free port, to "
                                         f"{MOST_PORT}")
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
    print_stdout(f"the scheduler is at {address}\n"
                 f"measure on it:    gilscope run --fleet {address}\n"
                 f"look at it:       gilscope fleet {address}")
    if commands:
        print_stdout(f"It can be reached from this machine only ({LOOPBACK}). For several machines, start these "
                     "yourself, in a private network or with dask's TLS; the variables keep dask from using CPU time "
                     "meanwhile:\n"
                     + "\n".join([f"  export {name}={value}" for name, value in quiet_variables().items()]
                     + [f"  {' '.join(each)}" for each in commands]))
    print_stdout("Ctrl-C ends it")


def _wait(processes: Any) -> None:
    """Wait for Ctrl-C, or until a part of the cluster ends."""
    while all(each.poll() is None for each in processes):
        time.sleep(_LOOK)
    raise FleetLostError("a part of the cluster has ended unexpectedly, so the rest was stopped")
