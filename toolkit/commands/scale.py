"""`gilscope scale`: tell whether functions scale over threads, and which objects are in the way."""

from __future__ import annotations

import shlex
import sys
from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.builds.environment import build_environment
from gilscope.toolkit.builds.find import find_builds, select_free_threaded
from gilscope.toolkit.commands.options.common import add_build, duration, positive
from gilscope.toolkit.commands.options.requirements import checked
from gilscope.toolkit.commands.output.reports import ReportOutput, add_full, add_output
from gilscope.toolkit.commands.run.request import check_callable_names, check_payload
from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.commands.summaries import SUMMARIES
from gilscope.toolkit.cores import allowed_cpus
from gilscope.toolkit.errors import BuildError, ToolkitError
from gilscope.toolkit.hammer.offered_calls import call_files
from gilscope.toolkit.measure.machine import now, this_machine
from gilscope.toolkit.measure.machine_lock import WAITING, MachineLock
from gilscope.toolkit.scale.api import LIMITED, ApiRequest, CallableOutcome, CallableScaling, investigate_api
from gilscope.toolkit.scale.investigation import LONG_CALL, investigate
from gilscope.toolkit.scale.report import answer_document, answer_in_short
from gilscope.toolkit.scale.scaling_values import BuildScaling, ScalingAnswer, answer_values
from gilscope.toolkit.scale.zygote_process import GIL_ON, LostZygoteError, UnscalableFunctionError, ZygoteProcess
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from gilscope.toolkit.model import Build
    from gilscope.toolkit.scale.api import ApiScaling

BUDGET = "10m"      # of --api on a build
THREADS = 2
TEST_FOLDERS = ("tests", "test")
FOUND, UNFINISHED = 1, 3
STOPPED = "stopped before the end"

DESCRIPTION = """\
Call a function of yours from several threads on each free-threaded build, and from as many processes in the same
moments. The throughput of the processes is called the ceiling. The verdict is "scales", "plateaus", "gets slower" or
"unsure". If it does not scale, gilscope finds out why by experiment: it makes objects immortal in copies of the
process, so that nobody counts references to them, and looks at locks in the headers of objects. The answer names the
objects as your program does.

The function is called many thousand times, in forks of one process: it must be safe to repeat, take less than 0.25 s,
and leave no thread running. Needs Linux.

With --api, gilscope calls each public function and method of a module as its doctests and tests do, has a short look
at each, and looks for the cause where threads lose most. Each thread makes the objects and arguments of the call for
itself. The processes that call them are thrown away, but what the calls write or send is written or sent, thousands
of times."""
EPILOG = """\
exit codes:
   0  it scales on every build, or the verdict is unsure
   1  it does not scale on a build; with --api: a function or method does not
   2  the request was wrong
   3  a build could not be measured
"""


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope scale`."""
    parser = commands.add_parser(
        "scale", help=SUMMARIES["scale"], description=DESCRIPTION, epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("function", metavar="MODULE:FUNCTION", nargs="?", help="Call this function, without arguments "
                        "unless payloads are given. Name the part of your work that threads are to share.")
    parser.add_argument("--api", metavar="MODULE", help="Call each public function and method of this module instead, "
                        "as its doctests and tests do.")
    parser.add_argument("--tests", metavar="PATH", type=Path, action="append", help="With --api: find calls in this "
                        "file, or in the tests and pages of this folder (default: tests and test in the current "
                        "folder). Doctests of the module, and of what it imports from its package, are always read. "
                        "Repeatable.")
    parser.add_argument("--budget", metavar="TIME", type=duration, help="With --api: begin nothing more after TIME on "
                        f"a build (default: {BUDGET}). What was left out is listed.")
    parser.add_argument("--payloads", metavar="MODULE:NAME", help="Call it with each payload of this sequence, or of "
                        "what this function returns (default: no argument). If there are at least as many as "
                        "threads, each thread gets its own; otherwise all threads share them.")
    parser.add_argument("--payload", metavar="LITERAL", help="Call it with one payload that all threads share, a "
                        "Python literal such as 100000.")
    parser.add_argument("--threads", metavar="N", type=positive, default=THREADS,
                        help=f"Use N threads (default: {THREADS}). At most one for each CPU, to which it is pinned.")
    parser.add_argument("--builds", metavar="LABELS", help="Use these free-threaded builds, e.g. 3.14t,3.15t "
                        "(default: all that `gilscope builds` finds).")
    add_build(parser)
    parser.add_argument("--path", metavar="FOLDER", type=Path, action="append", help="Import your modules from FOLDER "
                        "(default: the current folder). Repeatable.")
    parser.add_argument("--with", metavar="REQUIREMENT", action="append", default=[], dest="packages",
                        help="Install this package, which your function needs, into an environment of each build. "
                        "Repeatable.")
    add_full(parser, "every ratio with its interval, objects, doubts, trials of repairs, how it was measured",
             "the verdict, what is in the way, what to do")
    add_output(parser)
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Measure on each build, print the report, and return the exit code."""
    _check(args)
    args.budget = args.budget or duration(BUDGET)
    packages = [checked(text) for text in args.packages]
    files = _call_files(args.tests) if args.api else ()
    # Installing takes long, and keeps no other measurement waiting.
    builds = [(build, _python(build, packages)) for build in _builds(args)]
    output, started = ReportOutput(args), now()
    machine = MachineLock(alone=False, waiting=lambda: print_stderr(f"gilscope: {WAITING}"))
    found: list[BuildScaling] = []

    def show() -> None:
        answer = ScalingAnswer(
            subject=args.api or args.function, threads=args.threads, started=started, machine=this_machine(),
            command=shlex.join(["gilscope", *args.words]), builds=tuple(found))
        output.show_answer(lambda: answer_in_short(answer), lambda: answer_document(answer), full=args.full)
        output.finish(lambda: answer_values(answer))

    try:
        for build, python in builds:
            limit = (f"{format_seconds(args.budget)} and what has begun by then" if args.api else
                     "a minute on a quiet machine, several if a call takes over 20 ms")
            print_stderr(f"gilscope: measuring on {build.label}, up to {limit}")
            with machine.hold():
                if args.api:
                    _investigate_api(build, python, args, files, found)
                else:
                    _investigate(build, python, args, found)
    except KeyboardInterrupt:
        if found:
            show()
        raise
    show()
    if any(one.outcome in LIMITED for each in found for one in each.callables):
        return FOUND
    return UNFINISHED if any(each.problem for each in found) else 0


def _check(args: Namespace) -> None:
    """Refuse options that cannot be followed, or not together.

    Raises:
        ToolkitError: There are such.
    """
    if bool(args.function) == bool(args.api):
        raise ToolkitError("name one function, as MODULE:FUNCTION, or with --api a module")
    if args.api and (args.payloads or args.payload is not None):
        raise ToolkitError("--payloads and --payload are for one function; --api takes arguments from tests and "
                           "doctests")
    if args.api and (":" in args.api or "/" in args.api or args.api.endswith(".py")):
        raise ToolkitError(f"--api {args.api}: name a module, such as package.module")
    if not args.api and (args.tests or args.budget):
        raise ToolkitError("--tests and --budget are for --api")
    check_callable_names(args.function, args.payloads)
    if args.payloads and args.payload is not None:
        raise ToolkitError("use --payloads, or --payload, the same for all threads, not both")
    if args.payload is not None:
        check_payload(args.payload)
    if sys.platform != "linux":
        raise ToolkitError("gilscope scale needs Linux, whose scheduler tells how long a thread waited for a core")
    if args.threads < THREADS or args.threads > allowed_cpus():
        raise ToolkitError(f"--threads {args.threads}: from {THREADS} to {allowed_cpus()}, the number of CPUs that "
                           "this process may use: each thread is pinned to one")


def _call_files(named: Sequence[Path] | None) -> tuple[tuple[Path, str], ...]:
    """Return the files to find calls in, each with its name in reports.

    Raises:
        ToolkitError: There is no such file or folder.
    """
    if missing := [path for path in named or () if not path.exists()]:
        raise ToolkitError(f"--tests {missing[0]}: there is no such file or folder")
    chosen = [each for each in map(Path, TEST_FOLDERS) if each.is_dir()] if named is None else named
    files = [file for each in chosen for file in (call_files(each) if each.is_dir() else [each])]
    return tuple((file.resolve(), str(file)) for file in files)


def _builds(args: Namespace) -> tuple[Build, ...]:
    """Return the requested free-threaded builds, by default all.

    Raises:
        ToolkitError: A requested one has a GIL, or there is none.
    """
    available = find_builds(args.build, project_dir=Path.cwd())
    if wanted := args.builds or ",".join(each.partition("=")[0] for each in args.build):
        return select_free_threaded(available, wanted)
    free = tuple(build for build in available.builds if build.free_threaded)
    if not free:
        raise BuildError("there is no free-threaded build here; `gilscope builds install` installs one")
    return free


def _investigate(build: Build, python: Path, args: Namespace, builds: list[BuildScaling]) -> None:
    """Add the findings on one build; a process that is lost, and a function that fails on this build, are its problem.

    If a signal stops it, what is known by then is added.
    """
    known: list[str] = []

    def add_problem(problem: str) -> None:
        so_far = f"; known by then: {'; '.join(known)}" if known else ""
        builds.append(BuildScaling(label=build.label, version=build.version, problem=f"{problem}{so_far}"))

    try:
        with ZygoteProcess(python, _folders(args)) as process:
            loaded = process.load(args.function, args.payloads, args.payload, args.threads)

            def say(text: str) -> None:
                known.append(text)
                if loaded.seconds_per_call >= LONG_CALL:
                    print_stderr(f"gilscope: {text}")

            if loaded.gil:
                add_problem(GIL_ON)
                return
            found = investigate(process, loaded, args.threads, say=say)
            builds.append(BuildScaling(label=build.label, version=build.version, callables=(CallableScaling(
                name=args.function, outcome=CallableOutcome(found.judgement.verdict.value), found=found,
                seconds_per_call=loaded.seconds_per_call),)))
    except (UnscalableFunctionError, LostZygoteError) as error:
        add_problem(str(error))
    except KeyboardInterrupt:
        if known:
            add_problem(STOPPED)
        raise


def _investigate_api(
    build: Build, python: Path, args: Namespace, files: tuple[tuple[Path, str], ...], builds: list[BuildScaling],
) -> None:
    """Add the findings on what a module offers on one build; if a signal stops it, what is known by then."""
    request = ApiRequest(module=args.api, threads=args.threads, folders=_folders(args), files=files,
                         seconds=args.budget)

    def add(found: ApiScaling) -> None:
        builds.append(BuildScaling(label=build.label, version=build.version, callables=found.callables,
                                   complete=found.complete))

    try:
        add(investigate_api(python, request, lambda text: print_stderr(f"gilscope: {text}"), keep=add))
    except UnscalableFunctionError as error:
        builds.append(BuildScaling(label=build.label, version=build.version, problem=str(error)))


def _python(build: Build, packages: Sequence[str]) -> Path:
    """Return the build's interpreter, in an environment with the packages if there are any."""
    if packages:
        return build_environment(build, [], user=packages, on_progress=print_stderr).python
    return Path(build.executable)


def _folders(args: Namespace) -> tuple[Path, ...]:
    return tuple(folder.resolve() for folder in args.path or [Path.cwd()])
