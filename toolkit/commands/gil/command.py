"""`gilscope gil`: run a program and report how long its threads wait for the GIL, or for each other without one."""

from __future__ import annotations

import json
import os
import sys
from argparse import RawDescriptionHelpFormatter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.builds.find import find_builds
from gilscope.toolkit.commands.gil.report import document
from gilscope.toolkit.commands.options.common import positive
from gilscope.toolkit.commands.options.files import add_page
from gilscope.toolkit.commands.options.programs import Once, interpreter_flags, output_file, saved, say
from gilscope.toolkit.commands.output.pages import HtmlFile
from gilscope.toolkit.commands.race.command import SIGNALLED, build_python, warn_of_late_options
from gilscope.toolkit.commands.streams import put_beside
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.escaping import in_json
from gilscope.toolkit.gil import preload
from gilscope.toolkit.gil.bottleneck import Limiter
from gilscope.toolkit.gil.chrome import trace
from gilscope.toolkit.gil.diagnosis import diagnose, values
from gilscope.toolkit.gil.recorder import Recording, inflation, record
from gilscope.toolkit.gil.rerun_without_gil import WithoutGil, free_build, run_there
from gilscope.toolkit.measure.machine.alone import WAITING, Turns
from gilscope.toolkit.race.program.start import run_words
from gilscope.toolkit.race.program.target import default_python, module_of, refuse_plain_folder
from gilscope.toolkit.report.terminal import WIDTH, render
from gilscope.toolkit.site.single.waits import wait_values

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from gilscope.toolkit.gil.diagnosis import Diagnosis

UNMEASURED = 3   # the exit code when the program ended well and nothing was recorded
PLACES = 10
NARROWEST = 40   # characters; a terminal may say that it has none

USAGE = """gilscope gil [options] SCRIPT [ARGS...]
       gilscope gil [options] -m MODULE [ARGS...]"""
DESCRIPTION = """\
Run a Python program and report what its threads wait for. On a build with a GIL: how long they wait for it, who has it
meanwhile, at which line of the program, and what the free-threaded build gives. On a free-threaded build: how long they
are parked on locks and on objects that they share. The last sentence says what limits the program. The program is not
changed; Linux with glibc and a C compiler."""
EPILOG = """\
exit codes: the program's own; 128+N when signal N ended it; 3 when it ended well but nothing was recorded.
The report follows on standard error. Processes that the program starts are recorded, too.
"""
WITH_VALUE = frozenset({"--build", "--trace", "--json", "--html", "--places", "--python-args"})
FLAGS = frozenset({"--inflation", "--once"})


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope gil`."""
    parser = commands.add_parser(
        "gil", help="run a program and report its waits for the GIL", usage=USAGE, description=DESCRIPTION,
        epilog=EPILOG, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False,
    )
    add = parser.add_argument
    add("--build", metavar="LABEL", action=Once, help="Run the program under this build, e.g. 3.14t, or under "
        "LABEL=PATH. To compare builds (default: the active environment's Python, else gilscope's own).")
    add("--python-args", metavar="ARGS", type=interpreter_flags, default=(),
        help="Flags of the interpreter, as one word: --python-args='-O -W error'. For a program that is run with them.")
    add("--json", metavar="FILE", type=output_file, help="Write everything as JSON to FILE, in place of the text. For "
        "scripts; /dev/stderr is a file, too.")
    add_page(parser)
    add("--trace", metavar="FILE", type=output_file,
        help="Also write a timeline to FILE. Open it at ui.perfetto.dev or chrome://tracing.")
    add("--places", metavar="N", type=positive, default=PLACES,
        help=f"Show the N threads and places that waited most (default: {PLACES}). For a long program.")
    add("--inflation", action="store_true", help="On a free-threaded build, run the program again with its GIL on, and "
        "say how much more CPU time it takes when its threads run at the same time. It must bear to be run again.")
    add("--once", action="store_true", help="Run the program once only. Else one that ends well and that the GIL "
        "limits is run again on the free-threaded build at hand, without input and output, to say what that gives.")
    parser.cut = cut
    parser.set_defaults(run=run)


def cut(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Cut the words after `gil` into our options and the program with its arguments, whatever those look like."""
    position = 0
    while position < len(words):
        word = words[position]
        if not word.startswith("-") or word == "-" or word.startswith("-m"):
            break
        position += 2 if word in WITH_VALUE else 1
    return list(words[:position]), list(words[position:])


def run(args: Namespace) -> int:
    """Run the program, tell what its threads waited for, and return the exit code."""
    command = [build_python(args.build) if args.build else default_python(), *args.python_args,
               *_program(args.program)]
    page = HtmlFile(args.html, say) if args.html else None
    preload.library()      # where it cannot be had, nothing is started
    turns = Turns(alone=False, waiting=lambda: say(f"gilscope: {WAITING}"), told=True)
    with turns.turn():
        first = record(lambda environ: run_words(command, environ), os.environ, all_holds=bool(args.trace))
    code = first.ended if first.ended >= 0 else SIGNALLED - first.ended
    if not first.processes:
        say("gilscope: nothing was recorded: " + (
            first.problem or "the program's Python did not load the library that measures, as one does that is linked "
            "statically, or is older than 3.12"))
        return code or UNMEASURED
    with turns.turn():
        found = diagnose(args.program, first, cpu_inflation=_inflation(args, command, first))
        if not args.once:
            found = replace(found, elsewhere=_elsewhere(found, [*args.python_args, *args.program], first))
    unsaved = 0
    if args.trace:
        unsaved = saved(args.trace, in_json(json.dumps(trace(first.processes), separators=(",", ":"))))
    told = document(found, places=args.places)
    if args.json:
        unsaved = saved(args.json, in_json(json.dumps(values(found), indent=1)) + "\n") or unsaved
    else:
        put_beside(render(told, width=_width(), ascii_only=not _takes_unicode()))
    if page:
        unsaved = page.saved("waits.html", wait_values(values(found), told)) or unsaved
    warn_of_late_options("gil", WITH_VALUE | FLAGS, first.ended, args.program)
    return code or unsaved


def _program(words: Sequence[str]) -> list[str]:
    """Return the words that the interpreter is given.

    Raises:
        ToolkitError: there is no program, or Python cannot run it.
    """
    if not words:
        raise ToolkitError("no program to run; write `gilscope gil script.py` or `gilscope gil -m module`")
    name = words[0]
    if name.startswith("-m"):
        module_of(words)
    elif name != "-":
        if not name or not Path(name).exists():
            hint = f"; to run a module, write `gilscope gil -m {name}`" if name.isidentifier() else ""
            raise ToolkitError(f"no script {name!r}{hint}")
        refuse_plain_folder(name)
    return list(words)


def _inflation(args: Namespace, command: list[str], first: Recording) -> float | str | None:
    """Return the CPU inflation or why there is none; None where it has not been asked for."""
    if not args.inflation:
        return None
    if not first.free_threaded:
        return "this build has a GIL: its threads do not run at the same time"
    say("gilscope: running it again with the GIL on")
    again = record(lambda environ: run_words(command, environ), {**os.environ, "PYTHON_GIL": "1"})
    return inflation(first, again)


def _elsewhere(found: Diagnosis, words: list[str], first: Recording) -> WithoutGil | None:
    """Return what the free-threaded build gives; None where that is no question, or there is no such build."""
    in_the_way = found.limit.what is Limiter.GIL or found.convoys
    if found.free_threaded or found.exit or not in_the_way or "-" in found.program[:1]:
        return None
    build = free_build(find_builds(project_dir=Path.cwd()).builds, found.version)
    if build is None:
        return None
    say(f"gilscope: running it again on {build.label}, a short one three times, without its output; --once leaves "
        "that out")
    return run_there(build, words, os.environ, first)


def _width() -> int:
    """Return how many characters a line of the report may have: what fits the terminal, on one."""
    return max(NARROWEST, os.get_terminal_size(2).columns) if sys.stderr.isatty() else WIDTH


def _takes_unicode() -> bool:
    return (sys.stderr.encoding or "").lower().replace("-", "") == "utf8"
