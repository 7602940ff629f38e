"""`gilscope race`: run a program and report the data races that its synchronisation does not rule out.

The program's start waits for what stands here, so nothing heavy is imported before it runs: argparse only for options
that need it, the search for builds only with --build, the report only when there is something to report.
"""

from __future__ import annotations

import os

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.race.program import start
from gilscope.toolkit.race.program.first_run import FirstRun
from gilscope.toolkit.race.program.spec import COMMAND, STDIN, Spec
from gilscope.toolkit.race.program.target import Target, default_python, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gilscope.toolkit.commands.output.pages import HtmlFile
    from gilscope.toolkit.race.report.settings import Settings, Suppression

RACE_FOUND = 66        # the exit code of the sanitizers
SIGNALLED = 128        # plus the signal's number, as shells say it
MISUSED = 2            # what argparse ends a program with that it does not know an option of
CONFIRM_TRIES = 5
MOST_SETTINGS = 2**24  # bytes of a pyproject.toml (as bounded_reading.py has it), which a program need not wait for

USAGE = """gilscope race [options] SCRIPT [ARGS...]
       gilscope race [options] -m MODULE [ARGS...]
       gilscope race [options] -- COMMAND [ARGS...]"""
DESCRIPTION = """\
Run a Python program once and report every data race of its Python code that the run's synchronisation does not
order, also those that did no harm this time. Works on builds with and without the GIL, 3.12 to 3.15.

SCRIPT is a file, a folder or zip file with __main__.py, or - for standard input. COMMAND is what a package installed,
like pytest. The program behaves as without the checker; the report follows on standard error."""
EPILOG = """\
exit codes: the program's own; 66 when a race was found (notes do not count); 128+N when signal N ended the program;
3 when the interpreter ended well and never came to the program.
A line that may race says so: `# race: ok WHY`. Whole files and variables: [tool.gilscope.race] in pyproject.toml.
"""
WITH_VALUE = frozenset({"--build", "--sarif", "--html", "--include", "--core", "--python-args", "--confirm-timeout"})
PLAIN_FLAGS = frozenset({"--notes", "--shared", "--github", "--no-color"})
OPTIONAL_VALUE = frozenset({"--json", "--confirm"})
FILES = frozenset({"--html", "--json", "--sarif", "--trace"})   # what is written to a file that is named, of `gil`, too


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope race`."""
    from argparse import RawDescriptionHelpFormatter

    from gilscope.toolkit.commands.options.common import duration, positive
    from gilscope.toolkit.commands.options.files import add_page
    from gilscope.toolkit.commands.options.programs import STDERR, Once, interpreter_flags, output_file

    parser = commands.add_parser(
        "race", help="run a program and report its data races", usage=USAGE, description=DESCRIPTION, epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False,
    )
    add = parser.add_argument
    add("--build", metavar="LABEL", action=Once, help="Run the program under this build, e.g. 3.14t, or under "
        "LABEL=PATH. For code that behaves differently without the GIL (default: the active environment's Python, else "
        "gilscope's own).")
    add("--python-args", metavar="ARGS", type=interpreter_flags, default=(),
        help="Flags of the interpreter, as one word: --python-args='-O -W error'. For a program that is run with them.")
    add("--include", metavar="GLOB", action="append", default=[],
        help="Also check files or modules that match GLOB, of the standard library or of installed packages, "
        "e.g. 'cachetools*'. Use it to see into a dependency; may be given again (default: the project's own code).")
    add("--notes", action="store_true", help="Also show what is unordered but harmless: polled flags, correct "
        "double-checked locking, memos that come out equal. For a review.")
    add("--shared", action="store_true", help="Also list what several threads use and at least one writes, whatever "
        "orders it. Use it before a move to processes or subinterpreters: each would have a copy of its own.")
    add("--json", metavar="FILE", nargs="?", type=output_file, const=STDERR, help="Write the report as JSON to FILE "
        "(default: standard error, in place of the text). For scripts; write --json=FILE, or a FILE ending in .json.")
    add("--sarif", metavar="FILE", type=output_file,
        help="Also write the report as SARIF to FILE. For code scanning services.")
    add_page(parser)
    add("--github", action="store_true",
        help="Also print GitHub annotations on standard error. They show the races beside the lines of a pull request.")
    add("--confirm", metavar="K", nargs="?", const=CONFIRM_TRIES, type=positive, default=0,
        help="Run the program again, up to K times per race, pausing at its two places, and say what came of it "
        f"(default: {CONFIRM_TRIES}). Use it to convince someone; the program must bear to be run again.")
    add("--confirm-timeout", metavar="TIME", type=duration,
        help="End a confirming run after TIME (default: ten times the first run, at least 10s).")
    add("--core", choices=("c", "python"), default="",
        help="Use this core. Both give the same verdicts; python is slower and needs no compiler (default: c where it "
        "can be built).")
    add("--no-color", action="store_true", help="No colour, also on a terminal. NO_COLOR has the same effect.")
    parser.cut = cut
    parser.set_defaults(run=run)


class Options:
    """The options as argparse gives them when none is written."""

    def __init__(self, program: Sequence[str]) -> None:
        self.program = program
        self.suppressions: tuple[Suppression, ...] = ()
        self.build = self.json = self.sarif = self.html = self.confirm_timeout = None
        self.python_args: tuple[str, ...] = ()
        self.core = ""
        self.include: list[str] = []
        self.notes = self.shared = self.github = self.no_color = False
        self.confirm = 0
        self.run = run


def plain_options(words: Sequence[str]) -> Options | None:
    """Return the options when there are but flags, None when argparse has to read them, which takes a start's time."""
    own, program = cut(words)
    if not program or not PLAIN_FLAGS.issuperset(own):
        return None
    options = Options(program)
    for word in own:
        setattr(options, word[2:].replace("-", "_"), True)
    return options


def cut(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Cut the words after `race` into our options and the program with its arguments, whatever those look like."""
    own: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        if word in {"-", "--"} or word.startswith("-m") or not word.startswith("-"):
            break
        value = words[position + 1] if position + 1 < len(words) else ""
        if word in WITH_VALUE and position + 1 < len(words):
            own += [word, value]
            position += 1
        elif (word == "--json" and _is_file(value)) or (word == "--confirm" and value.isdecimal()):
            own.append(f"{word}={value}")   # these values are optional, so a word that looks like none is the program
            position += 1
        else:
            own.append(word)
        position += 1
    return own, list(words[position:])


def _is_file(word: str) -> bool:
    """Return whether the word after --json is its file, not the program; "" and "-" are so that they can be refused."""
    return word in {"", "-", "/dev/stderr", "/dev/stdout"} or word.endswith(".json")


def run(args: Options) -> int:
    """Run the program, tell what was found, and return the exit code."""
    target = _target(args)
    python = _python(args, target)
    if args.build and target.python:   # the command's own environment is another one's
        target = Target(COMMAND, os.path.basename(target.name), target.args)
    root, settings = _project()
    spec = Spec(kind=target.kind, name=target.name, args=target.args, python=python,
                include=[*args.include, *settings.include], core=args.core,
                options={"root": root, "target": " ".join(args.program), "build": args.build or "",
                         "shared": args.shared})
    if args.confirm and target.kind == STDIN:
        raise ToolkitError("--confirm runs the program again, and standard input can be read but once; name a file")
    page = _page(args)
    first = FirstRun(spec, target.entry())
    try:
        first.go()
        if first.ended == 0 and not start.was_begun(first.spool):
            raise UncheckedError(f"nothing was checked: {python[0]} ended before the program began")
        found, unsaved = (False, 0) if start.was_refused(first.spool) else _tell(args, settings, first, page)
    finally:
        start.remove_spool(first.spool)
    warn_of_late_options("race", WITH_VALUE | PLAIN_FLAGS | OPTIONAL_VALUE, first.ended, args.program)
    if found:
        return RACE_FOUND
    return (first.ended if first.ended >= 0 else SIGNALLED - first.ended) or unsaved


def warn_of_late_options(command: str, options: frozenset[str], ended: int, program: Sequence[str]) -> None:
    """Say which of our options a program got that cannot have been meant for it: they come before it.

    It ended for an option that it does not know, or it is a script without a word of an option that names a file, and
    no such file is there.

    Args:
        command: Ours.
        options: Its options.
        ended: How the program ended.
        program: Its name and what it was given.
    """
    late = [word for word in program[1:] if word.partition("=")[0] in options]
    if ended != MISUSED:
        late = [word for word in late if word.partition("=")[0] in FILES and _is_missed(word, program)]
    if late:
        from gilscope.toolkit.commands.options.programs import say

        say(f"gilscope {command}: {late[0]} was given to the program, as all that follows its name is; gilscope's "
            "options come before it")


def _is_missed(word: str, program: Sequence[str]) -> bool:
    """Return whether a script does not know the option `word` of its own, and the file of it is not there."""
    option, equals, file = word.partition("=")
    file = file if equals else next(iter(program[program.index(word) + 1:]), "")
    try:
        with open(program[0], "rb") as script:
            text = script.read()
    except OSError:   # a module, a command
        return False
    known = option.encode() in text or b"\0" in text   # packed, it may have any word
    return bool(file) and not known and not os.path.exists(file)


class UncheckedError(ToolkitError):
    """The interpreter ended well and the program never began: that must not look like a program without races."""

    exit_code = 3


def _target(args: Options) -> Target:
    name = args.program[0] if args.program else "-"
    if args.json == "/dev/stderr" and name[:1] != "-" and not os.path.exists(name):   # the word after --json
        raise ToolkitError(f"no script {name!r}; if the report is to go there, write --json={name}")
    return find(args.program)


def _project() -> tuple[str, Settings | Options]:
    """Return the project's folder, and what its pyproject.toml says about races.

    It is the nearest folder with a pyproject.toml, from the current one upwards, else the current one.
    """
    here = folder = os.getcwd()
    while not os.path.isfile(path := os.path.join(folder, "pyproject.toml")):
        if folder == (folder := os.path.dirname(folder)):
            return here, Options([])
    with open(path, "rb") as file:
        if b"gilscope" not in file.read(MOST_SETTINGS):
            return folder, Options([])   # spares the parser
    from pathlib import Path

    from gilscope.toolkit.race.report.settings import settings
    return folder, settings(Path(path))


def _page(args: Options) -> HtmlFile | None:
    """Return what writes the page that is asked for; at once, since it may have to be installed."""
    if not args.html:
        return None
    from gilscope.toolkit.commands.options.programs import say
    from gilscope.toolkit.commands.output.pages import HtmlFile

    return HtmlFile(args.html, say)


def _tell(args: Options, settings: Settings | Options, first: FirstRun, page: HtmlFile | None) -> tuple[bool, int]:
    """Write the reports that are asked for or needed; see `tell` for what is returned."""
    asked = args.json or args.sarif or args.html or args.github or args.shared or settings.suppressions
    says_so_itself = first.ended >= 0 or first.ended == start.INTERRUPTED   # whoever presses Ctrl-C knows it
    if says_so_itself and not asked and not start.has_records(first.spool):
        if start.somebody_reads():
            os.write(2, b"gilscope race: no race in what this run did\n")
        return False, 0
    from gilscope.toolkit.commands.race.report import tell

    args.notes = args.notes or settings.notes
    return tell(args, settings.suppressions, first, page)   # type: ignore[arg-type]  # the same names as argparse gives


def _python(args: Options, target: Target) -> list[str]:
    """Return the interpreter and its flags."""
    if args.build:
        return [build_python(args.build), *args.python_args]
    return [*(target.python or (default_python(),)), *args.python_args]


def build_python(label: str) -> str:
    """Return the interpreter of the build `label`, or of LABEL=PATH."""
    from pathlib import Path

    from gilscope.toolkit.builds.find import find_builds, select_builds

    name, equals, path = label.partition("=")
    if equals:   # nothing to search for
        found = os.path.join(path, "bin", "python") if os.path.isdir(path) else path
        if not os.access(found, os.X_OK) or not os.path.isfile(found):
            raise ToolkitError(f"--build {label}: no interpreter {found}")
        return os.path.abspath(found)
    builds = select_builds(find_builds(project_dir=Path.cwd()), name)
    if len(builds) != 1:
        raise ToolkitError(f"--build {label!r}: a program is run under one build at a time")
    return builds[0].executable
