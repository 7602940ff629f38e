"""`gilscope doctor`: does any package turn the GIL on, lose its C code or miss a wheel on a free-threaded build?"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.builds.find import find_builds, select_builds
from toolkit.commands.options import duration
from toolkit.errors import BuildError, ToolkitError, UnknownNameError
from toolkit.evaluate import document as documents
from toolkit.evaluate.current import current_requirements
from toolkit.evaluate.doctor import Options, diagnose
from toolkit.evaluate.imports import LIMIT
from toolkit.evaluate.scratch import Request
from toolkit.report import RENDERERS

if TYPE_CHECKING:
    from toolkit.builds.find import FoundBuilds
    from toolkit.model import Build


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
               "  gilscope doctor lxml --explain lxml.etree")
    parser.add_argument("packages", metavar="PACKAGE", nargs="*",
                        help="Requirement to look at (default: everything installed in the current environment, in "
                             "its versions).")
    parser.add_argument("--builds", metavar="LABELS",
                        help="Look at these builds, like 3.14t,3.15t (default: every free-threaded build at hand).")
    parser.add_argument("--build", metavar="LABEL=PATH", action="append", default=[],
                        help="Add the interpreter at PATH under the name LABEL. For one that is not found.")
    parser.add_argument("--interpreters", action="store_true",
                        help="Try interpreters that have their own GIL, too. They do not change the exit code.")
    parser.add_argument("--explain", metavar="NAME",
                        help="Show everything known of a package, an extension module or its file, and nothing else.")
    parser.add_argument("--build-sdists", action="store_true",
                        help="Build from source what has no wheel. Runs the packages' build scripts.")
    parser.add_argument("--offline", action="store_true",
                        help="Download nothing: judge what was installed by an earlier call.")
    parser.add_argument("--timeout", metavar="DURATION", type=duration, default=LIMIT,
                        help="End imports of one package after DURATION (default: 60s). It then counts as hanging.")
    parser.add_argument("--json", action="store_true", help="Print JSON, for scripts.")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Look at the packages; return 1 when any of them stands in the way."""
    found = find_builds(args.build, project_dir=Path.cwd())
    builds = _targets(found, args.builds)
    requirements = tuple(args.packages) or current_requirements()
    request = Request(requirements=requirements, sdists=args.build_sdists, offline=args.offline)
    options = Options(limit=args.timeout, interpreters=args.interpreters)
    reports = diagnose(request, builds, found.builds, options, _say)
    if not reports:
        raise ToolkitError("nothing of this was installed before; call it once without --offline")
    blocked = any(report.blocked for report in reports)
    if args.json:
        print(json.dumps(documents.plain(reports), indent=1))
        return int(blocked)
    shown = documents.explain(reports, args.explain) if args.explain else documents.document(reports)
    if not shown.sections:
        raise UnknownNameError(f"no package, extension module or file {args.explain!r} here; pure Python packages "
                               "that others need are not looked at")
    print(RENDERERS["terminal"](shown))
    return int(blocked)


def _targets(found: FoundBuilds, wanted: str | None) -> tuple[Build, ...]:
    if wanted is not None:
        return select_builds(found, wanted)
    builds = tuple(build for build in found.builds if build.free_threaded)
    if not builds:
        raise BuildError("no free-threaded build found; `gilscope builds install 3.14 3.14t` gets a pair")
    return builds


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
