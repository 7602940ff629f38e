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
from gilscope.toolkit.commands.gil.report import answer_document, document
from gilscope.toolkit.commands.options.common import positive
from gilscope.toolkit.commands.options.files import add_page
from gilscope.toolkit.commands.options.programs import (
    OnceOption,
    build_python,
    cut_program,
    interpreter_flags,
    output_file,
    saved,
    warn_of_late_options,
)
from gilscope.toolkit.commands.output.pages import HtmlFile
from gilscope.toolkit.commands.output.reports import add_program_output, save_beside_program
from gilscope.toolkit.commands.stopping import SIGNALLED
from gilscope.toolkit.commands.streams import print_stderr, put_stderr
from gilscope.toolkit.commands.summaries import SUMMARIES
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.escaping import in_json
from gilscope.toolkit.gil import preload
from gilscope.toolkit.gil.as_json import values
from gilscope.toolkit.gil.bottleneck import Limiter
from gilscope.toolkit.gil.chrome import trace
from gilscope.toolkit.gil.diagnosis import diagnose
from gilscope.toolkit.gil.recorder import Recording, record
from gilscope.toolkit.gil.rerun_without_gil import RUNS, WithoutGil, free_build, run_there
from gilscope.toolkit.measure.machine_lock import WAITING, MachineLock
from gilscope.toolkit.programs.foreground import run_words
from gilscope.toolkit.programs.target import default_python, form_of_name, module_of, refuse_plain_folder
from gilscope.toolkit.report.terminal import WIDTH, render
from gilscope.toolkit.site.single.waits import wait_values

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from gilscope.toolkit.gil.diagnosis import Diagnosis

UNMEASURED = 3   # the exit code when the program ended well and nothing was recorded
PLACES = 10
NARROWEST = 40   # characters; some terminals report a width of 0

USAGE = """gilscope gil [options] SCRIPT [ARGS...]
       gilscope gil [options] -m MODULE [ARGS...]"""
DESCRIPTION = """\
Run a Python program and report what limits it: the GIL, a lock, a shared object, cores, I/O or nothing. The answer, in
at most twelve lines, names who holds the GIL and at which line, who waits because of that, and what to do; --full shows
each thread and place. On a free-threaded build, threads wait for locks and for objects that they share. Needs Linux
with glibc, and gilscope's wheel or a C compiler. The program itself is not modified.

The program may be run more than once: if it succeeds, and the GIL limits it or there is a convoy, it is run again on
the free-threaded build, up to three times, without input and with its output discarded. Everything else that it does,
such as writing files or sending requests, is done again. Use --once for exactly one run."""
EPILOG = """\
exit codes:
  128+N  signal N ended the program
      3  the program succeeded, but nothing was recorded, or a report file could not be written
      2  the request was wrong
  else   the program's own

The report follows on standard error. Processes that the program starts are also recorded.
"""


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope gil`."""
    parser = commands.add_parser(
        "gil", help=SUMMARIES["gil"], usage=USAGE, description=DESCRIPTION,
        epilog=EPILOG, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False,
    )
    add_options(parser)
    parser.cut = cut_program
    parser.set_defaults(run=run)


def add_options(parser: Any) -> None:
    """Add the options of `gilscope gil`."""
    add = parser.add_argument
    add("--build", metavar="LABEL", action=OnceOption, help="Run the program under this build, e.g. 3.14t, or under "
        "LABEL=PATH (default: the active environment's Python, or gilscope's own). Use it to compare builds.")
    add("--python-args", metavar="ARGS", type=interpreter_flags, default=(),
        help="Pass ARGS to the interpreter, quoted as one argument: --python-args='-O -W error' (default: none).")
    add_program_output(parser)
    add_page(parser)
    add("--trace", metavar="FILE", type=output_file,
        help="Also write a timeline to FILE. Open it at ui.perfetto.dev or chrome://tracing.")
    add("--places", metavar="N", type=positive, default=PLACES,
        help=f"With --full and in files, list N threads and places (default: {PLACES}). Use more for a long program.")
    add("--full", action="store_true", help="Print everything: the waits of each thread, all holders and places, and "
        "what measuring took (default: the answer). Use it to look behind the answer.")
    add("--once", action="store_true", help="Run the program exactly once; the gain on the free-threaded build is then "
        "not known (default: up to three further runs there). Use it for a program that must not be repeated, such as "
        "one that writes to a database.")


def run(args: Namespace) -> int:
    """Run the program, report the waits of its threads, and return the exit code."""
    if args.program[:1] == ["--"]:
        del args.program[0]
    command = [build_python(args.build) if args.build else default_python(), *args.python_args,
               *_program(args.program)]
    page = HtmlFile.requested(args)
    preload.library()      # raises before the program is started, if the library cannot be built
    machine = MachineLock(alone=False, waiting=lambda: print_stderr(f"gilscope: {WAITING}"), children_join=True)
    with machine.hold():
        first = record(lambda environ: run_words(command, environ), os.environ, all_holds=bool(args.trace))
    code = first.ended if first.ended >= 0 else SIGNALLED - first.ended
    if not first.processes:
        print_stderr("gilscope: nothing was recorded: " + (
            first.problem or "the program's Python did not load gilscope's library; a statically linked Python and "
            "versions before 3.12 cannot"))
        return code or UNMEASURED
    with machine.hold():
        found = diagnose(args.program, first)
        if not args.once:
            found = replace(found, elsewhere=_elsewhere(found, [*args.python_args, *args.program], first))
    unsaved = 0
    if args.trace:
        unsaved = saved(args.trace, in_json(json.dumps(trace(first.processes), separators=(",", ":"))))
    report = document(found, places=args.places)
    replaced, code_of_files = save_beside_program(args, [report], lambda: values(found))
    unsaved = code_of_files or unsaved
    if not replaced:
        shown = report if args.full else answer_document(found)
        put_stderr(render(shown, width=_width(), ascii_only=not _takes_unicode()))
    if page:
        unsaved = page.saved("waits.html", wait_values(values(found), report)) or unsaved
    warn_of_late_options("gil", add_options, first.ended, args.program)
    return code or unsaved


def _program(words: Sequence[str]) -> list[str]:
    """Return the command line after the interpreter and its flags.

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
            raise ToolkitError(f"no script {name!r}{form_of_name('gil', name)}")
        refuse_plain_folder(name)
    return list(words)


def _elsewhere(found: Diagnosis, words: list[str], first: Recording) -> WithoutGil | None:
    """Run the program on the free-threaded build; None if that is not requested or there is no such build."""
    # A machine without a core for each thread says little about the gain.
    in_the_way = found.limit.what is Limiter.GIL or (found.convoys and found.limit.what is not Limiter.CORES)
    if found.free_threaded or found.exit or not in_the_way or "-" in found.program[:1]:
        return None
    build = free_build(find_builds(project_dir=Path.cwd()).builds, found.version)
    if build is None:
        return None
    print_stderr(f"gilscope: running it again on {build.label} to measure the gain: {RUNS} times if it is short, "
                 "without input and with its output discarded; --once prevents that")
    return run_there(build, words, os.environ, first)


def _width() -> int:
    """Return the line width of the report: that of the terminal, if there is one."""
    return max(NARROWEST, os.get_terminal_size(2).columns) if sys.stderr.isatty() else WIDTH


def _takes_unicode() -> bool:
    return (sys.stderr.encoding or "").lower().replace("-", "") == "utf8"
