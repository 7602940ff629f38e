"""`gilscope race`: run a program and report its data races.

The program's start waits for what this module imports, so nothing heavy is imported before it runs: argparse only for
options, the search for builds only with --build, the report only when there is something to report.
"""

from __future__ import annotations

import os
import sys

from gilscope.toolkit import own_files
from gilscope.toolkit.commands.stopping import SIGNALLED
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.programs import COMMAND, SCRIPT, STDIN
from gilscope.toolkit.programs.foreground import INTERRUPTED
from gilscope.toolkit.programs.target import ProgramTarget, begins_program, default_python, find, whole
from gilscope.toolkit.race.program import start
from gilscope.toolkit.race.program.checked_files import NO_RACE, CheckedFiles
from gilscope.toolkit.race.program.spec import CheckedRunSpec
from gilscope.toolkit.race.report.formats import IN_PLACE, RACE_FORMATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gilscope.toolkit.commands.output.pages import HtmlFile
    from gilscope.toolkit.race.report.settings import RaceSettings, Suppression

RACE_FOUND = 66        # the exit code of the sanitizers
CONFIRM_TRIES = 5
MOST_SETTINGS = 2**24  # bytes of a pyproject.toml; bounded_reading.py has the same limit, and takes time to import
STDERR = "/dev/stderr"

USAGE = """gilscope race [options] SCRIPT [ARGS...]
       gilscope race [options] -m MODULE [ARGS...]
       gilscope race [options] -- COMMAND [ARGS...]"""
DESCRIPTION = """\
Run a Python program once and report the data races that this run shows: conflicting accesses of its Python code that
both happened, without a happens-before edge between them, whether or not they did harm. Code that did not run, and
accesses that a lock happened to order this time, are not reported. Works on CPython 3.12 to 3.15, with and without the
GIL.

SCRIPT is a file, a folder or zip file with __main__.py, or - for standard input. COMMAND is a console command of an
installed package, such as pytest; `pytest --race` tells the races of each test. The program runs slower, and its races
do harm more often than without the checker. The report follows on standard error."""
EPILOG = """\
exit codes:
     66  a race was found; notes do not count
  128+N  signal N ended the program, and no race was found
      3  there is no core for the program's Python, Python exited with 0 without starting the program, accesses
         went unchecked that should have been checked, no file of the project was checked, records could not be
         written, or a report file could not be written
      2  the request was wrong
  else   the program's own

To accept a race, write `# race: ok WHY` on its line. For whole files and variables, use [tool.gilscope.race] in
pyproject.toml.
"""


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope race`."""
    from argparse import RawDescriptionHelpFormatter

    from gilscope.toolkit.commands.options.programs import cut_program
    from gilscope.toolkit.commands.summaries import SUMMARIES

    parser = commands.add_parser(
        "race", help=SUMMARIES["race"], usage=USAGE, description=DESCRIPTION, epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False,
    )
    add_options(parser)
    parser.cut = cut_program
    parser.set_defaults(run=run)


def add_options(parser: Any) -> None:
    """Add the options of `gilscope race`; `RaceOptions` has their defaults."""
    from gilscope.toolkit.commands.options.common import duration
    from gilscope.toolkit.commands.options.files import add_page
    from gilscope.toolkit.commands.options.programs import CountOption, OnceOption, interpreter_flags

    add = parser.add_argument
    add("--build", metavar="LABEL", action=OnceOption, help="Run the program under this build, e.g. 3.14t, or under "
        "LABEL=PATH (default: the active environment's Python, or gilscope's own). Use it for code that behaves "
        "differently without the GIL.")
    add("--python-args", metavar="ARGS", type=interpreter_flags, default=(),
        help="Pass ARGS to the interpreter, quoted as one argument: --python-args='-O -W error' (default: none).")
    add("--include", metavar="GLOB", action="append", default=[],
        help="Also check modules whose names match GLOB, in the standard library or in installed packages, "
        "e.g. 'cachetools*' (default: the project's own code). Repeatable. Use it to find races in a dependency.")
    add("--notes", action="store_true", help="Also show unordered accesses that are harmless: polled flags, correct "
        "double-checked locking, memos that always store the same value. Use it for a review.")
    add("--stacks", action="store_true", help="Show every race on its own, with every frame of its stacks (default: "
        "the races of a variable together, and a line for the frames of installed packages). Use it if the short "
        "report lacks the frame that you need.")
    _add_formats(add)
    add_page(parser)
    add("--confirm", metavar="K", action=CountOption, const=CONFIRM_TRIES, default=0,
        help="Run the program again, up to K times per race, with pauses at the race's two accesses, and report the "
        f"outcome (default: {CONFIRM_TRIES}). Use it to demonstrate a race. The program must be safe to run "
        "repeatedly.")
    add("--confirm-timeout", metavar="TIME", type=duration,
        help="End a confirming run after TIME (default: ten times the first run, at least 10s).")
    add("--learn", action="store_true", help="Add an entry for each variable with a race to the suppress list in "
        "pyproject.toml, as unreviewed, and exit with the program's own code. Use it once, so that from then on only "
        "new races fail; then review each entry and write why.")
    add("-q", "--quiet", action="store_true", help="If there is no race, do not say which files were checked. Use it "
        "where standard error must be the program's own.")
    add("--no-color", action="store_true", help="Use no colour, even on a terminal. NO_COLOR has the same effect.")


def _add_formats(add: Any) -> None:
    from gilscope.toolkit.commands.options.programs import ProgramFileOption, output_file

    for each in RACE_FORMATS:
        option = f"--{each.name}"
        if each.kind == IN_PLACE:
            add(option, action=ProgramFileOption, suffix=f".{each.name}", help=each.help)
        else:
            add(option, metavar="FILE", type=output_file, help=each.help)


class RaceOptions:
    """The values of all options when none is given, without the time that argparse takes to import."""

    def __init__(self, program: Sequence[str]) -> None:
        self.program = program
        self.build = self.html = self.confirm_timeout = None
        self.python_args: tuple[str, ...] = ()
        self.by = ""
        self.words: Sequence[str] = ()   # of the command line
        self.include: list[str] = []
        self.notes = self.stacks = self.learn = self.no_color = self.quiet = False
        self.confirm = 0
        self.run = run
        for each in RACE_FORMATS:
            setattr(self, each.name, None)


class NoSettings:
    """The settings of a project that has none."""

    suppressions: tuple[Suppression, ...] = ()
    include: tuple[str, ...] = ()
    notes = False


def options_without_parser(words: Sequence[str]) -> RaceOptions | None:
    """Return the default options if the words name a program only, or None if argparse has to read them."""
    return RaceOptions(words) if words and begins_program(words[0]) else None


def run(args: RaceOptions) -> int:
    """Run the program, report its races, and return the exit code."""
    target = find(args.program)
    python = _python(args, target)
    if args.build and target.python:   # the command's own environment is for another build
        target = ProgramTarget(COMMAND, os.path.basename(target.name), target.args)
    root = own_files.project_root(os.getcwd())
    settings = _settings(root)
    spec = CheckedRunSpec(kind=target.kind, name=target.name, args=target.args, python=python,
                          include=[*args.include, *settings.include],
                          options={"root": root, "target": " ".join(args.program), "build": args.build or ""})
    if args.confirm and target.kind == STDIN:
        raise ToolkitError("--confirm runs the program again, but standard input can be read only once; name a file")
    if args.learn and not os.path.isfile(os.path.join(root, "pyproject.toml")):
        raise ToolkitError(f"--learn writes into pyproject.toml, and {root} has none")
    page = _page(args)
    first = start.FirstRun(spec, target.entry())
    try:
        first.go()
        if not start.was_begun(first.spool):
            if first.ended < 0:
                from gilscope.toolkit.commands.race.report import print_early_end

                print_early_end(first)
                return SIGNALLED - first.ended
            if first.ended == 0:
                raise UncheckedError(f"nothing was checked: {python[0]} ended before the program began")
        if first.ended and start.lacks_module(first.spool):
            _advise_on_module(target.name, args.build)
        found, status = (False, 0) if start.was_refused(first.spool) else _report(args, settings, first, page)
    finally:
        start.remove_spool(first.spool)
    if any(word.startswith("--") for word in args.program[1:]):
        from gilscope.toolkit.commands.options.programs import warn_of_late_options

        warn_of_late_options("race", add_options, first.ended, args.program)
    if found:
        return RACE_FOUND
    return (first.ended if first.ended >= 0 else SIGNALLED - first.ended) or status


class UncheckedError(ToolkitError):
    """The interpreter ended successfully and the program never began, which must not look like a race-free program."""

    exit_code = 3


def _advise_on_module(module: str, build: str | None) -> None:
    """Say how to import the user's own module, after the program's Python said that it lacks it."""
    from gilscope.toolkit.builds.local_projects import find_local_project, short
    from gilscope.toolkit.commands.streams import print_stderr

    if (project := find_local_project(module)) is None:
        return
    folder = short(project.imports)
    environment = f"--build {build.partition('=')[0]}=FOLDER" if build else "the active one"
    print_stderr(f"gilscope: {module} is yours, in {folder}: set PYTHONPATH={folder}, or "
                 f"install it with pip into an environment of that Python and use that one: {environment}")


def _settings(root: str) -> RaceSettings | NoSettings:
    """Return the settings for races in the pyproject.toml of a folder."""
    path = os.path.join(root, "pyproject.toml")
    if not os.path.isfile(path):
        return NoSettings()
    with open(path, "rb") as file:
        if b"gilscope" not in file.read(MOST_SETTINGS):
            return NoSettings()   # without the time to import a parser
    from pathlib import Path

    from gilscope.toolkit.race.report.settings import settings
    return settings(Path(path))


def _page(args: RaceOptions) -> HtmlFile | None:
    """Return the writer of the page that --html asks for.

    It is made before the program runs, because its renderer may have to be installed.
    """
    if not args.html:
        return None
    from gilscope.toolkit.commands.output.pages import HtmlFile

    return HtmlFile.requested(args)


def _report(
    args: RaceOptions, settings: RaceSettings | NoSettings, first: start.FirstRun, page: HtmlFile | None
) -> tuple[bool, int]:
    """Write what was checked, and the reports that are requested or needed.

    `report` in commands/race/report.py says what is returned.
    """
    checked = _checked_files(args, first)
    requested = args.html or any(getattr(args, each.name) for each in RACE_FORMATS)
    is_plain_end = first.ended >= 0 or first.ended == INTERRUPTED   # who presses Ctrl-C needs no report of it
    if is_plain_end and not requested and not settings.suppressions and not start.has_records(first.spool):
        if not args.quiet or (checked.is_nothing and not first.ended):
            from gilscope.toolkit.commands.streams import print_stderr

            print_stderr(f"gilscope race: {checked.words(NO_RACE)}")
        return False, UncheckedError.exit_code if checked.is_nothing else 0
    from gilscope.toolkit.commands.race.report import report

    args.notes = args.notes or settings.notes
    return report(args, settings.suppressions, first, page, checked)   # type: ignore[arg-type]  # it has a Namespace's attributes


def _checked_files(args: RaceOptions, first: start.FirstRun) -> CheckedFiles:
    """Return the files that were checked; a command of an environment is none of the user's."""
    spec = first.spec
    script = whole(spec.name) if spec.kind == SCRIPT else ""
    folder = os.path.dirname(script)
    root = spec.options["root"]
    is_command = own_files.is_command(script) or (
        args.program[0] == "--" and folder in os.get_exec_path() and not script.startswith(os.path.join(root, "")))
    python = spec.python[0]
    # gilscope's own Python may not be the project's.
    is_default = python == sys.executable and not args.build and not os.environ.get("VIRTUAL_ENV")
    return CheckedFiles(first.spool, root, script, is_command=is_command, include=spec.include,
                        ran=f"under {python}{'; no environment is active' if is_default else ''}")


def _python(args: RaceOptions, target: ProgramTarget) -> list[str]:
    """Return the interpreter and its flags."""
    if args.build:
        from gilscope.toolkit.commands.options.programs import build_python

        return [build_python(args.build), *args.python_args]
    return [*(target.python or (default_python(),)), *args.python_args]
