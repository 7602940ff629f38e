"""`gilscope list`: show workloads, models, and why a model is unavailable in a build."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.builds.environment import build_environment
from gilscope.toolkit.builds.find import find_builds, select_builds
from gilscope.toolkit.commands.options.common import add_build
from gilscope.toolkit.commands.options.files import add_json
from gilscope.toolkit.commands.output.printing import printed
from gilscope.toolkit.commands.output.reports import write_json
from gilscope.toolkit.commands.summaries import SUMMARIES
from gilscope.toolkit.escaping import visible_all
from gilscope.toolkit.measure.abilities import Abilities, ask_build
from gilscope.toolkit.measure.preparation import child_environment, needed_packages, workload_packages
from gilscope.workloads import catalog

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

    from gilscope.toolkit.model import Build


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope list`."""
    parser = commands.add_parser(
        "list",
        help=SUMMARIES["list"],
        description="Show all workloads and models. With --builds, show instead which models each build can run, and "
        "which packages load there, in the main interpreter and in subinterpreters; child processes try it.",
    )
    parser.add_argument(
        "--builds",
        metavar="LABELS",
        help="Show which models these builds can run, e.g. 3.13,3.13t, or 'all' (default: none). The first call "
        "makes an environment for each build, which takes some seconds.",
    )
    add_build(parser)
    add_json(parser, "tables")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print workloads and models, or what the named builds can run."""
    abilities: dict[str, Abilities] = {}
    if args.builds or args.build:
        found = find_builds(args.build, project_dir=Path.cwd())
        wanted = args.builds or ",".join(each.partition("=")[0] for each in args.build)
        abilities = _ask(found.builds if wanted == "all" else select_builds(found, wanted))
    if write_json(args.json, _plain(abilities)):
        return 0
    with printed() as console:
        if abilities:
            _show_abilities(console, visible_all(abilities))
        else:
            console.print(_workload_table(), _model_table())
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
        "workload", "", "what it does", box=None, title="Workloads", title_justify="left", pad_edge=False,
        caption="a: has an async form for asyncio; t: takes --task-length", caption_justify="left",
    )
    table.columns[0].no_wrap = True
    for kind in dict.fromkeys(each.kind for each in catalog.WORKLOADS):
        table.add_row(Text(kind, style="bold"))
        for each in catalog.WORKLOADS:
            if each.kind == kind:
                forms = ("a" if each.async_task else " ") + ("t" if each.units else " ")
                table.add_row(f" {each.name}", forms, each.summary)
    return table


def _model_table() -> Table:
    table = Table("model", "what it is", box=None, title="\nModels", title_justify="left", pad_edge=False)
    for each in RUNNERS:
        table.add_row(each.name, each.summary)
    return table


def matrix(abilities: Mapping[str, Abilities]) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return the models and modules that each build can run, and the reasons why not.

    Returns:
        Rows of a name and one word per build: "yes", "-" if it was not tried, or the number of a reason; a heading has
        no words.  Then a line per reason, with its number and the builds that it concerns.
    """
    parts: tuple[tuple[str, list[Mapping[str, str | None]]], ...] = (
        ("models", [each.runners for each in abilities.values()]),
        ("modules", [each.modules for each in abilities.values()]),
        ("modules in subinterpreters", [each.isolated for each in abilities.values()]),
    )
    rows: list[tuple[str, ...]] = []
    about: dict[str, list[str]] = {}
    for heading, told in parts:
        rows.append((heading,))
        for name in dict.fromkeys(name for each in told for name in each):
            words = []
            for label, each in zip(abilities, told, strict=True):
                reason = each.get(name)
                if reason is not None and label not in about.setdefault(reason, []):
                    about[reason].append(label)
                words.append("-" if name not in each else "yes" if reason is None else _number(reason, about))
            rows.append((f" {name}", *words))
    lines = [f"{_number(reason, about)} {', '.join(labels)}: {reason}" for reason, labels in about.items()]
    return rows, lines


def _number(reason: str, reasons: Iterable[str]) -> str:
    return f"({list(reasons).index(reason) + 1})"


def _show_abilities(console: Console, abilities: Mapping[str, Abilities]) -> None:
    rows, reasons = matrix(abilities)
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for label in abilities:
        # A long label, as 3.13.0-pyenv, must not make its column wide.
        table.add_column(label.replace("-", "\n-"), justify="center", no_wrap=True)
    for row in rows:
        table.add_row(*row, *[""] * (len(abilities) + 1 - len(row)), style="" if len(row) > 1 else "bold")
    console.print(table)
    for line in reasons:
        number, text = line.split(" ", 1)
        shown = Table.grid(padding=(0, 1))
        shown.add_row(number, Text(text))
        console.print(shown)
