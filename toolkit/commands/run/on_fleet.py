"""`gilscope run --fleet`: start or reach a cluster, pass the command line on to each host, and collect the results."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from gilscope.toolkit.commands.fleet.cluster import cluster, from_any_folder, meet_ours
from gilscope.toolkit.commands.run.earlier_run import has_enough
from gilscope.toolkit.commands.run.request import (
    make_selection,
    make_settings,
    module_paths,
    refuse_beside_resume,
    user_packages,
)
from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.errors import BuildError, ToolkitError
from gilscope.toolkit.fleet.dask_cluster import Connection
from gilscope.toolkit.fleet.host_differences import common_pair, differences, pair_differences
from gilscope.toolkit.fleet.measuring import FleetRequest, FleetRun
from gilscope.toolkit.store import Fleet, FleetStore, HostState, Store, default_label, is_fleet, label_path, read_fleet
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from gilscope.toolkit.fleet.host_differences import Facts


_BUILDS = "--builds="


def run_on_fleet(args: argparse.Namespace) -> tuple[Path, bool]:
    """Measure on every host of a cluster.

    Returns:
        The folder of the fleet's run, and True if every host has everything that was requested.

    Raises:
        ToolkitError: The command line is wrong, or the hosts do not match.
        FleetLostError: The cluster cannot be reached, or is gone.
        KeyboardInterrupt: After every host was stopped.
    """
    if args.dry_run:
        raise ToolkitError("--dry-run shows the plan of this machine: leave --fleet out, or run it on a host")
    request = _begun(args) if args.resume is None else _resumed(args)
    with cluster(args.fleet, "take turns") as address, Connection(address) as connection:
        _check_hosts(connection, args, request)
        if args.resume is None:
            store, before = FleetStore.create(request.label), Fleet(hosts=(), command=request.command)
        else:
            store, before = FleetStore.reopen(label_path(request.label))
            request = dataclasses.replace(request, command=before.command)
        try:
            running = FleetRun(connection, store, before, request, print_stderr)
        except BaseException:
            store.close()
            raise
        print_stderr(f"results in {store.path}, a run for each host")
        try:
            fleet = running.go()
        except KeyboardInterrupt:
            print_stderr(f"the measured values are kept, {running.stored_rounds()}; "
                         f"to continue: gilscope run --resume {request.label} --fleet {args.fleet}")
            raise
    unfinished = [host for host in fleet.hosts if host.state is not HostState.FINISHED]
    if unfinished:
        print_stderr(f"to continue with {counted(len(unfinished), 'host')}: "
                     f"gilscope run --resume {request.label} --fleet {args.fleet}")
    return store.path, bool(fleet.hosts) and not unfinished and not running.failed


def _begun(args: argparse.Namespace) -> FleetRequest:
    make_selection(args)   # an error in the options would fail on every host
    make_settings(args)
    label = args.label or default_label()
    Store.refuse_taken(label)
    return _asked(label, words_for_hosts(args), args)


def _resumed(args: argparse.Namespace) -> FleetRequest:
    refuse_beside_resume(args)
    path = label_path(args.resume)
    if not is_fleet(path):
        raise ToolkitError(f"{args.resume} is no run of a fleet: leave --fleet out to go on with it here")
    return _asked(args.resume, (), args)


def _asked(label: str, command: tuple[str, ...], args: argparse.Namespace) -> FleetRequest:
    enough = partial(has_enough, rounds=args.rounds, resolution=args.resolution)
    return FleetRequest(label=label, command=command, again=words_to_go_on(args), enough=enough)


def words_to_go_on(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the options that a host gets with --resume."""
    values = {
        "--rounds": args.rounds,
        "--budget": args.budget and f"{args.budget:.9g}s",
        "--resolution": args.resolution and f"{100 * args.resolution:.9g}%",
        "--timeout": args.timeout and f"{args.timeout:.9g}s",
    }
    return (*(f"{option}={value}" for option, value in values.items() if value),
            *(["--wait-quiet"] if args.wait_quiet else []))


def words_for_hosts(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the words of `gilscope run` for each host: those of this command, without what concerns this machine."""
    own_function = any(":" in word for word in args.workload)
    values: list[tuple[str, object]] = [
        ("--builds", args.builds),
        *(("--build", from_any_folder(each)) for each in args.build),
        ("--models", args.models and ",".join(args.models)),
        ("--workers", args.workers and ",".join(map(str, args.workers))),
        ("--size", args.size),
        ("--phases", args.phases),
        ("--task-length", ",".join(f"{each:.9g}s" for each in args.task_length)),
        ("--payloads", args.payloads),
        ("--payload", args.payload),
        ("--tasks", args.tasks),
        ("--check", args.check),
        ("--async-form", args.async_form),
        ("--kind", args.kind),
        *(("--path", path) for path in (module_paths(args) if own_function else ())),
        *(("--with", each) for each in user_packages(args)),
        ("--seed", args.seed),
    ]
    preset = (f"--{args.preset}",) if args.preset else ()
    strict = ("--strict",) if args.strict else ()
    options = tuple(f"{option}={value}" for option, value in values if value not in {None, ""})
    return (*args.workload, *options, *preset, *strict, *words_to_go_on(args))


def _check_hosts(connection: Connection, args: argparse.Namespace, request: FleetRequest) -> None:
    """Print the differences between hosts; refuse hosts that cannot be measured together."""
    facts = meet_ours(connection, strict=args.strict).facts   # of the others `FleetRun` says that they are left out
    unlike = differences(facts, _measured(facts, request))
    if args.resume is None and not (args.builds or args.build) and not common_pair(facts):
        raise ToolkitError(next(pair_differences(facts), "no host has a build")
                           + ": name builds that all have, as in --builds 3.14,3.14t")
    if unlike and args.strict:
        raise BuildError("the hosts do not match: " + "; ".join(unlike))
    for line in unlike:
        print_stderr(f"differs: {line}")


def _measured(facts: Facts, request: FleetRequest) -> list[str]:
    """Return the builds that the hosts measure, or [] if each host chooses its own."""
    command = request.command or read_fleet(label_path(request.label)).command
    named = [word.removeprefix(_BUILDS) for word in command if word.startswith(_BUILDS)]
    return [label.strip() for label in named[-1].split(",")] if named else common_pair(facts)
