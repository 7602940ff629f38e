"""`gilscope race`: run a program and report its data races.

The program's start waits for what this module imports, so nothing heavy is imported before it runs: argparse only for
options, the search for builds only with --build, the report only when there is something to report.
"""

from __future__ import annotations

import os

from gilscope.toolkit.commands.stopping import SIGNALLED
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.race.program import start
from gilscope.toolkit.race.program.spec import COMMAND, STDIN, CheckedRunSpec
from gilscope.toolkit.race.program.target import ProgramTarget, begins_program, default_python, find
from gilscope.toolkit.race.report.formats import FLAG, IN_PLACE, RACE_FORMATS

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
installed package, such as pytest. The program behaves as it does without the checker; the report follows on standard
error."""
EPILOG = """\
exit codes:
     66  a race was found; notes do not count
  128+N  signal N ended the program, and no race was found
      3  there is no core for the program's Python, Python exited with 0 without starting the program, accesses
         went unchecked that should have been checked, records could not be written, or a report file could not be
         written
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
        help="Also check files or modules that match GLOB, in the standard library or in installed packages, "
        "e.g. 'cachetools*' (default: the project's own code). Repeatable. Use it to find races in a dependency.")
    add("--notes", action="store_true", help="Also show unordered accesses that are harmless: polled flags, correct "
        "double-checked locking, memos that always store the same value. Use it for a review.")
    add("--stacks", action="store_true", help="Show every race on its own, with every frame of its stacks (default: "
        "the races of a variable together, and a line for the frames of installed packages). Use it if the short "
        "report lacks the frame that you need.")
    add("--shared", action="store_true", help="Also list every variable that several threads use and at least one "
        "writes, even if the accesses are ordered. Use it before a move to processes or subinterpreters, where each "
        "worker would have its own copy.")
    _add_formats(add)
    add_page(parser)
    add("--confirm", metavar="K", action=CountOption, const=CONFIRM_TRIES, default=0,
        help="Run the program again, up to K times per race, with pauses at the race's two accesses, and report the "
        f"outcome (default: {CONFIRM_TRIES}). Use it to demonstrate a race. The program must be safe to run "
        "repeatedly.")
    add("--confirm-timeout", metavar="TIME", type=duration,
        help="End a confirming run after TIME (default: ten times the first run, at least 10s).")
    add("--no-color", action="store_true", help="Use no colour, even on a terminal. NO_COLOR has the same effect.")


def _add_formats(add: Any) -> None:
    from gilscope.toolkit.commands.options.programs import ProgramFileOption, output_file

    for each in RACE_FORMATS:
        option = f"--{each.name}"
        if each.kind == FLAG:
            add(option, action="store_true", help=each.help)
        elif each.kind == IN_PLACE:
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
        self.notes = self.shared = self.stacks = self.no_color = False
        self.confirm = 0
        self.run = run
        for each in RACE_FORMATS:
            setattr(self, each.name, each.default)


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
    root, settings = _project()
    spec = CheckedRunSpec(kind=target.kind, name=target.name, args=target.args, python=python,
                          include=[*args.include, *settings.include],
                          options={"root": root, "target": " ".join(args.program), "build": args.build or "",
                                   "shared": args.shared})
    if args.confirm and target.kind == STDIN:
        raise ToolkitError("--confirm runs the program again, but standard input can be read only once; name a file")
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
        found, unsaved = (False, 0) if start.was_refused(first.spool) else _report(args, settings, first, page)
    finally:
        start.remove_spool(first.spool)
    if any(word.startswith("--") for word in args.program[1:]):
        from gilscope.toolkit.commands.options.programs import warn_of_late_options

        warn_of_late_options("race", add_options, first.ended, args.program)
    if found:
        return RACE_FOUND
    return (first.ended if first.ended >= 0 else SIGNALLED - first.ended) or unsaved


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


def _project() -> tuple[str, RaceSettings | NoSettings]:
    """Return the project's folder, and the settings for races in its pyproject.toml.

    The folder is the nearest one with a pyproject.toml, from the current one upwards, or else the current one.
    """
    here = folder = os.getcwd()
    while not os.path.isfile(path := os.path.join(folder, "pyproject.toml")):
        if folder == (folder := os.path.dirname(folder)):
            return here, NoSettings()
    with open(path, "rb") as file:
        if b"gilscope" not in file.read(MOST_SETTINGS):
            return folder, NoSettings()   # without the time to import a parser
    from pathlib import Path

    from gilscope.toolkit.race.report.settings import settings
    return folder, settings(Path(path))


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
    """Write the reports that are requested or needed; `report` in commands/race/report.py says what is returned."""
    requested = args.html or args.shared or any(getattr(args, each.name) for each in RACE_FORMATS)
    is_plain_end = first.ended >= 0 or first.ended == start.INTERRUPTED   # who presses Ctrl-C needs no report of it
    if is_plain_end and not requested and not settings.suppressions and not start.has_records(first.spool):
        if start.wants_all_clear():
            from gilscope.toolkit.escaping import message

            watched, unchecked = start.watched_words(first.spool), start.unchecked_words(first.spool)
            words = f"gilscope race: no race in what this run did{watched and f'; {watched}'}"
            words = f"{unchecked}\n{words}" if unchecked else words
            os.write(2, f"{message(words)}\n".encode(errors="replace"))
        return False, 0
    from gilscope.toolkit.commands.race.report import report

    args.notes = args.notes or settings.notes
    return report(args, settings.suppressions, first, page)   # type: ignore[arg-type]  # it has a Namespace's attributes


def _python(args: RaceOptions, target: ProgramTarget) -> list[str]:
    """Return the interpreter and its flags."""
    if args.build:
        from gilscope.toolkit.commands.options.programs import build_python

        return [build_python(args.build), *args.python_args]
    return [*(target.python or (default_python(),)), *args.python_args]
