"""`gilscope list`: workloads, models, and why a model is unavailable in a build."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.builds.environment import build_environment
from gilscope.toolkit.builds.find import find_builds, select_builds
from gilscope.toolkit.commands.printing import printed
from gilscope.toolkit.measure.prepare import child_environment, needed_packages, workload_packages
from gilscope.toolkit.measure.probe import Abilities, ask_build
from gilscope.workloads import catalog

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gilscope.toolkit.model import Build


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope list`."""
    parser = commands.add_parser(
        "list",
        help="show workloads, models, and why a model is unavailable in a build",
        description="Show what can be run. With --builds each build is asked in child processes, "
        "also which packages load in its subinterpreters.",
    )
    parser.add_argument(
        "--builds",
        metavar="LABELS",
        help="Ask these builds which models they can run, e.g. 3.13,3.13t, or "
        "'all'. The first time an environment is made for each, which takes some seconds.",
    )
    parser.add_argument(
        "--build",
        metavar="LABEL=PATH",
        action="append",
        default=[],
        help="Add the interpreter at PATH under the name LABEL.",
    )
    parser.add_argument("--json", action="store_true", help="Print JSON, for scripts.")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the catalogs, and the builds' abilities when builds are named."""
    abilities: dict[str, Abilities] = {}
    if args.builds or args.build:
        found = find_builds(args.build, project_dir=Path.cwd())
        wanted = args.builds or ",".join(each.partition("=")[0] for each in args.build)
        abilities = _ask(found.builds if wanted == "all" else select_builds(found, wanted))
    if args.json:
        print(json.dumps(_plain(abilities), indent=1))
        return 0
    with printed() as console:
        console.print(
            _workload_table(), _model_table(), *(_ability_table(label, each) for label, each in abilities.items())
        )
    return 0


def _ask(builds: Sequence[Build]) -> dict[str, Abilities]:
    modules = sorted(
        {
            module
            for workload in catalog.WORKLOADS
            for module in (*workload.requires, *workload.async_requires)
        }
    )
    found = {}
    for build in builds:
        environment = build_environment(build, needed_packages(build), workload_packages(catalog.WORKLOADS))
        found[build.label] = ask_build(
            str(environment.python), child_environment(()), free_threaded=build.free_threaded, modules=modules
        )
    return found


def _plain(abilities: dict[str, Abilities]) -> dict[str, Any]:
    return {
        "workloads": [
            {
                "name": each.name,
                "kind": each.kind,
                "summary": each.summary,
                "async": each.async_task is not None,
                "task_length": each.units is not None,
                "requires": each.requires,
                "twin": each.twin,
            }
            for each in catalog.WORKLOADS
        ],
        "models": [{"name": each.name, "summary": each.summary} for each in RUNNERS],
        "builds": {
            label: {"models": each.runners, "modules": each.modules, "isolated": each.isolated}
            for label, each in abilities.items()
        },
    }


def _workload_table() -> Table:
    table = Table(
        "workload", "kind", "what it does", "forms", box=None, title="Workloads", title_justify="left", pad_edge=False
    )
    for each in catalog.WORKLOADS:
        forms = [name for name, there in (("async", each.async_task), ("task-length", each.units)) if there]
        table.add_row(each.name, each.kind, each.summary, " ".join(forms))
    return table


def _model_table() -> Table:
    table = Table("model", "what it is", box=None, title="\nModels", title_justify="left", pad_edge=False)
    for each in RUNNERS:
        table.add_row(each.name, each.summary)
    return table


def _ability_table(label: str, abilities: Abilities) -> Table:
    table = Table("in this build", "works", box=None, title=f"\n{label}", title_justify="left", pad_edge=False)
    for name, reason in abilities.runners.items():
        table.add_row(name, "yes" if reason is None else f"no: {reason}")
    for name, reason in abilities.modules.items():
        table.add_row(f"import {name}", "yes" if reason is None else f"no: {reason}")
        if reason is None:
            isolated = abilities.isolated[name]
            table.add_row(f"import {name} in a subinterpreter", "yes" if isolated is None else f"no: {isolated}")
    return table
