"""`gilscope doctor`: does any package turn the GIL on, lose its C code or miss a wheel on a free-threaded build?"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.builds.find import find_builds, select_builds, select_free_threaded
from gilscope.toolkit.builds.missing_packages import distribution_of, has_exact_version
from gilscope.toolkit.commands.doctor.wheels import is_file, is_requirements_file, judge_files
from gilscope.toolkit.commands.options.common import add_build, duration
from gilscope.toolkit.commands.options.files import add_page
from gilscope.toolkit.commands.options.requirements import checked
from gilscope.toolkit.commands.output.pages import HtmlFile
from gilscope.toolkit.commands.output.reports import ReportOutput, add_full, add_output
from gilscope.toolkit.commands.streams import print_stderr, put
from gilscope.toolkit.commands.summaries import SUMMARIES
from gilscope.toolkit.errors import BadFileError, BuildError, ToolkitError, UnknownNameError
from gilscope.toolkit.evaluate.packages.distributions import current_requirements
from gilscope.toolkit.evaluate.packages.doctor import DoctorOptions, diagnose, with_newest
from gilscope.toolkit.evaluate.packages.eviction import USUAL_GIB, VARIABLE, clear
from gilscope.toolkit.evaluate.packages.imports import LIMIT
from gilscope.toolkit.evaluate.packages.scratch import EnvironmentRequest
from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.requirements.closure import top_level_packages
from gilscope.toolkit.evaluate.requirements.locks import read_lock
from gilscope.toolkit.evaluate.requirements.requirements_file import read_requirements_file
from gilscope.toolkit.evaluate.requirements.wheel_for_build import choose_wheels
from gilscope.toolkit.evaluate.views import doctor as documents
from gilscope.toolkit.evaluate.views.explain_package import Beside, explain
from gilscope.toolkit.site.single.verdicts import build_cards, verdict_values
from gilscope.toolkit.units import counted, format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.builds.find import FoundBuilds
    from gilscope.toolkit.evaluate.packages.doctor import BuildReport
    from gilscope.toolkit.evaluate.requirements.locks import LockedPackage
    from gilscope.toolkit.model import Build
    from gilscope.toolkit.report.document import Document


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope doctor`."""
    parser = commands.add_parser(
        "doctor", help=SUMMARIES["doctor"],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Install packages into scratch environments of free-threaded builds, read what their extension\n"
                    "modules declare, import them in separate processes, and compare with the build that has a GIL.\n"
                    "Or judge your own wheels before you upload them: name files, or a folder of them.\n"
                    "Exit with 1 if a package would turn the GIL on, lose its C code or not work at all.",
        epilog="examples:\n  gilscope doctor numpy lxml 'aiohttp>=3.14'\n"
               "  gilscope doctor --builds 3.14t,3.15t --json        (the current environment, for CI)\n"
               "  gilscope doctor dist/*.whl dist/*.tar.gz           (your own wheels, before the upload)\n"
               "  gilscope doctor lxml --explain lxml.etree")
    parser.add_argument("packages", metavar="PACKAGE", nargs="*",
                        help="Requirement to examine (default: everything installed in the current environment, at the "
                             "installed versions), a requirements file, which ends in .txt, or a wheel, an sdist or a "
                             "folder of them: an argument with a path separator, or one that ends in .whl or .tar.gz. "
                             "The wheels of one version of a project are judged as a set: what each build would "
                             "install, whether tags agree with files, what imports do, and what is missing. Wheels "
                             "for other platforms are read, not run.")
    parser.add_argument("--lock", metavar="FILE", type=Path,
                        help="Examine what a lock file pins: uv.lock, pylock.toml, poetry.lock, requirements.txt with "
                             "versions.")
    parser.add_argument("--builds", metavar="LABELS",
                        help="Examine these builds, e.g. 3.14t,3.15t (default: every available free-threaded build).")
    add_build(parser)
    parser.add_argument("--interpreters", action="store_true",
                        help="Also check subinterpreters with their own GIL. They do not change the exit code.")
    parser.add_argument("--explain", metavar="NAME",
                        help="Only show all facts about a package, an extension module or its file.")
    parser.add_argument("--build-sdists", action="store_true",
                        help="Build packages without a wheel from source. Runs the packages' build scripts.")
    parser.add_argument("--offline", action="store_true",
                        help="Download nothing; judge what earlier calls installed. For others, only list the lock "
                             "file's wheels, without a verdict.")
    parser.add_argument("--timeout", metavar="TIME", type=duration, default=LIMIT,
                        help="End the imports of one package after TIME (default: 60s). It then counts as hanging.")
    parser.add_argument("--clear-cache", action="store_true",
                        help="Only remove the cached environments and answers of doctor and evaluate. Without it, at "
                             f"most {USUAL_GIB:g} GiB of environments are kept, for a week ({VARIABLE}=N for N GiB).")
    add_full(parser, "each package, and why it stands in the way", "what stands in the way, your own packages first")
    add_output(parser)
    add_page(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Look at the packages; return 1 when any of them stands in the way."""
    if args.clear_cache:
        count, size = clear()
        put(f"{counted(count, 'environment')} removed, about {format_bytes(size)}")
        return 0
    if scripts := [text for text in args.packages if text.endswith(".py")]:
        raise ToolkitError(f"{scripts[0]} is a script, not a package: `gilscope evaluate . --workload "
                           f"{shlex.quote(scripts[0])}` runs it to examine the project in this folder")
    if any(map(is_file, args.packages)):
        return judge_files(args, lambda: _builds(args, free_threaded=False), HtmlFile.requested(args))
    args.packages = [each for text in args.packages for each in _listed(text)]
    locked = _locked(args)   # mistakes in what is named come before builds that are missing
    requirements, own = _requirements(args, locked)
    page = HtmlFile.requested(args)
    found, builds = _builds(args)
    request = EnvironmentRequest(requirements=requirements, sdists=args.build_sdists, offline=args.offline,
                                 asked=own)
    options = DoctorOptions(limit=args.timeout, interpreters=args.interpreters)
    reports = diagnose(request, builds, found.builds, options, print_stderr)
    if len(reports) < len(builds) and args.offline:
        return _metadata_only(args, builds, locked, page)
    if not args.offline and any(map(has_exact_version, request.requirements)):
        reports = with_newest(reports, found.builds, options, print_stderr)
    blocked = any(report.blocked for report in reports)
    output = ReportOutput(args)
    document = _explained(args.explain, reports, locked, builds) if args.explain else documents.document(reports)
    output.show_answer(lambda: document if args.explain else documents.answer_document(reports), lambda: document,
                       full=args.full)
    output.finish(lambda: documents.plain(reports))
    if page:
        page.write("verdict.html", verdict_values(
            document, [] if args.explain else build_cards(documents.plain(reports))))
    return int(blocked)


def _locked(args: argparse.Namespace) -> tuple[LockedPackage, ...]:
    """Return the pinned versions of the named packages in the named lock; () without a lock."""
    if not args.lock:
        return ()
    locked = read_lock(args.lock)
    if not locked:
        raise BadFileError(f"{args.lock} pins no package: there is nothing to look at")
    wanted = {distribution_of(checked(text, paths=True)): text for text in args.packages}
    if absent := [text for name, text in wanted.items() if name not in {each.name for each in locked}]:
        raise UnknownNameError(f"{args.lock} does not pin {', '.join(absent)}")
    return tuple(each for each in locked if not wanted or each.name in wanted)


def _explained(
    name: str, reports: Sequence[BuildReport], locked: Sequence[LockedPackage], builds: Sequence[Build]
) -> Document:
    shown = explain(reports, name, Beside(locked=tuple(locked), builds=tuple(builds)))
    if not shown.sections:
        raise UnknownNameError(f"no package, extension module or file {name!r} here")
    return shown


def _metadata_only(
    args: argparse.Namespace, builds: Sequence[Build], locked: Sequence[LockedPackage], page: HtmlFile | None
) -> int:
    """Say which files the lock has for each build: neither good news nor bad, so the code is 0."""
    lock = args.lock or _lock_here()
    if lock is None:
        raise ToolkitError("nothing of this was installed before, and there is no lock file here to read; call it once "
                           "without --offline, or name a lock with --lock")
    asked = {distribution_of(text) for text in args.packages}
    locked = locked or [each for each in read_lock(lock) if not asked or each.name in asked]
    offers = {build.label: choose_wheels(locked, build) for build in builds}
    output = ReportOutput(args)
    document = _explained(args.explain, (), locked, builds) if args.explain else documents.metadata(lock.name, offers)
    output.show(document)
    output.finish(lambda: documents.plain_metadata(str(lock), offers))
    if page:
        page.write("verdict.html", verdict_values(document, []))
    return 0


def _requirements(
    args: argparse.Namespace, locked: Sequence[LockedPackage],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the requirements, and the names of the user's own: no other needs them; () if all are."""
    if args.lock:
        return tuple(each.pin for each in locked), top_level_packages({each.name: each.needs for each in locked})
    if args.packages:
        return tuple(checked(text, paths=True) for text in args.packages), ()
    here = current_requirements()
    return tuple(here), top_level_packages({distribution_of(pin): needs for pin, needs in here.items()})


def _listed(text: str) -> tuple[str, ...]:
    """Return the requirements in a requirements file; any other argument as it is.

    Raises:
        BadFileError: The file cannot be read, or lists no package.
    """
    if not is_requirements_file(text):
        return (text,)
    listed = read_requirements_file(Path(text))
    if listed.left_out:
        print_stderr(f"left out, as it has no name and no version: {', '.join(listed.left_out)}")
    if not listed.requirements:
        raise BadFileError(f"{text} lists no package: there is nothing to look at")
    return listed.requirements


def _lock_here() -> Path | None:
    try:
        return find_project(Path.cwd()).lock
    except ToolkitError:
        return None   # no project here


def _builds(args: argparse.Namespace, *, free_threaded: bool = True) -> tuple[FoundBuilds, tuple[Build, ...]]:
    found = find_builds(args.build, project_dir=Path.cwd())
    return found, _targets(found, args.builds, free_threaded=free_threaded)


def _targets(found: FoundBuilds, wanted: str | None, *, free_threaded: bool) -> tuple[Build, ...]:
    if wanted is not None:
        return select_free_threaded(found, wanted) if free_threaded else select_builds(found, wanted)
    builds = tuple(build for build in found.builds if build.free_threaded)
    if not builds:
        raise BuildError("no free-threaded build found; `gilscope builds install 3.14 3.14t` gets a pair")
    return builds
