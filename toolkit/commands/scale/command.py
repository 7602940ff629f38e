"""`gilscope scale`: tell whether a function scales over threads, and which object is in the way."""

from __future__ import annotations

import sys
from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.builds.environment import build_environment
from gilscope.toolkit.builds.find import find_builds, select_builds
from gilscope.toolkit.commands.options.common import add_build, positive
from gilscope.toolkit.commands.options.requirements import checked
from gilscope.toolkit.commands.output.reports import ReportOutput, add_output
from gilscope.toolkit.commands.run.request import check_callable_names, check_payload
from gilscope.toolkit.commands.scale.report import document
from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.commands.summaries import SUMMARIES
from gilscope.toolkit.cores import allowed_cpus
from gilscope.toolkit.errors import BuildError, ToolkitError
from gilscope.toolkit.measure.machine_lock import WAITING, MachineLock
from gilscope.toolkit.scale.investigation import investigate
from gilscope.toolkit.scale.judgement import ScalingVerdict
from gilscope.toolkit.scale.scaling_values import BuildScaling, scaling_values
from gilscope.toolkit.scale.zygote_process import LostZygoteError, UnscalableFunctionError, ZygoteProcess

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from gilscope.toolkit.model import Build

THREADS = 2
FOUND, UNFINISHED = 1, 3

DESCRIPTION = """\
Call a function of yours from several threads on each free-threaded build, and from as many processes in the same
moments. The throughput of the processes is called the ceiling. The verdict is "scales", "plateaus", "gets slower" or
"unsure". If it does not scale, gilscope finds out why by experiment: it makes objects immortal in copies of the
process, so that nobody counts references to them, and looks at locks in the headers of objects. The answer names the
objects as your program does.

The function is called many thousand times, in forks of one process: it must be safe to repeat, take less than 0.25 s,
and leave no thread running. Needs Linux."""
EPILOG = """\
exit codes:
   0  it scales on every build, or the verdict is unsure
   1  it does not scale on a build
   2  the request was wrong
   3  a build could not be measured
"""


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope scale`."""
    parser = commands.add_parser(
        "scale", help=SUMMARIES["scale"], description=DESCRIPTION, epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("function", metavar="MODULE:FUNCTION", help="Call this function, without arguments unless "
                        "payloads are given. Name the part of your work that threads are to share.")
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
    add_output(parser)
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Measure on each build, print the report, and return the exit code."""
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
    packages = [checked(text) for text in args.packages]
    builds = _builds(args)
    output = ReportOutput(args)
    machine = MachineLock(alone=False, waiting=lambda: print_stderr(f"gilscope: {WAITING}"))
    found = []
    for build in builds:
        print_stderr(f"gilscope: measuring on {build.label}, up to a minute")
        with machine.hold():
            found.append(_investigated(build, args, packages))
    output.show(document(args.function, args.threads, found))
    output.finish(lambda: scaling_values(args.function, args.threads, found))
    return _code(found)


def _builds(args: Namespace) -> tuple[Build, ...]:
    """Return the requested free-threaded builds, by default all.

    Raises:
        ToolkitError: A requested one has a GIL, or there is none.
    """
    available = find_builds(args.build, project_dir=Path.cwd())
    wanted = args.builds or ",".join(each.partition("=")[0] for each in args.build) or None
    chosen = available.builds if wanted is None else select_builds(available, wanted)
    free = tuple(build for build in chosen if build.free_threaded)
    if wanted is not None and (locked := [build.label for build in chosen if not build.free_threaded]):
        raise ToolkitError(f"{locked[0]} has a GIL, so its threads do not run Python code at the same time: name "
                           "free-threaded builds such as 3.14t; `gilscope gil` shows waits for the GIL")
    if not free:
        raise BuildError("there is no free-threaded build here; `gilscope builds install` installs one")
    return free


def _investigated(build: Build, args: Namespace, packages: Sequence[str]) -> BuildScaling:
    """Investigate one build; only a lost process and a function that does not work there are no errors."""
    python: str | Path = build.executable
    if packages:
        python = build_environment(build, [], user=packages, on_progress=print_stderr).python
    paths = [folder.resolve() for folder in args.path or [Path.cwd()]]
    try:
        with ZygoteProcess(python, paths) as process:
            loaded = process.load(args.function, args.payloads, args.payload, args.threads)
            if loaded.gil:
                return BuildScaling(build=build, found=None, problem="an import turned the GIL on, so threads cannot "
                                    "scale; `gilscope doctor` names the package")
            return BuildScaling(build=build, found=investigate(process, loaded, args.threads))
    except (UnscalableFunctionError, LostZygoteError) as error:
        return BuildScaling(build=build, found=None, problem=str(error))


def _code(found: Sequence[BuildScaling]) -> int:
    limited = {ScalingVerdict.PLATEAUS, ScalingVerdict.SLOWER}
    if any(each.found and each.found.judgement.verdict in limited for each in found):
        return FOUND
    return UNFINISHED if any(each.found is None for each in found) else 0
