"""`gilscope run --fleet`: the words of the command line for each host, the cluster, and what came of it."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from gilscope.toolkit.commands.fleet.cluster import cluster, from_any_folder, meet_ours
from gilscope.toolkit.commands.output.printing import say
from gilscope.toolkit.commands.run.missing_rounds import has_enough
from gilscope.toolkit.commands.run.request import (
    make_selection,
    make_settings,
    module_paths,
    refuse_beside_resume,
    user_packages,
)
from gilscope.toolkit.errors import BuildError, ToolkitError
from gilscope.toolkit.fleet.dask_cluster import Connection
from gilscope.toolkit.fleet.host_differences import common_pair, differences
from gilscope.toolkit.fleet.measuring import Asked, FleetRun
from gilscope.toolkit.store import Fleet, FleetStore, HostState, Store, default_label, is_fleet, label_path, read_fleet
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from gilscope.toolkit.fleet.host_differences import Facts


_BUILDS = "--builds="


def run_on_fleet(args: argparse.Namespace) -> tuple[Path, bool]:
    """Measure on every host of a cluster what the command line asks for.

    Returns:
        The folder of the fleet's run, and whether every host has all that was asked for.

    Raises:
        ToolkitError: the user's mistake, or hosts that do not fit together.
        FleetLostError: the cluster cannot be reached, or is gone.
        KeyboardInterrupt: every host has been told to end.
    """
    if args.dry_run:
        raise ToolkitError("--dry-run shows what this machine would measure: leave --fleet out, or call it on a host")
    asked = _begun(args) if args.resume is None else _resumed(args)
    with cluster(args.fleet, "take turns") as address, Connection(address) as connection:
        _check_hosts(connection, args, asked)
        if args.resume is None:
            store, before = FleetStore.create(asked.label), Fleet(hosts=(), command=asked.command)
        else:
            store, before = FleetStore.reopen(label_path(asked.label))
            asked = dataclasses.replace(asked, command=before.command)
        try:
            running = FleetRun(connection, store, before, asked, say)
        except BaseException:
            store.close()
            raise
        say(f"results in {store.path}, a run for each host")
        try:
            fleet = running.go()
        except KeyboardInterrupt:
            say(f"what was measured is kept, {running.kept()}: "
                f"gilscope run --resume {asked.label} --fleet {args.fleet} goes on")
            raise
    unfinished = [host for host in fleet.hosts if host.state is not HostState.FINISHED]
    if unfinished:
        say(f"gilscope run --resume {asked.label} --fleet {args.fleet} goes on with {counted(len(unfinished), 'host')}")
    return store.path, bool(fleet.hosts) and not unfinished and not running.failed


def _begun(args: argparse.Namespace) -> Asked:
    make_selection(args)   # a user's mistake is one on every host: it ends here
    make_settings(args)
    label = args.label or default_label()
    Store.refuse_taken(label)
    return _asked(label, words_for_hosts(args), args)


def _resumed(args: argparse.Namespace) -> Asked:
    refuse_beside_resume(args)
    path = label_path(args.resume)
    if not is_fleet(path):
        raise ToolkitError(f"{args.resume} is no run of a fleet: leave --fleet out to go on with it here")
    return _asked(args.resume, (), args)


def _asked(label: str, command: tuple[str, ...], args: argparse.Namespace) -> Asked:
    enough = partial(has_enough, rounds=args.rounds, resolution=args.resolution)
    return Asked(label=label, command=command, again=words_to_go_on(args), enough=enough)


def words_to_go_on(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the options that a host is given beside --resume."""
    values = {
        "--rounds": args.rounds,
        "--budget": args.budget and f"{args.budget:.9g}s",
        "--resolution": args.resolution and f"{100 * args.resolution:.9g}%",
        "--timeout": args.timeout and f"{args.timeout:.9g}s",
    }
    return tuple(f"{option}={value}" for option, value in values.items() if value)


def words_for_hosts(args: argparse.Namespace) -> tuple[str, ...]:
    """Return what `gilscope run` is told on each host: what was asked here, without what is this machine's."""
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


def _check_hosts(connection: Connection, args: argparse.Namespace, asked: Asked) -> None:
    """Say what would not match between hosts; refuse what cannot be measured together."""
    facts = meet_ours(connection, strict=args.strict).facts   # of the others `FleetRun` says that they are left out
    unlike = differences(facts, _measured(facts, asked))
    if args.resume is None and not (args.builds or args.build) and not common_pair(facts):
        raise ToolkitError(next((line for line in unlike if "unless --builds" in line), "no host has a build")
                           + ": name builds that all have, as in --builds 3.14,3.14t")
    if unlike and args.strict:
        raise BuildError("the hosts do not match: " + "; ".join(unlike))
    for line in unlike:
        say(f"would not match: {line}")


def _measured(facts: Facts, asked: Asked) -> list[str]:
    """Return the builds that hosts measure, [] where each takes its own."""
    command = asked.command or read_fleet(label_path(asked.label)).command
    named = [word.removeprefix(_BUILDS) for word in command if word.startswith(_BUILDS)]
    return [label.strip() for label in named[-1].split(",")] if named else common_pair(facts)
