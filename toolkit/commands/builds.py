"""`gilscope builds`: list the builds of CPython and judge the default pair; `install` gets more, `add` names yours."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from gilscope.toolkit.builds.added import added_builds, forget, remember
from gilscope.toolkit.builds.find import FoundBuilds, find_builds, inspect_new
from gilscope.toolkit.builds.inspection import keeps_environment
from gilscope.toolkit.builds.install import PythonInstallRequest, install
from gilscope.toolkit.builds.missing_packages import find_missing_packages
from gilscope.toolkit.builds.pairing import best_pair
from gilscope.toolkit.commands.options.common import add_build, positive
from gilscope.toolkit.commands.options.files import add_json
from gilscope.toolkit.commands.output.printing import printed
from gilscope.toolkit.commands.output.reports import write_json
from gilscope.toolkit.commands.streams import print_stderr, print_stdout
from gilscope.toolkit.commands.summaries import SUMMARIES
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.errors import ToolkitError, UnknownNameError
from gilscope.toolkit.escaping import visible, visible_all
from gilscope.toolkit.measure.preparation import needed_packages

if TYPE_CHECKING:
    from gilscope.toolkit.builds.compile_python import InstallStep
    from gilscope.toolkit.builds.pairing import BuildPair
    from gilscope.toolkit.model import Build

HEARTBEAT_SECONDS = 30.0   # between progress lines in a log
COLUMNS = ("build", "version", "GIL", "compiler", "built with", "allocator", "found by")


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope builds` and of its actions."""
    parser = commands.add_parser(
        "builds", help=SUMMARIES["builds"],
        description="Show every CPython from 3.12 on that can be measured, how each was built, and whether the default "
                    "pair can be compared fairly. Searches added builds, tox environments, installations by gilscope, "
                    "uv and pyenv, and PATH.")
    add_build(parser)
    add_json(parser, "table")
    parser.set_defaults(run=run)
    actions = parser.add_subparsers(metavar="ACTION")
    _add_install(actions)
    _add_remembered(actions)


def _add_remembered(actions: Any) -> None:
    adder = actions.add_parser(
        "add", help="remember an interpreter, or an environment of yours, under a label",
        description="Remember an interpreter that is not found automatically, or an environment of yours with its "
                    "packages, so that every command knows it by its label. Nothing is installed into it.",
        epilog="example: gilscope builds add mine=venv/bin/python")
    adder.add_argument("named", metavar="LABEL=PATH",
                       help="A label of your choice, and the interpreter or the folder of its environment.")
    adder.set_defaults(run=run_add)
    remover = actions.add_parser(
        "remove", help="forget a build that was added",
        description="Forget a build that `gilscope builds add` remembers. The interpreter itself is not removed.")
    remover.add_argument("label", metavar="LABEL", help="The label of an added build.")
    remover.set_defaults(run=run_remove)


def _add_install(actions: Any) -> None:
    adder = actions.add_parser(
        "install", help="install builds: from uv, or built from source",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Install builds that can be compared fairly. uv downloads them if it can; otherwise they are\n"
                    "compiled from one source with the same flags, in about two minutes each. The source is the\n"
                    "distribution's (apt-get source), or a tarball of yours.",
        epilog="examples:\n  gilscope builds install 3.14 3.14t\n"
               "  gilscope builds install 3.14 3.14t --source Python-3.14.0.tar.xz --optimize")
    adder.add_argument("names", metavar="VERSION", nargs="*",
                       help="Version to install, e.g. 3.14 or 3.14t (default: the newest pair available).")
    adder.add_argument("--source", metavar="TARBALL", type=Path,
                       help="Compile this CPython source (default: what uv or apt-get offers). Use it without a "
                       "network, or for a version that neither offers.")
    adder.add_argument("--optimize", action="store_true",
                       help="Compile with PGO and LTO, as distributions do, which takes several times as long "
                            "(default: without).")
    adder.add_argument("--jobs", metavar="N", type=positive, default=usable_cores(),
                       help="Compile N files at once (default: %(default)s, the cores). Use fewer to leave cores for "
                            "other programs.")
    adder.add_argument("--keep-source", action="store_true",
                       help="Keep the downloaded source in gilscope's data folder. Use it to compile the same source "
                            "again later.")
    adder.set_defaults(run=run_install)


def run(args: argparse.Namespace) -> int:
    """Print the available builds."""
    found = find_builds(args.build, project_dir=Path.cwd())
    pair = best_pair(found.builds)
    if write_json(args.json, _plain(found, pair)):
        return 0
    found, pair = visible_all((found, pair))
    with printed() as console:
        if found.builds:
            console.print(_table(found))
            for build in found.builds:
                console.print(_origin(build), soft_wrap=True)
        else:
            console.print("No CPython 3.12 or newer found. `gilscope builds install` gets a pair.")
        for note in found.problems:
            console.print(f"not usable: {note.text}", soft_wrap=True)
        for line in _fairness(found, pair):
            console.print(line)
    return 0


def run_install(args: argparse.Namespace) -> int:
    """Install builds and print the result."""
    request = PythonInstallRequest(names=tuple(args.names), tarball=args.source, optimize=args.optimize, jobs=args.jobs,
                                   keep_source=args.keep_source)
    with InstallProgress() as steps:
        outcome = install(request, steps.show)
    for line in outcome.lines:
        print_stdout(line)
    for note in outcome.notes:
        print_stderr(f"note: {note.text}")
    return 0


def run_add(args: argparse.Namespace) -> int:
    """Remember a build, after checking that it is one."""
    label, path, build = inspect_new(args.named)
    there = {each.label: each for each in find_builds(project_dir=Path.cwd()).builds}
    if label in there and there[label].source != "added":
        raise ToolkitError(f"there is a build {label!r} already, {there[label].executable}; choose another label")
    remember(label, path)
    gil = "without the GIL" if build.free_threaded else "with the GIL"
    print_stdout(f"{label} is CPython {build.version} {gil}, {path}")
    if keeps_environment(replace(build, source="added")):
        print_stdout("It is an environment: it is measured with the packages it has, and nothing is installed into it.")
        for text, reason in find_missing_packages(build, needed_packages(build)).items():
            print_stdout(f"Measuring needs {text}: {reason}")
    return 0


def run_remove(args: argparse.Namespace) -> int:
    """Forget a build that was added."""
    if not forget(args.label):
        known = ", ".join(added_builds()) or "none"
        raise UnknownNameError(f"no build was added as {args.label!r}; added: {known}")
    print_stdout(f"{args.label} is forgotten; the interpreter stays where it is")
    return 0


class InstallProgress:
    """Shows the steps of an installation: a progress bar on a terminal, plain lines elsewhere."""

    def __init__(self) -> None:
        console = Console(stderr=True, highlight=False)
        self._bar = Progress(TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(),
                             console=console) if console.is_terminal else None
        self._task = TaskID(-1)
        self._what = ""
        self._began = self._spoken = time.monotonic()

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def show(self, step: InstallStep) -> None:
        """Show a step that is new, or that has taken a while."""
        is_new = step.what != self._what
        self._what = step.what
        if self._bar:
            self._advance(self._bar, step, is_new=is_new)
        else:
            self._say(step, is_new=is_new)

    def _advance(self, bar: Progress, step: InstallStep, *, is_new: bool) -> None:
        if is_new:
            if self._task >= 0:
                bar.update(self._task, total=1, completed=1)
                bar.stop_task(self._task)
            self._task = bar.add_task(visible(step.what), total=step.expected or None)
        elif step.expected:
            bar.update(self._task, completed=min(step.done, step.expected), total=step.expected)

    def _say(self, step: InstallStep, *, is_new: bool) -> None:
        now = time.monotonic()
        if not is_new and now - self._spoken < HEARTBEAT_SECONDS:
            return
        self._spoken = now
        share = f", {min(100, 100 * step.done // step.expected)} %" if step.expected and not is_new else ""
        print_stderr(f"[{now - self._began:4.0f} s] {step.what}{share}")


def _table(found: FoundBuilds) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, no_wrap=name == "build")  # a label must stay in one piece to be copied
    for build in found.builds:
        table.add_row(*(Text(cell) for cell in (
            build.label, build.version, "no" if build.free_threaded else "yes", build.compiler, _built_with(build),
            build.allocator, build.source)))
    return table


def _built_with(build: Build) -> str:
    """Return the options that decide a build's speed: "-O3 PGO LTO", "-O0 debug", "-O3 JIT (off)"."""
    words = [build.opt_level, "PGO" * build.pgo, "LTO" * build.lto, "debug" * build.debug,
             {"no": "", "on": "JIT"}.get(build.jit, f"JIT ({build.jit})")]
    return " ".join(filter(None, words))


def _origin(build: Build) -> Text:
    """Return a line with a build's path and source, which is never truncated."""
    told = [build.executable]
    if build.base_executable != build.executable:
        told.append(f"of {build.base_executable}")
    if build.revision:
        told.append(f"source {build.revision}")
    return Text(f"  {build.label}: {', '.join(told)}")


def _fairness(found: FoundBuilds, pair: BuildPair | None) -> list[str]:
    if pair is None:
        lacking = "with the GIL" if any(build.free_threaded for build in found.builds) else "without the GIL"
        return [f"\nNo pair to compare: there is no build {lacking}. `gilscope builds install` gets a pair."]
    names = f"{pair.gil.label} and {pair.free_threaded.label}"
    if not pair.mismatches:
        return [f"\nDefault pair: {names}, built alike: their ratio is about the GIL."]
    return [f"\nDefault pair: {names}, NOT built alike: their ratio is not about the GIL alone.",
            *(f"  {note.text}" for note in pair.mismatches),
            "`gilscope builds install` gets a pair that was built alike."]


def _plain(found: FoundBuilds, pair: BuildPair | None) -> dict[str, Any]:
    return {
        "builds": [asdict(build) for build in found.builds],
        "problems": [note.text for note in found.problems],
        "default_pair": None if pair is None else {
            "gil": pair.gil.label, "free_threaded": pair.free_threaded.label,
            "mismatches": [note.text for note in pair.mismatches]},
    }

