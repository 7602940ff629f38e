"""`gilscope doctor`: does any package turn the GIL on, lose its C code or miss a wheel on a free-threaded build?"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.builds.find import find_builds, select_builds
from gilscope.toolkit.commands.doctor.survey import lines_file, refuse_beside_list, survey
from gilscope.toolkit.commands.options.common import add_build, duration
from gilscope.toolkit.commands.options.files import add_output, add_page
from gilscope.toolkit.commands.options.requirements import checked
from gilscope.toolkit.commands.output.pages import HtmlFile
from gilscope.toolkit.commands.output.printing import say
from gilscope.toolkit.commands.output.reports import Output
from gilscope.toolkit.commands.streams import put
from gilscope.toolkit.errors import BadFileError, BuildError, ToolkitError, UnknownNameError
from gilscope.toolkit.evaluate.packages.ask.imports import LIMIT
from gilscope.toolkit.evaluate.packages.current import current_requirements
from gilscope.toolkit.evaluate.packages.doctor import Options, diagnose, with_newest
from gilscope.toolkit.evaluate.packages.install.eviction import USUAL_GIB, VARIABLE, clear
from gilscope.toolkit.evaluate.packages.install.installing import name_of
from gilscope.toolkit.evaluate.packages.install.scratch import Request
from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.report import doctor as documents
from gilscope.toolkit.evaluate.report.explain_package import Beside, explain
from gilscope.toolkit.evaluate.requirements.chains import asked_for
from gilscope.toolkit.evaluate.requirements.locks import read_lock
from gilscope.toolkit.evaluate.requirements.wheel_for_build import offered
from gilscope.toolkit.site.single.verdicts import build_cards, verdict_values
from gilscope.toolkit.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.builds.find import FoundBuilds
    from gilscope.toolkit.evaluate.packages.doctor import BuildReport
    from gilscope.toolkit.evaluate.requirements.locks import Locked
    from gilscope.toolkit.model import Build
    from gilscope.toolkit.report.document import Document


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope doctor`."""
    parser = commands.add_parser(
        "doctor", help="tell which packages turn the GIL on, lose their C code or have no wheel",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Install packages into scratch environments of free-threaded builds, read what their extension\n"
                    "modules declare, import them in processes of their own, and compare with the build that has a\n"
                    "GIL. Exit with 1 when something would turn the GIL on, lose its C code or not work at all.",
        epilog="examples:\n  gilscope doctor numpy lxml 'aiohttp>=3.14'\n"
               "  gilscope doctor --builds 3.14t,3.15t --json        (the current environment, for CI)\n"
               "  gilscope doctor lxml --explain lxml.etree\n"
               "  gilscope doctor --list packages.txt --lines answers.jsonl\n"
               "  gilscope doctor --list packages.txt --fleet local:2")
    parser.add_argument("packages", metavar="PACKAGE", nargs="*",
                        help="Requirement to look at (default: everything installed in the current environment, in "
                             "its versions).")
    parser.add_argument("--lock", metavar="FILE", type=Path,
                        help="Look at what a lock file pins: uv.lock, pylock.toml, poetry.lock, requirements.txt with "
                             "versions.")
    parser.add_argument("--list", metavar="FILE", type=Path,
                        help="Look at each package that FILE lists, one requirement on a line, by itself: a survey. "
                             "Answers are kept for a day, so the same command goes on where it was ended.")
    parser.add_argument("--lines", metavar="FILE", type=lines_file,
                        help="With --list: write each answer as a line of JSON to FILE, which ends in .jsonl, as soon "
                             "as it is there (-: to standard output, in place of the text).")
    parser.add_argument("--fleet", metavar="ADDRESS",
                        help="With --list: have the hosts of a dask.distributed cluster answer, e.g. "
                             "tcp://10.0.0.5:8786, one package at a time each; what dies with a host goes to another. "
                             "local:2 starts 2 hosts on this machine. `gilscope fleet ADDRESS` shows what a cluster "
                             "has.")
    parser.add_argument("--builds", metavar="LABELS",
                        help="Look at these builds, like 3.14t,3.15t (default: every free-threaded build at hand).")
    add_build(parser)
    parser.add_argument("--interpreters", action="store_true",
                        help="Try interpreters that have their own GIL, too. They do not change the exit code.")
    parser.add_argument("--explain", metavar="NAME",
                        help="Show everything known of a package, an extension module or its file, and nothing else.")
    parser.add_argument("--build-sdists", action="store_true",
                        help="Build from source what has no wheel. Runs the packages' build scripts.")
    parser.add_argument("--offline", action="store_true",
                        help="Download nothing: judge what an earlier call installed; else say which wheels the lock "
                             "file has, which is no verdict.")
    parser.add_argument("--timeout", metavar="DURATION", type=duration, default=LIMIT,
                        help="End imports of one package after DURATION (default: 60s). It then counts as hanging.")
    parser.add_argument("--clear-cache", action="store_true",
                        help="Remove what doctor and evaluate keep, environments and answers, and do nothing else. "
                             f"They keep at most {USUAL_GIB:g} GiB of environments by themselves ({VARIABLE}=N for N "
                             "GiB), for a week.")
    add_output(parser)
    add_page(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Look at the packages; return 1 when any of them stands in the way."""
    if args.clear_cache:
        count, size = clear()
        put(f"{count} environment{'s' * (count != 1)} removed, about {format_bytes(size)}")
        return 0
    if args.list or args.lines or args.fleet:
        refuse_beside_list(args)
    if args.list:
        return survey(args, lambda: _targets(find_builds(args.build, project_dir=Path.cwd()), args.builds))
    page = HtmlFile(args.html, say) if args.html else None
    found = find_builds(args.build, project_dir=Path.cwd())
    builds = _targets(found, args.builds)
    locked = _locked(args)
    requirements = tuple(each.pin for each in locked) if args.lock else _requirements(args)
    request = Request(requirements=requirements, sdists=args.build_sdists, offline=args.offline,
                      asked=asked_for({each.name: each.needs for each in locked}))
    options = Options(limit=args.timeout, interpreters=args.interpreters)
    reports = diagnose(request, builds, found.builds, options, say)
    if len(reports) < len(builds) and args.offline:
        return _metadata_only(args, builds, locked, page)
    if not args.offline and any("==" in text for text in request.requirements):
        reports = with_newest(reports, found.builds, options, say)
    blocked = any(report.blocked for report in reports)
    output = Output(args)
    document = _explained(args.explain, reports, locked, builds) if args.explain else documents.document(reports)
    output.show(document)
    output.finish(lambda: documents.plain(reports))
    if page:
        page.write("verdict.html", verdict_values(
            document, [] if args.explain else build_cards(documents.plain(reports))))
    return int(blocked)


def _locked(args: argparse.Namespace) -> tuple[Locked, ...]:
    """Return what the lock that is named pins, of the packages that are named; nothing without one."""
    if not args.lock:
        return ()
    locked = read_lock(args.lock)
    if not locked:
        raise BadFileError(f"{args.lock} pins no package: there is nothing to look at")
    wanted = {name_of(checked(text, paths=True)): text for text in args.packages}
    if absent := [text for name, text in wanted.items() if name not in {each.name for each in locked}]:
        raise UnknownNameError(f"{args.lock} does not pin {', '.join(absent)}")
    return tuple(each for each in locked if not wanted or each.name in wanted)


def _explained(
    name: str, reports: Sequence[BuildReport], locked: Sequence[Locked], builds: Sequence[Build]
) -> Document:
    shown = explain(reports, name, Beside(locked=tuple(locked), builds=tuple(builds)))
    if not shown.sections:
        raise UnknownNameError(f"no package, extension module or file {name!r} here")
    return shown


def _metadata_only(
    args: argparse.Namespace, builds: Sequence[Build], locked: Sequence[Locked], page: HtmlFile | None
) -> int:
    """Say which files the lock has for each build: neither good news nor bad, so the code is 0."""
    lock = args.lock or _lock_here()
    if lock is None:
        raise ToolkitError("nothing of this was installed before, and there is no lock file here to read; call it once "
                           "without --offline, or name a lock with --lock")
    asked = {name_of(text) for text in args.packages}
    locked = locked or [each for each in read_lock(lock) if not asked or each.name in asked]
    offers = {build.label: offered(locked, build) for build in builds}
    output = Output(args)
    document = _explained(args.explain, (), locked, builds) if args.explain else documents.metadata(lock.name, offers)
    output.show(document)
    output.finish(lambda: {"metadata_only": True, "lock": str(lock), "builds": {
        label: [asdict(each) for each in found] for label, found in offers.items()}})
    if page:
        page.write("verdict.html", verdict_values(document, []))
    return 0


def _requirements(args: argparse.Namespace) -> tuple[str, ...]:
    if args.packages:
        return tuple(checked(text, paths=True) for text in args.packages)
    return current_requirements()


def _lock_here() -> Path | None:
    try:
        return find_project(Path.cwd()).lock
    except ToolkitError:
        return None   # no project here


def _targets(found: FoundBuilds, wanted: str | None) -> tuple[Build, ...]:
    if wanted is not None:
        return select_builds(found, wanted)
    builds = tuple(build for build in found.builds if build.free_threaded)
    if not builds:
        raise BuildError("no free-threaded build found; `gilscope builds install 3.14 3.14t` gets a pair")
    return builds
